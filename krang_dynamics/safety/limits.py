"""The limits in force, per joint."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..arrays import Array, joint_vector
from ..errors import InputError
from ..robot.model import Robot

OVERSPEED = 1.2  # default fault threshold, in speed limits: a reference may use all of the limit
CHANGEABLE = ('effort', 'effort_rate', 'velocity', 'position_margin', 'following_error')
FASTEST = 1e4  # of a joint that has no speed limit [rad/s]
RATE = 10.0  # default torque rates, in effort limits per second


@dataclass
class Limits:
    """Effort [N m], its rates [N m/s], and what is a fault beyond; over joint_names."""

    effort: Array
    effort_rate: Array
    stop_rate: Array
    velocity: Array  # [rad/s]
    position_margin: Array  # [rad] inside the URDF's limits
    peak: Array  # the URDF's effort, above which nothing goes
    following_error: Array | None = None  # [rad]; None: not watched

    @classmethod
    def of(cls, robot: Robot) -> 'Limits':
        """The robot's own: nominal effort, ten efforts per second, no margin."""
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
            velocity=np.minimum(OVERSPEED * robot.velocity_limits, FASTEST),
            position_margin=np.zeros(robot.nv),
            peak=peak,
        )

    def set(self, robot: Robot, **changes: object) -> None:
        """Change some limits together or not at all; effort never above the URDF's."""
        self.adopt(self.checked(robot, changes))

    def checked(self, robot: Robot, changes: Mapping[str, object]) -> dict[str, Array | None]:
        """Changes that may be adopted, or InputError; a following error of None is not watched."""
        checked: dict[str, Array | None] = {}
        for name, value in changes.items():
            if name not in CHANGEABLE:
                raise InputError(f'limits has no {name!r}')
            if name == 'following_error' and value is None:
                checked[name] = None
                continue
            array = joint_vector(f'limits.{name}', value, robot.joint_names, (robot.nv,)).copy()
            if (array < 0).any():
                raise InputError(f'limits.{name} is {array.tolist()}; limits are 0 or more')
            checked[name] = np.minimum(array, self.peak) if name == 'effort' else array
        return checked

    def adopt(self, changes: Mapping[str, Array | None]) -> None:
        """Put checked changes in force."""
        for name, array in changes.items():
            setattr(self, name, array)


def default_rate(robot: Robot, effort: Array) -> Array:
    """The robot file's effort rates [N m/s], ten efforts [N m] per second where it gives none."""
    rates = [robot.config.joints[name].effort_rate for name in robot.joint_names]
    return np.array([RATE * e if r is None else r for r, e in zip(rates, effort, strict=True)])
