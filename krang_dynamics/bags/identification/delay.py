"""The time by which recorded effort lags behind recorded motion."""

import numpy as np

from ...arrays import Array
from .least_squares import TriangularFactor

DELAYS = np.array([1e-3 * k for k in range(-40, 42, 2)])  # at which the effort is evaluated [s]


def estimate_delay(factors: list[TriangularFactor], priors: list[tuple[Array, Array]]) -> float:
    """The delay [s] at which the equations of all joints fit best; 0 if the data do not determine it.

    The factors are of [Y, effort at DELAYS]; `priors` has mean and standard deviation of each theta.
    """
    cost = np.zeros(len(DELAYS))
    now = int(np.argmin(np.abs(DELAYS)))
    for factor, (prior, spread) in zip(factors, priors, strict=True):
        errors = squared_errors(factor, prior, spread, len(DELAYS))
        if errors[now] > 0:
            cost += factor.count * errors / errors[now]
    best = int(np.argmin(cost))
    if not 0 < best < len(DELAYS) - 1:
        return 0.0
    before, least, after = cost[best - 1 : best + 2]
    curvature = before - 2 * least + after
    if curvature < 1.0:  # a shift of one step changes the fit by less than its noise
        return 0.0
    return float(DELAYS[best] + (DELAYS[1] - DELAYS[0]) * 0.5 * (before - after) / curvature)


def squared_errors(factor: TriangularFactor, prior: Array, spread: Array, outputs: int) -> Array:
    """Sum of squared errors of the best theta for each of the last `outputs` columns."""
    columns, y = factor.R[:, :-outputs], factor.R[:, -outputs:]
    noise = max(TriangularFactor(np.column_stack([columns, y[:, 0]]), factor.count).noise(), 1e-9)
    design = np.vstack([columns / noise, np.diag(1 / spread)])
    target = np.vstack([y / noise, np.repeat((prior / spread)[:, None], outputs, axis=1)])
    theta = np.linalg.lstsq(design * spread, target, rcond=None)[0] * spread[:, None]
    return np.asarray(((y - columns @ theta) ** 2).sum(axis=0))


def at_delay(delay: float) -> Array:
    """Weights of the columns at DELAYS that give the effort at a delay: Lagrange's cubic polynomial."""
    step = DELAYS[1] - DELAYS[0]
    first = int(np.clip(np.floor((delay - DELAYS[0]) / step) - 1, 0, len(DELAYS) - 4))
    nodes = DELAYS[first : first + 4]
    weights = np.zeros(len(DELAYS))
    for i, node in enumerate(nodes):
        others = np.delete(nodes, i)
        weights[first + i] = np.prod((delay - others) / (node - others))
    return weights
