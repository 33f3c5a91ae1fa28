"""torque_guard: between controller and drivers, in a process of its own."""

import gc
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Bool, Float64MultiArray, String
from std_srvs.srv import Trigger

from ..arrays import Array
from ..bags.io.command_message import CommandCodec, names_of, time_label
from ..bags.io.joint_state_codec import JointStateReader, stamp_of
from ..control import messages
from ..control.builder import in_force, robot_of
from ..control.command_check import Command
from ..control.guard import Guard, GuardInputs, GuardOutputs, GuardSettings
from ..control.guard_link import HEARTBEAT, heartbeat
from ..control.message_queue import StateCollector
from ..control.node_state import HAND_OVER, NodeState
from ..control.parameters import for_frames, without_frames
from ..errors import KrangError
from ..safety.modes import Mode
from .ros import qos
from .ros.controller_topics import FLUSH
from .ros.description import description_of
from .ros.diagnostics import status_message
from .ros.node_base import NodeBase, decoded
from .ros.process import run
from .ros.ros_parameters import PROCESS_PARAMETERS, RosParameters
from .ros.state_topic import StateTopic

PERIOD = 0.002  # of the watchdog [s]
CHECK_PUBLISHERS = 0.1  # period of the search for other publishers [s]
NO_VALUES = np.zeros(0)
MODES = {Mode.DISABLED: 'idle', Mode.ACTIVE: 'relaying'}


class TorqueGuardNode(NodeBase, Node):
    """effort_commands in, guarded/effort_commands out; all decisions are made by its Guard."""

    def __init__(self) -> None:
        Node.__init__(self, 'torque_guard')
        rows = without_frames(GuardSettings.parameters().values())
        self.ros_parameters = RosParameters(self, [*rows, *PROCESS_PARAMETERS])
        self.begin_time()
        self._guard = self._new_guard()
        robot = self._guard.robot
        self._collector = StateCollector(robot)
        self._reader = JointStateReader()
        self._commands: list[Command] = []
        self._message = b''  # the controller's newest command
        self._other_publisher = self._is_ending = False
        self._stepped_at = self._checked_publishers_at = self._beat_at = 0.0
        self._seen: tuple[Any, Any, int] = (Mode.DISABLED, None, 0)
        self._codec = CommandCodec(self._guard.drivers.names)
        self._label = ','.join(self._guard.drivers.names)
        self._publisher = self.create_publisher(Float64MultiArray, 'guarded/effort_commands', qos.COMMANDS)
        self._state = StateTopic(self)
        self._heartbeat = self.create_publisher(String, '~/heartbeat', qos.COMMANDS)
        self._command_topic = self.resolve_topic_name('effort_commands')
        self._diagnostics = self.create_publisher(DiagnosticArray, '/diagnostics', qos.RELIABLE)
        self._subscribe(robot.config.imu is not None, robot.config.odom is not None)
        # rclpy's first message takes a tenth of a second: too long for the first relayed command.
        drivers, stop = self._guard.drivers.names, self._guard.safety.stop
        self.get_logger().info(f'{robot.name}: {len(drivers)} drivers, stop policy {stop.policy}')
        self._publish_state('start')
        self._show_parameters()
        self.ros_parameters.apply = self._change_parameters
        gc.collect()
        gc.freeze()  # later collections skip the objects that exist now; visiting them takes too long

    def _new_guard(self) -> Guard:
        parameters = self.ros_parameters
        robot = robot_of(parameters.values, description_of(self, parameters.values['robot_description']))
        parameters.declare(for_frames(GuardSettings.parameters().values(), robot, parameters.given))
        return Guard(robot, GuardSettings.of(parameters.values))

    def _subscribe(self, imu: bool, odom: bool) -> None:
        if imu:
            self._subscription(Imu, 'imu', self._on_imu, qos.NEWEST)
        if odom:
            self._subscription(Odometry, 'odom', self._on_odom, qos.NEWEST)
        self.create_subscription(JointState, 'joint_states', self._on_states, qos.STATES, raw=True)
        self.create_subscription(
            Float64MultiArray, 'effort_commands', self._on_command, qos.RELIABLE, raw=True
        )
        self._subscription(Bool, 'deadman', self._on_deadman, qos.NEWEST)
        for profile in qos.STOP_BUTTONS:
            self._subscription(Bool, 'emergency_stop', self._on_emergency_stop, profile)
        state = f'{self._guard.settings.controller}/state'
        # A message that the middleware cannot deliver blocks a reliable subscription, but not the other.
        for profile in (qos.LATCHED, qos.NEWEST):
            self._subscription(String, state, self._on_controller, profile)
        self.create_service(Trigger, '~/clear_fault', self._on_clear_fault)
        self.create_service(Trigger, '~/release', self._on_release)
        self.begin_watch(PERIOD)

    def _subscription(self, kind: type, name: str, callback: Any, profile: Any) -> None:
        """A subscription that refuses messages whose bytes cannot be read."""

        def take(data: bytes) -> None:
            try:
                message = decoded(data, kind, name)
            except KrangError as error:
                self.warn_of_refusal(str(error))
                return
            callback(message)

        self.create_subscription(kind, name, take, profile, raw=True)

    @property
    def is_sending(self) -> bool:
        return self._guard.is_sending

    def finish(self) -> None:
        """The end of the process: any torque in flight ends in the stop policy."""
        self._is_ending = True
        self._step(stop=True)
        self.finish_stop(self._guard.safety, self._guard.robot.joint_names, partial(self._step, fade=True))
        self._publisher.wait_for_all_acked(FLUSH)

    # -- inputs ----------------------------------------------------------------------------------------

    def _on_states(self, data: bytes) -> None:
        try:
            is_complete = self._collector.take_sample(self._reader.read(data, self.arrival(stamp_of(data))))
        except Exception as error:  # of any kind, from any bytes
            self.warn_of_refusal(str(error) if isinstance(error, KrangError) else f'joint_states: {error}')
            return
        # While relaying, the state is processed before the command that answers it arrives.
        if is_complete and self._guard.is_sending:
            self._step()

    def _on_imu(self, message: Any) -> None:
        arrival = self.arrival(messages.seconds(message.header.stamp))
        try:
            self._collector.take_other('imu', messages.imu_sample(message, arrival))
        except KrangError as error:
            self.warn_of_refusal(str(error))

    def _on_odom(self, message: Any) -> None:
        arrival = self.arrival(messages.seconds(message.header.stamp))
        self._collector.take_other('odom', messages.odom_sample(message, arrival))

    def _on_command(self, data: bytes) -> None:
        self._commands.append(self._command(data, self.now()))
        self._message = data
        self._step()

    def _command(self, data: bytes, now: float) -> Command:
        values = self._codec.numbers_of(data)
        if values is not None:
            return Command(values, self._label, now)
        try:  # of another publisher, with other labels
            message = deserialize_message(data, Float64MultiArray)
            return Command(np.array(message.data), names_of(message), now)
        except Exception as error:  # of any kind, from any bytes
            return Command(NO_VALUES, '', now, f'it cannot be read: {error}')

    def _on_deadman(self, message: Any) -> None:
        self._step(deadman=bool(message.data))

    def _on_emergency_stop(self, message: Any) -> None:
        self._step(emergency_stop=bool(message.data))

    def _on_controller(self, message: Any) -> None:
        """The controller's ~/state: payload, gravity, and its hand-over."""
        state = NodeState.from_json(message.data)
        if state is None:
            self.warn_of_refusal('state of the controller: it cannot be read')
        else:
            self._step(controller=state, hand_over=state.event == HAND_OVER)

    def _on_release(self, request: Any, response: Any) -> Any:
        """~/release: torque to zero at the stop rate."""
        outputs = self._step(release=True)
        response.success, response.message = True, self._mode(outputs.mode)
        return response

    def _on_clear_fault(self, request: Any, response: Any) -> Any:
        """~/clear_fault: relay again, once the controller has stopped."""
        outputs = self._step(clear_fault=True)
        response.success = outputs.fault is None
        response.message = '; '.join(outputs.refused) or self._mode(outputs.mode)
        return response

    def _change_parameters(self, values: Mapping[str, Any]) -> None:
        """Apply live parameters, all or none; KrangError if they are refused."""
        self._guard.change(GuardSettings.of(values))
        self._publish_state('parameters')
        self._show_parameters()

    def _show_parameters(self) -> None:
        guard = self._guard
        shown = in_force(guard.settings, guard.robot, guard.limits, guard.drivers)
        self.ros_parameters.show({**shown, 'gravity': guard.state.dynamics.model_gravity().tolist()})

    # -- the step --------------------------------------------------------------------------------------

    def _step(self, **changes: Any) -> GuardOutputs:
        now = self.now()
        inputs = GuardInputs(now, self.clock_now, other_publisher=self._other_publisher, **changes)
        self._collector.empty_into(inputs)
        inputs.commands, self._commands = self._commands, []
        outputs = self._guard.step(inputs)
        self._stepped_at = now
        if outputs.command is not None:
            self._publisher.publish(self._message if outputs.relayed else self._own_message(outputs.command))
        for reason in outputs.refused:
            self.warn_of_refusal(reason)
        if (outputs.mode, outputs.fault, self._guard.adoptions) != self._seen:
            self._report_change(outputs)
        return outputs

    def _own_message(self, command: Array) -> bytes:
        return self._codec.labelled(self.step_times(self._reader.stamp), command)

    def _report_change(self, outputs: GuardOutputs) -> None:
        mode, fault, adoptions = self._seen
        self._seen = (outputs.mode, outputs.fault, self._guard.adoptions)
        is_new_fault = outputs.fault is not None and outputs.fault != fault
        if is_new_fault and self._is_ending and not self.count_publishers('joint_states'):
            # The robot, or its simulation, ends together with this process.
            self.get_logger().info('joint_states has ended; the torque fades')
        elif is_new_fault:
            policy = self._guard.safety.stop.policy
            self.get_logger().error(f'took over: {outputs.fault}; stopping ({policy})')
        elif outputs.mode is not mode:
            self.get_logger().info(self._mode(outputs.mode))
        if self._guard.adoptions != adoptions:
            self.get_logger().info('payload and gravity of the controller adopted')
            self._show_parameters()
        self._publish_state('mode' if outputs.mode is not mode else 'adopt')
        self._beat()

    def watch(self) -> None:
        """Step if no message has caused one, to detect timeouts; check the publishers."""
        now = self.now()
        # In lock step, simulated time stands still until the first command, which needs a guard with a state.
        if now - self._stepped_at >= PERIOD or not self.is_sending:
            self._step()
        if abs(now - self._checked_publishers_at) >= CHECK_PUBLISHERS:
            self._checked_publishers_at = now
            topics = (self._publisher.topic_name, self._command_topic)
            self._other_publisher = any(self.count_publishers(topic) > 1 for topic in topics)
        if self.steady - self._beat_at >= HEARTBEAT:
            self._beat()

    def _beat(self) -> None:
        """~/heartbeat: the mode, and why commands are not relayed."""
        self._beat_at = self.steady
        obstacle = self._guard.obstacle(self._stepped_at)
        if not (obstacle or self._guard.is_sending or self._publisher.get_subscription_count()):
            obstacle = f'no driver subscribes to {self._publisher.topic_name}'
        self._heartbeat.publish(String(data=heartbeat(self._mode(self._guard.mode), obstacle)))

    # -- reports ---------------------------------------------------------------------------------------

    def _mode(self, mode: Mode) -> str:
        return MODES.get(mode, mode.value)

    def _publish_state(self, event: str) -> None:
        guard = self._guard
        _, step, _ = self.step_times(self._reader.stamp)
        self._state.publish(
            NodeState(
                event=event,
                time=self.clock_now,
                step=time_label(step),
                mode=self._mode(guard.mode),
                fault=guard.safety.fault,
                robot=guard.robot.name,
                drivers=guard.drivers.names,
                parameters=guard.settings.values,
                payload=[vars(payload) for payload in guard.state.dynamics.robot.payloads],
                gravity=guard.state.dynamics.model_gravity().tolist(),
            )
        )

    def report(self) -> None:
        """/diagnostics, once per second."""
        fault = self._guard.safety.fault
        mode = self._mode(self._guard.mode)
        self._diagnostics.publish(
            status_message(
                self.get_fully_qualified_name(),
                self._guard.robot.name,
                self.get_clock().now().to_msg(),
                mode,
                None if fault is None else str(fault),
            )
        )


def main(args: list[str] | None = None) -> None:
    sys.exit(run(TorqueGuardNode, args))


if __name__ == '__main__':
    main()
