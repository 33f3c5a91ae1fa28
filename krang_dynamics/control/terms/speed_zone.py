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


class SpeedZone:
    """Between the beginning of the zone and the limit a joint is damped, and driven less; at the limit not.

    Its torque always opposes the motion: it only takes energy.
    """

    def __init__(self, robot: Robot, settings: 'Settings') -> None:
        self._limit = Limits.of(robot).velocity
        if settings.limits_velocity is not None:
            self._limit = settings.per_joint('limits.velocity', robot)
        self._begin = BEGIN * np.minimum(robot.velocity_limits, self._limit)
        self._zero = np.zeros(robot.nv)

    def torque(self, drive: Array, v: Array, v_d: Array, A: Array) -> Array:
        """Torque [N m] against v [rad/s], given what drives the joints [N m].

        The zone begins at the speed of a reference v_d that is faster.
        """
        if not any_true(np.abs(v) > self._begin):
            return self._zero
        begin = np.maximum(self._begin, np.abs(v_d))
        excess = v - np.clip(v, -begin, begin)
        width = np.maximum(self._limit - begin, NARROW * self._limit)
        share = np.minimum(np.abs(excess) / width, 1.0)
        return np.asarray(-share * np.where(drive * v > 0, drive, 0.0) - free_inertia(A) / TIME * excess)


def free_inertia(A: Array) -> Array:
    """Inertia [kg m2] of each joint while the others are free to move."""
    return np.asarray(1 / np.diag(np.linalg.inv(A)))
