"""One controller with everything around its step: messages, time, watchdog and requests, without ROS."""

from math import inf
from typing import Any

from ..errors import InputError
from ..robot.model import Robot
from ..safety.joint_buffer import JointSamples, StateRate
from .builder import within_urdf
from .controller import Inputs, Outputs, TorqueController
from .message_queue import RequestQueue, StateCollector
from .reference.cartesian_target import PoseSample, TwistSample
from .sensors import ImuSample, OdomSample
from .settings import Settings
from .terms.wrench import WrenchSample

PERIOD = 0.01  # longest time between two steps while active [s]
AHEAD = 1.0  # by which a state may be ahead of a simulated clock [s]
BACKSTOP = 2.0  # after which a simulated clock that stands still is replaced by the steady clock [s]


class Session:
    """Everything around `TorqueController.step`; node, replay, simulation and tests all use it.

    It reads no clock: the steady time and the node's clock [s] are arguments of every step.
    """

    def __init__(self, robot: Robot, settings: Settings) -> None:
        self.controller = TorqueController(robot, settings)
        self._state_rate.reset()  # unlike a caller of the controller alone, a session measures it first
        self.is_active = False
        self.other_publisher = False  # whether another publisher is on the command topic
        self.guard_problem = ''  # why the guard would not relay commands
        self.self_problem = ''  # which links are too near to each other
        self.is_received = True  # whether a node subscribes to the commands; auto_enable waits for it
        self.answered = (0, 0)  # stamp of the newest joint state [s, ns]
        self.followed = 0  # when the trajectory that was accepted last was received [ns]
        self._collector = StateCollector(robot)
        self._requests = RequestQueue()
        self._enable_pending = False
        self._is_fed = False  # whether a whole state has arrived since activation
        self._stepped_at = -inf

    @property
    def is_sending(self) -> bool:
        """Whether torque is in flight."""
        return self.controller.safety.is_sending

    @property
    def _state_rate(self) -> StateRate:
        return self.controller.state.buffer.state_rate

    @property
    def is_enable_pending(self) -> bool:
        """Whether auto_enable still has to enable the controller."""
        return self._enable_pending

    def activate(self) -> None:
        """Start stepping; nothing is sent before enable."""
        self.is_active = True
        self._enable_pending = bool(self.controller.settings.auto_enable)
        self._is_fed = False
        self._collector.forget_states()
        self._requests.forget_deadman()

    def deactivate(self) -> None:
        """Stop stepping. The robot must be at rest."""
        self.is_active = self._enable_pending = False

    # -- inputs: each returns whether a step is due ------------------------------------------------------

    def take_states(self, sample: JointSamples, stamp: tuple[int, int] = (0, 0)) -> bool:
        """A joint state, and its stamp [s, ns] as the command will repeat it."""
        self.answered = stamp
        is_due = self._is_due(self._collector.take_sample(sample))
        if not self.is_active and self._collector.is_whole:  # only its time counts: the rate must be known
            self._state_rate.add(sample.stamp if sample.stamp > 0 else sample.arrival)
            self._collector.forget_states()
        return is_due

    def take_imu(self, sample: ImuSample) -> bool:
        return self._is_due(self._collector.take_other('imu', sample))

    def take_odom(self, sample: OdomSample) -> bool:
        return self._is_due(self._collector.take_other('odom', sample))

    def _is_due(self, is_complete: bool) -> bool:
        self._is_fed |= is_complete and self.is_active
        return is_complete and self.is_active

    def take_wrench(self, sample: WrenchSample) -> bool:
        """A wrench; its age counts from the step that takes it."""
        self._requests.take_wrench(sample)
        return False

    def take_target(self, sample: PoseSample | TwistSample) -> bool:
        """The target pose or twist of a hand; its age counts from the step that takes it."""
        if self.is_active:
            self._requests.take_target(sample)
        return False

    def take_trajectory(self, message: Any, received: int = 0) -> bool:
        """A trajectory_msgs/JointTrajectory, or its decoded form, and when it was received [ns]."""
        if self.is_active:
            self._requests.take_trajectory(message, received)
        return False

    def take_deadman(self, message: Any) -> bool:
        """A heartbeat, std_msgs/Bool; one from before activation does not count."""
        if self.is_active:
            self._requests.take_deadman(message)
        return False

    def take_emergency_stop(self, message: Any) -> bool:
        """The emergency stop, std_msgs/Bool: true is pressed."""
        self._requests.take_emergency_stop(message)
        return False

    # -- steps -------------------------------------------------------------------------------------------

    def step(self, now: float, clock: float, **requests: Any) -> Outputs:
        """One step with everything that was received; `requests` are further fields of Inputs."""
        inputs = Inputs(
            now,
            clock,
            other_publisher=self.other_publisher,
            guard_problem=self.guard_problem,
            self_problem=self.self_problem,
            **requests,
        )
        self._collector.empty_into(inputs)
        received = self._requests.empty_into(inputs)
        outputs = self.controller.step(inputs)
        self._stepped_at = now
        if outputs.accepted:
            self.followed = received
        return outputs

    def watch(self, now: float, clock: float) -> Outputs | None:
        """The watchdog: a step if none was made for PERIOD, or if auto_enable is pending."""
        if not self.is_active:
            return None
        if self._is_enable_due(clock):
            return self.enable(True, now, clock)
        return self.step(now, clock) if now - self._stepped_at >= PERIOD else None

    def _is_enable_due(self, clock: float) -> bool:
        """Whether auto_enable acts now: once, when nothing is missing.

        A fault or another request in the meantime ends it.
        """
        self._enable_pending &= self.controller.safety.fault is None
        return self._enable_pending and not self.missing(clock)

    def missing(self, clock: float) -> str:
        """What auto_enable waits for; empty if nothing. A simulated clock is 0 until it is received."""
        if clock == 0:
            return 'no /clock'
        if not self._is_fed:
            return 'no complete state of the robot'
        if self.guard_problem:
            return self.guard_problem
        if not self.is_received:
            return 'no node subscribes to the commands'
        return '' if self._state_rate.hertz > 0 else 'the rate of the states is not known'

    def enable(self, is_enabled: bool, now: float, clock: float) -> Outputs:
        """The request of ~/enable."""
        self._enable_pending = False
        return self.step(now, clock, enable=is_enabled)

    def change(self, settings: Settings, now: float, clock: float) -> Outputs:
        """Apply other live parameters, all or none; InputError if they are refused."""
        outputs = self.step(now, clock, settings=settings)
        if self.controller.settings != within_urdf(settings, self.controller.robot):
            raise InputError('; '.join(outputs.refused))
        return outputs


class ControlTime:
    """The controller's time: the steady clock, or the simulated clock if there is one.

    With torque in flight, a simulated clock that stands still for BACKSTOP continues at the pace of the
    steady clock, so that timeouts and stops also end if the simulator dies.
    """

    def __init__(self, is_simulated: bool) -> None:
        self.is_simulated = is_simulated
        self._clock = -1.0  # value of the clock when it last changed [s] ...
        self._since = 0.0  # ... and the steady time of that change [s]
        self._newest = 0.0  # latest stamp of a state [s]
        self._last = 0.0  # last value of the clock itself [s]

    def take_stamp(self, stamp: float, clock: float) -> None:
        """Note the stamp of a state, which can arrive before the /clock message of that time."""
        if clock < stamp <= clock + AHEAD:
            self._newest = stamp

    def now(self, steady: float, clock: float, is_sending: bool) -> float:
        """The time [s], from the steady clock and the node's clock.

        Without torque in flight, a simulated clock may stand still for any time.
        """
        if not self.is_simulated:
            return steady
        if clock < self._last:  # it was set back
            self._newest = 0.0
        self._last = clock
        if clock < self._newest <= clock + AHEAD:
            clock = self._newest
        if clock != self._clock or not is_sending:
            self._clock, self._since = clock, steady
        return clock + max(0.0, steady - self._since - BACKSTOP)


def seconds(nanoseconds: int) -> float:
    """A time in s, rounded as stamps are, so that equal times compare equal."""
    whole, rest = divmod(nanoseconds, 1_000_000_000)
    return whole + 1e-9 * rest
