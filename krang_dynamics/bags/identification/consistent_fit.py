"""Least squares over parameters that a real robot can have: rigid bodies with mass, friction that dissipates.

The pseudo-inertia of a body is positive definite. Pinocchio's log-Cholesky parameters (Rucker and Wensing,
2022) cover exactly those bodies, so an unconstrained least-squares solver is enough.
"""

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from scipy.optimize import least_squares

from ...arrays import Array, Mask

SMALLEST = 1e-7  # smallest eigenvalue of an initial pseudo-inertia, relative to its largest
EVALUATIONS = 150  # per solution, enough for bodies that are nearly a rod or a point
LOG_SPREAD = 1.5  # prior on the logarithms of the Cholesky diagonal; keeps bodies from shrinking to nothing
ROUNDS = 20  # of the search for the parameters that are zero
# Logarithms of the Cholesky diagonal as a linear function of the log-Cholesky parameters.
LOG_DIAGONAL = np.zeros((4, 10))
LOG_DIAGONAL[:, 0] = LOG_DIAGONAL[range(3), range(1, 4)] = 1.0


@dataclass(frozen=True)
class ParameterBounds:
    """What else is known: theta[i] = exp(x) with a normal x; H theta <= 0 softly; P theta = p softly."""

    median: Array  # of logarithmic entries, NaN for others
    deviation: Array  # of their logarithms
    H: Array  # scaled, so that 1 is one standard deviation
    P: Array
    p: Array

    @classmethod
    def none(cls, count: int) -> 'ParameterBounds':
        """No further knowledge of `count` parameters."""
        nothing = np.zeros((0, count))
        return cls(np.full(count, np.nan), np.full(count, np.nan), nothing, nothing, np.zeros(0))


def fit_consistent(
    R: Array,
    z: Array,
    prior: Array,
    spread: Array,
    bodies: int,
    positive: Mask,
    bounds: ParameterBounds | None = None,
    uncertain: Array | None = None,
) -> tuple[Array, Array]:
    """theta that minimises |R theta - z|^2 + |(theta - prior) / spread|^2, and its standard deviations.

    The first 10 * bodies entries are Pinocchio's dynamic parameters of each body; `positive` ones stay >= 0.
    The deviations are those of `uncertain` in place of R, if it is given.
    """
    bounds = bounds or ParameterBounds.none(len(prior))
    blocks = [slice(10 * i, 10 * i + 10) for i in range(bodies)]
    logarithmic = np.isfinite(bounds.median)
    weight = np.where(logarithmic, 0.0, 1 / spread)
    linear_prior = np.vstack([np.diag(weight), bounds.P])
    design = np.vstack([R, linear_prior])
    target = np.concatenate([z, prior * weight, bounds.p])
    reduced = np.asarray(np.linalg.qr(np.column_stack([design, target]), mode='r'))  # the same squares
    design, target = reduced[:, :-1], reduced[:, -1]
    start = np.where(logarithmic, np.log(np.where(logarithmic, bounds.median, 1.0)), prior / spread)
    shrinkage = np.zeros((4 * bodies + int(logarithmic.sum()), len(prior)))
    for i, block in enumerate(blocks):
        start[block] = log_cholesky(prior[block])
        shrinkage[4 * i : 4 * i + 4, block] = LOG_DIAGONAL / LOG_SPREAD
    for row, k in enumerate(np.flatnonzero(logarithmic).tolist(), 4 * bodies):
        shrinkage[row, k] = 1 / bounds.deviation[k]
    # An active set for theta >= 0: scipy's bounds take ten times as long and end short of the minimum.
    held = np.zeros(len(prior), dtype=bool)  # at zero

    def theta_of(x: Array) -> Array:
        theta = np.where(held, 0.0, x * spread)
        theta[logarithmic] = np.exp(np.minimum(x[logarithmic], 50.0))
        for block in blocks:
            theta[block] = pin.LogCholeskyParameters(x[block]).toDynamicParameters()
        return theta

    def slope_of(x: Array, theta: Array) -> Array:
        """dtheta/dx."""
        D = np.diag(np.where(held, 0.0, np.where(logarithmic, theta, spread)))
        for block in blocks:
            D[block, block] = pin.LogCholeskyParameters(x[block]).calculateJacobian()
        return D

    def rows(x: Array) -> tuple[Array, Array]:
        """Residuals, and their derivatives by theta above those by x."""
        theta = theta_of(x)
        outside = bounds.H @ theta
        beyond = outside > 0
        residual = np.concatenate(
            [design @ theta - target, np.where(beyond, outside, 0.0), shrinkage @ (x - start)]
        )
        return residual, np.vstack([design, bounds.H * beyond[:, None]])

    def jacobian(x: Array) -> Array:
        by_theta = rows(x)[1]
        return np.vstack([by_theta @ slope_of(x, theta_of(x)), shrinkage])

    # Friction and rotors that suit the described bodies: from far away the solver ends short of the minimum.
    x, others = start.copy(), slice(10 * bodies, None)
    left = target - design[:, : 10 * bodies] @ theta_of(start)[: 10 * bodies]
    fitted = spread[others] * np.linalg.lstsq(design[:, others] * spread[others], left, rcond=None)[0]
    least = np.where(logarithmic, np.exp(start * logarithmic), np.where(positive, 0.0, -np.inf))[others]
    fitted = np.maximum(fitted, least)
    x[others] = np.where(logarithmic[others], np.log(np.abs(fitted) + 1e-300), fitted / spread[others])
    for _ in range(ROUNDS):
        # A step that is too long gives infinite values, and the solver rejects it.
        with np.errstate(over='ignore', invalid='ignore'):
            x = least_squares(
                lambda x: rows(x)[0], x, jacobian, method='lm', x_scale='jac', max_nfev=EVALUATIONS
            ).x
        theta = theta_of(x)
        gradient = design.T @ (design @ theta - target)
        below, released = positive & ~logarithmic & ~held & (theta < 0), held & (gradient < 0)
        if not below.any() and not released.any():
            break
        held = (held | below) & ~released
    if uncertain is not None:
        design = np.vstack([uncertain, linear_prior])
    return theta, _deviations(design, spread, logarithmic, theta, bounds)


def _deviations(
    design: Array, spread: Array, logarithmic: Mask, theta: Array, bounds: ParameterBounds
) -> Array:
    """Standard deviations of theta with its linear prior; the prior of a logarithm is linear at theta."""
    scale = np.where(logarithmic, np.maximum(theta, 1e-12), spread)
    prior = np.diag(np.where(logarithmic, 1 / np.where(logarithmic, bounds.deviation, 1.0), 0.0))[logarithmic]
    inverse = np.linalg.pinv(np.vstack([design * scale, prior]))  # scaled: entries of similar size
    return np.asarray(scale * np.linalg.norm(inverse, axis=1))


def is_consistent(parameters: Array) -> bool:
    """Whether a rigid body can have these ten dynamic parameters."""
    J = pin.PseudoInertia.FromDynamicParameters(parameters).toMatrix()
    return bool(np.linalg.eigvalsh(J)[0] > 0)


def log_cholesky(parameters: Array) -> Array:
    """Log-Cholesky parameters of the nearest rigid body; Pinocchio has only the way back.

    They are (log s, d_1..3, s_12, s_23, s_13, t_1..3) of the upper triangular
    U = s [exp d_1, s_12, s_13, t_1; 0, exp d_2, s_23, t_2; 0, 0, exp d_3, t_3; 0, 0, 0, 1] with U U^T = J.
    """
    values, vectors = np.linalg.eigh(pin.PseudoInertia.FromDynamicParameters(parameters).toMatrix())
    values = np.maximum(values, SMALLEST * max(float(values[-1]), 1e-12))
    J = vectors * values @ vectors.T
    # With rows and columns reversed, numpy's lower triangle becomes the upper one.
    U = np.linalg.cholesky(J[::-1, ::-1])[::-1, ::-1]
    V = U / U[3, 3]
    return np.array([np.log(U[3, 3]), *np.log(np.diag(V)[:3]), V[0, 1], V[1, 2], V[0, 2], *V[:3, 3]])
