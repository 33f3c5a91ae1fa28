"""Cartesian impedance: hands on springs and dampers about their reference, joints on softer ones."""

from dataclasses import dataclass
from functools import cache
from math import inf, pi, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import pinocchio as pin

from ...arrays import Array, Mask, any_true, array, joint_vector
from ...errors import ConfigError, InputError, UnknownNameError
from ...kernels import is_within, solved
from ...robot.model import Robot
from ...safety.limits import Limits
from ..drivers import drivers_of
from ..dynamics import Dynamics
from ..parameters import Parameter
from .speed_zone import SpeedZone, free_inertia
from .term import Term, TermInputs, register_term

if TYPE_CHECKING:
    from ..settings import Settings

STIFFNESS = np.array([400.0] * 3 + [50.0] * 3)  # default [N/m, N m/rad]
ROOT_STIFFNESS = np.sqrt(STIFFNESS)
FREE = 1.0  # an axis with less stiffness is damped as if it had this one [N/m, N m/rad]
ARM = 5  # joints that an end effector needs for itself to be that of an arm, not a finger
BANDWIDTH = 10.0  # of the default posture stiffness [rad/s]
# A direction of the task whose frequency, with STIFFNESS, is below this share of the highest one is almost
# singular: there the posture acts instead.
SINGULAR = 0.03
TINY = 1e-6  # the same, where a frequency is zero but for round-off
ZONE = 0.2  # before the position limits, in which joints are pushed back to their reference [rad, m] ...
STRENGTH = 6.0  # ... with this share of their effort limit per rad or m, ...
END_BANDWIDTH = 30.0  # ... but not faster than this [rad/s]
EASE = 1.0  # time in which a spring that was changed reaches its new force [s]


@dataclass
class HandSettings:
    """Impedance of one frame, in the axes of another frame."""

    stiffness: Array  # [N/m, N m/rad]
    damping_ratio: float
    axes: str
    max_force: float  # of the spring [N]
    max_moment: float  # of the spring [N m]

    def __post_init__(self) -> None:
        self.root_stiffness = np.sqrt(np.maximum(self.stiffness, FREE))[:, None]

    @property
    def spring(self) -> tuple[object, ...]:
        """What its force depends on."""
        return (*self.stiffness, self.axes, self.max_force, self.max_moment)


@register_term
class CartesianImpedance(Term):
    """A a_d + C v_d + Q + J^T (K e + D J (v_d - v)) + N^T (K_n (q_p - q) + D_n N (v_d - v)).

    The hands' reference is the pose of the joint reference q_d. e is the hands' error, the angular part as
    the logarithm of a rotation. D gives the damping ratio with the task inertia (J A^-1 J^T)^-1, and
    N = I - A^-1 J^T (J A^-1 J^T)^-1 J keeps the posture q_p from moving the hands. Only commanded joints
    take part. Gravity counts once, as in computed_torque. Springs do not drive joints beyond their speed
    limits (SpeedZone), and a change of a spring does not jerk the hand. Near position limits joints get
    springs of their own: a hand that is pushed does not leave the limits.
    """

    name = 'cartesian_impedance'
    needs_coriolis = True
    follows_reference = True
    compensates_gravity = True
    parameters = (
        Parameter(
            'cartesian.<frame>.stiffness', 'numbers', None,
            'stiffness of the frame along and about x y z; default without any frame: 400 and 50 at the '
            'end effector of every arm',
            'N/m, N m/rad', 0, 1e6, live=True,
        ),
        Parameter(
            'cartesian.<frame>.damping_ratio', 'number', 1.0, 'damping ratio of the frame', '1', 0.1, 10,
            live=True,
        ),
        Parameter(
            'cartesian.<frame>.axes', 'text', '', 'frame of the stiffness axes; default: the root link',
            live=True,
        ),
        Parameter(
            'cartesian.<frame>.max_force', 'number', None, "largest force of the frame's spring", 'N', 0, 1e6,
            live=True,
        ),
        Parameter(
            'cartesian.<frame>.max_moment', 'number', None, "largest moment of the frame's spring",
            'N m', 0, 1e6, live=True,
        ),
        Parameter(
            'nullspace.stiffness', 'per_joint', None,
            'stiffness of the posture; default: 10 rad/s with the inertia at home', 'N m/rad', 0, 1e6,
            live=True,
        ),
        Parameter(
            'nullspace.damping_ratio', 'number', 1.0, 'damping ratio of the posture', '1', 0, 10, live=True
        ),
        Parameter(
            'nullspace.posture', 'per_joint', None,
            'posture that the hands leave free; default: that of the reference, near the pose at enable',
            'rad', -1e3, 1e3, live=True,
        ),
    )  # fmt: skip

    def __init__(self, robot: Robot, settings: 'Settings') -> None:
        commanded = np.isin(robot.joint_names, drivers_of(settings, robot).joints)
        self.hands = hands_of(robot, settings, commanded)
        self._robot, self._settings = robot, settings
        self._commanded = commanded
        # By hand: the commanded joints that move it, without the trunk.
        self.arms = {frame: commanded & arm_joints(robot, frame) for frame in self.hands}
        for frame, arm in self.arms.items():
            if not arm.any():
                raise ConfigError(f'cartesian.{frame}: no commanded joint moves this frame')
        arms = np.flatnonzero(np.any(list(self.arms.values()), axis=0))
        is_row = arms[-1] - arms[0] == len(arms) - 1  # then a slice selects them, which is quicker
        self._arms: Any = slice(arms[0], arms[-1] + 1) if is_row else arms
        self._arms_of_A: Any = (self._arms, self._arms) if is_row else np.ix_(arms, arms)
        self._compensates_gravity = not ('gravity' in settings.terms or settings.hardware_compensates_gravity)
        inertia = free_inertia(robot.mass_matrix(robot.home))
        self._posture_stiffness = (
            inertia * BANDWIDTH**2
            if settings.nullspace_stiffness is None
            else settings.per_joint('nullspace.stiffness', robot)
        )
        self._posture_damping = (
            2 * settings.nullspace_damping_ratio * np.sqrt(self._posture_stiffness * inertia)
        )
        # With critical damping, a farther posture than this is approached at half of the speed limit.
        self._farthest = robot.velocity_limits / np.sqrt(np.maximum(self._posture_stiffness / inertia, TINY))
        self.posture = None if settings.nullspace_posture is None else posture_of(robot, settings)
        limits = Limits.of(robot)
        self._lower, self._upper = robot.lower + ZONE, robot.upper - ZONE
        self._end_stiffness = np.minimum(STRENGTH * limits.effort, inertia * END_BANDWIDTH**2)
        self._speed_zone = SpeedZone(robot, settings)
        self._turns: dict[str, Array] = {}  # the last angular error of each hand [rad]
        self._last = np.zeros((2 * len(self.hands), 3))  # forces and moments of the springs at the last step
        self._share = np.ones((2 * len(self.hands), 1))  # of them that is in force
        self._is_changed = False

    @classmethod
    def from_settings(cls, robot: Robot, settings: 'Settings') -> 'CartesianImpedance':
        if robot.config.rolling:
            raise InputError(f'cartesian_impedance: {robot.name} rolls on wheels; use rolling_base')
        if 'computed_torque' in settings.terms:
            raise InputError(
                'terms has computed_torque and cartesian_impedance, which both follow the reference; use one'
            )
        return cls(robot, settings)

    @property
    def gains(self) -> tuple[Array, Array]:
        """Kp [1/s2] and Kd [1/s] of the fastest motion of hands or posture at home, for all joints."""
        dynamics = Dynamics(self._robot)
        dynamics.update(self._robot.home, np.zeros(self._robot.nv))
        task = self._task(dynamics, self._axes(dynamics))
        fastest = float(task.frequencies[-1])
        damping = max(hand.damping_ratio for hand in self.hands.values())
        posture = [
            float(np.linalg.eigvals(np.linalg.solve(dynamics.A, np.diag(x))).real.max())
            for x in (self._posture_stiffness, self._posture_damping)
        ]
        kp, kd = np.zeros((2, self._robot.nv))
        kp[self._commanded] = max(fastest**2, posture[0])
        kd[self._commanded] = max(2 * damping * fastest, posture[1])
        return kp, kd

    def reset(self) -> None:
        self._turns.clear()
        self._share[:] = 1.0
        self._is_changed = False

    def check_change(self, other: 'CartesianImpedance') -> None:
        if new := set(other.hands) - set(self.hands):
            raise InputError(
                f'cartesian.{min(new)}.stiffness: the hands are {", ".join(self.hands)}; '
                'others are only read at configure'
            )

    def adopt(self, other: 'CartesianImpedance') -> None:
        hands = hands_of(self._robot, other._settings, self._commanded, list(self.hands))
        self._is_changed |= any(hand.spring != self.hands[frame].spring for frame, hand in hands.items())
        self.hands = hands
        self._posture_stiffness, self.posture = other._posture_stiffness, other.posture
        self._posture_damping, self._speed_zone = other._posture_damping, other._speed_zone
        self._farthest = other._farthest

    def torque(self, state: TermInputs) -> Array:
        commanded, arms, dynamics, reference = self._commanded, self._arms, state.dynamics, state.reference
        # Joints that are not commanded are where they are: they cause no feedback.
        q_d, v_d = np.where(commanded, reference.q, state.q), np.where(commanded, reference.v, state.v)
        a_d = commanded * reference.a
        axes = self._axes(dynamics)
        task = self._task(dynamics, axes)
        speed = v_d - state.v
        speed_in_posture = speed.copy()
        speed_in_posture[arms] = task.null_speed(speed[arms])
        posture = q_d if self.posture is None else self.posture
        pull = self._posture_stiffness * within(posture - state.q, -self._farthest, self._farthest)
        pull += self._posture_damping * speed_in_posture
        pull[arms] = task.null_torque(pull[arms]) + task.torque(
            self._forces(dynamics, axes, q_d, state.dt), speed[arms]
        )
        if not is_within(state.q, self._lower, self._upper):
            inside = within(state.q, np.minimum(self._lower, q_d), np.maximum(self._upper, q_d))
            pull += self._end_stiffness * (inside - state.q)
        pull += self._speed_zone.torque(pull, state.v, v_d, dynamics.A)
        pull += dynamics.A.dot(a_d)
        pull += dynamics.C.dot(v_d)
        pull += reference.effort
        if self._compensates_gravity:
            pull += dynamics.gravity
        return commanded * pull

    def _axes(self, dynamics: Dynamics) -> list[Array]:
        """Rotation to the world of the stiffness axes of every hand."""
        return [dynamics.pose(hand.axes)[0] for hand in self.hands.values()]

    def _task(self, dynamics: Dynamics, axes: list[Array]) -> '_Task':
        J = np.concatenate([dynamics.jacobian(frame)[:, self._arms] for frame in self.hands])
        return _Task(self.hands, dynamics.A[self._arms_of_A], J, axes)

    def _forces(self, dynamics: Dynamics, axes: list[Array], q_d: Array, dt: float) -> Array:
        """Forces and moments [N, N m] of the springs of all hands, in world axes."""
        forces = []
        poses = dynamics.poses_at(q_d, self.hands)
        for (frame, hand), (R_d, p_d), to_world in zip(self.hands.items(), poses, axes, strict=True):
            R, p = dynamics.pose(frame)
            turn = near_turn(pin.log3(R_d.dot(R.T)), self._turns.get(frame))
            self._turns[frame] = turn
            error = np.array([p_d - p, turn]).dot(to_world)  # rows: distance and angle
            force, moment = (error * hand.stiffness.reshape(2, 3)).dot(to_world.T)
            forces += [limited(force, hand.max_force), limited(moment, hand.max_moment)]
        self._last = self._eased(np.array(forces), dt)
        return self._last.ravel()

    def _eased(self, forces: Array, dt: float) -> Array:
        """The same, but those of a changed spring rise from their last magnitude within EASE."""
        if self._is_changed:
            self._is_changed = False
            before, after = np.linalg.norm([self._last, forces], axis=2)[:, :, None]
            self._share = np.divide(before, after, out=np.ones_like(after), where=after > before)
        if not any_true(self._share < 1.0):
            return forces
        self._share = np.minimum(self._share + dt / EASE, 1.0)
        return self._share * forces


class _Task:
    """The hands' motion in two scalings of its axes, each with its modes.

    In y = sqrt(K) x every spring has unit stiffness, and the frequencies [rad/s] of the modes give the
    damping. Which motion is left to the posture must not depend on the stiffness: that scaling is fixed.
    """

    def __init__(self, hands: dict[str, HandSettings], A: Array, J: Array, axes: list[Array]) -> None:
        self._world = J
        response = solved(A, J.T)
        B = J.dot(response)  # inverse task inertia
        scale, ratios = np.zeros(B.shape), np.empty(len(J))
        for i, (hand, to_world) in enumerate(zip(hands.values(), axes, strict=True)):
            k = 6 * i
            scale[k : k + 3, k : k + 3] = hand.root_stiffness[:3] * to_world.T
            scale[k + 3 : k + 6, k + 3 : k + 6] = hand.root_stiffness[3:] * to_world.T
            ratios[k : k + 6] = hand.damping_ratio
        fixed = _fixed_scale(len(hands))
        scaled = np.array([scale.dot(B).dot(scale.T), fixed * B * fixed.T])
        # With the default stiffness both are the same.
        values, vectors = _modes(scaled[:1] if scaled[0].tobytes() == scaled[1].tobytes() else scaled)
        self.frequencies, frequencies, modes, fixed_modes = values[0], values[-1], vectors[0], vectors[-1]
        self._J = modes.T.dot(scale.dot(J))
        smallest = TINY * self.frequencies[-1]
        self._damping = 2 * ratios.dot(modes**2) / np.maximum(self.frequencies, smallest)
        fixed_modes = fixed_modes * fixed
        self._J_fixed, self._response = fixed_modes.T.dot(J), response.dot(fixed_modes)
        lowest = SINGULAR * frequencies[-1]
        self._inverse = (np.minimum(frequencies / lowest, 1.0) / np.maximum(frequencies, lowest)) ** 2

    def torque(self, force: Array, speed: Array) -> Array:
        """J^T f of the springs, and the damping of the hands' speed."""
        return np.asarray((self._damping * self._J.dot(speed)).dot(self._J) + force.dot(self._world))

    def null_torque(self, torque: Array) -> Array:
        """N^T torque: the part that does not accelerate the hands."""
        return np.asarray(torque - (self._inverse * torque.dot(self._response)).dot(self._J_fixed))

    def null_speed(self, speed: Array) -> Array:
        """N v: the part of the joints' speed that does not move the hands."""
        return np.asarray(speed - self._response.dot(self._inverse * self._J_fixed.dot(speed)))


@cache
def _fixed_scale(count: int) -> Array:
    """Square roots of the default stiffness of this many hands, as a column."""
    return np.tile(ROOT_STIFFNESS, count)[:, None]


def _modes(B: Array) -> tuple[Array, Array]:
    """Frequencies w [rad/s] and modes U of inverse task inertias B = U diag(w^2) U^T."""
    squares, U = np.linalg.eigh(B)
    return np.sqrt(np.maximum(squares, 0.0)), U


def hands_of(
    robot: Robot, settings: 'Settings', commanded: Mask, frames: list[str] | None = None
) -> dict[str, HandSettings]:
    """The frames with an impedance: those given, else those with a stiffness, else the end effectors."""
    given = settings.frames('cartesian')
    frames = frames or [frame for frame, values in given.items() if 'stiffness' in values]
    frames = frames or end_effectors(robot, commanded)
    if not frames:
        raise ConfigError('terms has cartesian_impedance, so cartesian.<frame>.stiffness must be given')
    hands = {}
    for frame in frames:
        values = given.get(frame, {})
        axes = values.get('axes') or robot.urdf.root
        for name in (frame, axes):
            if name not in robot.frames:
                raise UnknownNameError('cartesian frame', name, robot.frames)
        hands[frame] = HandSettings(
            array(f'cartesian.{frame}.stiffness', values.get('stiffness', STIFFNESS), (6,)),
            values.get('damping_ratio', 1.0),
            axes,
            values.get('max_force', inf),
            values.get('max_moment', inf),
        )
    return hands


def end_effectors(robot: Robot, commanded: Mask) -> list[str]:
    """The end effectors of arms, or all without an arm; of several on one arm that with the fewest joints."""
    joints = {
        frame: commanded & moving_joints(robot, frame)
        for frame in robot.config.end_effectors
        if (commanded & arm_joints(robot, frame)).any()
    }
    least = ARM if any(mask.sum() >= ARM for mask in joints.values()) else 1
    found: list[str] = []
    for frame, mask in sorted(joints.items(), key=lambda entry: int(entry[1].sum())):
        shared = [mask & ~joints[other] for other in found if (mask & joints[other]).any()]
        if mask.sum() >= least and all(own.sum() >= ARM for own in shared):
            found.append(frame)
    return [frame for frame in joints if frame in found]


def arm_joints(robot: Robot, frame: str) -> Mask:
    """The joints that move a frame, without the trunk: joints that also move an end effector of another arm.

    A finger is not another arm.
    """
    joints = moving_joints(robot, frame)
    others = [moving_joints(robot, other) for other in robot.config.end_effectors]
    return np.all([joints, *(~other for other in others if (other & ~joints).sum() >= ARM)], axis=0)


def moving_joints(robot: Robot, frame: str) -> Mask:
    """The joints that move a frame."""
    joints = robot.urdf.joints
    return np.array([frame in robot.urdf.subtree(joints[name].child) for name in robot.joint_names])


def posture_of(robot: Robot, settings: 'Settings') -> Array:
    """The posture of the settings [rad]."""
    posture = settings.per_joint('nullspace.posture', robot)
    return joint_vector('nullspace.posture', posture, robot.joint_names, (robot.nv,))


def near_turn(turn: Array, before: Array | None) -> Array:
    """The rotation vector [rad], or the same rotation the other way round if that is nearer to `before`.

    The logarithm jumps at pi; an error that passes pi does not.
    """
    angle = sqrt(turn.dot(turn))
    if before is None or angle < pi / 2:
        return turn
    other = turn * (1 - 2 * pi / angle)
    return other if np.sum((other - before) ** 2) < np.sum((turn - before) ** 2) else turn


def within(x: Array, low: Array, high: Array) -> Array:
    """x, limited to low .. high: np.clip() in a quarter of the time."""
    return np.asarray(np.minimum(np.maximum(x, low), high))


def limited(x: Array, largest: float) -> Array:
    """x, scaled to at most `largest` in its own direction."""
    length = sqrt(x.dot(x))
    return x if length <= largest else x * (largest / length)
