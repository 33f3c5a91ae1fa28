"""The action ~/follow_joint_trajectory, where control_msgs is installed."""

from collections.abc import Callable
from typing import Any

from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.node import Node
from rclpy.task import Future
from trajectory_msgs.msg import JointTrajectory as Message

from ...bags.io.trajectory_codec import encode_trajectory
from ...control import messages
from ...control.controller import Outputs
from ...control.reference.trajectory import JointTrajectory
from ...control.reference.trajectory_goal import GoalResult, TrajectoryGoal, tolerances
from ...control.session import Session
from ...errors import KrangError
from . import qos

try:
    from control_msgs.action import FollowJointTrajectory
except ImportError:  # a ROS installation has it, PyPI does not
    FollowJointTrajectory = None

IS_AVAILABLE = FollowJointTrajectory is not None
FEEDBACK = 0.05  # period of the feedback [s]


class TrajectoryAction:
    """One goal at a time; a new one preempts the last. All decisions are those of TrajectoryGoal."""

    def __init__(self, node: Node, session: Session, clock: Callable[[], float]) -> None:
        self._session, self._clock = session, clock
        self._node = node
        # Trajectories take the usual way, so that recordings have them.
        self._publisher = node.create_publisher(Message, 'joint_trajectory', qos.RELIABLE)
        self._goal: TrajectoryGoal | None = None
        self._handle: Any = None
        self._done: Future | None = None
        self._feedback_at = 0.0
        self._server = ActionServer(
            node,
            FollowJointTrajectory,
            '~/follow_joint_trajectory',
            self._execute,
            goal_callback=self._on_goal,
            cancel_callback=lambda handle: CancelResponse.ACCEPT,
        )

    def _send(self, trajectory: JointTrajectory) -> None:
        stamp = divmod(round(1e9 * trajectory.start), 1_000_000_000)
        self._publisher.publish(encode_trajectory(trajectory, stamp))

    def close(self) -> None:
        self._end(GoalResult(-1, 'the controller is not configured any more'), 'abort')
        self._server.destroy()
        self._node.destroy_publisher(self._publisher)

    def after_step(self, outputs: Outputs) -> None:
        """What a step means for the goal."""
        goal, handle = self._goal, self._handle
        if goal is None or handle is None:
            return
        controller, clock = self._session.controller, self._clock()
        if handle.is_cancel_requested:
            self._send(goal.stop)
            self._end(goal.ended('the goal was cancelled'), 'canceled')
        elif not controller.safety.is_driving:
            self._end(goal.ended(f'the controller is {outputs.mode.value}'), 'abort')
        elif goal.start is None:
            refusal = next((reason for reason in outputs.refused if reason.startswith('trajectory')), None)
            if outputs.accepted:
                goal.accepted(clock)
            elif refusal is not None:
                self._end(goal.ended(refusal), 'abort')
        elif outputs.reference is not None:
            buffer = controller.state.buffer
            feedback, result = goal.take(clock, buffer.q, buffer.v, outputs.reference)
            if result is not None:
                if result.code:
                    self._send(goal.stop)
                self._end(result, 'abort' if result.code else 'succeed')
            elif clock - self._feedback_at >= FEEDBACK:
                self._feedback_at = clock
                handle.publish_feedback(_feedback(goal, feedback))

    def _on_goal(self, request: Any) -> GoalResponse:
        driving = self._session.is_active and self._session.controller.safety.is_driving
        return GoalResponse.ACCEPT if driving else GoalResponse.REJECT

    async def _execute(self, handle: Any) -> Any:
        self._end(GoalResult(-1, 'another goal has replaced this one'), 'abort')
        self._handle, self._done = handle, Future()
        done = self._done
        try:
            goal = _goal(self._session, handle.request)
            refusal = goal.refusal(self._clock())
        except KrangError as error:
            refusal = GoalResult(-1, str(error))
        if refusal is not None:
            self._end(refusal, 'abort')
        else:
            self._goal = goal
            self._send(goal.trajectory)
        return await done

    def _end(self, result: GoalResult, how: str) -> None:
        """Answer the present goal: succeed, abort or canceled."""
        if self._handle is None or self._done is None:
            return
        getattr(self._handle, how)()
        message = FollowJointTrajectory.Result()
        message.error_code, message.error_string = result.code, result.text
        self._done.set_result(message)
        self._goal = self._handle = self._done = None


def _goal(session: Session, request: Any) -> TrajectoryGoal:
    def entries(rows: Any) -> list[tuple[str, float, float, float]]:
        return [(row.name, row.position, row.velocity, row.acceleration) for row in rows]

    return TrajectoryGoal(
        session.controller.robot,
        messages.joint_trajectory(request.trajectory),
        tolerances(entries(request.path_tolerance)),
        tolerances(entries(request.goal_tolerance)),
        messages.seconds(request.goal_time_tolerance),
    )


def _feedback(goal: TrajectoryGoal, feedback: Any) -> Any:
    message = FollowJointTrajectory.Feedback()
    message.joint_names = list(goal.trajectory.joint_names)
    parts = {
        'desired': feedback.desired,
        'actual': feedback.actual,
        'error': feedback.desired - feedback.actual,
    }
    for name, (q, v) in parts.items():
        point = getattr(message, name)
        point.positions, point.velocities = q.tolist(), v.tolist()
        point.time_from_start.sec = int(feedback.time)
        point.time_from_start.nanosec = int(1e9 * (feedback.time % 1))
    return message
