"""From settings to the parts of a controller: robot, drivers, commanded joints, limits, payloads, gravity."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..arrays import Array, array
from ..errors import ConfigError, InputError
from ..robot.config import StopConfig
from ..robot.library import load_robot
from ..robot.model import Robot
from ..robot.payload import Payload
from ..safety.limits import LIMITS, Limits, default_rate
from .drivers import Drivers
from .settings import Settings, SettingsType

LARGEST_GRAVITY = 30.0  # above any gravity at which a robot is used [m/s2]


def robot_of(values: Mapping[str, Any], description: str = '') -> Robot:
    """The robot of the parameter `robot`, or of the text of a URDF."""
    description = description or values.get('robot_description') or ''
    if bool(values.get('robot')) == bool(description):
        raise ConfigError('give either robot or robot_description')
    return load_robot(values.get('robot') or description)


def drivers_of(settings: Settings, robot: Robot) -> Drivers:
    """The drivers of the commanded joints, in the order and unit of the settings."""
    return Drivers(robot, commanded_joints(settings, robot), settings.command_unit)


def commanded_joints(settings: Settings, robot: Robot) -> tuple[str, ...]:
    """Joints or drivers that get torque: those of command_joints, or all driven ones whose only_if holds."""
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


def stop_of(settings: Settings, robot: Robot) -> StopConfig:
    """The stop policy and times of the settings, else the robot's."""
    default = robot.config.stop
    return StopConfig(
        settings.stop_policy or default.policy,
        default.time if settings.stop_time is None else settings.stop_time,
        default.blind_time if settings.stop_blind_time is None else settings.stop_blind_time,
    )


def limits_of(settings: Settings, robot: Robot, commanded: Sequence[str]) -> Limits:
    """The limits in force: those of the settings, else the robot's; effort never above the URDF's."""
    limits = Limits.of(robot)
    for name in LIMITS:
        if settings.values.get(f'limits.{name}') is not None:
            setattr(limits, name, settings.per_joint(f'limits.{name}', robot))
    limits.effort = np.minimum(limits.effort, limits.peak)
    if settings.limits_effort is not None and settings.values.get('limits.effort_rate') is None:
        limits.effort_rate = default_rate(robot, limits.effort)
    if settings.stop_rate is not None:
        limits.stop_rate = settings.per_joint('stop.rate', robot)
        for name, value in zip(robot.joint_names, limits.stop_rate, strict=True):
            if name in commanded and value == 0:
                raise InputError(f'stop.rate of joint {name!r} is 0; a stop would keep its torque forever')
    return limits


def in_force(settings: Settings, robot: Robot, limits: Limits, drivers: Drivers) -> dict[str, Any]:
    """Values in force of the parameters whose default is the robot's own value."""
    stop = stop_of(settings, robot)
    names = [name for name in LIMITS if getattr(limits, name) is not None]
    return {
        **{f'limits.{name}': getattr(limits, name).tolist() for name in names},
        'stop.policy': stop.policy,
        'stop.time': stop.time,
        'stop.blind_time': stop.blind_time,
        'stop.rate': limits.stop_rate.tolist(),
        'command_joints': list(drivers.names),
        'command_unit': drivers.unit.name,
    }


def payloads_of(settings: Settings) -> list[Payload]:
    """All payloads of the settings."""
    payloads = [
        Payload.checked(
            frame,
            values.get('mass', 0.0),
            values.get('com', [0.0] * 3),
            _matrix(frame, values.get('inertia', [0.0] * 6)),
        )
        for frame, values in settings.frames('payload').items()
    ]
    return [payload for payload in payloads if payload.mass > 0]


def with_payloads(settings: SettingsType, payloads: Sequence[Payload]) -> SettingsType:
    """Settings with these payloads and no others."""
    changes: dict[str, Any] = {f'payload.{frame}.mass': 0.0 for frame in settings.frames('payload')}
    for payload in payloads:
        inertia = np.asarray(payload.inertia)
        changes[f'payload.{payload.frame}.mass'] = payload.mass
        changes[f'payload.{payload.frame}.com'] = list(payload.com)
        changes[f'payload.{payload.frame}.inertia'] = [
            *np.diag(inertia).tolist(), inertia[0, 1], inertia[0, 2], inertia[1, 2],
        ]  # fmt: skip
    return settings.replace(**changes)


def gravity_of(settings: Settings, robot: Robot) -> Array:
    """Gravity [m/s2] in the root link's axes."""
    gravity = array('gravity', robot.config.gravity if settings.gravity is None else settings.gravity, (3,))
    size = float(np.linalg.norm(gravity))
    if size > LARGEST_GRAVITY:
        raise InputError(f'gravity is {size:.4g} m/s2; it must be at most {LARGEST_GRAVITY:g}')
    return gravity


def _matrix(frame: str, value: Sequence[float]) -> Array:
    """The symmetric matrix of xx yy zz xy xz yz, or of xx yy zz alone."""
    if len(value) not in (3, 6):
        raise InputError(
            f'payload.{frame}.inertia has {len(value)} numbers; give xx yy zz xy xz yz, or xx yy zz'
        )
    xx, yy, zz, xy, xz, yz = value if len(value) == 6 else (*value, 0.0, 0.0, 0.0)
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
