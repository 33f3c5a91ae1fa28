"""What all nodes of the package have in common."""

from time import monotonic, sleep, time_ns
from typing import Any

from rclpy.clock import Clock, ClockType

from ...control.control_time import ControlTime
from .executor import drain
from .ros_parameters import RosParameters

QUIET = 1.0  # between two warnings of a kind about refused messages [s]
MOST_KINDS = 50
LONGEST_STOP = 3.8  # deactivate and signals end in the stop policy within 4 s [s]


class Shell:
    """For a node to inherit beside rclpy's class: parameters of its process, its time, its warnings."""

    ros_parameters: RosParameters
    control_time: ControlTime
    clock_now = 0.0  # the node's clock when now() was last asked [s]
    _warned: dict[str, float]  # when each kind of refusal was last said [s]

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

    def begin_time(self: Any) -> None:
        """Find out whether time is simulated, and forget what was said."""
        self._warned = {}
        self.control_time = ControlTime(bool(self.get_parameter('use_sim_time').value))

    def now(self: Any) -> float:
        """The controller's time [s]; also looks at the node's clock."""
        if self.control_time.is_simulated:
            self.clock_now = self._clock_seconds()
        else:
            self.clock_now = time_ns() * 1e-9
        return float(self.control_time.now(monotonic(), self.clock_now, self.is_sending))

    def arrival(self: Any, stamp: float) -> float:
        """The time of a state that has just come [s]; its stamp may be ahead of the simulated clock."""
        if self.control_time.is_simulated:
            self.control_time.saw(stamp, self._clock_seconds())
        return float(self.now())

    def _clock_seconds(self: Any) -> float:
        """The node's clock [s], rounded as stamps are: a state of now is neither before nor after it."""
        seconds, nanoseconds = divmod(self.get_clock().now().nanoseconds, 10**9)
        return float(seconds + 1e-9 * nanoseconds)

    def begin_watch(self: Any, period: float) -> None:
        """Call watch() every `period` [s] and report() every second, also where simulated time stands."""
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(period, self.watch, clock=steady)
        self.create_timer(1.0, self.report, clock=steady)

    def wait_for_stop(self: Any, longest: float = LONGEST_STOP) -> None:
        """Go on until no torque is in flight, at most so long [s].

        For callbacks, which block the executor: messages are taken directly.
        """
        deadline = monotonic() + longest
        while self.is_sending and monotonic() < deadline:
            drain(self)
            self.watch()
            sleep(0.0005)

    def warn_of_refusal(self: Any, reason: str) -> None:
        """Say it, but not at the rate of the messages; what comes before the colon is its kind."""
        now, kind = monotonic(), reason.partition(':')[0]
        if now - self._warned.get(kind, -QUIET) >= QUIET:
            if len(self._warned) >= MOST_KINDS:
                self._warned.clear()
            self._warned[kind] = now
            self.get_logger().warning(f'refused: {reason}')
