"""torque_guard: in line between controller and drivers, in a process of its own."""

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

from ..bags.io.joint_state_codec import stamp_of
from ..control import messages
from ..control.builder import gravity_of, limits_of, payloads_of, robot_of, settings_of
from ..control.command_check import Command
from ..control.guard import Guard, GuardInputs, GuardOutputs, GuardSettings
from ..control.making import new_load
from ..control.parameters import PARAMETERS, Parameter, frame_parameters
from ..errors import InputError, KrangError
from ..safety.modes import Mode
from .ros import qos
from .ros.command_message import CommandTemplate, names_of
from .ros.description import description_of
from .ros.diagnostics import status_message
from .ros.inbox import Inbox
from .ros.node_base import Shell
from .ros.node_parameters import PROCESS_PARAMETERS
from .ros.outbox import LAST_WORDS
from .ros.process import run
from .ros.ros_parameters import RosParameters
from .ros.state_topic import StateTopic, fault_entry

WATCH = 0.005  # [s]
LOOK_ROUND = 0.1  # period of the search for another publisher [s]
MODES = {Mode.DISABLED: 'idle', Mode.ACTIVE: 'relaying'}

# What a guard shares with the controller; one parameter file serves both.
SHARED = (
    'robot robot_description command_joints command_unit wheels_locked limits.effort limits.effort_rate '
    'stop.policy stop.time stop.blind_time stop.rate state_timeout missing_velocity gravity '
    'hardware_compensates_gravity'
).split()
OWN = Parameter(
    'silence', 'number', 0.045, 'of the controller after which the guard takes over [s]', 0.005, 1.0
)


class TorqueGuardNode(Shell, Node):
    """effort_commands in, guarded/effort_commands out; every decision is the Guard's."""

    def __init__(self) -> None:
        Node.__init__(self, 'torque_guard')
        shared = [parameter for parameter in PARAMETERS if parameter.name in SHARED]
        self.ros_parameters = RosParameters(self, [*shared, OWN, *PROCESS_PARAMETERS])
        self.begin_time()
        self._guard = self._new_guard()
        robot = self._guard.robot
        self._inbox = Inbox(robot)
        self._commands: list[Command] = []
        self._message: Any = None  # the newest of the controller's
        self._other_publisher = False
        self._stepped_at = self._looked_at = 0.0
        self._seen: tuple[Any, Any] = (Mode.DISABLED, None)
        self._own = CommandTemplate(self._guard.drivers.names)
        self._publisher = self.create_publisher(Float64MultiArray, 'guarded/effort_commands', qos.COMMANDS)
        self._topic = self._publisher.topic_name
        self._state = StateTopic(self)
        self._diagnostics = self.create_publisher(DiagnosticArray, '/diagnostics', qos.RELIABLE)
        self._listen(robot.config.imu is not None, robot.config.odom is not None)
        # rclpy's first message takes a tenth of a second, which no relayed command has.
        drivers, stop = self._guard.drivers.names, self._guard.safety.stop
        self.get_logger().info(f'{robot.name}: {len(drivers)} drivers, stop policy {stop.policy}')
        self._publish_state('start')
        self.ros_parameters.apply = self._retune

    def _new_guard(self) -> Guard:
        parameters = self.ros_parameters
        robot = robot_of(parameters.values, description_of(self, parameters.values['robot_description']))
        shared = frame_parameters(robot, parameters.given)
        parameters.declare(parameter for parameter in shared if parameter.name.startswith('payload.'))
        guard = Guard(robot, settings_of(parameters.values, robot, GuardSettings))
        guard.limits.set(robot, **limits_of(parameters.values, robot))
        values = parameters.values
        load = GuardInputs(0.0, 0.0, gravity=gravity_of(values, robot), payloads=payloads_of(values))
        for reason in guard.step(load).refused:
            raise InputError(reason)
        return guard

    def _listen(self, imu: bool, odom: bool) -> None:
        if imu:
            self.create_subscription(Imu, 'imu', self._on_imu, qos.NEWEST)
        if odom:
            self.create_subscription(Odometry, 'odom', self._on_odom, qos.NEWEST)
        self.create_subscription(JointState, 'joint_states', self._on_states, qos.STATES, raw=True)
        self.create_subscription(Float64MultiArray, 'effort_commands', self._on_command, qos.RELIABLE)
        self.create_service(Trigger, '~/clear_fault', self._on_clear_fault)
        self.begin_watch(WATCH)

    @property
    def is_sending(self) -> bool:
        return self._guard.is_sending

    def finish(self) -> None:
        """The end of the process: torque in flight ends in the stop policy, whoever sent it."""
        self._step(stop=True)
        self.wait_for_stop()
        self._publisher.wait_for_all_acked(LAST_WORDS)

    # -- what comes in ---------------------------------------------------------------------------------

    def _on_states(self, data: bytes) -> None:
        try:
            is_whole = self._inbox.take_states(data, self.arrival(stamp_of(data)))
        except KrangError as error:
            self.warn_of_refusal(str(error))
            return
        # While relaying, steps come with commands; a stop of the guard's own goes by the states.
        if is_whole and self._guard.safety.is_sending:
            self._step()

    def _on_imu(self, message: Any) -> None:
        arrival = self.arrival(messages.seconds(message.header.stamp))
        try:
            self._inbox.take_other('imu', messages.imu_sample(message, arrival))
        except KrangError as error:
            self.warn_of_refusal(str(error))

    def _on_odom(self, message: Any) -> None:
        arrival = self.arrival(messages.seconds(message.header.stamp))
        self._inbox.take_other('odom', messages.odom_sample(message, arrival))

    def _on_command(self, message: Any) -> None:
        self._commands.append(Command(np.array(message.data), names_of(message), self.now()))
        self._message = message
        self._step()

    def _on_clear_fault(self, request: Any, response: Any) -> Any:
        """~/clear_fault: hand back to a controller that has stopped."""
        outputs = self._step(clear_fault=True)
        response.success = outputs.fault is None
        response.message = '; '.join(outputs.refused) or self._mode(outputs.mode)
        return response

    def _retune(self, values: Mapping[str, Any]) -> None:
        """Put live parameters in force, all or none."""
        guard = self._guard
        changes = guard.limits.checked(guard.robot, limits_of(values, guard.robot))
        outputs = self._step(**new_load(values, self.ros_parameters.values, guard.robot))
        for reason in outputs.refused:
            raise InputError(reason)
        guard.limits.adopt(changes)
        self._publish_state('parameters', values)

    # -- the step --------------------------------------------------------------------------------------

    def _step(self, **changes: Any) -> GuardOutputs:
        now = self.now()
        inputs = GuardInputs(now, self.clock_now, other_publisher=self._other_publisher, **changes)
        self._inbox.empty_into(inputs)
        inputs.commands, self._commands = self._commands, []
        outputs = self._guard.step(inputs)
        self._stepped_at = now
        if outputs.command is not None:
            # What is relayed goes on as it came, to the last bit.
            own = None if outputs.relayed else self._own.answering(self._inbox.stamp, outputs.command)
            self._publisher.publish(self._message if own is None else own)
        for reason in outputs.refused:
            self.warn_of_refusal(reason)
        if (outputs.mode, outputs.fault) != self._seen:
            self._changed(outputs)
        return outputs

    def _changed(self, outputs: GuardOutputs) -> None:
        _, fault = self._seen
        self._seen = (outputs.mode, outputs.fault)
        if outputs.fault is not None and outputs.fault != fault:
            policy = self._guard.safety.stop.policy
            self.get_logger().error(f'took over: {outputs.fault}; stopping ({policy})')
        else:
            self.get_logger().info(self._mode(outputs.mode))
        self._publish_state('mode')

    def watch(self) -> None:
        """Silence is seen here."""
        now = self.now()
        if now - self._stepped_at >= WATCH:
            self._step()
        if abs(now - self._looked_at) >= LOOK_ROUND:
            self._looked_at = now
            self._other_publisher = self.count_publishers(self._topic) > 1

    # -- what is said ----------------------------------------------------------------------------------

    def _mode(self, mode: Mode) -> str:
        return MODES.get(mode, mode.value)

    def _publish_state(self, event: str, values: Mapping[str, Any] | None = None) -> None:
        guard = self._guard
        self._state.publish(
            event=event,
            time=self.clock_now,
            mode=self._mode(guard.mode),
            fault=fault_entry(guard.safety.fault),
            robot=guard.robot.name,
            drivers=guard.drivers.names,
            parameters=self.ros_parameters.values if values is None else values,
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
