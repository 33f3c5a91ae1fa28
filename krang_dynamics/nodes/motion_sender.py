"""`krang send`: a motion to a running controller; it waits for the controller, follows and reports."""

import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from time import monotonic, sleep, time
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.duration import Duration
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory as Message

from ..bags.io.joint_state_codec import JointStateReader
from ..bags.io.motion_file import read_motion
from ..bags.io.taught_motion import fitted
from ..bags.io.trajectory_codec import encode_trajectory
from ..bags.parallel import Progress
from ..control.builder import robot_of
from ..control.node_state import NodeState
from ..control.reference.followed_motion import FollowedMotion
from ..control.reference.stream import StreamLimits
from ..control.reference.trajectory import JointTrajectory
from ..control.terms.term import follow_reference
from ..errors import InputError, KrangError, UnknownNameError
from ..robot.model import Robot
from .ros import qos
from .ros.description import description_of
from .ros.discovery import find_controller, full_name
from .ros.executor import drain
from .ros.process import init

PAUSE = 0.002  # between two polls of the queues [s]
ANSWER_TIMEOUT = 10.0  # for the acceptance of a motion [s]
DISCOVERY = 1.0  # time for recorders to be found [s]
SILENCE = 5.0  # timeout of the joint states, which ends the command [s]
FLUSH = Duration(seconds=1.0)  # longest wait for an acknowledgement
REMEDIES = {
    'inactive': 'activate it: ros2 lifecycle set {node} activate',
    'disabled': "enable it: ros2 service call {node}/enable std_srvs/srv/SetBool '{{data: true}}'",
    'fault': 'clear the fault: ros2 service call {node}/clear_fault std_srvs/srv/Trigger',
    'stopping': 'wait until it is at rest, then enable it',
    'ramping': 'wait until its torque has ramped up',
}


def send(path: str, node: str | None, approach: float | None, timeout: float, ros_args: Sequence[str]) -> int:
    """Run the command; returns the exit status. Without `approach` the motion is fitted to the robot."""
    trajectory = read_motion(path) if approach is None else _approached(read_motion(path), approach)
    if not 0 < timeout < np.inf:
        raise InputError(f'--timeout is {timeout:g} s; it must be positive')
    init(['--ros-args', *ros_args])
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell ignores it
    ros_node = rclpy.create_node('motion_sender')
    try:
        sender = MotionSender(ros_node, trajectory, node)
        sender.wait(timeout)
        if approach is None:
            trajectory = sender.fit(timeout)
        print(
            f'{path} to {sender.controller}: {len(trajectory.joint_names)} joints, '
            f'{len(trajectory.times)} points, {trajectory.times[-1]:g} s',
            flush=True,
        )
        print(sender.play())
    finally:
        ros_node.destroy_node()
        rclpy.try_shutdown()
    return 0


def _approached(trajectory: JointTrajectory, seconds: float) -> JointTrajectory:
    """The motion, delayed by the time to reach its first point [s]."""
    if not 0 <= seconds < np.inf:
        raise InputError(f'--approach is {seconds:g} s; it must be 0 or positive')
    return replace(trajectory, times=trajectory.times + seconds)


class MotionSender:
    """Sends one trajectory to the only controller, or to the one of a name."""

    def __init__(self, node: Node, trajectory: JointTrajectory, name: str | None) -> None:
        self.controller = full_name(node, name)
        self._node, self._trajectory = node, trajectory
        self._state: NodeState | None = None
        self._robot: Robot | None = None
        self._followed: FollowedMotion | None = None
        self._replaced = False  # whether the controller has accepted another trajectory
        self._refusal: str | None = None
        self._received_at = monotonic()  # when the newest joint state arrived [s]
        self._sent_at = np.inf  # [s]
        self._reader = JointStateReader()
        self._positions: dict[str, float] = {}  # newest of each joint [rad, m]
        self._publisher: Any = None
        self._began_at = monotonic()  # [s]

    # -- before the motion -------------------------------------------------------------------------------

    def wait(self, timeout: float) -> None:
        """Wait until the controller is active and receives trajectories; KrangError with what is missing."""
        deadline, shown = monotonic() + timeout, None
        while (problem := self._problem()) is not None:
            if problem != shown:
                print(f'waiting: {problem}', file=sys.stderr, flush=True)
                shown = problem
            if monotonic() > deadline:
                raise KrangError(f'{problem} (waited for {timeout:g} s)')
            self._turn(0.02)
        while monotonic() - self._began_at < DISCOVERY:
            self._turn(0.02)
        self._robot = self._find_robot()

    def fit(self, timeout: float) -> JointTrajectory:
        """Let the motion begin where the robot is, and slow it down to the stream's limits of the robot."""
        robot, names, deadline = self._robot, self._trajectory.joint_names, monotonic() + timeout
        if robot is None:
            raise KrangError("the robot's files are not on this machine, so its limits are not known")
        while not self._positions.keys() >= set(names):
            if monotonic() > deadline:
                raise KrangError(f'joint_states does not have all joints of the motion: {", ".join(names)}')
            self._turn(PAUSE)
        columns, limits = [robot.joint_names.index(name) for name in names], StreamLimits.of(robot)
        start = np.array([self._positions[name] for name in names])
        self._trajectory = fitted(
            self._trajectory, start, limits.velocity[columns], limits.acceleration[columns]
        )
        return self._trajectory

    def _find_robot(self) -> Robot | None:
        """The controller's robot; None if its files are not on this machine."""
        assert self._state is not None
        values = self._state.parameters
        try:
            robot = robot_of(values, description_of(self._node, values.get('robot_description') or ''))
            for name in self._trajectory.joint_names:
                if name not in robot.joint_names:
                    raise UnknownNameError('joint', name, robot.joint_names)
        except UnknownNameError:
            raise
        except KrangError as error:
            print(f'errors are not reported: {error}', file=sys.stderr, flush=True)
            return None
        return robot

    def _problem(self) -> str | None:
        """What is missing before the motion can be sent; None if nothing is."""
        if self._publisher is None and (problem := self._connect()):
            return problem
        if self._state is None:
            return f'{self.controller} has not published its state yet'
        mode = self._state.mode
        if mode != 'active':
            remedy = REMEDIES.get(mode, 'enable it').format(node=self.controller)
            reason = f' ({self._state.fault})' if self._state.fault is not None else ''
            return f'{self.controller} is {_article(mode)}{reason}; {remedy}'
        terms = self._state.parameters.get('terms', ())
        if not follow_reference(terms):
            raise KrangError(
                f'{self.controller} follows no trajectories: its terms are {", ".join(terms)}; '
                'start it with computed_torque'
            )
        if not self._is_connected():
            return f'{self.controller} does not receive {self._publisher.topic_name} yet'
        return None

    def _connect(self) -> str:
        """Find the controller and open its topics; why it is not found, or nothing."""
        found, problem = find_controller(self._node, self.controller)
        if problem:
            return problem
        self.controller = found
        namespace = self.controller.rpartition('/')[0]
        create = self._node.create_subscription
        create(String, f'{self.controller}/state', self._on_state, qos.LATCHED)
        create(DiagnosticArray, '/diagnostics', self._on_diagnostics, qos.RELIABLE)
        create(JointState, f'{namespace}/joint_states', self._on_states, qos.STATES, raw=True)
        self._publisher = self._node.create_publisher(Message, f'{namespace}/joint_trajectory', qos.RELIABLE)
        return ''

    def _is_connected(self) -> bool:
        """Whether the controller itself, and not only a recorder, is matched with the publisher."""
        infos = self._node.get_subscriptions_info_by_topic(self._publisher.topic_name)
        names = [f'{info.node_namespace.rstrip("/")}/{info.node_name}' for info in infos]
        return self.controller in names and self._publisher.get_subscription_count() >= len(names)

    # -- the motion --------------------------------------------------------------------------------------

    def play(self) -> str:
        """Send the motion, follow it to its end, and return the report. ^C brings the robot to rest."""
        progress = Progress('moving', float(self._trajectory.times[-1]), ' s')
        try:
            self._sent_at = self._received_at = monotonic()
            self._publisher.publish(encode_trajectory(self._trajectory))
            while self._followed is None or not self._followed.is_over:
                self._turn(PAUSE)
                self._check()
                progress.show(0.0 if self._followed is None else self._followed.elapsed)
        except KeyboardInterrupt:
            self._publisher.publish(encode_trajectory(_nothing()))
            self._publisher.wait_for_all_acked(FLUSH)
            print('\nthe robot comes to rest and is held', file=sys.stderr)
            raise
        finally:
            progress.end()
        return self._followed.text()

    def _check(self) -> None:
        """KrangError if the motion was refused or has ended early."""
        state, followed = self._state, self._followed
        assert state is not None
        after = 'before its start' if followed is None else f'after {followed.elapsed:.2f} s'
        if state.fault is not None:
            raise KrangError(f'the motion ended {after} by a fault of {self.controller}: {state.fault}')
        if state.mode != 'active':
            raise KrangError(f'the motion ended {after}: {self.controller} is {_article(state.mode)}')
        if followed is not None:
            if self._replaced:
                raise KrangError(f'the motion ended {after}: another trajectory replaced it')
            if monotonic() - self._received_at > SILENCE:
                raise KrangError(
                    f'no joint states for {SILENCE:g} s; the motion was followed for {after[6:]}'
                )
        elif self._refusal is not None:
            raise KrangError(f'{self.controller} refused the motion: {self._refusal}')
        elif monotonic() - self._sent_at > ANSWER_TIMEOUT:
            raise KrangError(f'{self.controller} has not accepted the motion within {ANSWER_TIMEOUT:g} s')

    def _turn(self, pause: float) -> None:
        drain(self._node)
        sleep(pause)

    def _on_state(self, message: Any) -> None:
        state = NodeState.from_json(message.data)
        if state is None:
            return
        self._state = state
        if state.event == 'trajectory' and self._sent_at < np.inf:
            self._replaced = self._followed is not None
            if self._followed is None:
                self._followed = FollowedMotion(self._robot, self._trajectory, state.time)

    def _on_diagnostics(self, message: Any) -> None:
        """The reason of a refusal, which is published once per second."""
        for status in message.status:
            values = {entry.key: entry.value for entry in status.values}
            is_new = self._sent_at < np.inf and values.get('refused', '0') != '0'
            if status.name == self.controller and is_new:
                self._refusal = values.get('last refusal', '').removeprefix('trajectory: ')

    def _on_states(self, data: bytes, info: Any) -> None:
        self._received_at = monotonic()
        try:
            sample = self._reader.read(data, time())
        except KrangError:  # not a joint state: the controller reports it
            return
        self._positions.update(zip(sample.names, sample.position, strict=False))
        if self._followed is not None:
            self._followed.take(sample)


def _article(mode: str) -> str:
    return 'in a fault' if mode == 'fault' else mode


def _nothing() -> JointTrajectory:
    """A trajectory without points, which brings the robot to rest."""
    return JointTrajectory((), np.zeros(0), np.zeros((0, 0)))
