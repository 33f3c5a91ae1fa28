"""The limits in force, per joint."""

from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from ..errors import InputError
from ..robot.model import Robot

LIMITS = ('effort', 'effort_rate', 'velocity', 'position_margin', 'following_error')  # limits.* parameters
OVERSPEED = 1.2  # default fault threshold, in URDF speed limits, so that a reference may use the full limit
HIGHEST_SPEED = 1e4  # fault threshold of a joint without a speed limit [rad/s]
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
        if not np.isfinite(effort).all():
            joint = robot.joint_names[int(np.argmin(np.isfinite(effort)))]
            raise InputError(f'joint {joint!r} has no effort limit; give one in the URDF or the robot file')
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
