"""The base class of all nodes: parameters of the process, time, watchdog, warnings, and abstract methods."""

from abc import ABC, abstractmethod
from time import monotonic, sleep, time_ns
from typing import Any

from rclpy.clock import Clock, ClockType

from ...bags.io.command_message import Stamp
from ...control.session import ControlTime, seconds
from .executor import drain
from .ros_parameters import RosParameters

WARNING_PERIOD = 1.0  # between two warnings of a kind about refused messages [s]
MOST_KINDS = 50
LONGEST_STOP = 3.8  # deactivate and signals end in the stop policy within 4 s [s]
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

    def executor_kind(self) -> str:
        return str(self.ros_parameters.values['executor'])

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
        is_simulated = self.control_time.is_simulated
        self.clock_ns = self.get_clock().now().nanoseconds if is_simulated else time_ns()
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

    def wait_for_stop(self: Any, longest: float = LONGEST_STOP) -> None:
        """Continue until no torque is in flight, at most `longest` [s].

        For callbacks, which block the executor: messages are taken directly.
        """
        deadline = monotonic() + longest
        while self.is_sending and monotonic() < deadline:
            drain(self)
            self.watch()
            sleep(0.0005)

    def warn_of_refusal(self: Any, reason: str) -> None:
        """Log a refusal, at most once per second and kind; the kind is the text before the colon."""
        now, kind = monotonic(), reason.partition(':')[0]
        if now - self._warned.get(kind, -WARNING_PERIOD) >= WARNING_PERIOD:
            if len(self._warned) >= MOST_KINDS:
                self._warned.clear()
            self._warned[kind] = now
            self.get_logger().warning(f'refused: {reason}')
