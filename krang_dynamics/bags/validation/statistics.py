"""Measured against predicted, joint by joint, in figures that can be added up window by window."""

from dataclasses import dataclass

import numpy as np

from ...arrays import Array


@dataclass(frozen=True)
class Figures:
    """Of one joint: RMSE and bias (mean of measured - predicted) [N m], correlation, share of variance."""

    rmse: float
    correlation: float
    r2: float
    bias: float

    def as_dict(self) -> dict[str, float | None]:
        """For JSON, which knows no NaN."""
        return {name: value if np.isfinite(value) else None for name, value in vars(self).items()}


class Moments:
    """Means and central squares of measured y, predicted p and e = y - p over all samples so far."""

    def __init__(self, y: Array, p: Array) -> None:
        self.count = len(y)
        columns = (y, p, y - p)
        self.mean = np.array([x.sum(axis=0) for x in columns]) / max(self.count, 1)
        y, p, e = (x - mean for x, mean in zip(columns, self.mean, strict=True))
        self.squares = np.array([_dot(y, y), _dot(p, p), _dot(e, e)])
        self.cross = _dot(y, p)

    def add(self, other: 'Moments') -> None:
        """Chan's rule: central moments of the union of two sets."""
        if not other.count:
            return
        count = self.count + other.count
        step, weight = other.mean - self.mean, self.count * other.count / count
        self.squares += other.squares + weight * step**2
        self.cross += other.cross + weight * step[0] * step[1]
        self.mean = self.mean + step * (other.count / count)
        self.count = count

    def figures(self, joint: int) -> Figures:
        bias = float(self.mean[2, joint])
        yy, pp, ee = self.squares[:, joint]
        total = ee + self.count * bias**2
        with np.errstate(divide='ignore', invalid='ignore'):
            correlation = self.cross[joint] / np.sqrt(yy * pp)
            r2 = 1 - total / yy
            rmse = np.sqrt(total / np.float64(self.count))
        return Figures(float(rmse), float(correlation), float(r2), bias)

    def slope(self, joint: int) -> float:
        """Measured per predicted, by least squares."""
        with np.errstate(divide='ignore', invalid='ignore'):
            return float(self.cross[joint] / self.squares[1, joint])


def _dot(x: Array, y: Array) -> Array:
    return np.asarray(np.einsum('kn,kn->n', x, y))
