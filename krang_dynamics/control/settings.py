"""What a controller is told at configure time, and which of it may change while it runs."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ..errors import InputError
from ..robot.model import Robot
from ..robot.urdf import Array
from ..robot.validate import array
from ..safety.samples import MissingVelocity
from .observer import ObserverSettings
from .wrench import WrenchSettings

TERMS = (
    'gravity',
    'friction',
    'damping',
    'computed_torque',
    'wrench',
    'joint_limits',
    'observer',
    'rolling_base',
    'balance',
)


@dataclass
class Settings:
    """Parameters of a controller; per-joint values are a number for all or an array over joint_names."""

    terms: tuple[str, ...]
    bandwidth: float = 2 * np.pi * 5  # of computed torque [rad/s]
    damping_ratio: float = 1.0
    kp: Array | float | None = None  # instead of bandwidth and ratio [1/s2]
    kd: Array | float | None = None  # [1/s]
    damping: Array | float = 0.0  # [N m s/rad]
    wrenches: dict[str, WrenchSettings] = field(default_factory=dict)
    observer: ObserverSettings = field(default_factory=ObserverSettings)
    hardware_compensates_gravity: bool = False
    wheels_locked: bool = False
    command_joints: tuple[str, ...] | None = None  # None: every driven joint that has a driver
    ramp_time: float = 1.0  # [s]
    stop_policy: Literal['hold', 'lower', 'zero'] | None = None  # None: the robot's
    missing_velocity: MissingVelocity = 'error'
    state_timeout: float = 0.1  # [s]
    reference_timeout: float | None = None
    wrench_timeout: float = 0.1
    deadman_required: bool = False
    deadman_timeout: float = 0.2

    def gains(self, robot: Robot) -> tuple[Array, Array]:
        """Kp [1/s2] and Kd [1/s] over joint_names."""
        if (self.kp is None) != (self.kd is None):
            raise InputError('gains.kp and gains.kd go together; give both, or bandwidth and damping_ratio')
        if self.kp is None or self.kd is None:
            w = per_joint('gains.bandwidth', self.bandwidth, robot)
            return w**2, 2 * per_joint('gains.damping_ratio', self.damping_ratio, robot) * w
        return per_joint('gains.kp', self.kp, robot), per_joint('gains.kd', self.kd, robot)


def per_joint(what: str, value: Array | float, robot: Robot) -> Array:
    """One number for all joints, or one per joint; 0 or more."""
    shape = () if np.ndim(value) == 0 else (robot.nv,)
    numbers = np.broadcast_to(array(what, value, shape), (robot.nv,)).copy()
    if (numbers < 0).any():
        raise InputError(f'{what} is {numbers.tolist()}; it must be 0 or more')
    return numbers


def commanded_joints(robot: Robot, settings: Settings) -> tuple[str, ...]:
    """The joints that get torque: driven, with a driver whose condition holds, as asked for."""
    ready = {
        a.joint for a in robot.config.actuators if a.only_if is None or getattr(settings, a.only_if, False)
    }
    available = tuple(name for name in robot.actuated_joint_names if name in ready)
    if settings.command_joints is None:
        return available
    for name in settings.command_joints:
        if name not in available:
            raise InputError(f'command_joints: {name!r} gets no torque; possible are {", ".join(available)}')
    if len(set(settings.command_joints)) < len(settings.command_joints):
        raise InputError('command_joints names a joint twice')
    return tuple(settings.command_joints)
