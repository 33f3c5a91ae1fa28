"""Diagnostics of a controller, once per second: rates, times, limits, refusals."""

from math import sqrt
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR

# Thresholds of ros2_control's controllers, for warning and error.
RATE_ERROR = (5.0, 10.0)  # of the mean rate [Hz]
STEP_TIME = (1000.0, 2000.0)  # mean [us]
STEP_TIME_DEVIATION = (100.0, 200.0)  # [us]
SLOTS = 16  # of the histogram: below 64, 128, 256 ... us
FIRST_SLOT = 6  # 2**6 us


class Running:
    """Mean and standard deviation of a stream of numbers."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.count, self.total, self._squares, self.largest = 0, 0.0, 0.0, 0.0

    def add(self, x: float) -> None:
        self.count += 1
        self.total += x
        self._squares += x * x
        if x > self.largest:
            self.largest = x

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0

    @property
    def deviation(self) -> float:
        return sqrt(max(0.0, self._squares / self.count - self.mean**2)) if self.count else 0.0


class Statistics:
    """Counters of the callbacks, reset at every report."""

    def __init__(self) -> None:
        self.step_time = Running()  # [us]
        self.gap = Running()  # between states [s]
        self.latency = [0] * SLOTS  # from arrival to command
        self.limited = 0  # commands that a limit changed
        self.refused = 0
        self.last_refusal = ''
        self.states = 0
        self.commands = 0
        self._usual_rate = 0.0  # of the first second with states [Hz]
        self._last_arrival = 0.0

    def state(self, arrival: float) -> None:
        """A joint state arrived at `arrival` [s]."""
        gap = arrival - self._last_arrival
        self._last_arrival = arrival
        self.states += 1
        if 0.0 < gap < 1.0:
            self.gap.add(gap)

    def answered(self, microseconds: int) -> None:
        """A command was sent this long after its state arrived."""
        bits = max(microseconds, 0).bit_length()  # a clock may have been set back
        self.latency[min(max(bits - FIRST_SLOT, 0), SLOTS - 1)] += 1

    def refuse(self, reasons: list[str]) -> None:
        self.refused += len(reasons)
        self.last_refusal = reasons[-1]

    def report(
        self, name: str, hardware: str, stamp: Any, mode: str, fault: str | None, period: float
    ) -> DiagnosticArray:
        """The message for the last `period` [s]; resets all counters."""
        rate = self.states / period
        values = {
            'state rate [Hz]': f'{rate:.1f}',
            'command rate [Hz]': f'{self.commands / period:.1f}',
            'step time mean [us]': f'{self.step_time.mean:.0f}',
            'step time deviation [us]': f'{self.step_time.deviation:.0f}',
            'step time largest [us]': f'{self.step_time.largest:.0f}',
            'latency histogram [us]': self._histogram(),
            'commands limited': str(self.limited),
            'refused': str(self.refused),
            'last refusal': self.last_refusal,
        }
        level, message = self._judge(rate, mode)
        array = status_message(name, hardware, stamp, mode, fault, level, message, values)
        self._begin_anew(rate)
        return array

    def _judge(self, rate: float, mode: str) -> tuple[bytes, str]:
        if mode not in ('ramping', 'active', 'stopping'):
            return OK, mode
        checks = (
            ('state rate', abs(rate - (self._usual_rate or rate)), RATE_ERROR, 'Hz off'),
            ('step time', self.step_time.mean, STEP_TIME, 'us'),
            ('step time', self.step_time.deviation, STEP_TIME_DEVIATION, 'us of deviation'),
        )
        for level, index in ((ERROR, 1), (WARN, 0)):
            for what, value, thresholds, unit in checks:
                if value > thresholds[index]:
                    return level, f'{mode}; {what}: {value:.0f} {unit}, more than {thresholds[index]:.0f}'
        return OK, mode

    def _histogram(self) -> str:
        """Counts by upper bound in us, where there are any."""
        bounds = (f'<{2 ** (FIRST_SLOT + i)}' for i in range(SLOTS))
        return ' '.join(f'{b}:{n}' for b, n in zip(bounds, self.latency, strict=True) if n)

    def _begin_anew(self, rate: float) -> None:
        if not self._usual_rate and self.states:
            # The first second is seldom complete: the mean gap gives the rate.
            self._usual_rate = 1.0 / self.gap.mean if self.gap.count else rate
        self.step_time.clear()
        self.gap.clear()
        self.latency = [0] * SLOTS
        self.limited = self.refused = self.states = self.commands = 0


def status_message(
    name: str,
    hardware: str,
    stamp: Any,
    mode: str,
    fault: str | None,
    level: bytes = OK,
    message: str = '',
    values: dict[str, str] | None = None,
) -> DiagnosticArray:
    """One node's status; a fault is always an error."""
    if fault is not None:
        level, message = ERROR, fault
    status = DiagnosticStatus(level=level, name=name, message=message or mode, hardware_id=hardware)
    entries = {'mode': mode, 'fault': fault or '', **(values or {})}
    status.values = [KeyValue(key=key, value=value) for key, value in entries.items()]
    array = DiagnosticArray(status=[status])
    array.header.stamp = stamp
    return array
