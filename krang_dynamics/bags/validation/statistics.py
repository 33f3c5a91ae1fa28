"""Errors and correlation of measured and predicted values per joint, accumulated window by window."""

from dataclasses import dataclass

import numpy as np

from ...arrays import Array


@dataclass(frozen=True)
class FitFigures:
    """Of one joint: RMSE and bias (mean of measured - predicted) [N m], correlation and r2."""

    rmse: float
    correlation: float
    r2: float
    bias: float

    def as_dict(self) -> dict[str, float | None]:
        """For JSON; NaN and infinity become None."""
        return {name: value if np.isfinite(value) else None for name, value in vars(self).items()}


class CorrelationSums:
    """Means and centred sums of squares of measured y, predicted p and e = y - p, which can be added."""

    def __init__(self, y: Array, p: Array) -> None:
        self.count = len(y)
        means = [x.sum(axis=0) / max(self.count, 1) for x in (y, p)]
        y, p = y - means[0], p - means[1]
        self.mean = np.array([*means, means[0] - means[1]])
        self.cross = _dot(y, p)
        e = y - p
        self.squares = np.array([_dot(y, y), _dot(p, p), _dot(e, e)])

    def add(self, other: 'CorrelationSums') -> None:
        """Chan's formula for the centred sums of the union of two sets of samples."""
        if not other.count:
            return
        count = self.count + other.count
        step, weight = other.mean - self.mean, self.count * other.count / count
        self.squares += other.squares + weight * step**2
        self.cross += other.cross + weight * step[0] * step[1]
        self.mean = self.mean + step * (other.count / count)
        self.count = count

    def figures(self, joint: int) -> FitFigures:
        """RMSE, correlation, r2 and bias of one joint."""
        bias = float(self.mean[2, joint])
        yy, pp, ee = self.squares[:, joint]
        with np.errstate(all='ignore'):
            total = ee + self.count * self.mean[2, joint] ** 2
            correlation = self.cross[joint] / np.sqrt(yy * pp)
            r2 = 1 - total / yy
            rmse = np.sqrt(total / np.float64(self.count))
        return FitFigures(float(rmse), float(correlation), float(r2), bias)

    def slope(self, joint: int) -> float:
        """Slope of the regression of measured on predicted values."""
        with np.errstate(divide='ignore', invalid='ignore'):
            return float(self.cross[joint] / self.squares[1, joint])


def _dot(x: Array, y: Array) -> Array:
    return np.asarray(np.einsum('kn,kn->n', x, y))
