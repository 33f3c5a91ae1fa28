"""Diagnostics of a controller: rates, times, limits, refusals."""

from math import sqrt
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR

# Thresholds for warning and error, those of ros2_control's controllers.
RATE_ERROR = (5.0, 10.0)  # of the mean rate [Hz]
STEP_TIME = (1000.0, 2000.0)  # mean [us]
STEP_TIME_DEVIATION = (100.0, 200.0)  # [us]
SLOTS = 16  # of the latency histogram: below 64, 128, 256 ... us
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
        """Count a joint state that arrived at `arrival` [s]."""
        gap = arrival - self._last_arrival
        self._last_arrival = arrival
        self.states += 1
        if 0.0 < gap < 1.0:
            self.gap.add(gap)

    def answered(self, microseconds: int) -> None:
        """Count a command that was sent this long after its state arrived."""
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
        self._reset(rate)
        return array

    def _judge(self, rate: float, mode: str) -> tuple[bytes, str]:
        if mode not in ('ramping', 'active', 'stopping'):
            return OK, mode
        usual, step = self._usual_rate or rate, self.step_time
        checks = (
            (abs(rate - usual), RATE_ERROR, f'state rate {rate:.0f} Hz instead of {usual:.0f} Hz'),
            (step.mean, STEP_TIME, f'mean step time {step.mean:.0f} us'),
            (step.deviation, STEP_TIME_DEVIATION, f'deviation of the step time {step.deviation:.0f} us'),
        )
        for level, index in ((ERROR, 1), (WARN, 0)):
            for value, thresholds, what in checks:
                if value > thresholds[index]:
                    return level, f'{mode}; {what}'
        return OK, mode

    def _histogram(self) -> str:
        """Counts by upper bound [us], without the empty slots."""
        bounds = (f'<{2 ** (FIRST_SLOT + i)}' for i in range(SLOTS))
        return ' '.join(f'{b}:{n}' for b, n in zip(bounds, self.latency, strict=True) if n)

    def _reset(self, rate: float) -> None:
        if not self._usual_rate and self.states:
            # The first period is rarely complete, so the rate comes from the gaps between states.
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
    """The status of one node; a fault is always an error."""
    if fault is not None:
        level, message = ERROR, fault
    status = DiagnosticStatus(level=level, name=name, message=message or mode, hardware_id=hardware)
    entries = {'mode': mode, 'fault': fault or '', **(values or {})}
    status.values = [KeyValue(key=key, value=value) for key, value in entries.items()]
    array = DiagnosticArray(status=[status])
    array.header.stamp = stamp
    return array
