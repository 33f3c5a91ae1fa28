"""torque_controller: joint states, references and wrenches in, commands of the motor drivers out."""

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from time import monotonic, sleep, time_ns
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped, TwistStamped, WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Bool, Float64MultiArray, String
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from ..bags.io.command_message import Stamp, time_label, unstamped
from ..bags.io.joint_state_codec import JointStateReader, stamp_of
from ..control import messages
from ..control.builder import in_force, robot_of
from ..control.controller import Outputs
from ..control.guard_link import GuardLink
from ..control.node_state import HAND_OVER, NodeState
from ..control.parameters import for_frames, without_frames
from ..control.payload_estimate import PayloadMeasurement
from ..control.session import PERIOD, Session
from ..control.settings import Settings
from ..control.startup_report import startup_report
from ..control.terms.term import load_entry_points
from ..control.terms.wrench import Wrench
from ..errors import KrangError
from ..robot.model import Robot
from ..safety.modes import Fault, Mode
from .ros import qos, trajectory_action
from .ros.controller_topics import ControllerTopics
from .ros.description import description_of
from .ros.diagnostics import Statistics
from .ros.executor import drain
from .ros.flight_recorder import FlightRecorder
from .ros.lifecycle import DONE, FAILED, guard_transitions
from .ros.node_base import LONGEST_LINE, NodeBase, decoded
from .ros.process import run
from .ros.realtime import freeze_garbage, thaw_garbage
from .ros.ros_parameters import NODE_PARAMETERS, RosParameters
from .ros.self_distance_monitor import SelfDistanceMonitor
from .ros.state_topic import StateTopic
from .ros.trajectory_worker import TrajectoryWorker
from .ros.transforms import Transforms

CHECK_PUBLISHERS = 0.1  # period of the search for other publishers [s]
HAND_OVER_TIME = 0.3  # in which the guard must take over a stop [s]
LONG_WAIT = 2.0  # of auto_enable, after which its reason is logged [s]


class TorqueControllerNode(NodeBase, LifecycleNode):
    """A sum of torque terms as a lifecycle node; all decisions are made by its Session.

    A joint_states message causes a step and a command. The watchdog steps if none arrives.
    """

    def __init__(self, name: str = 'torque_controller', terms: tuple[str, ...] | None = None) -> None:
        LifecycleNode.__init__(self, name)
        guard_transitions(self)
        load_entry_points()
        self._terms = terms  # fixed in some executables; None: the parameter
        rows = without_frames(Settings.parameters().values())
        known = [row for row in rows if not (terms and row.name == 'terms')]
        self.ros_parameters = RosParameters(self, [*known, *NODE_PARAMETERS])
        self._session: Session | None = None
        self._is_ending = False  # whether the process ends
        self._to_close: list[Callable[[], object]] = []  # what the present configuration has opened
        self._state = StateTopic(self)
        self._diagnostics = self.create_publisher(DiagnosticArray, '/diagnostics', qos.RELIABLE)
        self.create_service(SetBool, '~/enable', self._on_enable)
        self.create_service(Trigger, '~/clear_fault', self._on_clear_fault)
        self.create_service(Trigger, '~/release', self._on_release)
        self.create_service(Trigger, '~/estimate_payload', self._on_estimate_payload)
        self.begin_watch(PERIOD / 2)
        if self.ros_parameters.values['auto_activate']:
            if self.trigger_configure() is not DONE:
                raise KrangError('the controller could not be configured; see the error above')
            self.trigger_activate()

    @property
    def is_sending(self) -> bool:
        return self._session is not None and self._session.is_sending

    @property
    def _is_active(self) -> bool:
        return self._session is not None and self._session.is_active

    @property
    def session(self) -> Session:
        """The session of the present configuration."""
        assert self._session is not None
        return self._session

    def finish(self) -> None:
        """The end of the process: the stop policy first, then the last recording."""
        self._is_ending = True
        if self._is_active:
            self._request('lower' if self.is_sending else '', lower=True)
            if not (self.is_sending and self._hand_over()):
                self._finish_stop()
            self._end_session()
        if self._session is not None:
            self._topics.flush()
            self._write_flight(whole=True)

    # -- lifecycle ---------------------------------------------------------------------------------------

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Load and check everything and log the start-up report, or log an error and stay unconfigured."""
        try:
            session = self._new_session()
        except KrangError as error:
            self.get_logger().error(f'configure: {error}')
            return FAILED
        try:
            self._open(session)
        except Exception:
            self._close_topics()
            raise
        self._session = session
        self.ros_parameters.apply = self._change_parameters
        self.ros_parameters.limited = lambda: {'limits.effort': session.controller.settings.limits_effort}
        self.get_logger().info('\n'.join(startup_report(session.controller)))
        self._show_parameters()
        self.ros_parameters.show_limited()
        self._publish_state('configure')
        return DONE

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Start stepping; nothing is sent before enable."""
        super().on_activate(state)
        self._collected_garbage = freeze_garbage()
        self.session.activate()
        self._waiting_since = monotonic()
        self._publish_state('activate')
        return DONE

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Run the stop policy to its end, then send nothing more."""
        self._come_to_rest()
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._close()
        return DONE

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        if self._is_active:
            self._come_to_rest()
        if self._session is not None:
            self._close()
        return DONE

    def _new_session(self) -> Session:
        parameters = self.ros_parameters
        robot = robot_of(parameters.values, description_of(self, parameters.values['robot_description']))
        parameters.declare(for_frames(Settings.parameters().values(), robot, parameters.given))
        for message in parameters.unknown():
            self.get_logger().warning(message)
        return Session(robot, self._settings(parameters.values))

    def _settings(self, values: Mapping[str, Any]) -> Settings:
        settings = Settings.of(values)
        return settings if self._terms is None else settings.replace(terms=self._terms)

    def _open(self, session: Session) -> None:
        """Publishers, subscriptions, and everything else of one configuration."""
        values, robot = self.ros_parameters.values, session.controller.robot
        self.begin_time()
        self._reader = JointStateReader()
        self._guard = GuardLink(values['guard']) if values['guard'] else None
        self._monitor = SelfDistanceMonitor(session.controller)
        self._to_close.append(self._monitor.close)
        self._worker = TrajectoryWorker(robot, self._monitor)
        self._to_close.append(self._worker.close)
        self._topics = ControllerTopics(self, session.controller, values['publish_terms'])
        for publisher in self._topics.publishers:
            self._to_close.append(partial(self.destroy_lifecycle_publisher, publisher))
        self._statistics = Statistics()
        self._payloads = PayloadMeasurement()
        self._transforms = Transforms(self, robot.urdf.root)
        self._to_close.append(self._transforms.close)
        self._recorder = self._new_recorder(values['flight_recorder'])
        self._seen: tuple[Mode, Fault | None, str] = (session.controller.safety.mode, None, 'none')
        self._checked_publishers_at = 0.0
        self._reported_at = monotonic()
        self._unknown_joints = self._state_publishers = 0
        self._flight_pending = False  # whether a fault has to be recorded
        self._taken_at = 0  # when the newest message was taken [ns]
        self._unstamped: Stamp = (0, 0)  # label of the newest joint state without a stamp
        self._state_topic = self.resolve_topic_name('joint_states')
        self._action = None
        if trajectory_action.IS_AVAILABLE:
            self._action = trajectory_action.TrajectoryAction(self, session, lambda: self.clock_now)
            self._to_close.append(self._action.close)
        for subscription in self._subscribe(session, robot):
            self._to_close.append(partial(self.destroy_subscription, subscription))

    def _new_recorder(self, folder: str) -> FlightRecorder:
        recorder = FlightRecorder(Path(folder).expanduser() if folder else None, self.get_name())
        if recorder.problem is not None:
            self.get_logger().warning(f'no flight recorder: {recorder.problem}')
        recorder.add_topic(self._topics.command_topic, Float64MultiArray)
        recorder.add_topic(self._topics.torque_topic, JointState)
        recorder.add_topic(self._state.topic, String)
        return recorder

    def _subscribe(self, session: Session, robot: Robot) -> Iterator[Any]:
        if robot.config.imu is not None:
            yield self._subscription(Imu, 'imu', self._on_imu, qos.NEWEST)
        if robot.config.odom is not None:
            yield self._subscription(Odometry, 'odom', self._on_odom, qos.NEWEST)
        yield self._subscription(JointState, 'joint_states', self._on_states, qos.STATES, raw=True)
        wrench = next((term for term in session.controller.terms if isinstance(term, Wrench)), None)
        for frame in wrench.settings if wrench is not None else ():
            topic = f'wrench/{messages.topic_word(frame)}'
            yield self._subscription(WrenchStamped, topic, self._on_wrench(frame), qos.NEWEST)
        targets = session.controller.targets
        for frame in targets.frames if targets is not None else ():
            word = messages.topic_word(frame)
            on_pose = self._on_target(frame, messages.pose_sample)
            yield self._subscription(PoseStamped, f'target_pose/{word}', on_pose, qos.NEWEST)
            on_twist = self._on_target(frame, messages.twist_sample)
            yield self._subscription(TwistStamped, f'target_twist/{word}', on_twist, qos.NEWEST)
        yield self._subscription(
            JointTrajectory, 'joint_trajectory', self._on_trajectory, qos.RELIABLE, raw=True
        )
        if self._guard is not None:
            topic = f'{self._guard.name}/heartbeat'
            yield self._subscription(String, topic, self._on_heartbeat, qos.NEWEST)
        yield self._subscription(Bool, 'deadman', self._on_deadman, qos.NEWEST)
        for profile in qos.STOP_BUTTONS:
            yield self._subscription(Bool, 'emergency_stop', self._on_emergency_stop, profile)

    def _subscription(self, kind: type, name: str, callback: Any, profile: Any, raw: bool = False) -> Any:
        """A subscription whose bytes the flight recorder keeps, in the order in which they are processed."""
        topic = self.resolve_topic_name(name)
        self._recorder.add_topic(topic, kind)
        recorder = self._recorder

        def take(data: bytes, info: dict[str, int]) -> None:
            received = self._taken_at = time_ns()
            try:
                message = data if raw else decoded(data, kind, name)
                callback(message, info['received_timestamp'] or received)
            except KrangError as error:
                self._refuse([str(error)])
            recorder.keep(topic, received, data)  # after the command, which is urgent

        # No warning of publishers that do not match: another subscription of the topic matches them.
        quiet = SubscriptionEventCallbacks(use_default_callbacks=name != 'emergency_stop')
        return self.create_subscription(kind, name, take, profile, raw=True, event_callbacks=quiet)

    def _close(self) -> None:
        self._write_flight(whole=True)
        self._close_topics()
        self._session = None
        self.ros_parameters.apply = None
        self.ros_parameters.limited = dict

    def _close_topics(self) -> None:
        """Destroy everything that `_open` created, also where it failed half-way."""
        while self._to_close:
            self._to_close.pop()()

    def _come_to_rest(self) -> None:
        """Run the stop policy to its end before returning; a robot that is held is lowered."""
        self._request('lower' if self.is_sending else '', lower=True)
        self._finish_stop()
        self._end_session()

    def _finish_stop(self) -> None:
        controller = self.session.controller
        fade = partial(self._request, 'fade', fade=True)
        self.finish_stop(controller.safety, controller.robot.joint_names, fade)

    def _end_session(self) -> None:
        self.session.deactivate()
        thaw_garbage(self._collected_garbage)
        self._publish_state('deactivate')

    def _request(self, event: str = '', **requests: Any) -> Outputs:
        """A step with requests."""
        outputs = self.session.step(self.now(), self.clock_now, **requests)
        self._publish(outputs, event=event)
        return outputs

    def _hand_over(self) -> bool:
        """Leave a stop that has begun to the guard; whether the guard has taken over.

        Until then commands are sent, because a gap would be a fault of the guard.
        """
        guard = self._guard
        if guard is None or guard.problem(monotonic()):
            return False
        self._publish_state(HAND_OVER)
        deadline = monotonic() + HAND_OVER_TIME
        while guard.mode != 'stopping' and self.is_sending and monotonic() < deadline:
            drain(self)
            self.watch()
            sleep(0.0005)
        return guard.mode == 'stopping'

    # -- inputs ------------------------------------------------------------------------------------------

    def _on_states(self, data: bytes, received: int) -> None:
        now = self.arrival(stamp_of(data))
        sample = self._reader.read(data, now)
        self._take_prepared()
        if self._reader.stamp == (0, 0):
            self._unstamped = unstamped(data, self._taken_at)
        if self.session.take_states(sample, self._reader.stamp):
            self._publish(self.session.step(now, self.clock_now), received=received)
        self._statistics.state(now)

    def _on_imu(self, message: Any, received: int) -> None:
        now = self.arrival(messages.seconds(message.header.stamp))
        if self.session.take_imu(messages.imu_sample(message, now)):
            self._publish(self.session.step(now, self.clock_now), received=received)

    def _on_odom(self, message: Any, received: int) -> None:
        now = self.arrival(messages.seconds(message.header.stamp))
        if self.session.take_odom(messages.odom_sample(message, now)):
            self._publish(self.session.step(now, self.clock_now), received=received)

    def _on_wrench(self, frame: str) -> Any:
        def on_wrench(message: Any, received: int) -> None:
            sample = messages.wrench_sample(frame, message, self.now())
            if sample.frame_id not in self.session.controller.robot.frames:
                sample = self._transforms.to_root(sample)
            self.session.take_wrench(sample)

        return on_wrench

    def _on_target(self, frame: str, sample_of: Callable[[str, Any, float], Any]) -> Any:
        def on_target(message: Any, received: int) -> None:
            sample = sample_of(frame, message, self.now())
            if sample.frame_id not in self.session.controller.robot.frames:
                sample = self._transforms.to_root(sample)
            self.session.take_target(sample)

        return on_target

    def _on_trajectory(self, data: bytes, received: int) -> None:
        if self._is_active:
            trajectory = self._worker.take(data, received, self.session.controller.reference.bounds)
            if trajectory is not None:
                self.session.take_trajectory(trajectory, received)

    def _take_prepared(self) -> None:
        """Hand trajectories over that the thread has prepared."""
        while self._worker.results and (ready := self._worker.ready()) is not None:
            result, received = ready
            if isinstance(result, KrangError):
                self._refuse([str(result)])
            else:
                self.session.take_trajectory(result, received)

    def _on_deadman(self, message: Any, received: int) -> None:
        self.session.take_deadman(message)

    def _on_emergency_stop(self, message: Any, received: int) -> None:
        self.session.take_emergency_stop(message)

    def _on_heartbeat(self, message: Any, received: int) -> None:
        assert self._guard is not None
        self._guard.take(message.data, monotonic(), self.now())

    def _on_enable(self, request: Any, response: Any) -> Any:
        """~/enable: true begins the ramp, false runs the stop policy."""
        if not self._is_active:
            response.success, response.message = not request.data, 'the node is not active; activate it first'
            return response
        self._check_publishers()
        self._check_guard(self.now())
        outputs = self.session.enable(bool(request.data), self.now(), self.clock_now)
        self._publish(outputs, event='enable' if request.data else 'disable')
        response.success = self.session.controller.safety.is_driving == request.data
        response.message = '; '.join(outputs.refused) or outputs.mode.value
        return response

    def _on_clear_fault(self, request: Any, response: Any) -> Any:
        """~/clear_fault: clear a latched fault once the stop is over."""
        if self._session is None:
            response.success, response.message = False, 'the node is not configured'
            return response
        outputs = self._request('clear_fault', clear_fault=True)
        response.success = outputs.fault is None
        response.message = '; '.join(outputs.refused) or outputs.mode.value
        return response

    def _on_release(self, request: Any, response: Any) -> Any:
        """~/release: torque to zero at stop.rate, from any mode."""
        if not self._is_active:
            response.success, response.message = True, 'the node is not active: it sends no torque'
            return response
        outputs = self._request('release', release=True)
        response.success, response.message = True, outputs.mode.value
        return response

    def _on_estimate_payload(self, request: Any, response: Any) -> Any:
        """~/estimate_payload: add the present resting pose, and estimate from three poses on."""
        response.success = False
        if self._session is None:
            response.message = 'the node is not configured'
            return response
        try:
            response.message = self._payloads.add(self._session.controller)
            response.success = True
        except KrangError as error:
            response.message = str(error)
        return response

    def _change_parameters(self, values: Mapping[str, Any]) -> None:
        """Apply live parameters, all or none; KrangError if they are refused."""
        self._publish(self.session.change(self._settings(values), self.now(), self.clock_now))
        self._payloads.begin(self.session.controller)
        self._publish_state('parameters')
        self._show_parameters()

    def _show_parameters(self) -> None:
        """Show the values in force as parameters."""
        controller = self.session.controller
        shown = in_force(controller.settings, controller.robot, controller.limits, controller.drivers)
        self.ros_parameters.show({**shown, 'gravity': controller.dynamics.model_gravity().tolist()})

    # -- outputs -----------------------------------------------------------------------------------------

    def _publish(self, outputs: Outputs, received: int | None = None, event: str = '') -> None:
        """Publish the command first, then everything else."""
        command = self._topics.send(outputs, self._labels())
        if command is not None:
            self._after_command(outputs, command, received)
        self._statistics.step_time.add(1e6 * (monotonic() - self.steady))
        if outputs.refused:
            self._refuse(outputs.refused)
        if outputs.warning:
            self.warn_once('delay', outputs.warning)
        if outputs.accepted:
            self._publish_state('trajectory')
        if self._action is not None:
            self._action.after_step(outputs)
        if (outputs.mode, outputs.fault, outputs.contact) != self._seen:
            self._report_change(outputs, event)
        elif event:
            self._publish_state(event)

    def _labels(self) -> tuple[Stamp, Stamp, Stamp]:
        answered = self.session.answered
        return self.step_times(self._unstamped if answered == (0, 0) else answered)

    def _after_command(self, outputs: Outputs, command: bytes, received: int | None) -> None:
        statistics, sent = self._statistics, time_ns()
        if received:
            statistics.answered((sent - received) // 1000)
        statistics.commands += 1
        statistics.limited += outputs.limited
        torque = self._topics.explain(outputs, self.session.answered)
        self._recorder.keep(self._topics.command_topic, sent, command)
        self._recorder.keep(self._topics.torque_topic, sent, torque)

    def _report_change(self, outputs: Outputs, event: str) -> None:
        """Log and publish a change of mode, fault or contact; a fault starts the flight recorder's bag."""
        _, fault, contact = self._seen
        self._seen = (outputs.mode, outputs.fault, outputs.contact)
        is_new_fault = outputs.fault is not None and outputs.fault != fault
        if is_new_fault and self._is_ending and not self.count_publishers(self._state_topic):
            # The robot, or its simulation, ends together with this process.
            self.get_logger().info('joint_states has ended; the torque fades')
            is_new_fault = False
        elif is_new_fault:
            policy = self.session.controller.safety.stop.policy
            self.get_logger().error(f'fault: {outputs.fault}; stopping ({policy})')
        elif outputs.contact != contact:
            self.get_logger().info(f'contact: {outputs.contact}')
        else:
            self.get_logger().info(outputs.mode.value)
        usual = 'fault' if is_new_fault else 'contact' if outputs.contact != contact else 'mode'
        self._publish_state(event or usual)
        self._flight_pending |= is_new_fault  # begun by the watchdog: the message of this step comes first

    def _refuse(self, reasons: list[str]) -> None:
        self._statistics.refuse(reasons)
        self.warn_of_refusal(reasons[-1])

    # -- watchdog ----------------------------------------------------------------------------------------

    def watch(self) -> None:
        """Step if no state has caused one, and check the publishers."""
        if self._session is None:
            return
        now = self.now()
        self._check_guard(now)
        if self._session.is_enable_pending:
            self._check_publishers()
            self._report_waiting()
        self._session.self_problem = self._monitor.problem
        self._take_prepared()
        outputs = self._session.watch(now, self.clock_now)
        if outputs is not None:
            self._publish(outputs)
        if abs(now - self._checked_publishers_at) >= CHECK_PUBLISHERS:
            self._checked_publishers_at = now
            self._check_publishers()
        self._write_flight(whole=not self._session.is_sending)

    def _report_waiting(self) -> None:
        """What auto_enable waits for, if it takes long."""
        missing = self.session.missing(self.clock_now)
        if not missing:
            self._waiting_since = monotonic()
        elif monotonic() - self._waiting_since > LONG_WAIT:
            self._waiting_since = monotonic()
            self.get_logger().warning(f'waiting to enable: {missing}')

    def _check_guard(self, now: float) -> None:
        if self._guard is not None:
            # Enable needs a guard that is alive by the steady clock.
            by_time = now if self.is_sending else None
            self.session.guard_problem = self._guard.problem(monotonic(), by_time)

    def _check_publishers(self) -> None:
        """Look for other publishers of commands and of states, and for unknown joints."""
        self.session.other_publisher = self.count_publishers(self._topics.command_topic) > 1
        self.session.is_received = self._topics.is_received
        publishers = self.count_publishers(self._state_topic)
        if publishers > 1 and publishers != self._state_publishers:
            self.get_logger().warning(
                f'{publishers} publishers on {self._state_topic}; each joint must have only one'
            )
        self._state_publishers = publishers
        unknown = self.session.controller.unknown_joints
        if len(unknown) != self._unknown_joints:
            self._unknown_joints = len(unknown)
            text = f'ignoring unknown joints: {", ".join(sorted(unknown))}'
            self.get_logger().info(text[:LONGEST_LINE])

    def _write_flight(self, whole: bool) -> None:
        recorder = self._recorder
        if self._flight_pending:
            self._flight_pending = False
            if (problem := recorder.begin()) is not None:
                self.get_logger().warning(f'flight recorder: {problem}')
        if not recorder.is_writing:
            return
        try:
            recorder.write_some(whole)
        except (KrangError, OSError) as error:
            self.get_logger().warning(f'flight recorder: {error}')
            return
        if not recorder.is_writing:
            self.get_logger().info(f'flight recorder: {recorder.path}')

    # -- reports -----------------------------------------------------------------------------------------

    def _publish_state(self, event: str) -> None:
        session, controller = self.session, self.session.controller
        names = ('effort', 'effort_rate', 'velocity')
        limits = {name: getattr(controller.limits, name).tolist() for name in names}
        _, step, _ = self.step_times(session.answered)
        message = self._state.publish(
            NodeState(
                event=event,
                time=self.clock_now,
                step=time_label(step),
                mode=self._mode,
                fault=controller.safety.fault,
                robot=controller.robot.name,
                drivers=controller.drivers.names,
                parameters=controller.settings.values,
                contact=self._seen[2],
                payload=[vars(payload) for payload in controller.dynamics.robot.payloads],
                gravity=controller.dynamics.model_gravity().tolist(),
                limits=limits,
                trajectory=session.followed if event == 'trajectory' else 0,
            )
        )
        self._recorder.keep(self._state.topic, time_ns(), serialize_message(message))

    @property
    def _mode(self) -> str:
        return self.session.controller.safety.mode.value if self._is_active else 'inactive'

    def report(self) -> None:
        """/diagnostics, once per second."""
        if self._session is None:
            return
        now, controller = monotonic(), self._session.controller
        period, self._reported_at = now - self._reported_at, now
        self._diagnostics.publish(
            self._statistics.report(
                self.get_fully_qualified_name(),
                controller.robot.name,
                self.get_clock().now().to_msg(),
                self._mode,
                None if controller.safety.fault is None else str(controller.safety.fault),
                period,
            )
        )


def main(args: list[str] | None = None) -> None:
    """Any sum of terms."""
    sys.exit(run(TorqueControllerNode, args))


def gravity_compensation(args: list[str] | None = None) -> None:
    """Gravity compensation alone."""
    sys.exit(run(lambda: TorqueControllerNode('gravity_compensation', ('gravity',)), args))


def computed_torque(args: list[str] | None = None) -> None:
    """Computed torque along a joint trajectory."""
    sys.exit(run(lambda: TorqueControllerNode('computed_torque', ('computed_torque',)), args))


def wrench_to_torque(args: list[str] | None = None) -> None:
    """End-effector wrenches to joint torques."""
    sys.exit(run(lambda: TorqueControllerNode('wrench_to_torque', ('wrench',)), args))


if __name__ == '__main__':
    main()
