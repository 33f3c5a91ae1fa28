"""What each robot is asked to do in its demonstration, and what has to come of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import UnknownNameError
from ..robot.model import Robot
from .motions import Motion, figure_of_eight, krang_at_full_speed, smooth_step
from .stage import Stage
from .trace import Record

NEARLY = 0.1  # by how much a record may miss the end of a part [s]


@dataclass(frozen=True)
class Row:
    """One line of the table at the end: a number that was measured, and what it may be at most."""

    what: str
    measured: float
    bound: float
    unit: str

    @property
    def held(self) -> bool:
        return bool(self.measured <= self.bound)


@dataclass(frozen=True)
class Check:
    """What has to come of a part of the scenario, which is over at `end` [s]."""

    what: str
    measure: Callable[[Record], float]
    bound: float
    unit: str
    end: float


@dataclass
class Scenario:
    """Events by simulated time since the start [s], and what has to come of them."""

    terms: str
    duration: float  # [s]
    events: list[tuple[float, Callable[[Stage], None]]]
    checks: list[Check]
    controller: dict[str, Any] = field(default_factory=dict)  # parameters beside terms
    simulator: dict[str, Any] = field(default_factory=dict)
    shared: dict[str, Any] = field(default_factory=dict)  # of both, and of the guard
    # How far each joint is from where its term wants it [rad, m], NaN where none does.
    error: Callable[[Record], Array] = lambda record: record.error

    def judge(self, record: Record) -> list[Row]:
        """A row for every part that was played to its end."""
        played = [check for check in self.checks if record.times[-1] > check.end - NEARLY]
        return [Row(check.what, check.measure(record), check.bound, check.unit) for check in played]


def scenario_of(robot: Robot) -> Scenario:
    """The scenario of a shipped robot, or of any variant of one."""
    scenarios = {
        'krang': krang,
        'otbot': otbot,
        'pendubot': pendubot,
        'planar_2r': arm,
        'anthropomorphic': arm,
    }
    for name, scenario in scenarios.items():
        if robot.name.startswith(name):
            return scenario(robot)
    raise UnknownNameError('demonstration', robot.name, scenarios)


RATE = 250.0  # of the long scenarios, which have to end within a minute on a busy machine too [Hz]

# -- Krang ---------------------------------------------------------------------------------------------

HOLD, MOVE, PUSH, LEAN = 0.5, 2.0, 9.0, 11.0  # when the parts begin [s]
FORCE = 15.0  # of the right hand against the wall [N]


def krang(robot: Robot) -> Scenario:
    """Hold; move both arms at full speed; find a push at the left hand; lean on a wall with the right."""
    motion = krang_at_full_speed(robot, step=0.02)
    right = [name.startswith('right') for name in robot.joint_names]
    stiff, damp = np.full(robot.nv, (10 * np.pi) ** 2), np.full(robot.nv, 20 * np.pi)
    soft = np.where(right, 0.0, stiff)  # an arm that leans must not hold its place
    into_wall = np.array([1.0, 0.0, 0.0])

    def lean(stage: Stage) -> None:
        pose = robot.frame_pose(stage.q, 'right_hand')
        point = pose[:3, 3] + 0.002 * into_wall
        # In the hand's own axes and at its origin: the frame of a wrench is also where it applies.
        force = FORCE * pose[:3, :3].T @ into_wall
        stage.set_simulator({'wall.frame': 'right_hand', 'wall.point': point, 'wall.normal': -into_wall})
        stage.set_controller({'gains.kp': soft, 'gains.kd': np.where(right, 5.0, damp)})
        stage.stream_wrench('right_hand', 'right_hand', np.array([*force, 0, 0, 0]))

    moved, seen, end = MOVE + motion.times[-1], PUSH + 0.5, 15.0
    checks = [
        Check('hold: drift', lambda r: _farthest(r.between(HOLD, MOVE).q - robot.home), 1e-4, 'rad', MOVE),
        Check('move: worst joint', lambda r: _rms(r.between(MOVE, moved).error), 5e-4, 'rad', moved),
        Check('push: found after', _found_after, 0.06, 's', seen),
        Check(
            'push: 20 N seen, error',
            lambda r: _wrench_error(robot, r.between(PUSH + 0.3, seen)),
            1.0,
            'N',
            seen,
        ),
        Check('wall: 15 N asked, error', _lean_error, 1.0, 'N', end),
    ]
    return Scenario(
        'gravity,friction,computed_torque,wrench,observer',
        end,
        [
            (MOVE, lambda stage: stage.follow(motion)),
            (PUSH, lambda stage: stage.push('left_hand', np.array([0, 0, -20.0, 0, 0, 0]), 0.6)),
            (LEAN, lean),
        ],
        checks,
        controller={'wrench.right_hand.convention': 'applied_by_robot', 'wrench.right_hand.max_force': 30.0},
        simulator={'rate': RATE},
        shared={'wheels_locked': True},
    )


def _found_after(record: Record) -> float:
    """From the first moment of the push to the observer's word [s]."""
    return record.time_of('contact', 'contact', PUSH) - record.touched('left_hand', PUSH)


def _wrench_error(robot: Robot, record: Record) -> float:
    """How far the wrench that the observer sees at the left hand is from the push [N]."""
    columns = [i for i, name in enumerate(robot.joint_names) if name.startswith('left')]
    J = robot.jacobian(record.q[-1], 'left_hand')[:, columns]
    seen = np.linalg.lstsq(J.T, record.external[-1][columns], rcond=None)[0]
    return float(np.linalg.norm(seen[:3] - (0, 0, -20.0)))


def _lean_error(record: Record) -> float:
    """The wall's force, averaged over the last half second, against what was asked [N]."""
    force = record.wrench('right_hand').between(record.times[-1] - 0.5, np.inf)
    return float(abs(np.linalg.norm(force, axis=1).mean() - FORCE))


# -- Otbot ---------------------------------------------------------------------------------------------

# Published disturbance at the pivot: force [N], from and until [s] after the start of the eight.
PUSHES = [((0, -150), 3.0, 4.0), ((200, 0), 8.0, 9.0), ((-350, 0), 11.0, 12.0)]


def otbot(robot: Robot) -> Scenario:
    """The figure of eight, pushed three times on the way."""
    eight, start = figure_of_eight(), 0.5
    events: list[tuple[float, Callable[[Stage], None]]] = [(start, lambda stage: stage.follow(eight))]
    for force, begin, end in PUSHES:
        events.append((start + begin, _pushing('platform', np.array([*force, 0, 0, 0, 0.0]), end - begin)))

    def check(what: str, begin: float, end: float, bound: float) -> Check:
        def distance(record: Record) -> float:
            error = record.between(start + begin, start + end).error
            return float(np.hypot(error[:, 0], error[:, 1]).max()) * 1e3

        return Check(what, distance, bound, 'mm', start + end)

    checks = [
        check('eight before the pushes', 0.5, 2.9, 5.0),
        check('farthest off while pushed', 3.0, 12.5, 300.0),
        check('five seconds after the last push', 17.0, eight.times[-1], 10.0),
    ]
    followed = np.where(np.isin(robot.joint_names, ('x', 'y', 'alpha')), 1.0, np.nan)
    return Scenario(
        'rolling_base',
        start + eight.times[-1] + 0.5,
        events,
        checks,
        simulator={'rate': RATE},
        error=lambda record: followed * record.error,
    )


def _pushing(frame: str, wrench: Array, duration: float) -> Callable[[Stage], None]:
    return lambda stage: stage.push(frame, wrench, duration)


# -- pendubot ------------------------------------------------------------------------------------------


def pendubot(robot: Robot) -> Scenario:
    """Swing up from hanging, balance, and take a tap."""
    tap, end = 6.0, 10.0

    def upright(record: Record) -> float:
        before = record.between(0, tap)
        return float(before.times[np.flatnonzero(_tilt(before) > 0.1)[-1]])

    return Scenario(
        'balance',
        end,
        [(tap, lambda stage: stage.push('tip', np.array([0, 0.3, 0, 0, 0, 0]), 0.1))],
        [
            Check('upright after', upright, 5.0, 's', tap),
            Check('arm, farthest', lambda r: _farthest(r.q[:, 0]), 2.0, 'rad', end),
            Check('tap: tilt', lambda r: _tilt(r.between(tap, tap + 1)).max(), 0.5, 'rad', tap + 1),
            Check('tap: tilt later', lambda r: _tilt(r.between(tap + 3, end)).max(), 0.05, 'rad', end),
        ],
        controller={'ramp_time': 0.0},
        simulator={'start': [0.0, np.pi]},
        error=lambda record: _wrapped(-record.q),
    )


def _tilt(record: Record) -> Array:
    """Of the pendulum, from upright [rad]."""
    return np.abs(_wrapped(record.q[:, 1]))


def _wrapped(angle: Array) -> Array:
    """The same angle within half a turn [rad]."""
    return np.asarray(np.remainder(angle + np.pi, 2 * np.pi) - np.pi)


# -- arms ----------------------------------------------------------------------------------------------


def arm(robot: Robot) -> Scenario:
    """There and back with every joint."""
    motion, start = _there_and_back(robot), 1.0

    end = start + motion.times[-1]
    checks = [
        Check('hold: drift', lambda r: _farthest(r.between(0.5, start).q - robot.home), 1e-3, 'rad', start),
        Check('move: worst joint', lambda r: _rms(r.between(start, end).error), 1e-3, 'rad', end),
    ]
    events: list[tuple[float, Callable[[Stage], None]]] = [(start, lambda stage: stage.follow(motion))]
    return Scenario('friction,computed_torque', end + 0.5, events, checks)


def _there_and_back(robot: Robot) -> Motion:
    times = np.arange(0, 4.0, 0.02)
    reach = 0.5 * np.where(np.arange(robot.nv) % 2, -1, 1)
    share = smooth_step(times / 1.8) - smooth_step((times - 1.9) / 1.8)
    return Motion(robot.joint_names, times, robot.home + np.outer(share, reach))


def _farthest(way: Array) -> float:
    return float(np.abs(way).max())


def _rms(error: Array) -> float:
    """Of the worst joint."""
    return float(np.sqrt((error**2).mean(axis=0)).max())
