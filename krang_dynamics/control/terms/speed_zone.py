"""Speed zones: joints near their speed limits are braked, so that a spring does not drive them beyond."""

from typing import TYPE_CHECKING

import numpy as np

from ...arrays import Array, any_true
from ...robot.model import Robot
from ...safety.limits import Limits

if TYPE_CHECKING:
    from ..settings import Settings

BEGIN = 0.7  # of the zone, as a share of the speed limit
NARROW = 0.1  # least width of the zone, as a share of the limit in force
TIME = 0.025  # time constant of the damping in the zone [s]
SLOW = 0.1  # share of the beginning below which a joint counts as held, by a person or a load


class SpeedZone:
    """Between the beginning of the zone and the limit a joint is damped, and driven less; at the limit not.

    What drives a joint can only be removed at the rate limit of the effort, and the joint becomes faster
    meanwhile: it is driven less before. The torque always opposes the motion: it only takes energy.
    """

    def __init__(self, robot: Robot, settings: 'Settings') -> None:
        limits = Limits.of(robot)
        self._limit, rate = limits.velocity, limits.effort_rate
        if settings.limits_velocity is not None:
            self._limit = settings.per_joint('limits.velocity', robot)
        if settings.limits_effort_rate is not None:
            rate = settings.per_joint('limits.effort_rate', robot)
        self._removal = 2 * rate * free_inertia(robot.mass_matrix(robot.home))
        self._begin = BEGIN * np.minimum(robot.velocity_limits, self._limit)
        self._slow = SLOW * self._begin
        self._zero = np.zeros(robot.nv)

    def torque(self, drive: Array, v: Array, v_d: Array, A: Array) -> Array:
        """Torque [N m] against v [rad/s], given what drives the joints [N m].

        The zone begins at the speed of a reference v_d that is faster; joints slower than it are free.
        """
        speed = np.abs(v)
        # The speed that a joint would still gain while the drive is removed.
        gain = np.minimum(speed / self._slow, 1.0) * (drive * drive / self._removal)
        if not any_true(speed + gain > self._begin):
            return self._zero
        is_driven = (drive * v > 0) & (speed > np.abs(v_d))
        drive, gain = np.where(is_driven, drive, 0.0), np.where(is_driven, gain, 0.0)
        begin = np.maximum(self._begin, np.abs(v_d))
        width = np.maximum(self._limit - begin, NARROW * self._limit)
        share = np.clip((speed + gain - begin) / width, 0.0, 1.0)
        torque = -share * drive
        excess = v - np.clip(v, -begin, begin)
        if any_true(excess != 0):
            torque -= free_inertia(A) / TIME * excess
        return torque


def free_inertia(A: Array) -> Array:
    """Inertia [kg m2] of each joint while the others are free to move."""
    return np.asarray(1 / np.diag(np.linalg.inv(A)))
