"""Consistency checks of a robot file with its URDF."""

from collections.abc import Iterable
from math import isclose, isfinite

from ..errors import ConfigError, suggestion
from .config import JointConfig, MotorConfig, RobotConfig
from .motor import UNITS, driver_unit
from .urdf import Urdf
from .urdf_editing import ROUNDING


def check(config: RobotConfig, urdf: Urdf, source: str) -> None:
    """Raise ConfigError for the first inconsistent entry, naming `source` and the key."""
    try:
        _check_joints(config, urdf)
        _check_names('command_unit', [config.command_unit], UNITS)
        driver_unit(config.command_unit, config.joints)
        _check_home(config, urdf)
        for name, entries in config.friction.by_joint().items():
            _check_names(f'friction.{name}', entries, config.joints)
        _check_names('end_effectors', config.end_effectors, urdf.links)
        _check_rolling(config, urdf)
        _check_actuators(config)
        _check_state_sources(config, urdf)
    except ConfigError as error:
        raise ConfigError(f'{source}: {error}') from None


def _check_joints(config: RobotConfig, urdf: Urdf) -> None:
    moving = [j.name for j in urdf.joints.values() if j.moves and j.mimic is None]
    _check_names('joints', config.joints, moving)
    for name in moving:
        if name not in config.joints:
            raise ConfigError(f'joints.{name} is missing; every moving joint of the URDF needs an entry')
    for name, joint in config.joints.items():
        key = f'joints.{name}'
        if not joint.driven and (joint.nominal_torque is not None or joint.motor != MotorConfig()):
            raise ConfigError(f'{key} is not driven, so it must have neither nominal_torque nor motor')
        peak = urdf.joints[name].effort
        if joint.nominal_torque is not None and joint.nominal_torque > peak:
            raise ConfigError(
                f'{key}.nominal_torque {joint.nominal_torque} exceeds the URDF effort {peak}; '
                'the URDF gives the peak'
            )


def _check_home(config: RobotConfig, urdf: Urdf) -> None:
    _check_names('home', config.home, config.joints)
    for name in config.joints:
        if name not in config.home:
            raise ConfigError(f'home.{name} is missing; home needs every joint')
        (lower, upper, _), value = urdf.motion_limits(name), config.home[name]
        if not lower - ROUNDING <= value <= upper + ROUNDING:
            raise ConfigError(f'home.{name} is {value}, outside its limits {lower} .. {upper}')


def _check_rolling(config: RobotConfig, urdf: Urdf) -> None:
    moving = [name for joint in urdf.joints.values() if joint.moves for name in urdf.subtree(joint.child)]
    links = [wheel.link for wheel in config.rolling]
    _check_names('rolling: moving link', links, moving)
    for link in links:
        if links.count(link) > 1:
            raise ConfigError(f'rolling: the wheel {link!r} occurs twice; name each wheel once')


def _check_actuators(config: RobotConfig) -> None:
    driven = [name for name, joint in config.joints.items() if joint.driven]
    _check_names('actuators', (actuator.joint for actuator in config.actuators), driven)
    names = [actuator.name for actuator in config.actuators]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f'actuators: the name {name!r} occurs twice; give each driver its own')
    for joint in driven:
        share = sum(actuator.share for actuator in config.actuators if actuator.joint == joint)
        if not isclose(share, 1.0):
            raise ConfigError(
                f'actuators: the shares of joint {joint!r} add up to {share}; they must add up to 1'
            )


def _check_state_sources(config: RobotConfig, urdf: Urdf) -> None:
    sources: dict[str, list[str]] = {'joint_states': [], 'imu': [], 'odom': []}
    for name, joint in config.joints.items():
        sources[joint.state].append(name)
    if config.imu is not None:
        _check_names('imu.link', [config.imu.link], urdf.links)
    fed = 1 if config.imu is not None and config.imu.feeds == 'joint' else 0
    if len(sources['imu']) != fed:
        raise ConfigError(
            f'imu: {len(sources["imu"])} joints have state: imu; there must be one if '
            'imu.feeds is joint, and none otherwise'
        )
    odom = config.odom
    if odom is not None:
        _check_names('odom.heading_of', [odom.heading_of], urdf.links)
    wanted = [] if odom is None else [odom.x, odom.y, odom.heading]
    if sorted(sources['odom']) != sorted(wanted):
        raise ConfigError(
            f'odom: the joints with state: odom are {sources["odom"]}; they must be {wanted}, as odom names'
        )


def _check_names(key: str, names: Iterable[str], valid: Iterable[str]) -> None:
    valid = list(valid)
    for name in names:
        if name not in valid:
            raise ConfigError(f'{key}: {name!r} does not exist{suggestion(name, valid)}')


def effort_limit(joint: JointConfig, peak: float) -> tuple[float, str]:
    """Default effort limit of a joint [N m], and the source of that value."""
    if not joint.driven:
        return 0.0, 'passive'
    if joint.nominal_torque is not None:
        return joint.nominal_torque, 'robot file'
    return peak, 'URDF' if isfinite(peak) else 'none given'
