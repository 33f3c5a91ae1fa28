"""simulator: replaces the robot and its drivers, on the same topics."""

import sys
from collections.abc import Mapping
from math import inf
from time import monotonic, time_ns
from typing import Any

import numpy as np
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger

from ..arrays import array
from ..bags.io.command_message import Stamp, answers
from ..bags.io.joint_state_codec import JointStateWriter
from ..control.builder import drivers_of, payloads_of, robot_of
from ..control.messages import topic_word
from ..control.parameters import for_frames, without_frames
from ..errors import InputError, KrangError
from ..robot.model import Robot
from ..robot.plausibility import gravity_problems
from ..simulation import choose_engine
from ..simulation.faults import Faults, Measurement
from ..simulation.simulated_robot import SimulatedRobot, Wall
from ..simulation.simulator_settings import SimulatorSettings
from .ros import qos
from .ros.description import description_of
from .ros.message_template import Template
from .ros.node_base import NodeBase
from .ros.process import run
from .ros.ros_parameters import PROCESS_PARAMETERS, RosParameters

ANSWER_TIMEOUT = 1.0  # wait for a command in lock step [s]
MOST_STEPS = 200  # made at once to catch up with real time
BRAKE_DELAY = 0.1  # without a command until the brakes of `held` engage [s]
RESEND_PERIOD = 0.01  # of the first state until it is answered, above limits.state_rate [s]


class SimulatorNode(NodeBase, Node):
    """joint_states, imu, odom and measured wrenches out; effort_commands in, held as real drivers do.

    ~/truth has the true state of all joints, without noise, delay or loss.
    """

    def __init__(self) -> None:
        Node.__init__(self, 'simulator')
        self.begin_time()
        rows = SimulatorSettings.parameters()
        own = without_frames(rows.values())
        self.ros_parameters = RosParameters(self, [*own, *PROCESS_PARAMETERS])
        values = self.ros_parameters.values
        robot = robot_of(values, description_of(self, values['robot_description']))
        self.ros_parameters.declare(for_frames(rows.values(), robot, self.ros_parameters.given))
        for problem in self.ros_parameters.unknown():
            raise InputError(problem)
        values = self.ros_parameters.values
        drivers = drivers_of(SimulatorSettings.of(values), robot)
        self._robot = SimulatedRobot(robot, drivers, self._engine(robot, values), 1.0 / values['rate'])
        if values['start'] is None:
            for problem in gravity_problems(robot):
                self.get_logger().warning(f'the controller cannot hold the robot: {problem}')
        else:
            self._robot.start_at(array('start', values['start'], (robot.nv,)))
        self._robot.hold()  # until the first command
        # Simulated time starts at 1 s, because 0 means "not set"; real time is that of the node's clock.
        self._epoch = 1.0 if values['publish_clock'] else None
        self._commanded_at = 0.0  # simulated time of the last command [s]
        self._last_push: Any = None
        self._apply(values)
        self.ros_parameters.apply = self._apply
        self._awaited: Stamp = (0, 0)  # stamp of the last joint_states
        self._is_answered = False  # whether its command has arrived, or the state was lost
        self._timed_out = False  # whether the answer is overdue; real time applies until one arrives
        self._has_started = False
        self._sent_at, self._began_at = -inf, 0.0
        self._steps = 0  # since _began_at, in real time
        self._open(values)

    def _engine(self, robot: Robot, values: Mapping[str, Any]) -> str:
        if values['engine'] != 'auto':
            return str(values['engine'])
        engine, reason = choose_engine(robot)
        if reason:
            self.get_logger().warning(f'simulated by {engine}, because {reason}')
        return engine

    def watch(self) -> None:
        """Nothing to check: real drivers hold the last command as well."""

    def report(self) -> None:
        """No diagnostics."""

    def finish(self) -> None:
        """A simulated robot needs no stop."""

    def _open(self, values: Mapping[str, Any]) -> None:
        robot = self._robot.robot
        names, *columns = zip(*_sensors(robot), strict=True)
        self._columns = [np.array(column) for column in columns]
        self._state_message = JointStateWriter(names)
        self._states = self.create_publisher(JointState, 'joint_states', qos.STATES)
        self._truth_message = JointStateWriter(robot.joint_names)
        self._truth = self.create_publisher(JointState, '~/truth', qos.STATES)
        if robot.config.imu is not None:
            message = _in_frame(Imu, robot.config.imu.link)
            self._imu_message = Template(message, 'orientation angular_velocity')
            self._imu = self.create_publisher(Imu, 'imu', qos.STATES)
        if robot.config.odom is not None:
            message = _in_frame(Odometry, robot.urdf.root)
            message.child_frame_id = robot.config.odom.heading_of
            parts = 'pose.pose.position pose.pose.orientation twist.twist.linear twist.twist.angular'
            self._odom_message = Template(message, parts)
            self._odom = self.create_publisher(Odometry, 'odom', qos.STATES)
        self._wrenches = {
            frame: (
                self.create_publisher(WrenchStamped, f'measured_wrench/{topic_word(frame)}', qos.STATES),
                Template(_in_frame(WrenchStamped, frame), 'wrench.force wrench.torque'),
            )
            for frame in (robot.config.end_effectors if values['measure_wrenches'] else ())
        }
        self._clock_topic = self._publisher_if(values['publish_clock'] or None, ClockMessage, '/clock')
        self.create_subscription(Float64MultiArray, 'effort_commands', self._on_command, qos.RELIABLE)
        self.create_service(Trigger, '~/reset', self._on_reset)
        self.create_timer(self._robot.period, self._tick, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _publisher_if(self, wanted: object, kind: type, topic: str) -> Any:
        return None if wanted is None else self.create_publisher(kind, topic, qos.STATES)

    # -- inputs ----------------------------------------------------------------------------------------

    def _on_command(self, message: Any) -> None:
        try:
            self._robot.receive_command(np.array(message.data))
        except KrangError as error:
            self.warn_of_refusal(str(error))
            return
        self._commanded_at = self._robot.time
        # Controllers also send commands without a new state. As answers they would delay all later ones.
        is_due = self.ros_parameters.values['lock_step'] and not self._is_answered
        if is_due and answers(message, self._awaited):
            self._has_started, self._is_answered, self._timed_out = True, True, False
            if self._epoch is not None:  # else not faster than the clock of the stamps: the next tick
                self._advance()

    def _on_reset(self, request: Any, response: Any) -> Any:
        """~/reset: home, or `start`, at rest and held until the next command."""
        self._return_home()
        response.success, response.message = True, 'at rest, and held until the next command'
        return response

    def _return_home(self) -> None:
        start = self.ros_parameters.values['start']
        self._robot.reset(self._robot.robot.home if start is None else np.array(start))

    def _apply(self, values: Mapping[str, Any]) -> None:
        """Apply push, wall and faults, all or none."""
        try:
            self._put_in_force(values)
        except KrangError:
            self._put_in_force(self.ros_parameters.values)
            raise

    def _put_in_force(self, values: Mapping[str, Any]) -> None:
        robot = self._robot
        faults = {k.removeprefix('faults.'): v for k, v in values.items() if k.startswith('faults.')}
        mass = faults.pop('mass')
        names = {k: tuple(v) for k, v in faults.items() if isinstance(v, list)}
        robot.set_faults(Faults(**{**faults, **names}))
        robot.set_load(mass, tuple(payloads_of(SimulatorSettings.of(values))))
        robot.set_wall(_wall(values))
        push = tuple(values[f'push.{name}'] for name in ('frame', 'wrench', 'duration', 'start'))
        if push != self._last_push:
            if push[0]:
                start = push[3] - (self._epoch or 0.0)
                robot.push(push[0], np.array(push[1]), push[2] or inf, start)
            else:
                robot.end_push()
            self._last_push = push

    # -- time ------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        """Steps that no command causes: in real time, and in lock step without an answer."""
        values = self.ros_parameters.values
        if not values['lock_step']:
            self._follow_clock()
        elif not self._has_started:
            # No controller answers yet: the robot stands still, and its first state is repeated.
            if monotonic() - self._sent_at > RESEND_PERIOD:
                self._robot.sensors.restart()  # so that the number of repetitions has no effect
                self._send()
        elif self._is_answered:
            self._advance()  # a lost state gets no answer
        elif self._timed_out or monotonic() - self._sent_at > ANSWER_TIMEOUT:
            self._timed_out = True
            self._advance()

    def _follow_clock(self) -> None:
        """Make all steps that are due and send one state: a busy machine loses states, but not time."""
        due = round((monotonic() - self._began_at) / self._robot.period) - self._steps
        if not 0 <= due <= MOST_STEPS:  # the first call, or far behind: start again from now
            self._began_at, self._steps, due = monotonic(), 0, 1
        for _ in range(due):
            self._step()
        self._steps += due
        if due:
            self._send()

    def _advance(self) -> None:
        self._step()
        self._send()

    def _step(self) -> None:
        robot = self._robot
        is_silent = robot.time - self._commanded_at > BRAKE_DELAY
        if self.ros_parameters.values['held'] and is_silent and not robot.is_held:
            robot.hold()
        try:
            robot.step()
        except KrangError as error:  # no command, however large, ends the node
            self.get_logger().error(f'{error}; the robot is at home again, held until the next command')
            self._return_home()

    def _stamp(self, time: float) -> Stamp:
        """Seconds and nanoseconds of a simulated time [s]."""
        if self._epoch is None:
            return divmod(time_ns() - round((self._robot.time - time) * 1e9), 10**9)
        return divmod(round((self._epoch + time) * 1e9), 10**9)

    # -- outputs ---------------------------------------------------------------------------------------

    def _send(self) -> None:
        """Publish the present state: clock and other sensors first, joint_states last."""
        robot = self._robot
        stamp = self._stamp(robot.time)
        if self._clock_topic is not None:
            clock = ClockMessage()
            clock.clock.sec, clock.clock.nanosec = stamp
            self._clock_topic.publish(clock)
        config = robot.robot.config
        if config.imu is not None:
            self._imu.publish(self._imu_message.stamped(stamp, *robot.imu()))
        if config.odom is not None:
            place, orientation, twist = robot.odometry()
            self._odom.publish(self._odom_message.stamped(stamp, place, orientation, twist[:3], twist[3:]))
        for frame, (publisher, message) in self._wrenches.items():
            wrench = robot.measured_wrench(frame)
            publisher.publish(message.stamped(stamp, wrench[:3], wrench[3:]))
        truth = self._truth_message.stamped(stamp, robot.q, robot.v, robot.effort())
        self._truth.publish(truth)
        measured = robot.measure()
        self._is_answered, self._sent_at = measured is None, monotonic()
        if measured is not None:
            self._states.publish(self._joint_states(measured))

    def _joint_states(self, measured: Measurement) -> bytes:
        self._awaited = self._stamp(measured.time)
        rows, scale, offset, share = self._columns
        position = scale * (measured.q[rows] - offset)
        return self._state_message.stamped(
            self._awaited, position, scale * measured.v[rows], share * measured.effort[rows] / scale
        )


def _wall(values: Mapping[str, Any]) -> Wall | None:
    if not values['wall.frame']:
        return None
    point, normal = (array(f'wall.{name}', values[f'wall.{name}'], (3,)) for name in ('point', 'normal'))
    return Wall(values['wall.frame'], point, normal)


def _sensors(robot: Robot) -> list[tuple[str, int, float, float, float]]:
    """Name, joint, turns per joint turn, offset [rad] and share of torque of every sensor on joint_states."""
    sensors = []
    for row, joint in enumerate(robot.joint_names):
        if robot.config.joints[joint].state != 'joint_states':
            continue
        drivers = [a for a in robot.config.actuators if a.joint == joint]
        sensors += [(a.name, row, a.sign * a.ratio, a.offset, a.share) for a in drivers]
        if not drivers:
            sensors.append((joint, row, 1.0, 0.0, 1.0))
    return sensors


def _in_frame(kind: type, frame_id: str) -> Any:
    message = kind()
    message.header.frame_id = frame_id
    return message


def main(args: list[str] | None = None) -> None:
    sys.exit(run(SimulatorNode, args))


if __name__ == '__main__':
    main()
