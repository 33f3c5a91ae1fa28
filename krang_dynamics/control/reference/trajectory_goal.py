"""A goal of FollowJointTrajectory: acceptance, feedback and result, without ROS."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...arrays import Array, short_way
from ...errors import InputError, UnknownNameError
from ...robot.model import Robot
from .trajectory import JointTrajectory

# Codes of control_msgs/action/FollowJointTrajectory.
SUCCESSFUL, INVALID_GOAL, INVALID_JOINTS, OLD_HEADER_TIMESTAMP = 0, -1, -2, -3
PATH_TOLERANCE_VIOLATED, GOAL_TOLERANCE_VIOLATED = -4, -5
AT_REST = 0.01  # default tolerance of the speed at the goal [rad/s, m/s]
SAME = 1e-6  # between the end of a trajectory and a reference that has followed it [rad, m]


@dataclass(frozen=True)
class Tolerance:
    """Largest errors of a joint; as in control_msgs/JointTolerance, 0 is the default and -1 is none."""

    position: float = 0.0  # [rad, m]
    velocity: float = 0.0  # [rad/s, m/s]
    acceleration: float = 0.0  # of the reference; not measured, so not compared


@dataclass(frozen=True)
class GoalResult:
    """How a goal ended."""

    code: int
    text: str


@dataclass(frozen=True)
class Feedback:
    """Reference and measurement of the joints of a goal, at a time since its start [s]."""

    time: float
    desired: Array  # (2, n) position and velocity
    actual: Array  # (2, n)


@dataclass
class TrajectoryGoal:
    """One goal from its request to its result; the caller sends the trajectory and the measured states.

    `stop` is what a cancelled goal sends: a trajectory without points, which brings the robot to rest.
    """

    robot: Robot
    trajectory: JointTrajectory
    path_tolerance: Mapping[str, Tolerance] = field(default_factory=dict)
    goal_tolerance: Mapping[str, Tolerance] = field(default_factory=dict)
    goal_time_tolerance: float = 0.0  # [s]; 0: none, as long as it takes
    default_goal: float = 0.01  # position tolerance at the goal [rad, m]
    start: float | None = None  # of the accepted trajectory, on the node's clock [s]

    def refusal(self, clock: float) -> GoalResult | None:
        """Why a goal cannot be accepted; None if it can, as far as that can be told before it is prepared."""
        names, x = self.robot.joint_names, self.trajectory
        if len(x.times) == 0:
            return GoalResult(INVALID_GOAL, 'the trajectory has no points; cancel the goal to stop')
        for name in [*x.joint_names, *self.path_tolerance, *self.goal_tolerance]:
            if name not in names:
                return GoalResult(INVALID_JOINTS, str(UnknownNameError('joint', name, names)))
        if not x.joint_names or len(set(x.joint_names)) < len(x.joint_names):
            return GoalResult(INVALID_JOINTS, 'joint_names must name every joint of the goal once')
        for name in (*self.path_tolerance, *self.goal_tolerance):
            if name not in x.joint_names:
                return GoalResult(INVALID_JOINTS, f'the tolerance of joint {name!r} has no trajectory')
        if np.shape(x.positions) != (len(x.times), len(x.joint_names)):
            return GoalResult(INVALID_GOAL, 'every point needs one position per joint')
        if x.start and x.start + float(x.times[-1]) < clock:
            late = clock - x.start - float(x.times[-1])
            return GoalResult(
                OLD_HEADER_TIMESTAMP, f'the trajectory ended {late:.3f} s ago; set its stamp to 0'
            )
        return None

    def accepted(self, clock: float) -> None:
        """The controller has accepted the trajectory."""
        self.start = self.trajectory.start or clock

    def ended(self, reason: str) -> GoalResult:
        """The controller has refused or ended the trajectory, or the goal was cancelled or preempted."""
        return GoalResult(INVALID_GOAL, reason)

    @property
    def stop(self) -> JointTrajectory:
        """What brings the robot to rest."""
        return JointTrajectory((), np.zeros(0), np.zeros((0, 0)))

    def take(
        self, clock: float, q: Array, v: Array, reference: tuple[Array, Array]
    ) -> tuple[Feedback, GoalResult | None]:
        """A measured state and the reference (q, v) of the same step, over joint_names."""
        assert self.start is not None
        columns = [self.robot.joint_names.index(name) for name in self.trajectory.joint_names]
        desired = np.array([reference[0][columns], reference[1][columns]])
        actual = np.array([q[columns], v[columns]])
        elapsed = clock - self.start
        feedback = Feedback(elapsed, desired, actual)
        duration = float(self.trajectory.times[-1])
        if elapsed < 0:
            return feedback, None
        wanted = desired
        if elapsed >= duration:
            wanted = np.array([self.trajectory.positions[-1], np.zeros(len(columns))])
            away = np.abs(short_way(wanted[0] - desired[0], self.robot.continuous[columns]))
            if away.max() > SAME and not desired[1].any():
                return feedback, self.ended('another motion of its joints has replaced the trajectory')
        errors = np.abs(wanted - actual)
        errors[0] = np.abs(short_way(wanted[0] - actual[0], self.robot.continuous[columns]))
        if elapsed < duration:
            return feedback, self._path_result(errors, elapsed)
        return feedback, self._goal_result(errors, elapsed - duration)

    def _path_result(self, errors: Array, elapsed: float) -> GoalResult | None:
        for row, what, unit in ((0, 'position', 'rad'), (1, 'velocity', 'rad/s')):
            limits = self._limits(self.path_tolerance, what, default=-1.0)
            if (wrong := _first(errors[row], limits)) is not None:
                return GoalResult(
                    PATH_TOLERANCE_VIOLATED,
                    f'joint {self.trajectory.joint_names[wrong]!r} after {elapsed:.3f} s: '
                    f'{what} error {errors[row, wrong]:.4f} {unit}, the tolerance is {limits[wrong]:g}',
                )
        return None

    def _goal_result(self, errors: Array, late: float) -> GoalResult | None:
        position = self._limits(self.goal_tolerance, 'position', self.default_goal)
        velocity = self._limits(self.goal_tolerance, 'velocity', AT_REST)
        wrong = _first(errors[0], position)
        if wrong is None and _first(errors[1], velocity) is None:
            return GoalResult(SUCCESSFUL, 'the goal is reached')
        if self.goal_time_tolerance <= 0 or late <= self.goal_time_tolerance:
            return None
        what = 'position' if wrong is not None else 'velocity'
        row, limits = (0, position) if wrong is not None else (1, velocity)
        joint = _first(errors[row], limits)
        assert joint is not None
        return GoalResult(
            GOAL_TOLERANCE_VIOLATED,
            f'joint {self.trajectory.joint_names[joint]!r} {late:.3f} s after the end: '
            f'{what} error {errors[row, joint]:.4f}, the tolerance is {limits[joint]:g}',
        )

    def _limits(self, tolerances: Mapping[str, Tolerance], what: str, default: float) -> Array:
        """Tolerances of the joints of the goal; infinite where there is none."""
        given = [getattr(tolerances.get(name, Tolerance()), what) for name in self.trajectory.joint_names]
        values = np.array([default if x == 0 else x for x in given])
        return np.where(values < 0, np.inf, values)


def tolerances(entries: Sequence[tuple[str, float, float, float]]) -> dict[str, Tolerance]:
    """Tolerances by joint, from name, position, velocity and acceleration."""
    found = {}
    for name, *values in entries:
        if not np.isfinite(values).all():
            raise InputError(f'the tolerance of joint {name!r} is {values}; it must be finite')
        found[name] = Tolerance(*values)
    return found


def _first(errors: Array, limits: Array) -> int | None:
    """The first joint beyond its limit; also one whose error is not a number."""
    beyond = ~(errors <= limits)
    return int(np.argmax(beyond)) if beyond.any() else None
