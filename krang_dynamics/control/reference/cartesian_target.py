"""Cartesian targets: poses and twists of hands become streamed motions of their joints."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import hypot
from typing import Protocol

import numpy as np
import pinocchio as pin

from ...arrays import Array, Integers, Mask, array, norm
from ...errors import InputError
from ...robot.model import Robot
from .joint_reference import Reference

ALIGNED = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
UNIT = 1e-3  # by which the norm of a quaternion may differ from 1
LENGTH = 0.3  # that makes angles comparable with distances [m/rad]
# The same for a pose that is not reached: then its position counts more. At the edge of reach, where the
# position hardly depends on the joints, a larger one would cost millimetres.
POSITION_FIRST = 0.001  # [m/rad]
MOST_STEPS = 40  # of the inverse kinematics, ...
LAST_STEPS = 20  # ... more of them for a pose that is not reached, ...
AT_ONCE = 2  # ... and how many of them one step of the controller makes
STEP = 0.3  # largest change of a joint in one of them [rad, m]
DAMPING = 1e-4  # of the first of them [m2]
LEAST_DAMPING = 1e-9  # keeps arms with fewer than six degrees of freedom solvable [m2]
POSTURE = 1e-5  # weight of the posture [m2/rad2]
SMALL = 1e-5  # a change of the joints that ends it [rad, m]
OUT_OF_REACH = 1e-3  # error of a pose that is reported [m]
CATCH_UP = 5.0  # rate at which a twist's reference returns to the integrated pose [1/s]


@dataclass(frozen=True)
class PoseSample:
    """Target pose of `frame`, in the axes and relative to the origin of `frame_id`."""

    frame: str  # the hand
    frame_id: str
    position: Array  # [m]
    quaternion: Array  # x y z w
    arrival: float  # steady [s]

    def moved(self, frame_id: str, rotation: Array, translation: Array) -> 'PoseSample':
        """The same target relative to another frame, given the pose in it [m]."""
        turn = pin.Quaternion(rotation) * pin.Quaternion(*self.quaternion[[3, 0, 1, 2]])
        return replace(
            self,
            frame_id=frame_id,
            position=rotation @ self.position + translation,
            quaternion=np.array(turn.coeffs()),
        )


@dataclass(frozen=True)
class TwistSample:
    """Target velocity of `frame` (linear [m/s], angular [rad/s]) in the axes of `frame_id`."""

    frame: str  # the hand
    frame_id: str
    twist: Array
    arrival: float  # steady [s]

    def moved(self, frame_id: str, rotation: Array, translation: Array) -> 'TwistSample':
        """The same velocity in the axes of another frame."""
        twist = np.concatenate([rotation @ self.twist[:3], rotation @ self.twist[3:]])
        return replace(self, frame_id=frame_id, twist=twist)


class Arms(Protocol):
    """What the term that follows targets knows of its hands."""

    arms: Mapping[str, Mask]  # by hand: the joints that move it
    posture: Array | None  # preferred [rad]; None: that at reset


@dataclass
class _Hand:
    """The target of one hand."""

    joints: Integers  # that move it
    pose: pin.SE3 | None = None  # where it should be at `time`, in the world
    twist: Array | None = None  # with which it should move from there on, in world axes
    time: float = -np.inf  # of the newest message [s]
    search: '_Search | None' = None  # for the joint positions of `pose`
    is_streamed: bool = False  # whether `pose` must be renewed


class CartesianTargets:
    """Moves the joints of hands so that their reference reaches a pose, or follows a twist.

    A pose is reached by a streamed set-point of the joints, a twist by their velocities. With both, the
    twist is the velocity of the pose. A pose out of reach is approached as far as the joints' limits allow.
    """

    def __init__(self, robot: Robot, term: Arms, commanded: Mask) -> None:
        self._robot, self._term, self._commanded = robot, term, commanded
        self._hands = {frame: _Hand(np.flatnonzero(mask)) for frame, mask in term.arms.items()}
        self._start = robot.home

    @property
    def frames(self) -> Iterable[str]:
        return self._hands

    @property
    def is_searching(self) -> bool:
        """Whether `advance` has work."""
        return any(hand.search is not None for hand in self._hands.values())

    def reset(self, q: Array) -> None:
        """Forget all targets; q is the pose of the robot [rad]."""
        self._start = q.copy()
        self.forget(np.arange(len(q)))

    def forget(self, joints: Integers) -> None:
        """Forget the targets of hands that one of these joints moves: another motion has replaced them."""
        for frame, hand in self._hands.items():
            if np.isin(hand.joints, joints).any():
                self._hands[frame] = _Hand(hand.joints)

    def take(self, sample: PoseSample | TwistSample, now: float, q: Array, reference: Reference) -> None:
        """Use a target from now [s] on; q is measured. Or raise InputError and change nothing."""
        name = f'target_{"pose" if isinstance(sample, PoseSample) else "twist"}/{sample.frame}'
        if sample.frame not in self._hands:
            raise InputError(f'{name}: not a hand of cartesian_impedance; it has {", ".join(self._hands)}')
        if sample.frame_id not in self._robot.frames:
            raise InputError(f'{name}: frame_id {sample.frame_id!r} is not a frame of the robot')
        hand = self._hands[sample.frame]
        base = pin.SE3(self._robot.frame_pose(q, sample.frame_id))
        # Joints that are not commanded are where they are.
        q_d = np.where(self._commanded, reference.sample(now)[0], q)
        is_fresh = now - hand.time <= reference.timeout
        if isinstance(sample, PoseSample):
            pose, twist = base * checked_pose(name, sample), hand.twist if is_fresh else None
            if twist is None:
                self._seek(sample.frame, now, q_d, pose, reference)
                hand.is_streamed = is_fresh
        else:
            twist = array(name, sample.twist, (6,))
            twist = np.concatenate([base.rotation @ twist[:3], base.rotation @ twist[3:]])
            pose = pin.SE3(self._robot.frame_pose(q_d, sample.frame))
            if is_fresh and hand.pose is not None:
                pose = hand.pose if hand.twist is None else advanced(hand.pose, hand.twist, now - hand.time)
        if twist is not None:
            self._follow(sample.frame, now, q_d, pose, twist, reference)
            hand.search = None
        hand.pose, hand.twist, hand.time = pose, twist, now

    def advance(self, now: float, reference: Reference) -> list[str]:
        """A few steps of the inverse kinematics; hands whose joints are found begin to move.

        Spread over steps of the controller, it takes little time of each. Returns poses out of reach.
        """
        reports = []
        for frame, hand in self._hands.items():
            search = hand.search
            if search is None or not any(search.step() for _ in range(AT_ONCE)):
                continue
            hand.search = None
            reference.move_to(now, hand.joints, search.q[hand.joints], hand.is_streamed)
            if not search.is_reached:
                distance, turn = search.remaining
                reports.append(
                    f'target_pose/{frame}: out of reach by {1e3 * distance:.0f} mm and {turn:.2g} rad; '
                    'the nearest pose that was found is approached'
                )
        return reports

    def _seek(self, frame: str, now: float, q_d: Array, pose: pin.SE3, reference: Reference) -> None:
        """Begin the search for a pose. If that for the last pose goes on, its result so far is approached."""
        hand = self._hands[frame]
        if hand.search is not None:
            q_d = hand.search.q
            reference.move_to(now, hand.joints, q_d[hand.joints], hand.is_streamed)
        limits = reference.room(hand.joints, q_d[hand.joints])
        posture = self._start if self._term.posture is None else self._term.posture
        hand.search = _Search(_Chain(self._robot, frame, hand.joints), pose, q_d, posture, limits)

    def _follow(
        self, frame: str, now: float, q_d: Array, pose: pin.SE3, twist: Array, reference: Reference
    ) -> None:
        """Move the joints so that the hand has a twist, and returns to the pose of that time."""
        joints = self._hands[frame].joints
        error, J = _Chain(self._robot, frame, joints).error(pose, q_d, LENGTH)
        wanted = CATCH_UP * error
        wanted += np.concatenate([twist[:3], LENGTH * twist[3:]])
        v = J.T @ np.linalg.solve(J @ J.T + DAMPING * np.eye(6), wanted)
        reference.move_at(now, joints, reference.slowed(joints, q_d[joints], v))


@dataclass
class _Chain:
    """A hand and the joints that move it."""

    robot: Robot
    frame: str
    joints: Integers

    def error(self, pose: pin.SE3, q: Array, length: float) -> tuple[Array, Array]:
        """The way to a pose [m], and its Jacobian; angles count as distances by a length [m/rad]."""
        model, data, fold = self.robot.model, self.robot.data, self.robot.joint_map
        index = model.getFrameId(self.frame, pin.FrameType.BODY)
        J = pin.computeFrameJacobian(model, data, fold.position(q), index, ALIGNED).reshape(6, -1)
        error = pose_error(pose, pin.updateFramePlacement(model, data, index))
        error[3:] *= length
        J = fold.columns(J)[:, self.joints]
        J[3:] *= length
        return error, J


class _Search:
    """The joint positions q with a hand at a pose, by Levenberg-Marquardt steps within position limits.

    The posture counts a little, and not at all in the last steps. A pose that is not reached, such as an
    orientation that an arm with five joints does not have, is approached with its position first.
    """

    def __init__(
        self, chain: _Chain, pose: pin.SE3, q: Array, posture: Array, limits: tuple[Array, Array]
    ) -> None:
        self._chain, self._pose, self._limits = chain, pose, limits
        self._posture = np.clip(posture[chain.joints], *limits)
        self._weight, self._damping, self._left = POSTURE, DAMPING, MOST_STEPS
        self.q = q.copy()
        self.q[chain.joints] = np.clip(q[chain.joints], *limits)
        self._length = LENGTH
        self._error, self._J = chain.error(pose, self.q, LENGTH)

    @property
    def remaining(self) -> tuple[float, float]:
        """The error that remains [m, rad]."""
        return norm(self._error[:3]), norm(self._error[3:]) / self._length

    @property
    def is_reached(self) -> bool:
        distance, turn = self.remaining
        return hypot(distance, LENGTH * turn) <= OUT_OF_REACH

    def step(self) -> bool:
        """One step; returns whether it was the last."""
        joints, (lower, upper), weight = self._chain.joints, self._limits, self._weight
        x, new = self.q[joints], self.q.copy()
        way = self._posture - x
        step = _step(self._J, self._error, weight * way, weight + self._damping, x <= lower, x >= upper)
        step *= STEP / max(STEP, float(np.abs(step).max(initial=0.0)))
        new[joints] = np.clip(x + step, lower, upper)
        error, J = self._chain.error(self._pose, new, self._length)
        new_way = self._posture - new[joints]
        gain = self._error.dot(self._error) - error.dot(error)
        gain += weight * (way.dot(way) - new_way.dot(new_way))
        is_small = float(np.abs(new[joints] - x).max(initial=0.0)) < SMALL
        if gain > 0:
            self.q, self._error, self._J = new, error, J
        self._damping = max(self._damping / 8, LEAST_DAMPING) if gain > 0 else 8 * self._damping
        if is_small and weight:
            self._weight, self._damping = 0.0, DAMPING / 100
        self._left -= 1
        if self._left and (weight or not is_small):
            return False
        if self.is_reached or self._length < LENGTH:
            return True
        self._length, self._weight, self._damping, self._left = POSITION_FIRST, 0.0, DAMPING, LAST_STEPS
        self._error, self._J = self._chain.error(self._pose, self.q, self._length)
        return False


def checked_pose(name: str, sample: PoseSample) -> pin.SE3:
    """The pose of a sample, or InputError."""
    position = array(f'{name}: position', sample.position, (3,))
    x, y, z, w = quaternion = array(f'{name}: orientation', sample.quaternion, (4,))
    norm = float(np.linalg.norm(quaternion))
    if abs(norm - 1) > UNIT:
        raise InputError(f'{name}: the quaternion of the orientation has norm {norm:.6g}; it must be 1')
    return pin.SE3(pin.Quaternion(w, x, y, z).normalized().matrix(), position)


def pose_error(target: pin.SE3, present: pin.SE3) -> Array:
    """The way from a pose to its target in world axes: distance [m] and rotation vector [rad]."""
    turn = pin.log3(target.rotation @ present.rotation.T)
    return np.concatenate([target.translation - present.translation, turn])


def advanced(pose: pin.SE3, twist: Array, time: float) -> pin.SE3:
    """The pose after a time [s] with a constant twist in world axes, at the origin of the hand."""
    return pin.SE3(pin.exp3(twist[3:] * time) @ pose.rotation, pose.translation + twist[:3] * time)


def _step(J: Array, error: Array, pull: Array, damping: float, at_lower: Mask, at_upper: Mask) -> Array:
    """Solution of (J^T J + damping) x = J^T error + pull; joints at a limit do not move beyond it."""
    H, g = J.T @ J, J.T @ error + pull
    H.flat[:: len(H) + 1] += damping
    step = np.linalg.solve(H, g)
    while (blocked := (at_lower & (step < 0)) | (at_upper & (step > 0))).any():
        H[blocked], H[:, blocked], g[blocked] = 0.0, 0.0, 0.0
        H[blocked, blocked] = 1.0
        step = np.linalg.solve(H, g)
    return np.asarray(step)
