"""From parameter values to a robot, its controller's settings, limits, payloads and gravity."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from ..arrays import Array, array
from ..errors import ConfigError, InputError
from ..robot.library import load_robot
from ..robot.model import Robot
from ..robot.payload import Payload
from ..safety.limits import Limits, default_rate
from .settings import Settings
from .terms.observer import ObserverSettings
from .terms.wrench import WrenchSettings

Values = Mapping[str, Any]  # by parameter name; None, or no entry, where the default counts


def robot_of(values: Values, description: str = '') -> Robot:
    """The robot that the parameters name, or that the text of a URDF describes."""
    description = description or values.get('robot_description') or ''
    if bool(values.get('robot')) == bool(description):
        raise ConfigError('give either robot or robot_description')
    return load_robot(values.get('robot') or description)


# Settings under the names that they have as parameters, where the two differ.
_NAMES = {
    'bandwidth': 'gains.bandwidth',
    'damping_ratio': 'gains.damping_ratio',
    'kp': 'gains.kp',
    'kd': 'gains.kd',
    'stop_policy': 'stop.policy',
    'stop_time': 'stop.time',
    'stop_blind_time': 'stop.blind_time',
    'stop_rate': 'stop.rate',
    'deadman_required': 'deadman.required',
    'deadman_timeout': 'deadman.timeout',
}


SettingsType = TypeVar('SettingsType', bound=Settings)


def settings_of(values: Values, robot: Robot, kind: type[SettingsType]) -> SettingsType:
    """Settings of a controller, or of a guard, of this robot."""
    given = {f.name: values.get(_NAMES.get(f.name, f.name)) for f in fields(kind)}
    chosen = {name: value for name, value in given.items() if value is not None}
    for name in ('terms', 'command_joints'):
        if name in chosen:
            chosen[name] = tuple(chosen[name])
    for name in ('kp', 'kd', 'damping', 'stop_rate'):
        if name in chosen:
            chosen[name] = per_joint(_NAMES.get(name, name), chosen[name], robot)
    chosen['wrenches'] = _wrenches(values, chosen.get('terms', ()))
    chosen['observer'] = ObserverSettings(**_part(values, 'observer.'))
    return kind(**chosen)


def limits_of(values: Values, robot: Robot) -> dict[str, Array | None]:
    """All limits that the parameters give or imply, as `Limits.set` takes them."""
    given = {name: per_joint(f'limits.{name}', x, robot) for name, x in _part(values, 'limits.').items()}
    limits = Limits.of(robot)
    if 'effort' in given:
        given.setdefault('effort_rate', default_rate(robot, np.minimum(given['effort'], limits.peak)))
    rest = {name: getattr(limits, name) for name in ('effort', 'effort_rate', 'velocity', 'position_margin')}
    return {'following_error': None, **rest, **given}


def in_force(robot: Robot, settings: Settings, limits: Limits, gravity: Array) -> dict[str, Any]:
    """Parameters whose default is the robot's own, with the values that they have for it."""
    stop = settings.stop(robot)
    names = ('effort', 'effort_rate', 'velocity', 'position_margin')
    return {
        **{f'limits.{name}': getattr(limits, name).tolist() for name in names},
        'stop.policy': stop.policy,
        'stop.time': stop.time,
        'stop.blind_time': stop.blind_time,
        'stop.rate': limits.stop_rate.tolist(),
        'command_unit': settings.command_unit or robot.config.command_unit,
        'gravity': gravity.tolist(),
    }


def payloads_of(values: Values) -> list[Payload]:
    """All that is carried."""
    frames = [name.split('.', 1)[1].rpartition('.')[0] for name in values if name.startswith('payload.')]
    parts = {frame: _part(values, f'payload.{frame}.') for frame in dict.fromkeys(frames)}
    payloads = [
        Payload.checked(
            frame, part.get('mass', 0.0), part.get('com', [0.0] * 3), _inertia(frame, part.get('inertia'))
        )
        for frame, part in parts.items()
    ]
    return [payload for payload in payloads if payload.mass > 0]


def gravity_of(values: Values, robot: Robot) -> Array:
    """Gravity [m/s2] in the root link's axes."""
    given = values.get('gravity')
    return array('gravity', robot.config.gravity if given is None else given, (3,))


def per_joint(name: str, value: object, robot: Robot) -> Array:
    """One number per joint of the robot, from one for all or one for each."""
    x = np.asarray(value, dtype=float)
    if x.ndim == 0:
        return np.full(robot.nv, float(x))
    if x.shape != (robot.nv,):
        raise InputError(
            f'{name} has {x.size} numbers; give one, or one per joint: {", ".join(robot.joint_names)}'
        )
    return x


def _wrenches(values: Values, terms: Iterable[str]) -> dict[str, WrenchSettings]:
    frames = [name.split('.', 1)[1].rpartition('.')[0] for name in values if name.startswith('wrench.')]
    parts = {frame: _part(values, f'wrench.{frame}.') for frame in dict.fromkeys(frames)}
    wrenches = {frame: WrenchSettings(**part) for frame, part in parts.items() if 'convention' in part}
    if 'wrench' in terms and not wrenches:
        name = f'wrench.{next(iter(parts), "<frame>")}.convention'
        raise ConfigError(
            f'terms has wrench, so {name} must be applied_by_robot or applied_on_robot; it has no default'
        )
    return wrenches


def _part(values: Values, prefix: str) -> dict[str, Any]:
    return {k.removeprefix(prefix): v for k, v in values.items() if k.startswith(prefix) and v is not None}


def _inertia(frame: str, value: object) -> Array:
    """The symmetric matrix of xx yy zz xy xz yz, or of xx yy zz alone."""
    x = np.zeros(6) if value is None else np.asarray(value, dtype=float)
    if x.shape not in ((3,), (6,)):
        raise InputError(f'payload.{frame}.inertia has {x.size} numbers; give xx yy zz xy xz yz, or xx yy zz')
    xx, yy, zz, xy, xz, yz = x if len(x) == 6 else (*x, 0.0, 0.0, 0.0)
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
