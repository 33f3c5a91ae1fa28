"""A node that replaces the operator of a simulated robot: it starts the controller, sends references
and parameters, and records topics."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic, sleep
from typing import Any

import numpy as np
import rclpy
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import PoseStamped, WrenchStamped
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from nav_msgs.msg import Odometry
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from rosgraph_msgs.msg import Clock
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ..arrays import Array
from ..bags.io.joint_state_codec import JointStateReader
from ..control.messages import seconds, topic_word
from ..control.reference.trajectory import JointTrajectory as Trajectory
from ..errors import KrangError
from .ros import qos
from .ros.executor import StaticExecutor
from .ros.process import init

ALL = QoSProfile(depth=5000, reliability=ReliabilityPolicy.BEST_EFFORT)
EVERY_EVENT = QoSProfile(depth=100, reliability=ReliabilityPolicy.RELIABLE)
INPUTS = {
    'clock': Clock,
    'joint_states': JointState,
    'imu': Imu,
    'odom': Odometry,
    'effort_commands': Float64MultiArray,
}
EVENTS = {'torque_controller/state': String, 'joint_trajectory': JointTrajectory}
SERVICE_TIMEOUT = 15.0  # [s]
START_TIMEOUT = 90.0  # for all nodes to start, on a busy machine [s]
CLOCK_TIMEOUT = 10.0  # for simulated time that does not advance [s]
PAUSE = 0.004  # between two steps, which leaves the processors to the other nodes [s]
WRENCH_PERIOD = 0.02  # of a streamed wrench [s]
EPOCH = 1.0  # simulated time at the start [s]


class RobotOperator:
    """Operates a torque_controller and a simulator that publishes /clock; records their topics.

    Times are simulated seconds since the start.
    """

    def __init__(
        self, terms: Sequence[str], end_effectors: Sequence[str], dead_process: Callable[[], str | None]
    ) -> None:
        self.now = 0.0  # [s]
        self.states: list[tuple[float, dict[str, Any]]] = []  # of the controller's ~/state, by time
        self._dead_process = dead_process  # describes a process that has ended
        init()  # ^C is handled by Python
        self._node = rclpy.create_node('operator')
        self._executor = StaticExecutor(self._node.context, self._node.get_logger())
        self._executor.add_node(self._node)
        self._advanced_at = monotonic()
        self._recorded: dict[str, list[tuple[int, bytes]]] = {}  # messages by topic, with their arrival [ns]
        self._types: dict[str, type] = {}
        self._stream: tuple[Any, WrenchStamped] | None = None
        self._streamed_at = 0.0
        self._trajectories = self._node.create_publisher(JointTrajectory, 'joint_trajectory', qos.RELIABLE)
        self._node.create_subscription(Clock, '/clock', self._on_clock, ALL)
        self._node.create_subscription(String, 'torque_controller/state', self._on_state, qos.LATCHED)
        self._record('simulator/truth', JointState)
        for name in ('torques', 'reference', 'external_torques', *(f'terms/{term}' for term in terms)):
            self._record(f'torque_controller/{name}', JointState)
        self._end_effectors = tuple(end_effectors)
        # Early, so that the controller has found them before the only message.
        self._targets = {
            frame: self._node.create_publisher(PoseStamped, f'target_pose/{topic_word(frame)}', qos.RELIABLE)
            for frame in end_effectors
        }
        for frame in end_effectors:
            self._record(f'measured_wrench/{topic_word(frame)}', WrenchStamped)

    def record_inputs(self) -> None:
        """Record also all that a replay, a validation or an identification needs."""
        for topic, kind in INPUTS.items():
            self._record(topic, kind)
        for topic, kind in EVENTS.items():
            self._record(topic, kind, EVERY_EVENT)
        for frame in self._end_effectors:
            self._record(f'wrench/{topic_word(frame)}', WrenchStamped)
            self._record(f'target_pose/{topic_word(frame)}', PoseStamped)

    def close(self) -> None:
        self._executor.shutdown()
        self._node.destroy_node()
        rclpy.try_shutdown()

    def step(self) -> None:
        """Receive messages and renew the streamed wrench; raise if a node has failed."""
        self._receive()
        if monotonic() - self._advanced_at > CLOCK_TIMEOUT:
            raise KrangError(f'simulated time has not advanced from {self.now:.3f} s for {CLOCK_TIMEOUT:g} s')

    def _receive(self) -> None:
        sleep(PAUSE)
        self._executor.spin_once(0.05)
        if self._stream is not None and self.now - self._streamed_at >= WRENCH_PERIOD:
            self._streamed_at = self.now
            self._stream[0].publish(self._stream[1])
        self._check()

    def start(self) -> None:
        """Start the controller when every connection exists, and wait for the first command.

        The simulator is in lock step: its time begins with that command.
        """
        topics = [topic for topic in ('simulator/truth', 'clock', 'joint_states') if topic in self._recorded]
        self._wait(lambda: all(self._recorded[topic] for topic in topics), 'the simulator')
        self._change_state(Transition.TRANSITION_CONFIGURE)
        self._wait(self._is_connected, 'the topics of the controller')
        self._change_state(Transition.TRANSITION_ACTIVATE)
        self._wait(lambda: self.now > 0, 'the first command')

    def _is_connected(self) -> bool:
        """Whether the controller receives trajectories, and all that it publishes is recorded."""
        published = [name for name in self._recorded if name.startswith('torque_controller/')]
        is_recorded = all(self._node.count_publishers(name) for name in published)
        return is_recorded and self._trajectories.get_subscription_count() > 0

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        deadline = monotonic() + START_TIMEOUT
        while not condition():
            self._receive()
            if monotonic() > deadline:
                raise KrangError(f'{what} did not arrive within {START_TIMEOUT:g} s')

    def _change_state(self, transition: int) -> None:
        request = ChangeState.Request(transition=Transition(id=transition))
        if not self._call(ChangeState, 'torque_controller/change_state', request, START_TIMEOUT).success:
            raise KrangError('the controller could not be configured or activated')

    # -- commands --------------------------------------------------------------------------------------

    def follow(self, trajectory: Trajectory, start: float) -> None:
        """Send a trajectory with velocities and accelerations that starts at a time [s]."""
        assert trajectory.velocities is not None
        assert trajectory.accelerations is not None
        message = JointTrajectory(joint_names=list(trajectory.joint_names))
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(round((EPOCH + start) * 1e9), 10**9)
        columns = (trajectory.times, trajectory.positions, trajectory.velocities, trajectory.accelerations)
        for time, q, v, a in zip(*columns, strict=True):
            whole, rest = divmod(round(time * 1e9), 10**9)
            message.points.append(
                JointTrajectoryPoint(
                    positions=q.tolist(),
                    velocities=v.tolist(),
                    accelerations=a.tolist(),
                    time_from_start=Duration(sec=whole, nanosec=rest),
                )
            )
        self._trajectories.publish(message)

    def push(self, frame: str, wrench: Array, duration: float, start: float) -> None:
        """Apply (force [N], moment [N m]) in world axes to the simulated robot, from a time on [s]."""
        push = {'frame': frame, 'wrench': wrench, 'duration': duration, 'start': EPOCH + start}
        self.set_parameters('simulator', {f'push.{name}': value for name, value in push.items()})

    def move_hand(self, frame: str, pose: Array) -> None:
        """Send the target pose (4, 4) of an end effector, in the root link's axes."""
        message = PoseStamped()
        message.header.frame_id = 'world'
        place, turn = message.pose.position, message.pose.orientation
        place.x, place.y, place.z = pose[:3, 3].tolist()
        turn.x, turn.y, turn.z, turn.w = Rotation.from_matrix(pose[:3, :3]).as_quat().tolist()
        self._targets[frame].publish(message)

    def stream_wrench(self, frame: str, wrench: Array) -> None:
        """Command (force [N], moment [N m]) at an end effector, in its own axes, from now on."""
        message = WrenchStamped()
        message.header.frame_id = frame
        for part, values in ((message.wrench.force, wrench[:3]), (message.wrench.torque, wrench[3:])):
            part.x, part.y, part.z = values.tolist()
        self._stream = (
            self._node.create_publisher(WrenchStamped, f'wrench/{topic_word(frame)}', qos.RELIABLE),
            message,
        )

    def set_parameters(self, node: str, values: Mapping[str, Any]) -> None:
        """Change parameters of a node, all or none."""
        request = SetParametersAtomically.Request()
        for name, value in values.items():
            plain = value.tolist() if isinstance(value, np.ndarray) else value
            request.parameters.append(Parameter(name, value=plain).to_parameter_msg())
        result = self._call(SetParametersAtomically, f'{node}/set_parameters_atomically', request).result
        if not result.successful:
            raise KrangError(f'{node}: {result.reason}')

    def _call(self, kind: Any, name: str, request: Any, timeout: float = SERVICE_TIMEOUT) -> Any:
        client = self._node.create_client(kind, name)
        deadline = monotonic() + timeout
        while not client.service_is_ready() and monotonic() < deadline:
            self._executor.spin_once(0.02)
            self._check()
        future = client.call_async(request)
        while not future.done() and monotonic() < deadline:
            self._executor.spin_once(0.02)
        self._node.destroy_client(client)
        if not future.done():
            raise KrangError(f'{name} did not respond within {timeout:g} s')
        return future.result()

    def _check(self) -> None:
        dead = self._dead_process()
        if dead is not None:
            raise KrangError(dead)
        fault = self.states[-1][1]['fault'] if self.states else None
        if fault is not None:
            raise KrangError(
                f'the controller faulted at {self.now:.3f} s: {fault["kind"]}: {fault["reason"]}'
            )

    # -- records ---------------------------------------------------------------------------------------

    @property
    def q(self) -> Array:
        """Position of the simulated robot [rad, m]."""
        _, data = self._recorded['simulator/truth'][-1]
        return JointStateReader().read(data, 0.0).position

    def joint_names(self, topic: str) -> tuple[str, ...]:
        """Joints of a recorded topic."""
        _, data = self._recorded[topic][0]
        return tuple(JointStateReader().read(data, 0.0).names)

    def joint_values(self, topic: str, field: str) -> tuple[Array, Array]:
        """Times [s], unique and rising, and one field of every JointState of a recorded topic."""
        reader = JointStateReader()
        samples = [reader.read(data, 0.0) for _, data in self._recorded[topic]]
        return _rows([(sample.stamp, getattr(sample, field)) for sample in samples])

    def wrenches(self, frame: str) -> tuple[Array, Array]:
        """Times [s], unique and rising, and (force [N], moment [N m]) measured at an end effector."""
        recorded = self._recorded[f'measured_wrench/{topic_word(frame)}']
        messages = [deserialize_message(data, WrenchStamped) for _, data in recorded]
        return _rows([(seconds(message.header.stamp), _wrench(message)) for message in messages])

    def messages(self) -> Iterable[tuple[str, str, int, bytes]]:
        """All recorded messages as (topic, type, arrival [ns], bytes), in the order of arrival."""
        everything = [
            (arrival, topic, data) for topic, messages in self._recorded.items() for arrival, data in messages
        ]
        for arrival, topic, data in sorted(everything, key=lambda entry: entry[0]):
            kind = self._types[topic]
            yield f'/{topic}', f'{kind.__module__.split(".")[0]}/msg/{kind.__name__}', arrival, data

    def _record(self, topic: str, kind: type, quality: QoSProfile = ALL) -> None:
        messages = self._recorded[topic] = []
        self._types[topic] = kind
        self._node.create_subscription(
            kind,
            topic,
            lambda data, info: messages.append((info['received_timestamp'], data)),
            quality,
            raw=True,
        )

    def _on_clock(self, message: Any) -> None:
        now = seconds(message.clock) - EPOCH
        if now != self.now:
            self.now, self._advanced_at = now, monotonic()

    def _on_state(self, message: Any) -> None:
        state = json.loads(message.data)
        self.states.append((state['time'] - EPOCH, state))


def _rows(samples: Sequence[tuple[float, Sequence[float] | Array]]) -> tuple[Array, Array]:
    """Times since the start [s], unique and rising, and values, from (stamp [s], values)."""
    times = np.array([stamp - EPOCH for stamp, _ in samples])
    values = np.array([row for _, row in samples]) if samples else np.zeros((0, 0))
    times, first = np.unique(times, return_index=True)
    return times, values[first]


def _wrench(message: Any) -> list[float]:
    force, torque = message.wrench.force, message.wrench.torque
    return [force.x, force.y, force.z, torque.x, torque.y, torque.z]
