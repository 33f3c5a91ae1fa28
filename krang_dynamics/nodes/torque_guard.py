"""torque_guard: between controller and drivers, in a process of its own."""

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from rclpy.node import Node
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger

from ..arrays import Array
from ..bags.io.command_message import CommandWriter, names_of, time_label
from ..bags.io.joint_state_codec import JointStateReader, stamp_of
from ..control import messages
from ..control.builder import in_force, robot_of
from ..control.command_check import Command
from ..control.guard import Guard, GuardInputs, GuardOutputs, GuardSettings
from ..control.message_queue import StateCollector
from ..control.node_state import NodeState
from ..control.parameters import for_frames, without_frames
from ..errors import InputError, KrangError
from ..safety.modes import Mode
from .ros import qos
from .ros.controller_topics import FLUSH
from .ros.description import description_of
from .ros.diagnostics import status_message
from .ros.node_base import NodeBase
from .ros.process import run
from .ros.ros_parameters import PROCESS_PARAMETERS, RosParameters
from .ros.state_topic import StateTopic

PERIOD = 0.005  # of the watchdog [s]
CHECK_PUBLISHERS = 0.1  # period of the search for other publishers [s]
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
        self._message: Any = None  # the controller's newest command
        self._other_publisher = False
        self._stepped_at = self._checked_publishers_at = 0.0
        self._seen: tuple[Any, Any] = (Mode.DISABLED, None)
        self._own = CommandWriter(self._guard.drivers.names)
        self._publisher = self.create_publisher(Float64MultiArray, 'guarded/effort_commands', qos.COMMANDS)
        self._state = StateTopic(self)
        self._diagnostics = self.create_publisher(DiagnosticArray, '/diagnostics', qos.RELIABLE)
        self._subscribe(robot.config.imu is not None, robot.config.odom is not None)
        # rclpy's first message takes a tenth of a second: too long for the first relayed command.
        drivers, stop = self._guard.drivers.names, self._guard.safety.stop
        self.get_logger().info(f'{robot.name}: {len(drivers)} drivers, stop policy {stop.policy}')
        self._publish_state('start')
        self._show_parameters()
        self.ros_parameters.apply = self._change_parameters

    def _new_guard(self) -> Guard:
        parameters = self.ros_parameters
        robot = robot_of(parameters.values, description_of(self, parameters.values['robot_description']))
        parameters.declare(for_frames(GuardSettings.parameters().values(), robot, parameters.given))
        return Guard(robot, GuardSettings.of(parameters.values))

    def _subscribe(self, imu: bool, odom: bool) -> None:
        if imu:
            self.create_subscription(Imu, 'imu', self._on_imu, qos.NEWEST)
        if odom:
            self.create_subscription(Odometry, 'odom', self._on_odom, qos.NEWEST)
        self.create_subscription(JointState, 'joint_states', self._on_states, qos.STATES, raw=True)
        self.create_subscription(Float64MultiArray, 'effort_commands', self._on_command, qos.RELIABLE)
        self.create_service(Trigger, '~/clear_fault', self._on_clear_fault)
        self.begin_watch(PERIOD)

    @property
    def is_sending(self) -> bool:
        return self._guard.is_sending

    def finish(self) -> None:
        """The end of the process: any torque in flight ends in the stop policy."""
        self._step(stop=True)
        self.wait_for_stop()
        self._publisher.wait_for_all_acked(FLUSH)

    # -- inputs ----------------------------------------------------------------------------------------

    def _on_states(self, data: bytes) -> None:
        try:
            is_complete = self._collector.take_sample(self._reader.read(data, self.arrival(stamp_of(data))))
        except KrangError as error:
            self.warn_of_refusal(str(error))
            return
        # While relaying, commands cause the steps; in a stop of the guard's own, states do.
        if is_complete and self._guard.safety.is_sending:
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

    def _on_command(self, message: Any) -> None:
        self._commands.append(Command(np.array(message.data), names_of(message), self.now()))
        self._message = message
        self._step()

    def _on_clear_fault(self, request: Any, response: Any) -> Any:
        """~/clear_fault: relay again, once the controller has stopped."""
        outputs = self._step(clear_fault=True)
        response.success = outputs.fault is None
        response.message = '; '.join(outputs.refused) or self._mode(outputs.mode)
        return response

    def _change_parameters(self, values: Mapping[str, Any]) -> None:
        """Apply live parameters, all or none; KrangError if they are refused."""
        settings = GuardSettings.of(values)
        outputs = self._step(settings=settings)
        if self._guard.settings != settings:
            raise InputError('; '.join(outputs.refused))
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
        if (outputs.mode, outputs.fault) != self._seen:
            self._report_change(outputs)
        return outputs

    def _own_message(self, command: Array) -> bytes:
        return self._own.labelled(self.step_times(self._reader.stamp), command)

    def _report_change(self, outputs: GuardOutputs) -> None:
        _, fault = self._seen
        self._seen = (outputs.mode, outputs.fault)
        if outputs.fault is not None and outputs.fault != fault:
            policy = self._guard.safety.stop.policy
            self.get_logger().error(f'took over: {outputs.fault}; stopping ({policy})')
        else:
            self.get_logger().info(self._mode(outputs.mode))
        self._publish_state('mode')

    def watch(self) -> None:
        """Step if no message has caused one, to detect timeouts; check the publishers."""
        now = self.now()
        if now - self._stepped_at >= PERIOD:
            self._step()
        if abs(now - self._checked_publishers_at) >= CHECK_PUBLISHERS:
            self._checked_publishers_at = now
            self._other_publisher = self.count_publishers(self._publisher.topic_name) > 1

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
