"""What a controller is told at configure time, and which of it may change while it runs."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Literal

import numpy as np

from ..arrays import Array, array
from ..errors import InputError
from ..robot.config import StopConfig, Unit
from ..robot.model import Robot
from ..safety.joint_buffer import MissingVelocity
from .terms.observer import ObserverSettings
from .terms.wrench import WrenchSettings

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
    command_joints: tuple[str, ...] | None = None  # or drivers; None: every driven joint that has one
    command_unit: Unit | None = None  # of the drivers; None: the robot's
    ramp_time: float = 1.0  # [s]
    stop_policy: Literal['hold', 'lower', 'zero'] | None = None  # None: the robot's, as below
    stop_time: float | None = None  # [s]
    stop_blind_time: float | None = None  # [s]
    stop_rate: Array | float | None = None  # [N m/s]; None: as the effort rate
    missing_velocity: MissingVelocity = 'error'
    state_timeout: float = 0.1  # [s]
    reference_timeout: float | None = None
    wrench_timeout: float = 0.1
    deadman_required: bool = False
    deadman_timeout: float = 0.2

    def __post_init__(self) -> None:
        for name in ('ramp_time', 'state_timeout', 'reference_timeout', 'wrench_timeout', 'deadman_timeout'):
            value = getattr(self, name)
            if value is not None and not 0 <= value < np.inf:
                raise InputError(f'{name} is {value}; it must be 0 s or more')

    def stop(self, robot: Robot) -> StopConfig:
        """The robot's way of stopping, but for what is set here."""
        usual = robot.config.stop
        return StopConfig(
            self.stop_policy or usual.policy,
            usual.time if self.stop_time is None else self.stop_time,
            usual.blind_time if self.stop_blind_time is None else self.stop_blind_time,
        )

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


# What may change while a controller runs.
LIVE = (
    'bandwidth damping_ratio kp kd damping wrenches observer ramp_time '
    'state_timeout reference_timeout wrench_timeout deadman_timeout'
).split()


def check_change(old: Settings, new: Settings) -> None:
    """Refuse a change of what is read at configure alone."""
    for name in (f.name for f in fields(Settings) if f.name not in LIVE):
        if not np.array_equal(getattr(old, name), getattr(new, name)):
            raise InputError(f'{name} cannot change while the controller runs; configure it anew')
    if {k: w.convention for k, w in old.wrenches.items()} != {
        k: w.convention for k, w in new.wrenches.items()
    }:
        raise InputError('wrench conventions cannot change while the controller runs; configure it anew')


def stop_rate(robot: Robot, settings: Settings, commanded: Sequence[str]) -> Array | None:
    """The rate of a stop [N m/s] where one is set; joints that get torque must be able to lose it."""
    if settings.stop_rate is None:
        return None
    rate = per_joint('stop.rate', settings.stop_rate, robot)
    for name, value in zip(robot.joint_names, rate, strict=True):
        if name in commanded and value == 0:
            raise InputError(f'stop.rate of joint {name!r} is 0; a stop would keep its torque for ever')
    return rate


def commanded_joints(robot: Robot, settings: Settings) -> tuple[str, ...]:
    """The joints, or drivers, that get torque: driven, with a driver whose condition holds, as asked for."""
    ready = {
        a.joint for a in robot.config.actuators if a.only_if is None or getattr(settings, a.only_if, False)
    }
    available = tuple(name for name in robot.actuated_joint_names if name in ready)
    if settings.command_joints is None and available:
        return available
    if not settings.command_joints:
        raise InputError(
            f'command_joints: no joint gets torque; possible are {", ".join(available) or "none"}'
        )
    joint_of = {a.name: a.joint for a in robot.config.actuators}
    for name in settings.command_joints:
        if name not in available and joint_of.get(name) not in available:
            raise InputError(f'command_joints: {name!r} gets no torque; possible are {", ".join(available)}')
    return tuple(settings.command_joints)
