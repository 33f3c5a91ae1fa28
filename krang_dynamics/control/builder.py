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
from ..safety.limits import LIMITS, Limits, default_following_error, default_rate
from .drivers import Drivers
from .drivers import drivers_of as drivers_of
from .reference.stream import StreamLimits
from .settings import Settings, SettingsType
from .terms.term import follow_reference

LARGEST_GRAVITY = 30.0  # above any gravity at which a robot is used [m/s2]


def robot_of(values: Mapping[str, Any], description: str = '') -> Robot:
    """The robot of the parameter `robot`, or of the text of a URDF."""
    description = description or values.get('robot_description') or ''
    if bool(values.get('robot')) == bool(description):
        raise ConfigError('give either robot or robot_description')
    return load_robot(values.get('robot') or description)


def stop_of(settings: Settings, robot: Robot) -> StopConfig:
    """The stop policy and times of the settings, else the robot's."""
    default = robot.config.stop
    return StopConfig(
        settings.stop_policy or default.policy,
        default.time if settings.stop_time is None else settings.stop_time,
        default.blind_time if settings.stop_blind_time is None else settings.stop_blind_time,
        default.limit if settings.stop_limit is None else settings.stop_limit,
    )


def limits_of(settings: Settings, robot: Robot, commanded: Sequence[str]) -> Limits:
    """The limits in force: those of the settings, else the robot's; effort never above the URDF's."""
    limits = Limits.of(robot)
    for name in LIMITS:
        if settings.values.get(f'limits.{name}') is not None:
            setattr(limits, name, settings.per_joint(f'limits.{name}', robot))
    if limits.following_error is None and follow_reference(settings.values.get('terms', ())):
        limits.following_error = default_following_error(robot)
    limits.effort = np.minimum(limits.effort, limits.peak)
    if settings.limits_effort is not None and settings.values.get('limits.effort_rate') is None:
        limits.effort_rate = default_rate(robot, limits.effort)
    if settings.stop_rate is not None:
        limits.stop_rate = settings.per_joint('stop.rate', robot)
        longest = stop_of(settings, robot).limit
        for name, rate, effort in zip(robot.joint_names, limits.stop_rate, limits.effort, strict=True):
            if name in commanded and rate * longest < effort:
                raise InputError(
                    f'stop.rate of joint {name!r} is {rate:g} N m/s: {effort:g} N m would last longer than '
                    f'stop.limit, {longest:g} s'
                )
    return limits


def within_urdf(settings: SettingsType, robot: Robot) -> SettingsType:
    """The same settings with the effort limits that are in force: never above the URDF's."""
    if settings.limits_effort is None:
        return settings
    peak = Limits.of(robot).peak
    given = settings.per_joint('limits.effort', robot)
    if (given <= peak).all():
        return settings
    return settings.replace(limits_effort=np.minimum(given, peak).tolist())


def stream_of(settings: Settings, robot: Robot) -> StreamLimits:
    """Limits of streamed motion: those of the settings, else the URDF's speeds."""
    default = StreamLimits.of(robot)
    return StreamLimits(
        *(
            getattr(default, name) if value is None else settings.per_joint(f'stream.{name}', robot)
            for name in ('velocity', 'acceleration', 'jerk')
            for value in [settings.values[f'stream.{name}']]
        )
    )


def in_force(settings: Settings, robot: Robot, limits: Limits, drivers: Drivers) -> dict[str, Any]:
    """Values in force of the parameters whose default is the robot's own value."""
    stop = stop_of(settings, robot)
    stream = stream_of(settings, robot) if 'stream.velocity' in settings.values else None
    names = [name for name in LIMITS if getattr(limits, name) is not None]
    return {
        **{f'limits.{name}': getattr(limits, name).tolist() for name in names},
        'stop.policy': stop.policy,
        'stop.time': stop.time,
        'stop.blind_time': stop.blind_time,
        'stop.limit': stop.limit,
        'stop.rate': limits.stop_rate.tolist(),
        **({} if stream is None else {f'stream.{name}': x.tolist() for name, x in vars(stream).items()}),
        'command_joints': list(drivers.names),
        'command_unit': drivers.unit.name,
    }


def model_change(old: Settings, new: Settings, robot: Robot) -> tuple[Robot | None, Array | None]:
    """The robot with its new payloads and the new gravity [m/s2]; None for what does not change."""
    is_new_load = new.frames('payload') != old.frames('payload')
    return (
        robot.carrying(payloads_of(new)) if is_new_load else None,
        gravity_of(new, robot) if new.gravity != old.gravity else None,
    )


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


def loaded(settings: Settings, robot: Robot) -> Robot:
    """The robot with the payloads of the settings; without any, with its own."""
    payloads = payloads_of(settings)
    return robot.carrying(payloads) if payloads else robot


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
