"""The shape of friction near rest and under load, chosen by the error on data not used to fit it."""

from dataclasses import replace

import numpy as np

from ...arrays import Array, Integers
from .least_squares import TriangularFactor
from .regressor import Regressor, Unknowns

# Of the smooth sign [rad/s], of which neighbours are interpolated.
WIDTHS = (0.005, 0.007, 0.01, 0.014, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.14, 0.2, 0.3, 0.5, 1.0)
BETWEEN = np.array([-0.75, -0.5, -0.25, 0.25, 0.5, 0.75])  # the best of them, further trials [steps]
STRIBECK = 5.0  # Stribeck speed [widths]
EXTRA = ('coulomb', 'stribeck', 'load')  # columns at all WIDTHS, in this order
# Least relative decrease of the error, and of the sum of squared errors [variances of the noise], that
# justify another width, and a further parameter; times DESCRIBED against a shape that is described.
GAIN, EVIDENCE = (0.01, 0.03), (20.0, 40.0)
DESCRIBED = 4.0


def shape_columns(regressor: Regressor, j: int, v: Array, load: Array) -> Array:
    """(K, c): EXTRA columns of joint j at all WIDTHS; none with the exact sign."""
    if regressor.unknowns.sign == 'exact' or not regressor.measured[j]:
        return np.zeros((len(v), 0))
    signs = np.column_stack([np.tanh(v / width) for width in WIDTHS])
    falling = np.column_stack([np.exp(-((v / (STRIBECK * width)) ** 2)) for width in WIDTHS])
    return np.hstack([signs, falling * signs, load[:, None] * signs])


def shape_places(regressor: Regressor, j: int, first: int, end: int) -> dict[str, int]:
    """Where the columns nearest to the chosen friction of joint j are, if shapes begin at `first`."""
    name = regressor.robot.joint_names[j]
    width = regressor.unknowns.width.get(name)
    if width is None or end <= first:
        return {}
    shape = first + int(np.argmin(np.abs(np.log(WIDTHS) - np.log(width))))
    return {f'{name}.{kind}': shape + k * len(WIDTHS) for k, kind in enumerate(EXTRA)}


def choose_shape(
    regressor: Regressor,
    unknowns: Unknowns,
    j: int,
    active: Integers,
    parts: tuple[TriangularFactor, TriangularFactor],
    theta: Array,
) -> Unknowns:
    """`unknowns` with width, Stribeck and load-dependent friction of joint j that lower the error noticeably.

    Both parts have [Y, shapes, y]. The links are those of theta, an estimate from all joints, because the
    equations of one joint do not determine them.
    """
    name = regressor.robot.joint_names[j]
    kinds = [kind for kind, k in regressor.columns if k == j]
    if unknowns.sign == 'exact' or 'coulomb' not in kinds or not regressor.measured[j]:
        return unknowns
    links = int((active < regressor.inertial).sum())
    own = len(active) - links  # parameters of the joint; then come the shapes
    if min(part.count for part in parts) <= own + len(EXTRA):
        return unknowns
    parts = (_without_links(parts[0], links, theta[active]), _without_links(parts[1], links, theta[active]))
    noises = [max(part.noise(), 1e-9) for part in parts]
    prior, spread = regressor.prior[active[links:]], regressor.spread[active[links:]]
    dry = kinds.index('coulomb')

    def error(shape: float | None, extra: tuple[str, ...] = ()) -> float:
        """Of the described shape, or of the one at a place among WIDTHS, with further parameters."""
        selection = np.eye(own, own + len(EXTRA) * len(WIDTHS))
        if shape is not None:
            near = np.maximum(0.0, 1 - np.abs(np.arange(len(WIDTHS)) - shape))  # linear between two widths
            shapes = np.kron(np.eye(len(EXTRA)), near)
            selection[dry, own:] = shapes[0]
            selection[dry, dry] = 0.0
            more = np.zeros((len(extra), selection.shape[1]))
            more[:, own:] = shapes[[EXTRA.index(kind) for kind in extra]]
            selection = np.vstack([selection, more])
        free = [1.0 if kind == 'load' else float(spread[dry]) for kind in extra]
        means, spreads = np.append(prior, np.zeros(len(extra))), np.append(spread, free)
        return _held_out_error(parts, noises, selection, means, spreads, len(extra))

    count = parts[0].count + parts[1].count
    factor = DESCRIBED if prior[dry] > 0 else 1.0
    candidates: tuple[tuple[str, ...], ...] = ((), ('stribeck',), ('load',), ('stribeck', 'load'))
    best, chosen, extra = error(None), -1.0, candidates[0]
    for candidate in candidates:
        errors = {float(i): error(i, candidate) for i in range(len(WIDTHS))}
        nearest = min(errors, key=errors.__getitem__)
        errors |= {x: error(x, candidate) for x in (nearest + BETWEEN).clip(0, len(WIDTHS) - 1).tolist()}
        place = min(errors, key=errors.__getitem__)
        least, more = max(errors[place], 1e-12), int(bool(candidate))
        evidence = count * (best**2 / least**2 - 1)
        if least < (1 - factor * GAIN[more]) * best and evidence > factor * EVIDENCE[more]:
            best, chosen, extra = least, place, candidate
    if chosen < 0:
        return unknowns
    width = float(np.exp(np.interp(chosen, np.arange(len(WIDTHS)), np.log(WIDTHS))))
    return replace(
        unknowns,
        width={**unknowns.width, name: width},
        stribeck={**unknowns.stribeck, **({name: STRIBECK * width} if 'stribeck' in extra else {})},
        load=(*unknowns.load, *([name] if 'load' in extra else [])),
    )


def _without_links(factor: TriangularFactor, links: int, theta: Array) -> TriangularFactor:
    """The factor of the other columns and of the torque that the links leave."""
    R = factor.R[:, links:].copy()
    R[:, -1] -= factor.R[:, :links] @ theta[:links]
    return TriangularFactor(R, factor.count)


def _held_out_error(
    parts: tuple[TriangularFactor, TriangularFactor],
    noises: list[float],
    selection: Array,
    prior: Array,
    spread: Array,
    extra: int,
) -> float:
    """Root mean square error on one part of the theta fitted to the other, both ways [N m].

    `selection` combines columns of the parts; the last `extra` parameters must be positive.
    """
    total = 0.0
    for fitted, held, noise in zip(parts, parts[::-1], noises[::-1], strict=True):
        R, y = fitted.R[:, :-1] @ selection.T, fitted.R[:, -1]
        N = (R * spread).T @ (R * spread) / noise**2 + np.eye(len(prior))
        right = spread * (R.T @ y) / noise**2 + prior / spread
        theta = spread * np.linalg.solve(N, right)
        if (theta[len(theta) - extra :] < 0).any():  # friction that drives
            return np.inf
        total += float(np.sum((held.R[:, -1] - held.R[:, :-1] @ (selection.T @ theta)) ** 2))
    return float(np.sqrt(total / max(parts[0].count + parts[1].count, 1)))
