"""The plan of a campaign: the controller under test, and what is varied from run to run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, pi
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pinocchio as pin

from ...arrays import Array
from ...bags.io.motion_file import read_motion
from ...control.builder import limits_of
from ...control.drivers import drivers_of
from ...control.guard import Guard, GuardSettings
from ...control.reference.trajectory import Bounds, JointTrajectory, PreparedTrajectory
from ...control.session import Session
from ...control.settings import Settings
from ...control.terms.term import build_terms
from ...errors import ConfigError, KrangError, suggestion
from ...robot.model import Robot
from ...robot.schema import load_yaml
from ...simulation.simulated_robot import default_terms

SINGLE = 0.6  # share of the runs with one disturbance; the others have several
MOST = 4  # disturbances in one run
DEVIATIONS = 3.0  # of a normal distribution, in which its sizes are
DURATION = 9.0  # of a run [s]
MOVE = 1.8  # time at which a motion begins [s]
BACK, TRAVEL = 4.6, 2.4  # begin of the way back from the default motion, and the duration of both [s]
SETTLING = 2.0  # time left after a motion from a file [s]
HOLD = 'hold'  # the scenario without a motion
FASTEST = 0.4  # of the velocity limits, in the motion of a run
FINGER = 5e-3  # share of the moving mass below which a hand is a finger
LEVER = 0.1  # shortest lever arm of a force [m]
HEAVIEST = 0.2  # payload, relative to the robot's mass
CONTACT = 280.0  # bound of a contact force, or what a motor can press: ISO/TS 15066, hand, transient [N]
COLLISION = 0.3  # share of the effort limit that is a collision, beyond the Coulomb friction
LARGEST_COLLISION = Settings.parameters()['observer.collision'].high  # [N m]
# Parameters, with '_' for '.', of what a campaign does not have: nodes, services, operators with a switch,
# drivers that compensate gravity, a check of self collisions.
UNUSED = (
    'robot robot_description controller payload_bound gravity_bound limits_self_distance '
    'estimate_payload_frame estimate_payload_tare auto_enable emergency_stop_required deadman_required '
    'deadman_timeout hardware_compensates_gravity'
).split()


@dataclass(frozen=True)
class Disturbance:
    """Something that a run may have, with the range of its size."""

    name: str
    low: float
    high: float
    unit: str
    nominal: float = 0.0  # the size without a disturbance
    least: float = 0.0  # that is possible ...
    most: float = inf  # ... at all


# Joint, time, direction and sign are drawn as well, see campaign_robot.py and campaign_loop.py.
DISTURBANCES = (
    Disturbance('start', 0.0, 1.0, '', most=1.0),  # start pose, from home (0) to any pose (1)
    Disturbance('mass', 0.0, 0.2, '', most=0.9),  # error of the mass of every link
    Disturbance('inertia', 0.0, 0.5, '', most=0.9),  # error of the inertia of every link
    Disturbance('friction', 0.0, 2.0, '', 1.0),  # true friction, relative to the model
    Disturbance('rotor', 0.5, 1.5, '', 1.0),  # true rotor inertia, relative to the model
    Disturbance('payload', 0.0, 0.0, 'kg'),  # payload that the controller does not know
    Disturbance('delay', 0.0, 0.02, 's'),  # delay of states and commands together
    Disturbance('jitter', 0.0, 0.01, 's'),  # random part of the delay
    Disturbance('loss', 0.0, 0.6, '', most=1.0),  # fraction of the states that are lost
    Disturbance('position_noise', 0.0, 2e-3, 'rad'),  # standard deviation of measured positions
    Disturbance('velocity_noise', 0.0, 0.1, 'rad/s'),  # standard deviation of measured velocities
    Disturbance('quantisation', 0.0, 5e-3, 'rad'),  # resolution of measured positions
    Disturbance('torque_noise', 0.0, 0.05, ''),  # standard deviation of torque, relative to the effort limit
    Disturbance('torque_lag', 0.0, 0.02, 's'),  # time constant of the drivers
    Disturbance('frozen_sensor', 0.05, 6.0, 's'),  # a joint repeats its last state
    Disturbance('dead_sensor', 0.02, 6.0, 's'),  # a joint has no state (NaN)
    Disturbance('jump', 0.02, 1.0, 'rad'),  # the sensor of a joint shifts
    Disturbance('outage', 0.02, 6.0, 's'),  # no states at all
    Disturbance('dead_driver', 0.0, 0.0, ''),  # a driver gives no torque
    Disturbance('weak_driver', 0.1, 1.0, '', 1.0),  # largest torque of a driver, relative to its limit
    Disturbance('wrong_sign', 0.0, 0.0, ''),  # a driver turns the other way
    Disturbance('push', 0.0, 0.0, 'N'),  # force at a hand, for up to half a second
    Disturbance('wall', 0.0, 0.1, 'm'),  # distance of a wall from a hand
    Disturbance('clock_jump', -2.0, 2.0, 's', least=-900.0),  # the wall clock, from 1000 s, is set
    Disturbance('requests', 1.0, 8.0, '', least=1.0),  # number of requests at random times
    Disturbance('frozen_controller', 0.02, 1.0, 's'),  # the controller does not run
    Disturbance('killed_controller', 0.0, 0.0, ''),  # the controller is killed
)
NAMES = tuple(row.name for row in DISTURBANCES)


@dataclass(frozen=True)
class Plan:
    """What all runs of a campaign have in common."""

    settings: Settings
    guard: GuardSettings
    rate: float  # of the states [Hz]
    duration: float  # of a run [s]
    accuracy: float  # largest error at the end of a run that is held [rad, m]
    contact_force: float  # largest force on a wall [N]
    vary: Mapping[str, tuple[float, float]]  # range of every disturbance, uniform ...
    normal: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # ... or mean and deviation
    scenario: str | JointTrajectory = ''  # HOLD, a motion, or the default motion of the robot

    def draw(self, seed: int) -> 'Conditions':
        """The disturbances of one run; they depend on the seed and the plan alone."""
        dice = np.random.default_rng([seed, 0])
        names = [row.name for row in DISTURBANCES if row.name in self.vary]
        count = 1 if dice.random() < SINGLE else int(dice.integers(2, MOST + 1))
        chosen = sorted(dice.choice(len(names), min(count, len(names)), replace=False).tolist())
        return Conditions(seed, {names[i]: self._size(names[i], dice) for i in chosen})

    def _size(self, name: str, dice: np.random.Generator) -> float:
        low, high = self.vary[name]
        if name in self.normal:
            return float(min(max(dice.normal(*self.normal[name]), low), high))
        return float(dice.uniform(low, high))

    def home(self, robot: Robot) -> Array:
        """The pose before any disturbance: that of the robot, or the begin of the motion."""
        return _home(robot, self.scenario)


@dataclass(frozen=True)
class Conditions:
    """The disturbances of one run, by name, with their sizes."""

    seed: int
    values: Mapping[str, float] = field(default_factory=dict)

    def get(self, name: str, default: float = 0.0) -> float:
        return self.values.get(name, default)

    def dice(self, name: str) -> np.random.Generator:
        """Random numbers for one disturbance, which no other disturbance changes."""
        return np.random.default_rng([self.seed, crc32(name.encode())])


Ranges = dict[str, tuple[float, float]]
NUMBERS = ('rate', 'duration', 'accuracy', 'contact_force')
KEYS = ('terms', 'settings', 'guard', 'scenario', *NUMBERS, 'vary')


def load_plan(robot: Robot, path: str | None = None) -> Plan:
    """The plan in a YAML file, whose entries are KEYS; the robot gives the defaults, also without a file.

    If `vary` is given, only what it names is varied: a range, a value, {normal: [mean, deviation]}, or
    nothing for the default range.
    """
    source = robot.name if path is None else path
    try:
        entries, folder = ({}, Path()) if path is None else (_read(path), Path(path).parent)
        plan = _planned(robot, entries, folder)
        Session(robot, plan.settings)  # refuses what no run could begin with
        Guard(robot, plan.guard)
    except (KrangError, TypeError, ValueError, OverflowError) as error:
        raise ConfigError(f'{source}: {str(error).removeprefix(f"{source}: ")}') from None
    return plan


def _planned(robot: Robot, entries: Mapping[str, Any], folder: Path) -> Plan:
    """The plan with the entries of a file in a folder."""
    for key in entries:
        if key not in KEYS:
            raise ConfigError(f'unknown entry {key!r}{suggestion(str(key), KEYS)}')
    given, own = _section(entries, 'settings'), _section(entries, 'guard')
    if 'terms' in entries:
        if 'terms' in given:
            raise ConfigError('terms is given twice, once in settings; keep one')
        given['terms'] = entries['terms']
    for parameters in (given, own):
        _check_parameters(parameters)
    settings = _settings(robot, given)
    # As in a parameter file, what both nodes have in common is given once.
    guard = GuardSettings.of(settings.values).replace(**own)
    _check_guard(own)
    scenario = _scenario(robot, settings, entries.get('scenario'), folder)
    forces = _forces(robot, settings, _home(robot, scenario))
    end = MOVE + float(scenario.times[-1]) if isinstance(scenario, JointTrajectory) else 0.0
    default = {
        'rate': 500.0 if is_passive(robot) else 250.0,
        'duration': max(DURATION, end + SETTLING),
        'accuracy': 0.1,
        'contact_force': max(CONTACT, float(forces.max())),
    }
    values = {key: entries.get(key, value) for key, value in default.items()}
    numbers = _numbers(values, BACK + TRAVEL if not scenario and not is_passive(robot) else end)
    vary = _default_ranges(robot, float(forces.min()))
    normal: Ranges = {}
    if end:
        del vary['start']
    if 'vary' in entries:
        vary, normal = _sizes(entries['vary'], vary)
        if end and 'start' in vary:
            raise ConfigError(
                'vary: start cannot be varied: the motion of the scenario begins where it begins'
            )
    return Plan(settings, guard, vary=vary, normal=normal, scenario=scenario, **numbers)


def _numbers(values: Mapping[str, Any], end: float) -> dict[str, float]:
    """The NUMBERS of a plan whose motion ends at a time [s], checked."""
    numbers = {key: _number(key, values[key]) for key in NUMBERS}
    if not 50 <= numbers['rate'] <= 5000:
        raise ConfigError('rate must be within 50 .. 5000 Hz')
    shortest = max(3.0, end)
    if not shortest <= numbers['duration'] <= 3600:
        raise ConfigError(f'duration must be within {shortest:.10g} .. 3600 s, so that a motion ends in it')
    if not (0 < numbers['accuracy'] < inf and 0 < numbers['contact_force'] < inf):
        raise ConfigError('accuracy and contact_force must be positive')
    return numbers


def _settings(robot: Robot, given: Mapping[str, Any]) -> Settings:
    """Default terms and the given settings; an arm also stops at collisions.

    Without that it would press with all its torque.
    """
    settings = Settings(**given)
    _check_motors(robot)
    default = Settings(terms=default_terms(robot))
    if 'computed_torque' in default.terms:
        limits = limits_of(settings, robot, drivers_of(settings, robot).joints)
        collision = COLLISION * limits.effort + robot.friction.coulomb
        default = Settings(
            terms=[*default.terms, 'observer'],
            observer_collision=np.minimum(collision, LARGEST_COLLISION).tolist(),
            observer_gain=10.0,  # a slow observer passes less of the noise of measured velocities on
        )
    if 'terms' not in given:
        _check_terms(robot, default)
    return default.replace(**given)


def _check_terms(robot: Robot, default: Settings) -> None:
    """Refuse a robot that the default terms do not suit."""
    try:
        build_terms(robot, default)
    except KrangError as error:
        raise ConfigError(f'{error}; choose others by `terms` in a plan') from None


def _home(robot: Robot, scenario: str | JointTrajectory) -> Array:
    """The home of the robot, or the begin of the motion."""
    q = robot.home
    if isinstance(scenario, JointTrajectory):
        q[[robot.joint_names.index(name) for name in scenario.joint_names]] = scenario.positions[0]
    return q


def _scenario(robot: Robot, settings: Settings, value: Any, folder: Path) -> str | JointTrajectory:
    """What the robot does in a run: HOLD, the motion in a file, or nothing for the default motion."""
    if value is None or value == HOLD:
        return value or ''
    if not isinstance(value, str):
        raise ConfigError(f'scenario is {value!r}; it must be {HOLD} or the file of a motion (.csv, .yaml)')
    motion = read_motion(folder / value)
    bounds = Bounds(robot, limits_of(settings, robot, drivers_of(settings, robot).joints))
    prepared = PreparedTrajectory(robot, bounds, motion)
    if prepared.is_stop or prepared.is_set_point:
        raise ConfigError(f'scenario: {value} has no point after the begin of the motion')
    start = np.zeros((4, len(motion.joint_names)))
    start[0] = motion.positions[0]
    prepared.joined(start, 0.0)  # from rest; InputError if a limit is exceeded
    return motion


def _default_ranges(robot: Robot, force: float) -> Ranges:
    """Pushes and payloads relative to a force [N] that the motors can hold, and to the robot's weight."""
    weight = 9.81 * robot.total_mass
    push, payload = (0.03, 0.005) if is_passive(robot) else (0.5, 0.1)
    vary = {row.name: (row.low, row.high) for row in DISTURBANCES}
    vary['push'] = (0.0, min(push * force, weight))
    vary['payload'] = (0.0, min(payload * force, HEAVIEST * weight) / 9.81)
    if is_passive(robot) or robot.config.rolling:
        del vary['wall']
    if not robot.friction.viscous.any() and not robot.friction.coulomb.any():
        del vary['friction']
    if not robot.config.rotor_inertia or not any(j.motor.rotor_inertia for j in robot.config.joints.values()):
        del vary['rotor']
    return vary


def is_passive(robot: Robot) -> bool:
    """Whether a joint without a motor has to be balanced."""
    return not robot.config.rolling and len(robot.actuated_joint_names) < robot.nv


def _check_motors(robot: Robot) -> None:
    """Refuse a driven joint whose effort limit is 0."""
    limits = dict(zip(robot.joint_names, robot.effort_limits, strict=True))
    idle = [name for name in robot.actuated_joint_names if limits[name] == 0]
    if idle:
        raise ConfigError(
            f'no motor at {", ".join(idle)}: the effort limit is 0 N m; write driven: false in a robot file '
            'from krang new, or an effort in the URDF'
        )


def _forces(robot: Robot, settings: Settings, q: Array) -> Array:
    """The force [N] at each hand that each motor can hold at q, whatever its direction."""
    joints = drivers_of(settings, robot).joints
    rows = [robot.joint_names.index(name) for name in joints]
    limits = limits_of(settings, robot, joints).effort[rows]
    weights = np.abs(robot.gravity_torque(q))[rows]
    weak = [
        f'{joint} has {limit:.4g} N m for a weight of {weight:.4g} N m'
        for joint, limit, weight in zip(joints, limits, weights, strict=True)
        if not limit > weight
    ]
    if weak:
        raise ConfigError(
            f'its motors cannot hold it where a run begins: {", ".join(weak)}; raise limits.effort, at most '
            "to the URDF's effort, or write another home, or driven: false, in a robot file from krang new"
        )
    if not robot.config.end_effectors:
        raise ConfigError('end_effectors is empty; name the links that are pushed, in its robot file')
    arms = [np.linalg.norm(robot.jacobian(q, f)[:3, rows], axis=0) for f in hands(robot)]
    return np.array([(limits - weights) / np.maximum(arm, LEVER) for arm in arms])


def hands(robot: Robot) -> list[str]:
    """The frames that are pushed, loaded and stopped by walls.

    The end effectors, or the link that carries one as light as a finger.
    """
    model, data = robot.model, robot.model.createData()
    pin.computeSubtreeMasses(model, data)
    found = []
    for name in robot.config.end_effectors:
        joint = model.frames[model.getFrameId(name)].parentJoint
        if data.mass[joint] < FINGER * data.mass[0]:
            while data.mass[joint] < FINGER * data.mass[0]:
                joint = model.parents[joint]
            links = (f.name for f in model.frames if f.type == pin.FrameType.BODY and f.parentJoint == joint)
            name = next(links, name)
        if name not in found:
            found.append(name)
    return found


def motion_range(robot: Robot, q: Array, duration: float) -> Array:
    """How far each joint may move from q within a time [s], within its limits [rad, m]."""
    room = 0.5 * np.minimum(robot.upper - q, q - robot.lower)
    return np.minimum(
        np.minimum(0.4, np.maximum(room, 0.0)), FASTEST * robot.velocity_limits * duration / 1.875
    )


def any_pose(robot: Robot, dice: np.random.Generator) -> Array:
    """A pose within 90 % of the joint ranges [rad, m]."""
    is_bounded = np.isfinite(robot.lower) & np.isfinite(robot.upper)
    middle = np.where(is_bounded, robot.lower, 0.0) / 2 + np.where(is_bounded, robot.upper, 0.0) / 2
    reach = np.minimum(0.9 * (robot.upper - robot.lower) / 2, pi)
    return np.asarray(middle + reach * dice.uniform(-1, 1, robot.nv))


def _read(path: str) -> dict[str, Any]:
    data = load_yaml(path)
    if not isinstance(data, dict):
        raise ConfigError(f'{path}: it must have entries: {", ".join(KEYS)}')
    return data


def _section(entries: Mapping[str, Any], name: str) -> dict[str, Any]:
    section = {} if entries.get(name) is None else entries[name]
    if not isinstance(section, dict):
        raise ConfigError(f'{name} must be parameters and their values')
    return {str(key): value for key, value in section.items()}


def _check_parameters(given: Mapping[str, Any]) -> None:
    """Refuse parameters without a value, as the nodes do, or without an effect."""
    for name, value in given.items():
        if value is None:
            raise ConfigError(f'{name} has no value; give one, or remove it')
        if name.replace('.', '_') in UNUSED:
            raise ConfigError(f'{name} has no effect in a campaign; remove it')


def _check_guard(own: Mapping[str, Any]) -> None:
    """Refuse parameters that both nodes have: the monitor judges them by the same numbers."""
    alone = {row.attribute for row in GuardSettings.own}
    for name in own:
        if name.replace('.', '_') not in alone:
            raise ConfigError(f'guard: {name} is a parameter of the controller too; give it in settings')


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f'{name} is {value!r}; it must be a number')
    return float(value)


def _sizes(entries: Any, default: Mapping[str, tuple[float, float]]) -> tuple[Ranges, Ranges]:
    """The range of every disturbance, and mean and deviation of those with a normal distribution."""
    if not isinstance(entries, dict) or not entries:
        raise ConfigError(f'vary must name disturbances: {", ".join(NAMES)}')
    ranges, normal = {}, {}
    for name, value in entries.items():
        row = next((row for row in DISTURBANCES if row.name == name), None)
        if row is None:
            raise ConfigError(f'vary: unknown disturbance {name!r}{suggestion(str(name), NAMES)}')
        if value is None:
            ranges[name] = default.get(name, (row.low, row.high))
            continue
        if isinstance(value, dict):
            mean, deviation = normal[name] = _pair(name, value.get('normal'))
            spread = DEVIATIONS * abs(deviation)
            low, high = max(mean - spread, row.least), min(mean + spread, row.most)
            is_right = len(value) == 1 and 0 < deviation < inf and row.least <= mean <= row.most
        else:
            low, high = _pair(name, value if isinstance(value, list) else [value, value])
            is_right = row.least <= low <= high <= row.most
        if not (is_right and -inf < low <= high < inf):
            raise ConfigError(
                f'vary: {name} is {value}; write [lowest, highest] or {{normal: [mean, deviation]}}, '
                f'within {row.least:g} .. {row.most:g}'
            )
        ranges[name] = low, high
    return ranges, normal


def _pair(name: str, value: Any) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise ConfigError(f'vary: {name} is {value!r}; it must be two numbers')
    return _number(f'vary: {name}', value[0]), _number(f'vary: {name}', value[1])
