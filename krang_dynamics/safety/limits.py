"""The limits in force, per joint."""

from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from ..errors import InputError
from ..robot.model import Robot

LIMITS = ('effort', 'effort_rate', 'velocity', 'position_margin', 'following_error')  # limits.* parameters
OVERSPEED = 1.2  # default fault threshold, in URDF speed limits, so that a reference may use the full limit
HIGHEST_SPEED = 1e4  # fault threshold of a joint without a speed limit [rad/s]
FOLLOWING_ERROR = 0.2  # default fault threshold of the following error [rad, m]
RATE = 10.0  # default torque rate, in effort limits per second


@dataclass
class Limits:
    """Effort limits [N m], rate limits [N m/s], and fault thresholds, over joint_names."""

    effort: Array
    effort_rate: Array
    stop_rate: Array
    velocity: Array  # [rad/s]
    position_margin: Array  # [rad] inside the URDF's limits
    peak: Array  # the URDF's effort, which is never exceeded
    following_error: Array | None = None  # [rad]; None: not checked

    @classmethod
    def of(cls, robot: Robot) -> 'Limits':
        """The robot's own limits: nominal effort, its default rate, no margin."""
        peak = np.array([robot.urdf.joints[name].effort for name in robot.joint_names])
        effort = np.minimum(robot.effort_limits, peak)
        for name, value in zip(robot.joint_names, effort, strict=True):
            if robot.config.joints[name].driven and not 0 < value < np.inf:
                remedy = 'set it in the URDF, or lock the joint' if value == 0 else 'set its nominal_torque'
                raise InputError(
                    f'joint {name!r} is driven, but its effort limit is {value:g}; {remedy} in a robot file, '
                    'which krang new writes'
                )
        rate = default_rate(robot, effort)
        return cls(
            effort=effort,
            effort_rate=rate,
            stop_rate=rate.copy(),
            velocity=np.minimum(OVERSPEED * robot.velocity_limits, HIGHEST_SPEED),
            position_margin=np.zeros(robot.nv),
            peak=peak,
        )

    def adopt(self, other: 'Limits') -> None:
        """Take other limits; arrays that are equal stay the same objects."""
        for name in (*LIMITS, 'stop_rate'):
            if not np.array_equal(getattr(self, name), getattr(other, name)):
                setattr(self, name, getattr(other, name))


def default_rate(robot: Robot, effort: Array) -> Array:
    """The robot file's effort rates [N m/s]; ten effort limits [N m] per second for joints without one."""
    rates = [robot.config.joints[name].effort_rate for name in robot.joint_names]
    return np.array([RATE * e if r is None else r for r, e in zip(rates, effort, strict=True)])


def default_following_error(robot: Robot) -> Array:
    """The robot file's largest following errors [rad, m], FOLLOWING_ERROR where it gives none."""
    errors = [robot.config.joints[name].following_error for name in robot.joint_names]
    return np.array([FOLLOWING_ERROR if error is None else error for error in errors])
