"""Noise levels and motor gains from the triangular factors of all joints."""

import numpy as np
from scipy.linalg import solve_triangular

from ...arrays import Array, Mask
from ...errors import BagError
from .least_squares import CORRELATED, TriangularFactor, stacked
from .regressor import Regressor

ITERATIONS = 8  # of the noise levels
LEAST_NOISE, LEAST_PASSIVE = 1e-4, 1e-3  # of a row [typical torques]; of one without a motor
SMALLEST = 1e-9  # [N m]
LEAST_FREEDOM = 0.2  # share of the samples of a row to which no parameter counts as fitted


def noise_levels(
    regressor: Regressor, factors: list[TriangularFactor], driven: Mask, correlation: Array | None = None
) -> tuple[Array, Array]:
    """A first theta, and the standard deviation of each row [N m]; `correlation`: samples that count as one.

    The noise of a row is the RMSE of theta on it, so both are found by iteration; at last it is corrected for
    the parameters that were fitted to the row. A driven row starts with, and never falls below, the noise of
    its own best fit. A passive row is Y theta = 0, which theta = 0 fits perfectly, so it starts with the RMSE
    of the prior. No noise falls below a share of the torque.
    """
    prior, spread = regressor.prior, regressor.spread
    correlation = np.full(len(factors), CORRELATED) if correlation is None else correlation
    least = np.array(
        [
            max(factor.noise(together), _floor(factor, prior, LEAST_NOISE))
            if own
            else _floor(factor, prior, LEAST_PASSIVE)
            for factor, own, together in zip(factors, driven, correlation, strict=True)
        ]
    )
    noises = np.where(driven, least, [max(factor.rmse(prior), SMALLEST) for factor in factors])
    noises = np.maximum(noises, least)
    for _ in range(ITERATIONS):
        R, z = stacked(factors, noises)
        design = np.vstack([R * spread, np.eye(len(spread))])
        theta = spread * np.linalg.lstsq(design, np.concatenate([z, prior / spread]), rcond=None)[0]
        noises = np.maximum([factor.rmse(theta) for factor in factors], least)
    triangle = np.linalg.qr(design, mode='r')
    for i, (factor, together) in enumerate(zip(factors, correlation, strict=True)):
        rows = solve_triangular(triangle, (factor.R[:, :-1] * spread).T / noises[i], trans='T')
        left = max(1 - together * float(np.sum(rows**2)) / max(factor.count, 1), LEAST_FREEDOM)
        noises[i] = max(factor.rmse(theta) / np.sqrt(left), least[i])
    return theta, noises


def motor_gain(regressor: Regressor, factor: TriangularFactor, joint: str) -> tuple[float, float]:
    """Factor on a joint's effort for which the torque of the links is as described, and its deviation.

    effort = (Y theta_links) / gain + rotor, friction and offset, in the unit of effort.
    """
    j = regressor.robot.joint_names.index(joint)
    links = factor.R[:, : regressor.inertial] @ regressor.prior[: regressor.inertial]
    own = [regressor.inertial + i for i, (_, k) in enumerate(regressor.columns) if k == j]
    columns = np.column_stack([links, factor.R[:, own]])
    y = factor.R[:, -1]
    solution = np.linalg.lstsq(columns, y, rcond=None)[0]
    noise = np.linalg.norm(y - columns @ solution) / np.sqrt(max(factor.count - len(solution), 1))
    inverse = float(solution[0])
    deviation = float(noise * np.sqrt(np.linalg.pinv(columns.T @ columns)[0, 0]))
    if inverse <= 3 * deviation:
        raise BagError(
            f'the gain of {joint} cannot be identified: the torque of its links is too small in its effort'
        )
    return 1 / inverse, deviation / inverse**2


def motor_gain_by_load(
    regressor: Regressor, factors: tuple[TriangularFactor, TriangularFactor], joint: str, load: Array
) -> tuple[float, float]:
    """Factor on a joint's effort, and its deviation, from equations without and with a known load.

    effort = Y (theta_links + load) / gain + rotor, friction and offset; theta_links has its wide prior.
    """
    j, links = regressor.robot.joint_names.index(joint), regressor.inertial
    own = [links + i for i, (_, k) in enumerate(regressor.columns) if k == j]
    rows, efforts = [], []
    for factor, added in zip(factors, (0.0 * load, load), strict=True):
        noise = max(factor.noise(CORRELATED), SMALLEST) * np.sqrt(CORRELATED)
        torque = factor.R[:, :links] @ (regressor.prior[:links] + added)
        columns = [torque, factor.R[:, :links] * regressor.spread[:links], factor.R[:, own]]
        rows.append(np.column_stack(columns) / noise)
        efforts.append(factor.R[:, -1] / noise)
    prior = np.eye(links, 1 + links + len(own), 1)
    design, y = np.vstack([*rows, prior]), np.concatenate([*efforts, np.zeros(links)])
    scale = np.maximum(np.linalg.norm(design, axis=0), 1e-12)
    inverse_of = np.linalg.pinv(design / scale)
    inverse = float(inverse_of[0] @ y / scale[0])
    deviation = float(np.linalg.norm(inverse_of[0]) / scale[0])
    if inverse <= 3 * deviation:
        raise BagError(f'the gain of {joint} cannot be identified: the load is too small in its effort')
    return 1 / inverse, deviation / inverse**2


def _floor(factor: TriangularFactor, prior: Array, share: float) -> float:
    """A share of the typical torque of a row [N m]."""
    parts = np.append(factor.R[:, :-1] * prior, factor.R[:, -1:], axis=1)
    return max(share * float(np.linalg.norm(parts)) / float(np.sqrt(max(factor.count, 1))), SMALLEST)
