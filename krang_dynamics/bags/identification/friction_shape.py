"""The shape of friction near rest, chosen by the error on data that were not used to fit it."""

import numpy as np

from ...arrays import Array, Integers
from .least_squares import TriangularFactor
from .regressor import Regressor, Unknowns

WIDTHS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # of the smooth sign [rad/s]
STRIBECK = 5.0  # Stribeck speed [widths]
GAIN = 0.01  # least relative decrease of the error that justifies another shape
EVIDENCE = 50.0  # and least decrease of the sum of squared errors [variances of the noise]


def shape_columns(regressor: Regressor, j: int, v: Array) -> Array:
    """(K, c): smooth signs of joint j at all WIDTHS, then their Stribeck parts; none with the exact sign."""
    if regressor.unknowns.sign == 'exact' or not regressor.measured[j]:
        return np.zeros((len(v), 0))
    signs = np.column_stack([np.tanh(v / width) for width in WIDTHS])
    falling = np.column_stack([np.exp(-((v / (STRIBECK * width)) ** 2)) for width in WIDTHS])
    return np.hstack([signs, falling * signs])


def choose_shape(
    regressor: Regressor,
    j: int,
    active: Integers,
    parts: tuple[TriangularFactor, TriangularFactor],
    theta: Array,
) -> Unknowns:
    """Width and Stribeck speed of joint j, if they lower the error noticeably.

    Both parts have [Y, shapes, y]. The links are those of theta, an estimate from all joints, because the
    equations of one joint do not determine them.
    """
    unknowns, name = regressor.unknowns, regressor.robot.joint_names[j]
    kinds = [kind for kind, k in regressor.columns if k == j]
    if unknowns.sign == 'exact' or 'coulomb' not in kinds or not regressor.measured[j]:
        return unknowns
    links = int((active < regressor.inertial).sum())
    own, first = len(active) - links, len(active) - links  # parameters of the joint; then come the shapes
    parts = (_without_links(parts[0], links, theta[active]), _without_links(parts[1], links, theta[active]))
    prior, spread = regressor.prior[active[links:]], regressor.spread[active[links:]]
    dry = kinds.index('coulomb')

    def error(shape: int, stribeck: bool) -> float:
        columns = np.arange(own)
        columns[dry] = first + shape if shape >= 0 else dry
        extra = [first + len(WIDTHS) + shape] if stribeck else []
        free = np.full(len(extra), spread[dry])
        return _held_out_error(
            parts, np.append(columns, extra).astype(int), np.append(prior, 0 * free), np.append(spread, free)
        )

    count = parts[0].count + parts[1].count

    def is_better(error: float, than: float) -> bool:
        evidence = count * (than**2 / max(error, 1e-12) ** 2 - 1)
        return error < (1 - GAIN) * than and evidence > EVIDENCE

    best, chosen, speed = error(-1, False), -1, False
    errors = [error(i, False) for i in range(len(WIDTHS))]
    if is_better(min(errors), best):
        chosen = int(np.argmin(errors))
        best = errors[chosen]
    with_stribeck = [error(i, True) for i in range(len(WIDTHS))]
    if is_better(min(with_stribeck), best):
        chosen, speed = int(np.argmin(with_stribeck)), True
    if chosen < 0:
        return unknowns
    width = {**unknowns.width, name: WIDTHS[chosen]}
    stribeck = {**unknowns.stribeck, name: STRIBECK * WIDTHS[chosen]} if speed else unknowns.stribeck
    return Unknowns(unknowns.sign, unknowns.asymmetric, width, stribeck)


def _without_links(factor: TriangularFactor, links: int, theta: Array) -> TriangularFactor:
    """The factor of the other columns and of the torque that the links leave."""
    R = factor.R[:, links:].copy()
    R[:, -1] -= factor.R[:, :links] @ theta[:links]
    return TriangularFactor(R, factor.count)


def _held_out_error(
    parts: tuple[TriangularFactor, TriangularFactor], columns: Integers, prior: Array, spread: Array
) -> float:
    """Root mean square error on one part of the theta fitted to the other, both ways [N m]."""
    total = 0.0
    for fitted, held in (parts, parts[::-1]):
        noise = max(held.noise(), 1e-9)
        R, y = fitted.R[:, columns], fitted.R[:, -1]
        N = (R * spread).T @ (R * spread) / noise**2 + np.eye(len(prior))
        right = spread * (R.T @ y) / noise**2 + prior / spread
        theta = spread * np.linalg.solve(N, right)
        total += float(np.sum((held.R[:, -1] - held.R[:, columns] @ theta) ** 2))
    return float(np.sqrt(total / max(parts[0].count + parts[1].count, 1)))
