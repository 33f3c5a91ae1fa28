"""The demonstrations of the shipped robots and of any arm: what happens, and which bounds must hold."""

from typing import TYPE_CHECKING

import numpy as np

from ..arrays import Array
from ..robot.model import Robot
from .any_arm import any_arm
from .demo_record import DemoRecord
from .motions import figure_of_eight, krang_at_full_speed, there_and_back
from .scenario import Criterion, Event, Scenario, follow, largest, push, rms

if TYPE_CHECKING:  # it needs ROS
    from ..nodes.robot_operator import RobotOperator


def scenario_of(robot: Robot) -> Scenario:
    """The scenario of a shipped robot or of one of its variants, or that of any arm on a fixed base."""
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
    return any_arm(robot)


RATE = 250.0  # of the long scenarios, so that they end within a minute on a busy machine [Hz]

# -- Krang ---------------------------------------------------------------------------------------------

HOLD, MOVE, PUSH, LEAN, REACH = 0.5, 2.0, 9.0, 11.0, 14.0  # start of each part [s]
FORCE = 15.0  # of the right hand against the wall [N]
STIFFNESS = np.array([4000.0] * 3 + [400.0] * 3)  # of both hands [N/m, N m/rad]


def krang(robot: Robot) -> Scenario:
    """Hold, move both arms at full speed, detect a push at the left hand, lean on a wall with the right one,
    and reach a pose with the left one meanwhile."""
    motion = krang_at_full_speed(robot, step=0.02)
    target = robot.frame_pose(reached(robot), 'left_hand')
    into_wall = np.array([1.0, 0.0, 0.0])

    def lean(operator: 'RobotOperator') -> None:
        pose = robot.frame_pose(operator.q, 'right_hand')
        wall = {'frame': 'right_hand', 'point': pose[:3, 3] + 0.002 * into_wall, 'normal': -into_wall}
        operator.set_parameters('simulator', {f'wall.{name}': value for name, value in wall.items()})
        soft = {'stiffness': STIFFNESS * [0, 1, 1, 1, 1, 1], 'damping_ratio': 10.0}  # force towards the wall
        operator.set_parameters(
            'torque_controller', {f'cartesian.right_hand.{name}': value for name, value in soft.items()}
        )
        force = FORCE * pose[:3, :3].T @ into_wall  # axes of the hand
        operator.stream_wrench('right_hand', np.array([*force, 0, 0, 0]))

    moved, seen, end = MOVE + motion.times[-1], PUSH + 0.5, 18.0
    criteria = [
        Criterion('hold: drift', lambda r: largest(r.between(HOLD, MOVE).q - robot.home), 1e-4, 'rad', MOVE),
        Criterion('move: worst joint, RMS', lambda r: rms(r.between(MOVE, moved).error), 5e-4, 'rad', moved),
        Criterion('push: detected after', _detection_time, 0.06, 's', seen),
        Criterion(
            'push: error of the estimated force',
            lambda r: _estimation_error(robot, r.between(PUSH + 0.3, seen)),
            1.0,
            'N',
            seen,
        ),
        Criterion('wall: error of the contact force', _force_error, 1.0, 'N', end),
        Criterion(
            'reach: distance from the target',
            lambda r: 1e3 * largest(robot.frame_pose(r.q[-1], 'left_hand')[:3, 3] - target[:3, 3]),
            1.0,
            'mm',
            end,
        ),
    ]
    return Scenario(
        ('gravity', 'friction', 'cartesian_impedance', 'wrench', 'observer'),
        end,
        [
            follow(MOVE, motion.trajectory),
            push(PUSH, 'left_hand', (0, 0, -20.0), 0.6),
            (LEAN, lean),
            (REACH, lambda operator: operator.move_hand('left_hand', target)),
        ],
        criteria,
        controller={
            'wrench.right_hand.convention': 'applied_by_robot',
            'wrench.right_hand.max_force': 30.0,
            'friction.scale': 1.0,  # the plant has exactly the modelled friction
            'observer.reaction': 'none',  # the hands are pushed, and press against a wall, on purpose
            **{f'cartesian.{hand}.stiffness': STIFFNESS.tolist() for hand in ('left_hand', 'right_hand')},
        },
        simulator={'rate': RATE},
        shared={'wheels_locked': True},
        phases=[(0.0, 'hold'), (MOVE, 'move'), (PUSH, 'push'), (LEAN, 'lean'), (REACH, 'reach')],
    )


def reached(robot: Robot) -> Array:
    """Joints with which the left hand is at its target [rad]."""
    left = [name.startswith('left') for name in robot.joint_names]
    return np.asarray(robot.home + 0.25 * np.array(left))


def _detection_time(record: DemoRecord) -> float:
    """From the start of the push to its detection by the observer [s]."""
    return record.state_time('contact', 'contact', PUSH) - record.contact_time('left_hand', PUSH)


def _estimation_error(robot: Robot, record: DemoRecord) -> float:
    """Error of the force at the left hand that the external torque corresponds to [N]."""
    columns = [i for i, name in enumerate(robot.joint_names) if name.startswith('left')]
    J = robot.jacobian(record.q[-1], 'left_hand')[:, columns]
    wrench = np.linalg.lstsq(J.T, record.external[-1][columns], rcond=None)[0]
    return float(np.linalg.norm(wrench[:3] - (0, 0, -20.0)))


def _force_error(record: DemoRecord) -> float:
    """Mean contact force over the last half second minus the commanded one [N]."""
    force = record.wrenches['right_hand'].between(record.times[-1] - 0.5, np.inf)
    return float(abs(np.linalg.norm(force, axis=1).mean() - FORCE))


# -- Otbot ---------------------------------------------------------------------------------------------

# Published disturbance at the pivot: force [N], begin and end [s] after the start of the figure of eight.
PUSHES = [((0, -150), 3.0, 4.0), ((200, 0), 8.0, 9.0), ((-350, 0), 11.0, 12.0)]


def otbot(robot: Robot) -> Scenario:
    """The figure of eight, with three pushes."""
    eight, start = figure_of_eight(), 2.0
    events: list[Event] = [follow(start, eight.trajectory)]
    for force, begin, end in PUSHES:
        events.append(push(start + begin, 'platform', (*force, 0.0), end - begin))

    def criterion(name: str, begin: float, end: float, bound: float) -> Criterion:
        def distance(record: DemoRecord) -> float:
            error = record.between(start + begin, start + end).error
            return float(np.hypot(error[:, 0], error[:, 1]).max()) * 1e3

        return Criterion(name, distance, bound, 'mm', start + end)

    criteria = [
        criterion('path error before the pushes', 0.5, 2.9, 5.0),
        criterion('path error while pushed', 3.0, 12.5, 300.0),
        criterion('path error 5 s after the last push', 17.0, eight.times[-1], 10.0),
    ]
    followed = np.where(np.isin(robot.joint_names, ('x', 'y', 'alpha')), 1.0, np.nan)
    return Scenario(
        ('rolling_base',),
        start + eight.times[-1] + 0.5,
        events,
        criteria,
        simulator={'rate': RATE},
        phases=[
            (start, 'eight'),
            *((start + begin, f'{np.hypot(*force):.0f} N') for force, begin, _ in PUSHES),
        ],
        error=lambda record: followed * record.error,
    )


# -- pendubot ------------------------------------------------------------------------------------------


def pendubot(robot: Robot) -> Scenario:
    """Swing up from hanging, balance, and recover from a tap."""
    tap, end = 6.0, 10.0

    def swing_up_time(record: DemoRecord) -> float:
        before = record.between(0, tap)
        return float(before.times[np.flatnonzero(_tilt(before) > 0.1)[-1]])

    return Scenario(
        ('balance',),
        end,
        [push(tap, 'tip', (0, 0.3, 0), 0.1)],
        [
            Criterion('upright after', swing_up_time, 5.0, 's', tap),
            Criterion('largest arm angle', lambda r: largest(r.q[:, 0]), 2.0, 'rad', end),
            Criterion('tap: tilt', lambda r: _tilt(r.between(tap, tap + 1)).max(), 0.5, 'rad', tap + 1),
            Criterion(
                'tap: tilt after 3 s', lambda r: _tilt(r.between(tap + 3, end)).max(), 0.05, 'rad', end
            ),
        ],
        controller={'ramp_time': 0.0},
        simulator={'start': [0.0, np.pi]},
        phases=[(0.0, 'swing up'), (tap, 'tap')],
        error=lambda record: _wrapped(-record.q),
    )


def _tilt(record: DemoRecord) -> Array:
    """Angle of the pendulum from upright [rad]."""
    return np.abs(_wrapped(record.q[:, 1]))


def _wrapped(angle: Array) -> Array:
    """The same angle in [-pi, pi) [rad]."""
    return np.asarray(np.remainder(angle + np.pi, 2 * np.pi) - np.pi)


# -- arms ----------------------------------------------------------------------------------------------


def arm(robot: Robot) -> Scenario:
    """Move every joint there and back."""
    motion, start = there_and_back(robot, 0.5 * np.where(np.arange(robot.nv) % 2, -1, 1)), 1.0
    end = start + motion.times[-1]
    return Scenario(
        ('friction', 'computed_torque'),
        end + 0.5,
        [follow(start, motion.trajectory)],
        [
            Criterion(
                'hold: drift', lambda r: largest(r.between(0.5, start).q - robot.home), 1e-3, 'rad', start
            ),
            Criterion('move: worst joint, RMS', lambda r: rms(r.between(start, end).error), 1e-3, 'rad', end),
        ],
        phases=[(0.0, 'hold'), (start, 'move')],
    )
