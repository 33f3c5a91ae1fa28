"""What a recording is worth before any model is held against it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ...arrays import Array, Integers
from ...robot.model import Robot
from .filtering import Motion, gaps
from .recording import Samples
from .statistics import Moments

LIMIT = 0.99  # share of the effort limit that counts as saturated
FLAT = 0.01  # share of samples at one and the same largest effort that looks clipped
STILL = 1e-3  # speed below which a joint stands [rad/s]
SCALE = 0.1  # how far velocity may be from differentiated position, as a factor
AGREES = 0.95  # correlation from which a factor between two signals means something
CURRENT = 0.5  # factor between effort and torque below which the unit is doubtful
MOST_GAPS = 5  # that are listed


@dataclass
class Check:
    """Counts of what is odd in a recording, to be added up window by window."""

    count: int
    periods: list[float]  # median of each window [s]
    jitter: float  # largest spread of the period in a window [s]
    gaps: list[tuple[float, float]]  # (time, length) [s]
    repeated: int
    backward: int
    lost: int
    incomplete: int
    same: int  # samples that repeat the numbers of the one before
    unmeasured: Integers  # velocities that are missing, per joint
    saturated: Integers  # samples at the effort limit, per joint
    peak: Array  # largest |effort| [N m]
    flat: Integers  # samples exactly there
    speed: Moments | None = field(default=None)  # velocity against differentiated position

    @classmethod
    def of(cls, samples: Samples, start: int, stop: int, limits: Array) -> 'Check':
        """Of the samples that arrived in start <= t < stop [ns]."""
        begin, end = np.searchsorted(samples.arrival, (start, stop)).tolist()
        before = max(begin - 1, 0)  # the step from the window before counts
        t, effort = samples.t[before:end], np.abs(samples.effort[begin:end])
        steps = np.diff(t)
        is_gap = gaps(t)
        peak = effort.max(axis=0, initial=0.0)
        state = np.hstack([samples.q[before:end], samples.effort[before:end]])

        def inside(times: Integers) -> int:
            return int(((times >= start) & (times < stop)).sum())

        return cls(
            count=end - begin,
            periods=[float(np.median(steps))] if len(steps) else [],
            jitter=float(steps[~is_gap].std()) if len(steps) else 0.0,
            gaps=[(float(t[i]), float(steps[i])) for i in np.flatnonzero(is_gap)],
            repeated=inside(samples.repeated),
            backward=inside(samples.backward),
            lost=inside(samples.lost),
            incomplete=inside(samples.incomplete),
            same=int((np.diff(state, axis=0) == 0).all(axis=1).sum()),
            unmeasured=np.isnan(samples.v[begin:end]).sum(axis=0),
            saturated=(effort >= LIMIT * limits).sum(axis=0),
            peak=peak,
            flat=(effort == peak).sum(axis=0),
        )

    def see(self, motion: Motion) -> None:
        """Compare velocity with differentiated position."""
        if len(motion.t) < 2:
            return
        period = float(np.median(np.diff(motion.t)))
        moments = Moments(motion.v, np.gradient(motion.q, period, axis=0))
        if self.speed is None:
            self.speed = moments
        else:
            self.speed.add(moments)

    def add(self, other: 'Check') -> None:
        self.count += other.count
        self.periods += other.periods
        self.jitter = max(self.jitter, other.jitter)
        self.gaps += other.gaps
        for name in ('repeated', 'backward', 'lost', 'incomplete', 'same'):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.unmeasured = self.unmeasured + other.unmeasured
        self.saturated = self.saturated + other.saturated
        self.flat = np.where(self.peak > other.peak, self.flat, 0) + np.where(
            other.peak > self.peak, other.flat, np.where(other.peak == self.peak, self.flat + other.flat, 0)
        )
        self.peak = np.maximum(self.peak, other.peak)
        if self.speed is None:
            self.speed = other.speed
        elif other.speed is not None:
            self.speed.add(other.speed)

    @property
    def period(self) -> float:
        """Time from sample to sample [s]."""
        return float(np.median(self.periods)) if self.periods else float('nan')


def lines(check: Check, robot: Robot, measured: Sequence[bool], torque: Moments) -> list[str]:
    """The check in sentences, what is right first; `torque` is measured against the whole model."""
    said = [f'{check.count} samples, {1 / check.period:.4g} Hz, jitter {1e3 * check.jitter:.2g} ms']
    if check.gaps:
        largest = sorted(check.gaps, key=lambda gap: -gap[1])[:MOST_GAPS]
        said.append(
            f'! {len(check.gaps)} gap(s): '
            + ', '.join(f'{length:.3g} s after {time:.3f} s' for time, length in largest)
        )
    counts = {
        'sample(s) have a stamp that came before and were left out': check.repeated,
        'sample(s) have a stamp that goes back and were left out': check.backward,
        'message(s) could not be decoded and were left out': check.lost,
        'sample(s) lack a number and were left out': check.incomplete,
        'sample(s) repeat the numbers of the one before: the driver is slower than its topic': check.same,
    }
    said += [f'! {count} {what}' for what, count in counts.items() if count]
    for i, name in enumerate(robot.joint_names):
        if measured[i]:
            said += [f'! {name}: {problem}' for problem in _joint_problems(check, robot, i, torque)]
    return said


def _joint_problems(check: Check, robot: Robot, i: int, torque: Moments) -> list[str]:
    found = []
    if check.unmeasured[i]:
        found.append(
            f'{check.unmeasured[i]} velocities are missing: differentiated position took their place'
        )
    if check.speed is not None and check.speed.squares[1, i] > check.speed.count * STILL**2:
        slope = check.speed.slope(i)
        if abs(slope - 1) > SCALE:
            unit = ', as if in degrees' if 50 < slope < 65 else ''
            found.append(f'velocity is {slope:.3g} times the differentiated position{unit}')
    if check.saturated[i]:
        share = check.saturated[i] / check.count
        found.append(f'effort is at its limit of {robot.effort_limits[i]:.4g} N m in {share:.1%} of samples')
    elif check.peak[i] > 0 and check.flat[i] > max(FLAT * check.count, 3):
        found.append(f'effort looks clipped: {check.flat[i]} samples are exactly {check.peak[i]:.4g} N m')
    if unit_is_doubtful(torque, i):
        found.append(_unit_problem(robot, i, torque.slope(i)))
    return found


def unit_is_doubtful(torque: Moments, i: int) -> bool:
    """Whether measured effort follows the model, but by another factor than about one."""
    correlation, slope = torque.figures(i).correlation, torque.slope(i)
    return bool(abs(correlation) > AGREES and not CURRENT < slope < 1 / CURRENT)


def _unit_problem(robot: Robot, i: int, slope: float) -> str:
    if slope < 0:
        return f'effort is {slope:.3g} times the predicted torque: its sign is turned round'
    motor = robot.config.joints[robot.joint_names[i]].motor
    known = ''
    if motor.torque_constant is not None:
        known = f' (k_m N is {motor.torque_constant * motor.gear:.4g} N m/A: try --effort current)'
    return f'effort is {slope:.3g} times the predicted torque: it looks like current, not torque{known}'
