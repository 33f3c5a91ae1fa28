"""Linear least squares over recordings of any length, with one triangular factor of [Y y] per joint."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lstsq, qr

from ...arrays import Array, Integers, Mask

CORRELATED = 1.5  # samples that count as one after the low pass: 2.5 per period over its noise bandwidth
STRUCTURAL = 1e-9  # relative size below which a column depends linearly on others


@dataclass
class TriangularFactor:
    """R of the QR decomposition of [Y y] of one joint, and the number of rows of [Y y]; y may be several."""

    R: Array
    count: int

    @classmethod
    def of(cls, Y: Array, y: Array) -> 'TriangularFactor':
        """The factor of [Y y]."""
        return cls(_triangle(np.column_stack([Y, y])), len(y))

    def add(self, other: 'TriangularFactor') -> None:
        """Add the rows of another factor."""
        self.R = _triangle(np.vstack([self.R, other.R]))
        self.count += other.count

    def columns(self, places: Integers, count: int, outputs: Array) -> 'TriangularFactor':
        """The factor of [Y y], its columns of Y at `places` of `count`, and y = last columns @ `outputs`."""
        R = np.zeros((len(self.R), count + 1))
        R[:, places] = self.R[:, : len(places)]
        R[:, -1] = self.R[:, self.R.shape[1] - len(outputs) :] @ outputs
        return TriangularFactor(_triangle(R), self.count)

    def without_first(self, weight: float) -> tuple['TriangularFactor', Array]:
        """The factor for the best first parameter, whose prior is the equation weight * parameter = 0.

        Also the row of that parameter, from which its value follows.
        """
        prior = weight * np.eye(1, self.R.shape[1])
        R = _triangle(np.vstack([self.R, prior]))
        return TriangularFactor(R[1:, 1:], self.count), R[0]

    def scaled(self, gain: float) -> 'TriangularFactor':
        """The factor with y multiplied by `gain`."""
        R = self.R.copy()
        R[:, -1] *= gain
        return TriangularFactor(_triangle(R), self.count)

    def rmse(self, theta: Array) -> float:
        """Root mean square of y - Y theta [N m]."""
        return float(np.linalg.norm(self.R[:, -1] - self.R[:, :-1] @ theta) / np.sqrt(max(self.count, 1)))

    def noise(self, correlated: float = 1.0) -> float:
        """Standard deviation of the residual of the best fit [N m]; so many samples count as one."""
        Y, y = self.R[:, :-1], self.R[:, -1]
        scale = _norms(Y)
        # By QR: numpy's SVD does not converge for some matrices of lower rank.
        theta, _, rank, _ = lstsq(Y / scale, y, cond=1e-10, lapack_driver='gelsy')
        residual = float(np.linalg.norm(y - (Y / scale) @ theta))
        return residual / np.sqrt(max(self.count - correlated * int(rank), 0.2 * self.count, 1))


@dataclass(frozen=True)
class BaseParameters:
    """Identifiable combinations of parameters: theta_b + combination @ theta_d."""

    independent: list[int]
    dependent: list[int]
    combination: Array

    def value(self, theta: Array) -> Array:
        """Base parameters of theta."""
        return np.asarray(theta[self.independent] + self.combination @ theta[self.dependent])


@dataclass(frozen=True)
class BaseFit:
    """Base parameters by weighted least squares, their standard deviations, and the condition number."""

    value: Array
    deviation: Array
    condition: float  # with columns of unit length


def base_parameters(Y: Array, preferred: Mask) -> BaseParameters:
    """Rank-revealing QR of a regressor (rows, p); `preferred` columns become independent before others.

    Columns that are zero belong to neither set.
    """
    scale = _norms(Y)
    nonzero = np.flatnonzero(np.abs(Y).max(axis=0, initial=0.0) > 1e-12)
    # A large weight makes the pivoting choose these columns first.
    weight = np.where(preferred[nonzero], 1e3, 1.0)
    columns = Y[:, nonzero] / scale[nonzero]
    _, R, order = qr(columns * weight, mode='economic', pivoting=True)
    diagonal = np.abs(np.diag(R))
    rank = int((diagonal > STRUCTURAL * diagonal[0]).sum())
    chosen, others = np.sort(order[:rank]), np.sort(order[rank:])
    combination = np.linalg.lstsq(columns[:, chosen], columns[:, others], rcond=None)[0]
    combination[np.abs(combination) < 1e-9] = 0.0
    independent, dependent = nonzero[chosen], nonzero[others]
    combination = combination * scale[dependent] / scale[independent][:, None]
    return BaseParameters(independent.tolist(), dependent.tolist(), combination)


def stacked(factors: list[TriangularFactor], noises: Array) -> tuple[Array, Array]:
    """One factor of all joints, weighted by 1 / noise: R (p, p) and z (p,) of |R theta - z|."""
    rows = np.vstack([t.R / noise for t, noise in zip(factors, noises, strict=True)])
    R = _triangle(rows)
    return R[:, :-1], R[:, -1]


def fit_base(R: Array, z: Array, base: BaseParameters) -> BaseFit:
    """Minimise |R theta - z| over the base parameters."""
    columns = R[:, base.independent]
    scale = _norms(columns)
    u, s, vt = np.linalg.svd(columns / scale, full_matrices=False)
    inverse = np.where(s > 1e-12 * s[0], 1 / np.maximum(s, 1e-300), 0.0)
    value = vt.T @ (inverse * (u.T @ z)) / scale
    deviation = np.sqrt(((vt.T * inverse) ** 2).sum(axis=1)) / scale
    return BaseFit(value, deviation, float(s[0] / s[-1]) if s[-1] > 0 else float('inf'))


def _triangle(rows: Array) -> Array:
    return np.asarray(np.linalg.qr(rows, mode='r'))


def _norms(Y: Array) -> Array:
    """Norm of each column, 1 where it is zero."""
    norms = np.linalg.norm(Y, axis=0)
    return np.where(norms > 0, norms, 1.0)
