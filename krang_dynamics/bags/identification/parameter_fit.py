"""Parameters, noise levels and motor gains from the triangular factors of all joints."""

import numpy as np

from ...arrays import Array, Mask
from ...errors import BagError
from .consistent_fit import fit_consistent
from .least_squares import TriangularFactor, stacked
from .regressor import Regressor

ITERATIONS = 8  # of the noise levels
LEAST_NOISE = 1e-9  # [N m]


def fit_parameters(
    regressor: Regressor, factors: list[TriangularFactor], driven: Mask
) -> tuple[Array, Array, Array]:
    """Physically consistent theta, its standard deviations, and the noise level of each row [N m].

    The noise of a row is the RMSE of theta on it, so both are found by iteration. A driven row starts with,
    and never falls below, the noise of its own best fit. A passive row is Y theta = 0, which theta = 0 fits
    perfectly, so it starts with the RMSE of the prior.
    """
    prior, spread = regressor.prior, regressor.spread
    least = np.array([f.noise() if own else LEAST_NOISE for f, own in zip(factors, driven, strict=True)])
    noises = np.where(driven, least, [factor.rmse(prior) for factor in factors])
    for _ in range(ITERATIONS):
        R, z = stacked(factors, np.maximum(noises, LEAST_NOISE))
        design = np.vstack([R * spread, np.eye(len(spread))])
        theta = spread * np.linalg.lstsq(design, np.concatenate([z, prior / spread]), rcond=None)[0]
        noises = np.maximum([factor.rmse(theta) for factor in factors], least)
    noises = np.maximum(noises, LEAST_NOISE)
    R, z = stacked(factors, noises)
    return *fit_consistent(R, z, prior, spread, len(regressor.bodies), regressor.positive), noises


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
            f'the gain of {joint} cannot be identified: the torque of its links is too small in its effort; '
            'omit --gains, or record a faster motion'
        )
    return 1 / inverse, deviation / inverse**2
