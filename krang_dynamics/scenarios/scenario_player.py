"""Plays a scenario on a running controller and simulator, and keeps what is heard."""

import json
from collections.abc import Callable, Iterable, Mapping
from time import monotonic, sleep
from typing import Any

import numpy as np
import rclpy
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import WrenchStamped
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from rclpy.signals import SignalHandlerOptions
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ..arrays import Array
from ..bags.io.joint_state_codec import JointStateReader
from ..control.messages import seconds, wrench_sample
from ..errors import KrangError
from ..nodes.ros import qos
from ..nodes.ros.executor import StaticExecutor
from ..robot.model import Robot
from .motions import Motion
from .scenarios import Scenario
from .trace import Record, Series

ALL = QoSProfile(depth=5000, reliability=ReliabilityPolicy.BEST_EFFORT)
SERVICE = 15.0  # patience with a service [s]
ALIVE = 10.0  # patience with simulated time that stands still [s]
BREATH = 0.004  # between two looks at what has come: the others need the processors more [s]
STREAM = 0.02  # period of a streamed wrench [s]
EPOCH = 1.0  # of simulated time [s]


class ScenarioPlayer:
    """The node that tells the scenario; it is the scenario's Stage."""

    def __init__(self, robot: Robot, scenario: Scenario, watch: Callable[[], str | None]) -> None:
        self._robot = robot
        self._story = scenario
        self._watch = watch  # says what died
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)  # a ^C is Python's own
        self._node = rclpy.create_node('demo')
        self._executor = StaticExecutor(self._node.context, self._node.get_logger())
        self._executor.add_node(self._node)
        self._now = 0.0  # simulated time since the start [s]
        self._moved_at = monotonic()
        self._heard: dict[str, list[tuple[int, bytes]]] = {}  # messages by topic, with their arrival [ns]
        self._types: dict[str, type] = {}
        self._states: list[tuple[float, dict[str, Any]]] = []
        self._stream: tuple[Any, WrenchStamped] | None = None
        self._streamed_at = 0.0
        self._trajectories = self._node.create_publisher(JointTrajectory, 'joint_trajectory', qos.RELIABLE)
        self._listen()

    def close(self) -> None:
        self._executor.shutdown()
        self._node.destroy_node()
        rclpy.try_shutdown()

    def _listen(self) -> None:
        create = self._node.create_subscription
        create(Clock, '/clock', self._on_clock, ALL)
        create(String, 'torque_controller/state', self._on_state, qos.LATCHED)
        for topic in self._topics():
            self._keep(topic, JointState)
        for frame in self._robot.config.end_effectors:
            self._keep(f'measured_wrench/{frame}', WrenchStamped)

    def _topics(self) -> Iterable[str]:
        yield 'simulator/truth'
        for name in ('torques', 'reference', 'external_torques'):
            yield f'torque_controller/{name}'
        for term in self._story.terms.split(','):
            yield f'torque_controller/terms/{term}'

    def _keep(self, topic: str, kind: type) -> None:
        heard = self._heard[topic] = []
        self._types[topic] = kind
        self._node.create_subscription(
            kind, topic, lambda data, info: heard.append((info['received_timestamp'], data)), ALL, raw=True
        )

    # -- the play --------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Configure and activate; the simulator waits for the first command."""
        for transition in (Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE):
            request = ChangeState.Request(transition=Transition(id=transition))
            if not self._call(ChangeState, 'torque_controller/change_state', request).success:
                raise KrangError('the controller refuses to start')
        self._moved_at = monotonic()

    def play(self, duration: float, progress: Callable[[float], None]) -> None:
        """Let events happen at their times until `duration` [s]."""
        events = sorted(self._story.events, key=lambda event: event[0])
        while self._now < duration:
            sleep(BREATH)
            self._executor.spin_once(0.05)
            while events and events[0][0] <= self._now:
                events.pop(0)[1](self)
            if self._stream is not None and self._now - self._streamed_at >= STREAM:
                self._streamed_at = self._now
                self._stream[0].publish(self._stream[1])
            self._check()
            progress(self._now)

    def _check(self) -> None:
        dead = self._watch()
        if dead is not None:
            raise KrangError(dead)
        fault = self._states[-1][1]['fault'] if self._states else None
        if fault is not None:
            raise KrangError(
                f'the controller faulted at {self._now:.3f} s: {fault["kind"]}: {fault["reason"]}'
            )
        if monotonic() - self._moved_at > ALIVE:
            raise KrangError(f'simulated time has stood at {self._now:.3f} s for {ALIVE:g} s')

    def _on_clock(self, message: Any) -> None:
        now = message.clock.sec + 1e-9 * message.clock.nanosec - EPOCH
        if now != self._now:
            self._now, self._moved_at = now, monotonic()

    def _on_state(self, message: Any) -> None:
        state = json.loads(message.data)
        self._states.append((state['time'] - EPOCH, state))

    # -- Stage -----------------------------------------------------------------------------------------

    @property
    def q(self) -> Array:
        return self._read('simulator/truth', self._heard['simulator/truth'][-1:], 'position').values[-1]

    def follow(self, motion: Motion) -> None:
        """Send a trajectory."""
        points = motion.trajectory
        message = JointTrajectory(joint_names=list(points.joint_names))
        assert points.velocities is not None
        assert points.accelerations is not None
        rows = (points.times, points.positions, points.velocities, points.accelerations)
        for time, q, v, a in zip(*rows, strict=True):
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

    def push(self, frame: str, wrench: Array, duration: float) -> None:
        """Let the simulated robot be pushed."""
        self.set_simulator({'push.frame': frame, 'push.wrench': wrench, 'push.duration': duration})

    def stream_wrench(self, frame: str, frame_id: str, wrench: Array) -> None:
        """Ask for a wrench at an end effector from now on."""
        message = WrenchStamped()
        message.header.frame_id = frame_id
        for part, values in ((message.wrench.force, wrench[:3]), (message.wrench.torque, wrench[3:])):
            part.x, part.y, part.z = values.tolist()
        self._stream = (self._node.create_publisher(WrenchStamped, f'wrench/{frame}', qos.RELIABLE), message)

    def set_controller(self, values: dict[str, object]) -> None:
        self._set('torque_controller', values)

    def set_simulator(self, values: dict[str, object]) -> None:
        self._set('simulator', values)

    def _set(self, node: str, values: Mapping[str, Any]) -> None:
        request = SetParametersAtomically.Request()
        for name, value in values.items():
            plain = value.tolist() if isinstance(value, np.ndarray) else value
            request.parameters.append(Parameter(name, value=plain).to_parameter_msg())
        result = self._call(SetParametersAtomically, f'{node}/set_parameters_atomically', request).result
        if not result.successful:
            raise KrangError(f'{node}: {result.reason}')

    def _call(self, kind: Any, name: str, request: Any) -> Any:
        client = self._node.create_client(kind, name)
        deadline = monotonic() + SERVICE
        while not client.service_is_ready() and monotonic() < deadline:
            self._executor.spin_once(0.02)
            self._check()
        future = client.call_async(request)
        while not future.done() and monotonic() < deadline:
            self._executor.spin_once(0.02)
        self._node.destroy_client(client)
        if not future.done():
            raise KrangError(f'{name} did not answer within {SERVICE:g} s')
        return future.result()

    # -- what was heard --------------------------------------------------------------------------------

    def record(self) -> Record:
        """One row per answered state."""
        robot = self._robot
        desired = self._series('torque_controller/reference', 'position')
        grid = desired.times
        terms = {
            term: _on(grid, self._series(f'torque_controller/terms/{term}', 'effort'))
            for term in self._story.terms.split(',')
        }
        torques = np.zeros((len(grid), robot.nv))
        commanded = self._series('torque_controller/torques', 'effort')
        rows = [robot.joint_names.index(name) for name in self._names('torque_controller/torques')]
        torques[:, rows] = _on(grid, commanded)
        external = self._series('torque_controller/external_torques', 'effort')
        return Record(
            grid,
            _on(grid, self._series('simulator/truth', 'position')),
            desired.values,
            torques,
            _on(grid, external) if len(external.times) else np.zeros_like(torques),
            terms,
            {frame: self._wrench(frame) for frame in robot.config.end_effectors},
            tuple(self._states),
        )

    def _series(self, topic: str, field: str) -> Series:
        """A field of all messages of a topic, by their stamps since the start [s]."""
        return self._read(topic, self._heard[topic], field)

    def _read(self, topic: str, messages: list[tuple[int, bytes]], field: str) -> Series:
        reader = JointStateReader()
        samples = [reader.read(data, 0.0) for _, data in messages]
        times = np.array([sample.stamp - EPOCH for sample in samples])
        values = [getattr(sample, field) for sample in samples]
        return Series(*_sorted(times, np.array(values) if values else np.zeros((0, 0))))

    def _names(self, topic: str) -> tuple[str, ...]:
        return tuple(JointStateReader().read(self._heard[topic][0][1], 0.0).names)

    def _wrench(self, frame: str) -> Series:
        messages = [
            deserialize_message(data, WrenchStamped) for _, data in self._heard[f'measured_wrench/{frame}']
        ]
        times = np.array([seconds(m.header.stamp) - EPOCH for m in messages])
        values = [wrench_sample(frame, m, 0.0).wrench for m in messages]
        return Series(*_sorted(times, np.array(values)))

    def heard(self) -> Iterable[tuple[str, str, int, bytes]]:
        """All messages as (topic, type, arrival [ns], bytes), in the order of arrival."""
        everything = [
            (arrival, topic, data) for topic, messages in self._heard.items() for arrival, data in messages
        ]
        for arrival, topic, data in sorted(everything, key=lambda entry: entry[0]):
            kind = self._types[topic]
            yield f'/{topic}', f'{kind.__module__.split(".")[0]}/msg/{kind.__name__}', arrival, data


def _sorted(times: Array, values: Array) -> tuple[Array, Array]:
    """In the order of time, each moment once."""
    times, rows = np.unique(times, return_index=True)
    return times, values[rows]


def _on(grid: Array, series: Series) -> Array:
    """The rows of a series at the times of a grid, the one before where there is none."""
    rows = np.searchsorted(series.times, grid + 1e-9, side='right') - 1
    return np.asarray(series.values[np.clip(rows, 0, None)])
