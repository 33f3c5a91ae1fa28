"""Quintic pieces in Bernstein form: exact at their ends, and bounded by their control points."""

from bisect import bisect_right
from math import comb

import numpy as np

from ...arrays import Array, Mask
from ...kernels import quintic as evaluate

SIZE = 6  # control points of a quintic
TOLERANCE = 1e-9  # of limits, relative to limits beyond 1

# de Casteljau's algorithm at the middle: control points of the first and of the second half.
FIRST_HALF = np.array([[comb(i, j) / 2**i for j in range(SIZE)] for i in range(SIZE)])
SECOND_HALF = FIRST_HALF[::-1, ::-1]


class Spline:
    """Position, velocity, acceleration and effort (4, n) of n joints over time [s].

    `control` (pieces, 6, 4, n) holds from knot to knot, `rest` (4, n) from the last knot on; it owns both.
    """

    def __init__(self, knots: Array, control: Array, rest: Array) -> None:
        self.begin = float(knots[0]) if len(knots) else -np.inf
        self.end = float(knots[-1]) if len(knots) else -np.inf
        self.rest = rest
        # Plain floats: indexing arrays would cost more time than the mathematics.
        self._knots: list[float] = knots.tolist()
        self._pieces = list(control.reshape(len(control), SIZE, rest.size))

    @classmethod
    def resting(cls, rest: Array) -> 'Spline':
        """The constant `rest` (4, n)."""
        return cls(np.zeros(0), np.zeros((0, SIZE, *rest.shape)), rest)

    def sample(self, t: float) -> Array:
        """The values (4, n) at t [s]; before the first knot, those of the first knot."""
        out = np.empty(self.rest.shape)
        self.write(t, out)
        return out

    def write(self, t: float, out: Array) -> None:
        """The same, written to an array."""
        piece = max(bisect_right(self._knots, t) - 1, 0)
        if piece >= len(self._pieces):
            out[:] = self.rest
            return
        begin = self._knots[piece]
        s = max((t - begin) / (self._knots[piece + 1] - begin), 0.0)
        evaluate(self._pieces[piece], s, out)


class JoinedSpline:
    """A spline that another one continues."""

    def __init__(self, head: Spline, body: Spline) -> None:
        self._head, self._body, self.end, self.rest = head, body, body.end, body.rest

    def sample(self, t: float) -> Array:
        """The values (4, n) at t [s]."""
        return self._head.sample(t) if t < self._body.begin else self._body.sample(t)

    def write(self, t: float, out: Array) -> None:
        """The same, written to an array."""
        (self._head if t < self._body.begin else self._body).write(t, out)


def quintic(duration: Array, start: Array, end: Array) -> Array:
    """Control points (pieces, 6, 3, n) of position and its derivatives, which are raised to degree 5.

    duration (pieces,) [s]; start and end (3, pieces, n): position, velocity, acceleration.
    """
    T = duration[:, None]
    (p0, v0, a0), (p1, v1, a1) = start, end
    p = [p0, p0 + v0 * T / 5, p0 + 2 * v0 * T / 5 + a0 * T**2 / 20]
    p += [p1 - 2 * v1 * T / 5 + a1 * T**2 / 20, p1 - v1 * T / 5, p1]
    # Five times p[3] - p[2], without the rounding of a position far from zero.
    middle = 5 * (p1 - p0) / T - 2 * (v0 + v1) + (a1 - a0) * T / 4
    v = [v0, v0 + a0 * T / 4, middle, v1 - a1 * T / 4, v1]
    a = [a0, 4 * (v[2] - v[1]) / T, 4 * (v[3] - v[2]) / T, a1]
    return np.stack([_raised(np.stack(points, axis=1)) for points in (p, v, a)], axis=2)


def cubic_accelerations(duration: Array, p: Array, v: Array) -> tuple[Array, Array]:
    """Accelerations (pieces, n) at both ends of the cubics through p and v (pieces + 1, n).

    A quintic with these accelerations is the cubic.
    """
    T = duration[:, None]
    slope = np.diff(p, axis=0) / T
    return (6 * slope - 4 * v[:-1] - 2 * v[1:]) / T, (-6 * slope + 2 * v[:-1] + 4 * v[1:]) / T


def smooth_velocities(duration: Array, p: Array, start: Array | None, end: Array | None) -> Array:
    """Velocities (pieces + 1, n) of the C2 cubic spline through p; no acceleration where an end is None."""
    # lower v[i-1] + diagonal v[i] + upper v[i+1] = right: accelerations of neighbouring cubics agree.
    T, slope = duration, np.diff(p, axis=0) / duration[:, None]
    middle = 3 * (T[1:, None] * slope[:-1] + T[:-1, None] * slope[1:])
    first, last = (3 * slope[0] if start is None else start), (3 * slope[-1] if end is None else end)
    right = np.vstack([first, middle, last])
    lower = np.hstack([0.0, T[1:], 1.0 if end is None else 0.0]).tolist()
    diagonal = np.hstack(
        [2.0 if start is None else 1.0, 2 * (T[:-1] + T[1:]), 2.0 if end is None else 1.0]
    ).tolist()
    upper = np.hstack([1.0 if start is None else 0.0, T[:-1], 0.0]).tolist()
    for i in range(1, len(p)):  # Thomas' algorithm; importing scipy.linalg would double a node's start
        factor = lower[i] / diagonal[i - 1]
        diagonal[i] -= factor * upper[i - 1]
        right[i] -= factor * right[i - 1]
    right[-1] /= diagonal[-1]
    for i in range(len(p) - 2, -1, -1):
        right[i] = (right[i] - upper[i] * right[i + 1]) / diagonal[i]
    return right


def beyond(values: Array, lower: Array, upper: Array, tolerance: float = TOLERANCE) -> Mask:
    """Where values leave [lower, upper] by more than the tolerance."""
    low = lower - tolerance * np.maximum(1.0, np.abs(lower))
    high = upper + tolerance * np.maximum(1.0, np.abs(upper))
    return (values < low) | (values > high)


def first(mask: Mask) -> tuple[int, ...] | None:
    """Index of the first true entry, or None."""
    if not mask.any():
        return None
    return tuple(int(i) for i in np.unravel_index(int(mask.argmax()), mask.shape))


def excursion(control: Array, lower: Array, upper: Array) -> tuple[int, int, float, float] | None:
    """Where quintics (pieces, 6, n) leave the limits (n,), or None if none does.

    Returned are piece, joint, value, and the place in the piece, 0 to 1. A curve whose control points are
    inside is inside; any other is halved until it is decided.
    """
    n = control.shape[2]
    points = np.swapaxes(control, 1, 2).reshape(-1, SIZE)
    curve = np.arange(len(points))
    begin, width = np.zeros(len(points)), 1.0
    while curve.size:
        low, high = lower[curve % n, None], upper[curve % n, None]
        ends = points[:, [0, -1]]  # these lie on the curve
        if found := first(beyond(ends, low, high)):
            piece, joint = divmod(int(curve[found[0]]), n)
            return piece, joint, float(ends[found]), float(begin[found[0]] + width * found[1])
        # Twice the tolerance, so that rounding cannot leave a curve undecided forever.
        undecided = beyond(points, low, high, 2 * TOLERANCE).any(axis=1)
        points, curve, begin, width = points[undecided], curve[undecided], begin[undecided], width / 2
        points = np.concatenate([points @ FIRST_HALF.T, points @ SECOND_HALF.T])
        curve, begin = np.concatenate([curve, curve]), np.concatenate([begin, begin + width])
    return None


def _raised(points: Array) -> Array:
    """The same curves with as many control points (axis 1) as a quintic has."""
    while (count := points.shape[1]) < SIZE:
        weight = (np.arange(1, count) / count)[:, None]
        inner = weight * points[:, :-1] + (1 - weight) * points[:, 1:]
        points = np.concatenate([points[:, :1], inner, points[:, -1:]], axis=1)
    return points
