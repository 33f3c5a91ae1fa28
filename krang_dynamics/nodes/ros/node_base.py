"""The base class of all nodes: parameters of the process, time, watchdog, warnings, and abstract methods."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from time import monotonic, monotonic_ns, sleep, time_ns
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.serialization import deserialize_message

from ...bags.io.command_message import Stamp
from ...control.session import ControlTime, seconds
from ...errors import InputError
from ...safety.safety_stage import SafetyStage
from .executor import drain
from .ros_parameters import RosParameters

WARNING_PERIOD = 1.0  # between two warnings of a kind about refused messages [s]
MOST_KINDS = 50  # of warnings per second
LONGEST_LINE = 2000  # characters of a line in the log; names in messages may have any length
SIMULATED_STOP = 0.3  # longest stop of a simulated robot at the end of the process [s]
GIGA = 1_000_000_000


class NodeBase(ABC):
    """To be inherited together with rclpy's Node or LifecycleNode. A subclass implements three methods.

    `watch` runs every few milliseconds, `report` every second, and `finish` at the end of the process.
    """

    ros_parameters: RosParameters
    control_time: ControlTime
    steady = 0.0  # the steady clock when now() was called last [s]
    time_ns = 0  # the controller's time when now() was called last [ns]
    clock_ns = 0  # the node's clock then [ns]
    _warned: dict[str, float]  # when each kind of refusal was last logged [s]

    @abstractmethod
    def watch(self) -> None:
        """Check for timeouts and other publishers, which no message reports."""

    @abstractmethod
    def report(self) -> None:
        """Publish diagnostics."""

    @abstractmethod
    def finish(self) -> None:
        """Bring the robot to rest if torque is in flight; nothing is sent after it."""

    @property
    def is_sending(self) -> bool:
        """Whether torque is in flight."""
        return False

    def executor_kind(self) -> tuple[str, bool]:
        """The kind of executor, and whether it polls for messages."""
        values = self.ros_parameters.values
        return values['executor'], values['busy_wait']

    def real_time(self) -> tuple[int, bool, list[int]]:
        """Priority, whether memory is locked, and CPUs."""
        values = self.ros_parameters.values
        return values['thread_priority'], values['lock_memory'], values['cpu_affinity'] or []

    # -- time --------------------------------------------------------------------------------------------

    def begin_time(self: Any) -> None:
        """Find out whether time is simulated."""
        self._warned = {}
        self.control_time = ControlTime(bool(self.get_parameter('use_sim_time').value))

    def now(self: Any) -> float:
        """The controller's time [s], on whole nanoseconds; also reads the node's clock."""
        if not self.control_time.is_simulated:
            self.clock_ns, self.time_ns = time_ns(), monotonic_ns()
            self.steady = seconds(self.time_ns)
            return float(self.steady)
        self.clock_ns = self.get_clock().now().nanoseconds
        self.steady = monotonic()
        now = self.control_time.now(self.steady, seconds(self.clock_ns), self.is_sending)
        self.time_ns = round(1e9 * now)
        return seconds(self.time_ns)

    @property
    def clock_now(self) -> float:
        """The node's clock when now() was called last [s]."""
        return seconds(self.clock_ns)

    def arrival(self: Any, stamp: float) -> float:
        """The time of a state that was just received [s]; its stamp may be ahead of a simulated clock."""
        if self.control_time.is_simulated:
            self.control_time.take_stamp(stamp, seconds(self.get_clock().now().nanoseconds))
        return float(self.now())

    def step_times(self, answered: Stamp) -> tuple[Stamp, Stamp, Stamp]:
        """Labels of a command: the state answered, the step's time, the node's clock."""
        return answered, divmod(self.time_ns, GIGA), divmod(self.clock_ns, GIGA)

    # -- watchdog and warnings ---------------------------------------------------------------------------

    def begin_watch(self: Any, period: float) -> None:
        """Call watch() every `period` [s] and report() every second of the steady clock."""
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(period, self.watch, clock=steady)
        self.create_timer(1.0, self.report, clock=steady)

    def wait_for_stop(self: Any, longest: float) -> None:
        """Continue until no torque is in flight, at most `longest` [s].

        For callbacks, which block the executor: messages are taken directly.
        """
        deadline = monotonic() + longest
        while self.is_sending and monotonic() < deadline:
            try:
                drain(self)
                self.watch()
            except Exception as error:  # of any kind: the stop continues
                self.warn_of_refusal(f'{type(error).__name__}: {error}')
            sleep(0.0005)

    def finish_stop(self: Any, stage: SafetyStage, joints: Sequence[str], fade: Callable[[], object]) -> None:
        """Wait for rest, at most stop.limit; after that name the joints under load and call fade()."""
        stop, is_simulated = stage.stop, self.control_time.is_simulated
        # A simulated robot does not need to be lowered, and its clock may have ended already.
        self.wait_for_stop(SIMULATED_STOP if is_simulated else stop.limit)
        if self.is_sending and not is_simulated:
            loaded = [f'{name}: {x:.3g} N m' for name, x in zip(joints, stage.torque, strict=True) if x]
            self.get_logger().error(f'not at rest after {stop.limit:g} s; torque fades: {", ".join(loaded)}')
            fade()
            self.wait_for_stop(stop.time + 1.0)

    def warn_of_refusal(self: Any, reason: str) -> None:
        """Log a refusal, at most once per second and kind; the kind is the text before the colon."""
        self.warn_once(reason.partition(':')[0], f'refused: {reason}')

    def warn_once(self: Any, kind: str, text: str) -> None:
        """Log a warning, at most once per second and kind."""
        now = monotonic()
        if now - self._warned.get(kind, -WARNING_PERIOD) >= WARNING_PERIOD:
            if len(self._warned) >= MOST_KINDS:
                self._warned = {k: t for k, t in self._warned.items() if now - t < WARNING_PERIOD}
            if len(self._warned) < MOST_KINDS:
                self._warned[kind] = now
                self.get_logger().warning(text[:LONGEST_LINE])


def decoded(data: bytes, kind: type, name: str) -> Any:
    """A message from its bytes; InputError where they are no message of this type."""
    try:
        return deserialize_message(data, kind)
    except Exception as error:  # of any kind: bytes may be anything
        raise InputError(f'{name}: the message cannot be read: {type(error).__name__}') from None
