"""The demonstration of any arm on a fixed base: hold, move, push, within the limits of its URDF."""

from math import pi

import numpy as np

from ..arrays import Array, Mask
from ..errors import KrangError
from ..robot.model import Robot
from ..safety.limits import Limits
from .motions import HALF, JointMotion, there_and_back
from .scenario import Criterion, Scenario, follow, largest, push, rms

HOLD, MOVE = 0.5, 2.0  # start of each part [s]
REACH = 0.3  # of a joint, at most half of its range in that direction [rad, m]
LEAST = 0.6  # share of it for the last joint, so that the curves of a plot differ
BANDWIDTH = 10 * pi  # of computed torque [rad/s]
FORCE, DURATION = 20.0, 0.3  # largest push [N], and how long it lasts [s]
DEFLECTION = 0.02  # of a joint by the push [rad, m]
STICTION = 0.05  # largest following error before a joint overcomes stiction [rad, m]
RATE = 250.0  # of the states, so that large robots end within a minute [Hz]


def any_arm(robot: Robot) -> Scenario:
    """Hold the home pose, move every joint there and back, and push the hand."""
    _check(robot)
    motion = motion_within_limits(robot)
    moved = MOVE + motion.times[-1]
    pushed, end = moved + 0.7, moved + 3.2
    frame, force = hand_push(robot)
    return Scenario(
        ('friction', 'computed_torque'),
        end,
        [
            follow(MOVE, motion.trajectory),
            push(pushed, frame, force, DURATION),
        ],
        [
            Criterion(
                'hold: drift', lambda r: largest(r.between(HOLD, MOVE).q - robot.home), 1e-3, 'rad', MOVE
            ),
            Criterion(
                'move: worst joint, RMS', lambda r: rms(r.between(MOVE, moved).error), 0.02, 'rad', moved
            ),
            Criterion(
                'push: largest error', lambda r: largest(r.between(pushed, end).error), 0.1, 'rad', end
            ),
            Criterion(
                'push: error 2 s later', lambda r: largest(r.between(end - 0.2, end).error), 0.02, 'rad', end
            ),
        ],
        controller={'gains.bandwidth': BANDWIDTH},
        simulator={'rate': RATE},
        phases=[(0.0, 'hold'), (MOVE, 'move'), (pushed, 'push')],
    )


def motion_within_limits(robot: Robot) -> JointMotion:
    """All joints there and back, within half of their speed limits and 90 % of their effort limits."""
    up, down = robot.upper - robot.home, robot.home - robot.lower
    reach = np.minimum(REACH, 0.5 * np.maximum(up, down))
    reach = np.minimum(reach, 0.5 * robot.velocity_limits * HALF / 1.875)
    reach = np.where(up >= down, reach, -reach)
    reach *= np.linspace(1, LEAST, robot.nv)
    reach[_is_stuck(robot)] = 0
    for _ in range(10):
        motion = there_and_back(robot, reach)
        if not (np.abs(_torques(robot, motion)) > 0.9 * robot.effort_limits).any():
            return motion
        reach = reach / 2
    raise KrangError(
        f'{robot.name} needs more than 90 % of an effort limit near its home; give it another home or limits '
        'in a robot file, which krang new writes'
    )


def hand_push(robot: Robot) -> tuple[str, tuple[float, float, float]]:
    """A frame and a force [N] in world axes: large, on many joints, with a small deflection of each."""
    q, inverse = robot.home, np.linalg.inv(robot.mass_matrix(robot.home))
    allowed = np.minimum(DEFLECTION, 0.3 * np.minimum(robot.upper - q, q - robot.lower))
    pushes = []
    for frame in robot.config.end_effectors:
        jacobian = robot.jacobian(q, frame)[:3]
        axis = int(np.argmax(np.linalg.norm(jacobian, axis=1)))
        torque = jacobian[axis]
        deflection = np.abs(inverse @ torque) / BANDWIDTH**2
        with np.errstate(divide='ignore', invalid='ignore'):
            limits = [*(0.05 * robot.effort_limits / np.abs(torque)), *(allowed / deflection)]
            size = float(np.nanmin([FORCE, *limits]))
        moved = int((np.abs(jacobian).max(axis=0) > 1e-9).sum())
        pushes.append((moved * size, frame, -size * np.eye(3)[axis]))
    _, frame, (x, y, z) = max(pushes, key=lambda entry: entry[0])
    return frame, (float(x), float(y), float(z))


def _is_stuck(robot: Robot) -> Mask:
    """Joints whose friction is too large for their inertia.

    Friction compensation uses the measured speed: it cannot overcome stiction, and it lags by a period.
    """
    response = np.diag(np.linalg.inv(robot.mass_matrix(robot.home)))
    dry = robot.friction.coulomb * response / BANDWIDTH**2 > STICTION
    return np.asarray(dry | (robot.friction.viscous * response > RATE))


def _torques(robot: Robot, motion: JointMotion) -> Array:
    """Torques without friction along a motion [N m]."""
    rows = zip(*motion.states, strict=True)
    return np.array([robot.inverse_dynamics(*row) for row in rows])


def _check(robot: Robot) -> None:
    """KrangError if the robot is not an arm on a fixed base whose joints are all driven."""
    passive = [name for name in robot.joint_names if name not in robot.actuated_joint_names]
    if robot.config.rolling or passive:
        why = 'it rolls' if robot.config.rolling else f'joint {passive[0]!r} is not driven'
        raise KrangError(
            f'{robot.name}: {why}; krang demo runs arms on a fixed base with all joints driven, and the '
            'shipped robots. Lock the joint in a robot file, or use krang sim'
        )
    limits = Limits.of(robot)  # refuses a joint without an effort limit
    gravity = np.abs(robot.gravity_torque(robot.home))
    for name, torque, limit in zip(robot.joint_names, gravity, limits.effort, strict=True):
        if torque > 0.9 * limit:
            raise KrangError(
                f'joint {name!r} needs {torque:.4g} N m against gravity at home, its effort limit is '
                f'{limit:.4g} N m; give it another home or limit in a robot file, which krang new writes'
            )
