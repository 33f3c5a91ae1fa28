"""Loading of robots by shipped name, robot file or URDF."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import ConfigError, InputError, UnknownNameError, suggestion
from .config import ActuatorConfig, RobotConfig
from .consistency import check
from .model import Robot, kinematic_model
from .schema import build, read_yaml
from .urdf import Joint, Urdf
from .urdf_editing import lock_joints
from .variant import without_joints

ROBOT_FILES = ('.yaml', '.yml')
MARGIN = 0.1  # between the default home and a joint limit [rad, m], at most a tenth of the range


def robots() -> list[str]:
    """Names of the shipped robots."""
    return sorted(path.stem for path in (share() / 'config' / 'robots').glob('*.yaml'))


def load_robot(robot: str | Path, **overrides: Any) -> Robot:
    """A robot by shipped name, path of a robot file (YAML), or path or text of a URDF.

    Keywords override keys of the robot file: gravity=(0, 0, -9.82), rotor_inertia=False.
    """
    if isinstance(robot, str) and '<' in robot:
        return from_urdf(Urdf(robot), overrides)
    if isinstance(robot, str) and robot in robots():
        return _from_file(share() / 'config' / 'robots' / f'{robot}.yaml', overrides)
    if not isinstance(robot, (str, Path)):
        raise InputError(f'robot is {robot!r}; give a name, the path of a file, or the text of a URDF')
    path = Path(robot)
    if not _is_file(path):
        if path.suffix in (*ROBOT_FILES, '.urdf', '.xml') or len(path.parts) > 1:
            raise InputError(f'{path} is not a file; give the path of a robot file (YAML) or a URDF')
        raise UnknownNameError('robot', str(robot), robots())
    if path.suffix in ROBOT_FILES:
        return _from_file(path, overrides)
    return from_urdf(Urdf.from_file(path), overrides)


def from_urdf(urdf: Urdf, overrides: dict[str, Any]) -> Robot:
    """A robot without a robot file: all joints driven in N m, friction from the URDF's <dynamics>."""
    if 'urdf' in overrides:
        raise ConfigError(f'urdf: {urdf.source} is already a URDF; load {overrides["urdf"]!r} directly')
    return _assemble({**default_entries(urdf), **overrides}, urdf, urdf.source)


def default_entries(urdf: Urdf) -> dict[str, Any]:
    """The entries of a robot file that fit a URDF alone.

    Joints are in Pinocchio's order, which avoids a permutation in every call.
    """
    moving = [urdf.joints[name] for name in kinematic_model(urdf).names if name in urdf.joints]
    joints = [joint for joint in moving if joint.mimic is None]
    viscous, coulomb = _folded_friction(urdf, moving)
    return {
        'name': urdf.name,
        'urdf': urdf.source,
        'joints': {joint.name: {'driven': True} for joint in joints},
        'home': {joint.name: _default_home(urdf, joint.name) for joint in joints},
        'stop': {'policy': 'lower'},
        'end_effectors': urdf.leaves(),
        'friction': {
            'viscous': viscous,
            'coulomb': coulomb,
            **({'sign': 'exact', 'fitted_with': 'exact'} if coulomb else {}),
        },
    }


def share() -> Path:
    """The folder with config/ and urdf/: the source tree, or share/krang_dynamics of an installation."""
    package = Path(__file__).resolve().parents[1]
    candidates = [package.parent]
    candidates += [parent / 'share' / 'krang_dynamics' for parent in package.parents]
    candidates.append(Path(sys.prefix) / 'share' / 'krang_dynamics')
    for folder in candidates:
        if (folder / 'config' / 'robots').is_dir():
            return folder
    raise InputError('config/robots of krang_dynamics is not installed; reinstall the package')


def _from_file(path: Path, overrides: dict[str, Any]) -> Robot:
    data = {**_read_robot_file(path), **overrides}
    if 'urdf' not in data:
        raise ConfigError(f'{path}: urdf is missing; add the path of a URDF, relative to this file')
    urdf = data['urdf']
    if not isinstance(urdf, str) or not _is_file(Path(urdf)):
        raise ConfigError(f'{path}: urdf is {urdf!r}; it must be the path of a URDF, relative to this file')
    return _assemble(data, Urdf.from_file(Path(urdf)), str(path))


def _read_robot_file(path: Path, extended_by: tuple[Path, ...] = ()) -> dict[str, Any]:
    """The entries of a robot file over those of the robot that it extends; `urdf` is absolute.

    `extends` is a shipped name, or the path of a robot file or URDF relative to this one.
    """
    data = read_yaml(path)
    if isinstance(data.get('urdf'), str):
        data['urdf'] = str((path.parent / data['urdf']).resolve())
    base = data.pop('extends', None)
    if base is None:
        return data
    base_path = (
        share() / 'config' / 'robots' / f'{base}.yaml' if base in robots() else path.parent / str(base)
    )
    if not _is_file(base_path):
        raise ConfigError(
            f'{path}: extends {base!r}, which is neither a file nor shipped{suggestion(str(base), robots())}'
        )
    base_path = base_path.resolve()
    if base_path.suffix not in ROBOT_FILES:
        return {**default_entries(Urdf.from_file(base_path)), **data}
    if base_path in (*extended_by, path.resolve()):
        raise ConfigError(f'{path}: extends {base!r}, which extends this file')
    return {**_read_robot_file(base_path, (*extended_by, path.resolve())), **data}


def _assemble(data: dict[str, Any], urdf: Urdf, source: str) -> Robot:
    config = build(RobotConfig, data, source)
    if config.locked:
        try:
            urdf = lock_joints(urdf, config.locked)
        except ConfigError as error:
            raise ConfigError(f'{source}: {error}') from None
        config = replace(without_joints(config, config.locked), locked={})
    if 'actuators' not in data:
        driven = [name for name, joint in config.joints.items() if joint.driven]
        config = replace(config, actuators=tuple(ActuatorConfig(name, name) for name in driven))
    check(config, urdf, source)
    return Robot(config, urdf)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # not a valid file name
        return False


def _folded_friction(urdf: Urdf, moving: list[Joint]) -> tuple[dict[str, float], dict[str, float]]:
    """F_v and F_c by leader: a follower at k times the speed adds k^2 F_v and |k| F_c."""
    viscous: dict[str, float] = {}
    coulomb: dict[str, float] = {}
    for joint in moving:
        leader, k, _ = urdf.leader(joint.name)
        if joint.viscous:
            viscous[leader] = viscous.get(leader, 0.0) + k * k * joint.viscous
        if joint.coulomb:
            coulomb[leader] = coulomb.get(leader, 0.0) + abs(k) * joint.coulomb
    return viscous, coulomb


def _default_home(urdf: Urdf, joint: str) -> float:
    """The position nearest to 0 that is inside the limits by a margin [rad, m]."""
    lower, upper, _ = urdf.motion_limits(joint)
    margin = min(MARGIN, 0.1 * (upper - lower))
    return min(max(0.0, lower + margin), upper - margin)
