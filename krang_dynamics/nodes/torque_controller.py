"""torque_controller: joint states, references and wrenches in, commands of the motor drivers out."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import monotonic, time_ns
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Bool, String
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from ..bags.io.joint_state_codec import stamp_of
from ..control import messages
from ..control.builder import in_force, robot_of
from ..control.controller import Inputs, Outputs, TorqueController
from ..control.making import controller_of, new_values
from ..control.parameters import PARAMETERS, frame_parameters
from ..control.request_queue import RequestQueue
from ..control.startup_report import startup_report
from ..errors import InputError, KrangError
from ..safety.modes import Fault, Mode
from .ros import qos
from .ros.description import description_of
from .ros.diagnostics import Statistics
from .ros.flight_recorder import FlightRecorder
from .ros.inbox import Inbox
from .ros.lifecycle import DONE, FAILED, guard_transitions
from .ros.node_base import LONGEST_STOP, Shell
from .ros.node_parameters import NODE_PARAMETERS
from .ros.outbox import Outbox
from .ros.process import run
from .ros.realtime import freeze_garbage, thaw_garbage
from .ros.ros_parameters import RosParameters
from .ros.state_topic import StateTopic, fault_entry
from .ros.transforms import Transforms

WATCH = 0.01  # period of the watch, and the longest time between two steps [s]
LOOK_ROUND = 0.1  # period of the search for another publisher [s]


class TorqueControllerNode(Shell, LifecycleNode):
    """A sum of torque terms as a lifecycle node; every decision is the TorqueController's.

    A joint_states message leads to a step and a command. The watch sees to it that steps go on where
    messages do not.
    """

    def __init__(self, name: str = 'torque_controller', terms: list[str] | None = None) -> None:
        LifecycleNode.__init__(self, name)
        guard_transitions(self)
        self._terms = terms  # of the executables that have but one list
        known = [p for p in PARAMETERS if terms is None or p.name != 'terms']
        self.ros_parameters = RosParameters(self, [*known, *NODE_PARAMETERS])
        self._controller: TorqueController | None = None
        self._is_active = False
        self._state = StateTopic(self)
        self._diagnostics = self.create_publisher(DiagnosticArray, '/diagnostics', qos.RELIABLE)
        self.create_service(SetBool, '~/enable', self._on_enable)
        self.create_service(Trigger, '~/clear_fault', self._on_clear_fault)
        self.begin_watch(WATCH)

    # -- what the process asks -------------------------------------------------------------------------

    @property
    def is_sending(self) -> bool:
        return self._controller is not None and self._controller.safety.is_sending

    def finish(self) -> None:
        """The end of the process: the stop policy first, then the last bag."""
        if self._is_active:
            self._come_to_rest()
        if self._controller is not None:
            self._outbox.flush()
            self._write_flight(all_of_it=True)

    # -- lifecycle -------------------------------------------------------------------------------------

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Load and check everything and log the start-up report, or log the reason and stay as before."""
        try:
            controller = self._new_controller()
        except KrangError as error:
            self.get_logger().error(f'configure: {error}')
            return FAILED
        self._open(controller)
        self._controller = controller
        self.ros_parameters.apply = self._retune
        self.get_logger().info('\n'.join(startup_report(controller)))
        self._show()
        self._publish_state('configure')
        return DONE

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Begin to step; nothing is sent before enable."""
        super().on_activate(state)
        self._is_active = True
        self._wants_enable = bool(self.ros_parameters.values['auto_enable'])
        self._collected_garbage = freeze_garbage()
        self._publish_state('activate')
        return DONE

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Run the stop policy to its end, then go quiet."""
        self._come_to_rest()
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._close()
        return DONE

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        if self._is_active:
            self._come_to_rest()
        if self._controller is not None:
            self._close()
        return DONE

    def _new_controller(self) -> TorqueController:
        parameters = self.ros_parameters
        robot = robot_of(parameters.values, description_of(self, parameters.values['robot_description']))
        parameters.declare(frame_parameters(robot, parameters.given))
        for stranger in parameters.unknown():
            self.get_logger().warning(stranger)
        return controller_of(self._with_terms(parameters.values), robot)

    def _open(self, controller: TorqueController) -> None:
        """Publishers, subscriptions, and everything that one configuration lives with."""
        values, robot = self.ros_parameters.values, controller.robot
        self.begin_time()
        self._inbox = Inbox(robot)
        self._requests = RequestQueue()
        self._outbox = Outbox(self, controller, values['publish_terms'])
        self._statistics = Statistics()
        self._transforms = Transforms(self, robot.urdf.root)
        folder = values['flight_recorder']
        self._recorder = FlightRecorder(Path(folder).expanduser() if folder else None, self.get_name())
        if self._recorder.problem is not None:
            self.get_logger().warning(f'no flight recorder: {self._recorder.problem}')
        self._outbox.announce(self._recorder)
        self._recorder.add_topic(self._state.topic, String)
        self._seen: tuple[Mode, Fault | None, str] = (controller.safety.mode, None, 'none')
        self._stepped_at = self._looked_at = 0.0
        self._reported_at = monotonic()
        self._strangers = self._speakers = 0
        self._state_topic = self.resolve_topic_name('joint_states')
        self._other_publisher = self._wants_enable = False
        self._subscriptions_made = list(self._subscribe(controller))

    def _subscribe(self, controller: TorqueController) -> Iterator[Any]:
        robot = controller.robot
        if robot.config.imu is not None:
            yield self._hear(Imu, 'imu', self._on_imu, qos.NEWEST)
        if robot.config.odom is not None:
            yield self._hear(Odometry, 'odom', self._on_odom, qos.NEWEST)
        yield self._hear(JointState, 'joint_states', self._on_states, qos.STATES, raw=True)
        for frame in controller.settings.wrenches:
            yield self._hear(WrenchStamped, f'wrench/{frame}', self._wrench_listener(frame), qos.NEWEST)
        yield self._hear(JointTrajectory, 'joint_trajectory', self._on_trajectory, qos.RELIABLE)
        yield self._hear(Bool, 'deadman', self._on_deadman, qos.NEWEST)
        for quality in qos.STOP_BUTTONS:
            yield self._hear(Bool, 'emergency_stop', self._on_emergency_stop, quality)

    def _hear(self, kind: type, name: str, callback: Any, quality: Any, raw: bool = False) -> Any:
        """A subscription whose bytes the flight recorder keeps."""
        topic = self.resolve_topic_name(name)
        self._recorder.add_topic(topic, kind)
        recorder = self._recorder

        def heard(data: bytes, info: dict[str, int]) -> None:
            recorder.keep(topic, info['received_timestamp'] or time_ns(), data)
            try:
                callback(data if raw else deserialize_message(data, kind), info)
            except KrangError as error:  # of a message that is no message
                self._refuse([str(error)])

        return self.create_subscription(kind, name, heard, quality, raw=True)

    def _close(self) -> None:
        self._write_flight(all_of_it=True)
        for subscription in self._subscriptions_made:
            self.destroy_subscription(subscription)
        for publisher in self._outbox.publishers:
            self.destroy_lifecycle_publisher(publisher)
        self._transforms.close()
        self._controller = None
        self.ros_parameters.apply = None

    def _come_to_rest(self) -> None:
        """The stop policy, run here to its end."""
        safety = self._the_controller.safety
        self._step(enable=False)
        # Whoever holds goes on holding as long as the driver keeps the last command.
        self.wait_for_stop(safety.stop.time if safety.stop.policy == 'hold' else LONGEST_STOP)
        self._is_active = False
        thaw_garbage(self._collected_garbage)
        self._publish_state('deactivate')

    # -- what comes in ---------------------------------------------------------------------------------

    def _on_states(self, data: bytes, info: dict[str, int]) -> None:
        now = self.arrival(stamp_of(data))
        if not self._is_active:
            self._inbox.forget_states()
        is_complete = self._inbox.take_states(data, now)
        self._statistics.state(now)
        if is_complete:
            self._answer(info)

    def _answer(self, info: dict[str, int]) -> None:
        """A step for states that are complete."""
        if not self._is_active:
            return
        self._step(received=info['received_timestamp'])

    def _on_imu(self, message: Any, info: dict[str, int]) -> None:
        arrival = self.arrival(messages.seconds(message.header.stamp))
        if self._inbox.take_other('imu', messages.imu_sample(message, arrival)):
            self._answer(info)

    def _on_odom(self, message: Any, info: dict[str, int]) -> None:
        arrival = self.arrival(messages.seconds(message.header.stamp))
        if self._inbox.take_other('odom', messages.odom_sample(message, arrival)):
            self._answer(info)

    def _wrench_listener(self, frame: str) -> Any:
        def on_wrench(message: Any, info: dict[str, int]) -> None:
            sample = messages.wrench_sample(frame, message, self.now())
            if sample.frame_id not in self._the_controller.robot.frames:
                sample = self._transforms.to_root(sample)
            self._requests.take_wrench(frame, sample)

        return on_wrench

    def _on_trajectory(self, message: Any, info: dict[str, int]) -> None:
        if self._is_active:
            self._requests.take_trajectory(message)

    def _on_deadman(self, message: Any, info: dict[str, int]) -> None:
        self._requests.take_deadman(message)

    def _on_emergency_stop(self, message: Any, info: dict[str, int]) -> None:
        self._requests.take_emergency_stop(message)

    def _on_enable(self, request: Any, response: Any) -> Any:
        """~/enable: true begins the ramp, false runs the stop policy."""
        if not self._is_active:
            response.success, response.message = not request.data, 'the node is not active; activate it first'
            return response
        self._wants_enable = False
        self._look_round()
        outputs = self._step(enable=bool(request.data), event='enable' if request.data else 'disable')
        response.success = self._the_controller.safety.is_driving == request.data
        response.message = '; '.join(outputs.refused) or outputs.mode.value
        return response

    def _on_clear_fault(self, request: Any, response: Any) -> Any:
        """~/clear_fault: forget a latched fault once the stop is over."""
        if self._controller is None:
            response.success, response.message = False, 'the node is not configured'
            return response
        outputs = self._step(clear_fault=True, event='clear_fault')
        response.success = outputs.fault is None
        response.message = '; '.join(outputs.refused) or outputs.mode.value
        return response

    def _retune(self, values: Mapping[str, Any]) -> None:
        """Put live parameters in force, all or none."""
        values = self._with_terms(values)
        changes = new_values(values, self._with_terms(self.ros_parameters.values), self._the_controller.robot)
        outputs = self._step(**changes)
        for reason in outputs.refused:
            raise InputError(reason)
        self._publish_state('parameters', values)
        self._show()

    def _show(self) -> None:
        """Let parameters say what is in force."""
        controller = self._the_controller
        gravity = controller.dynamics.model_gravity()
        shown = in_force(controller.robot, controller.settings, controller.limits, gravity)
        self.ros_parameters.show({**shown, 'command_joints': list(controller.drivers.names)})

    # -- the step --------------------------------------------------------------------------------------

    def _step(self, received: int | None = None, event: str = '', **changes: Any) -> Outputs:
        """One step with all that has come, and what follows from it."""
        now = self.now()
        inputs = Inputs(now, self.clock_now, other_publisher=self._other_publisher, **changes)
        self._inbox.empty_into(inputs)
        self._requests.empty_into(inputs)
        begun = monotonic()
        outputs = self._the_controller.step(inputs)
        self._stepped_at = now
        command = self._outbox.send(outputs, self._inbox.stamp)
        if command is not None:
            self._told(outputs, command, received)
        self._statistics.step_time.add(1e6 * (monotonic() - begun))
        if outputs.refused:
            self._refuse(outputs.refused)
        if event or (outputs.mode, outputs.fault, outputs.contact) != self._seen:
            self._changed(outputs, event)
        return outputs

    def _told(self, outputs: Outputs, command: bytes, received: int | None) -> None:
        statistics, sent = self._statistics, time_ns()
        if received:
            statistics.answered((sent - received) // 1000)
        statistics.commands += 1
        statistics.limited += outputs.limited
        torque = self._outbox.tell(outputs, self._inbox.stamp)
        self._recorder.keep(self._outbox.command_topic, sent, command)
        self._recorder.keep(self._outbox.torque_topic, sent, torque)

    def _changed(self, outputs: Outputs, event: str) -> None:
        """Say aloud that the mode or the fault is another."""
        _, fault, contact = self._seen
        self._seen = (outputs.mode, outputs.fault, outputs.contact)
        if outputs.fault is not None and outputs.fault != fault:
            self.get_logger().error(
                f'fault: {outputs.fault}; stopping ({self._the_controller.safety.stop.policy})'
            )
            event = event or 'fault'
        elif outputs.contact != contact:
            self.get_logger().info(f'contact: {outputs.contact}')
            event = event or 'contact'
        else:
            self.get_logger().info(outputs.mode.value)
        self._publish_state(event or 'mode')
        if outputs.fault is not None and outputs.fault != fault:
            problem = self._recorder.begin()
            if problem is not None:
                self.get_logger().warning(f'flight recorder: {problem}')

    def _refuse(self, reasons: list[str]) -> None:
        self._statistics.refuse(reasons)
        self.warn_of_refusal(reasons[-1])

    def _enable_by_itself(self) -> None:
        self._look_round()
        if not self._other_publisher:
            self._step(enable=True)
            self._wants_enable = not self._the_controller.safety.is_driving

    # -- time and watch --------------------------------------------------------------------------------

    def watch(self) -> None:
        """Steps where no state brings any, and a look round."""
        if self._controller is None:
            return
        now = self.now()
        if self._is_active and self._wants_enable:
            self._enable_by_itself()
        elif self._is_active and now - self._stepped_at >= WATCH:
            self._step()
        if now - self._looked_at >= LOOK_ROUND or now < self._looked_at:
            self._looked_at = now
            self._look_round()
        self._write_flight(all_of_it=not self._the_controller.safety.is_sending)

    def _look_round(self) -> None:
        """Who else commands the same motors, who speaks for joints, and for joints that do not exist."""
        self._other_publisher = self.count_publishers(self._outbox.command_topic) > 1
        speakers = self.count_publishers(self._state_topic)
        if speakers > 1 and speakers != self._speakers:
            self.get_logger().warning(
                f'{speakers} publishers on {self._state_topic}: right for different joints, wrong for one'
            )
        self._speakers = speakers
        strangers = self._the_controller.strangers
        if len(strangers) != self._strangers:
            self._strangers = len(strangers)
            self.get_logger().info(
                f'ignoring joints that the robot does not have: {", ".join(sorted(strangers))}'
            )

    def _write_flight(self, all_of_it: bool) -> None:
        recorder = self._recorder
        if not recorder.is_writing:
            return
        try:
            recorder.go_on(all_of_it)
        except (KrangError, OSError) as error:
            self.get_logger().warning(f'flight recorder: {error}')
            return
        if not recorder.is_writing:
            self.get_logger().info(f'flight recorder: {recorder.path}')

    # -- what is said ----------------------------------------------------------------------------------

    def _publish_state(self, event: str, values: Mapping[str, Any] | None = None) -> None:
        controller = self._the_controller
        values = self._with_terms(self.ros_parameters.values) if values is None else values
        message = self._state.publish(
            event=event,
            time=self.clock_now,
            mode=controller.safety.mode.value if self._is_active else 'inactive',
            fault=fault_entry(controller.safety.fault),
            contact=self._seen[2],
            robot=controller.robot.name,
            drivers=controller.drivers.names,
            payload=[vars(payload) for payload in controller.dynamics.robot.payloads],
            gravity=controller.dynamics.model_gravity(),
            limits={name: getattr(controller.limits, name) for name in ('effort', 'effort_rate', 'velocity')},
            parameters=values,
        )
        self._recorder.keep(self._state.topic, time_ns(), serialize_message(message))

    def report(self) -> None:
        """/diagnostics, once per second."""
        if self._controller is None:
            return
        now, safety = monotonic(), self._the_controller.safety
        period, self._reported_at = now - self._reported_at, now
        self._diagnostics.publish(
            self._statistics.report(
                self.get_fully_qualified_name(),
                self._the_controller.robot.name,
                self.get_clock().now().to_msg(),
                safety.mode.value if self._is_active else 'inactive',
                None if safety.fault is None else str(safety.fault),
                period,
            )
        )

    def _with_terms(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        return values if self._terms is None else {**values, 'terms': self._terms}

    @property
    def _the_controller(self) -> TorqueController:
        assert self._controller is not None
        return self._controller


def main(args: list[str] | None = None) -> None:
    """Any sum of terms."""
    sys.exit(run(TorqueControllerNode, args))


def gravity_compensation(args: list[str] | None = None) -> None:
    """Gravity alone."""
    sys.exit(run(lambda: TorqueControllerNode('gravity_compensation', ['gravity']), args))


def computed_torque(args: list[str] | None = None) -> None:
    """Computed torque along a joint trajectory."""
    sys.exit(run(lambda: TorqueControllerNode('computed_torque', ['computed_torque']), args))


def wrench_to_torque(args: list[str] | None = None) -> None:
    """End-effector wrenches to joint torques."""
    sys.exit(run(lambda: TorqueControllerNode('wrench_to_torque', ['wrench']), args))


if __name__ == '__main__':
    main()
