"""Quality of a recording: rate, gaps, missing values, saturation, units and signs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...arrays import Array, Integers, Mask
from ...robot.model import Robot
from .filtering import FilteredMotion, gaps
from .recording import RecordedSamples
from .statistics import CorrelationSums

LIMIT = 0.99  # share of the effort limit from which effort counts as saturated
FLAT = 0.01  # share of samples at exactly the largest effort from which it counts as clipped
REST = 0.01  # speed up to which a joint counts as at rest [rad/s]
MOVES = 0.3  # share of samples with changing position from which a joint moves although its velocity is zero
SCALE = 0.1  # largest relative error between velocity and differentiated position
AGREES = 0.95  # correlation from which a factor between two signals is significant
CURRENT = 0.5  # factor between effort and torque below which the unit is doubtful
BEYOND = 0.5  # distance from the position limits from which the unit is doubtful [ranges]
FASTER = 3.0  # and the mean speed [velocity limits]
FROZEN = 0.5  # from which an unchanged effort of a moving joint was not measured [s]
MOST_GAPS = 5  # listed


@dataclass
class RecordingCheck:
    """Counts of faults of a recording; those of windows can be added."""

    count: int
    periods: list[float]  # median of each window [s]
    jitter: float  # largest spread of the period in a window [s]
    gaps: list[tuple[float, float]]  # (time, length) [s]
    repeated: int
    backward: int
    lost: int
    incomplete: int
    same: int  # samples equal to the one before
    unmeasured: Integers  # missing velocities, per joint
    saturated: Integers  # samples at the effort limit, per joint
    outliers: Integers  # samples replaced by interpolation, per joint
    moving: Integers  # samples whose velocity is above REST, per joint
    changing: Integers  # samples whose differentiated position is, per joint
    peak: Array  # largest |effort| in motion [N m]
    flat: Integers  # samples in motion at exactly this value
    frozen: Integers  # samples in motion whose effort has not changed for FROZEN
    low: Array  # smallest and largest position [rad]
    high: Array
    energy: Array  # sums of squares of the differentiated position [rad2/s2]
    speed: CorrelationSums  # velocity and differentiated position

    @classmethod
    def of(cls, samples: RecordedSamples, start: int, stop: int, limits: Array) -> 'RecordingCheck':
        """Check the samples that arrived in start <= t < stop [ns]."""
        begin, end = np.searchsorted(samples.arrival, (start, stop)).tolist()
        before = max(begin - 1, 0)  # include the step from the previous window
        t, effort = samples.t[before:end], np.abs(samples.effort[begin:end])
        steps = np.diff(t)
        is_gap = gaps(t)
        speed = (
            np.abs(np.gradient(samples.q[before:end], t, axis=0))
            if end - before > 1
            else 0 * samples.q[before:end]
        )
        speed, v = speed[begin - before :], np.abs(samples.v[begin:end])
        moves = np.where(np.isnan(v), speed, v) > REST
        peak = np.where(moves, effort, 0.0).max(axis=0, initial=0.0)
        outlier = samples.outlier

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
            same=_repeats(samples.q[before:end], samples.effort[before:end]),
            unmeasured=np.isnan(samples.v[begin:end]).sum(axis=0),
            saturated=(effort >= LIMIT * limits).sum(axis=0),
            outliers=np.zeros(len(limits), int) if outlier is None else outlier[begin:end].sum(axis=0),
            moving=moves.sum(axis=0),
            changing=(speed > REST).sum(axis=0),
            peak=peak,
            flat=(moves & (effort == peak)).sum(axis=0),
            frozen=(moves & _unchanged(samples.t[begin:end], samples.effort[begin:end])).sum(axis=0),
            low=samples.q[begin:end].min(axis=0, initial=np.inf),
            high=samples.q[begin:end].max(axis=0, initial=-np.inf),
            energy=(speed**2).sum(axis=0),
            speed=CorrelationSums(samples.q[:0], samples.q[:0]),
        )

    def add_velocities(self, motion: FilteredMotion) -> None:
        """Add velocities of a motion, to be compared with differentiated positions."""
        if len(motion.t) < 2:
            return
        period = float(np.median(np.diff(motion.t)))
        self.speed.add(CorrelationSums(motion.v, np.gradient(motion.q, period, axis=0)))

    def add(self, other: 'RecordingCheck') -> None:
        """Add the counts of another window."""
        self.count += other.count
        self.periods += other.periods
        self.jitter = max(self.jitter, other.jitter)
        self.gaps += other.gaps
        for name in ('repeated', 'backward', 'lost', 'incomplete', 'same'):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.low, self.high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        for name in ('unmeasured', 'saturated', 'outliers', 'moving', 'changing', 'frozen', 'energy'):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.flat = np.where(self.peak > other.peak, self.flat, 0) + np.where(
            other.peak > self.peak, other.flat, np.where(other.peak == self.peak, self.flat + other.flat, 0)
        )
        self.peak = np.maximum(self.peak, other.peak)
        self.speed.add(other.speed)

    def at_rest(self) -> Mask:
        """Joints that do not move, at most between resting poses."""
        few = MOVES * self.count
        return np.asarray((self.moving < few) & (self.changing < few))

    def contradictory(self) -> Mask:
        """Joints whose velocity is not the derivative of their position."""
        slopes = np.array([self.speed.slope(i) for i in range(len(self.low))])  # NaN without samples
        return np.asarray((np.abs(slopes - 1) > SCALE) & ~self.at_rest())

    @property
    def period(self) -> float:
        """Median sample period [s]."""
        return float(np.median(self.periods)) if self.periods else float('nan')


def _repeats(q: Array, effort: Array) -> int:
    """Number of samples that are equal to the one before."""
    rows = np.arange(1, len(q))
    for x in (*effort.T, *q.T):  # few samples are left after the first joint
        rows = rows[x[rows] == x[rows - 1]]
    return len(rows)


def _unchanged(t: Array, effort: Array) -> Mask:
    """Samples in runs of equal values that last for FROZEN (K, n)."""
    found = np.zeros(effort.shape, dtype=bool, order='F')
    if not len(t):
        return found
    # Such a run contains two neighbours of a grid that is finer than FROZEN.
    grid = effort[np.searchsorted(t[:-1], np.arange(t[0], t[-1], FROZEN / 3))]  # round-off may reach t[-1]
    for j in np.flatnonzero((grid[1:] == grid[:-1]).any(axis=0)):
        edges = np.concatenate([[0], np.flatnonzero(np.diff(effort[:, j])) + 1, [len(t)]])
        long = t[edges[1:] - 1] - t[edges[:-1]] >= FROZEN
        found[:, j] = np.repeat(long, np.diff(edges))
    return found


def unit_problems(check: RecordingCheck, robot: Robot, moving: Mask) -> list[str]:
    """A sentence on each joint whose positions or speeds are far beyond its limits."""
    found = []
    speeds = np.sqrt(check.energy / max(check.count, 1))
    for i in np.flatnonzero(moving):
        low, high, limit = robot.lower[i], robot.upper[i], robot.velocity_limits[i]
        room = BEYOND * (high - low)
        if check.low[i] < low - room or check.high[i] > high + room:
            what = (
                f'positions from {check.low[i]:.4g} to {check.high[i]:.4g}, limits {low:.4g} and {high:.4g}'
            )
        elif speeds[i] > FASTER * limit > 0:
            what = f'its mean speed is {speeds[i]:.4g} rad/s, its limit {limit:.4g}'
        else:
            continue
        found.append(f'{robot.joint_names[i]}: {what}: check the unit of positions (degrees?) and the limits')
    return found


def check_lines(
    check: RecordingCheck, robot: Robot, measured: Sequence[bool], torque: CorrelationSums
) -> list[str]:
    """The check as lines of text, faults marked with '!'; `torque`: effort and torque of the full model."""
    lines = [f'{check.count} samples, {1 / check.period:.4g} Hz, jitter {1e3 * check.jitter:.2g} ms']
    if check.gaps:
        largest = sorted(check.gaps, key=lambda gap: -gap[1])[:MOST_GAPS]
        lines.append(
            f'! {len(check.gaps)} gap(s): '
            + ', '.join(f'{length:.3g} s after {time:.3f} s' for time, length in largest)
        )
    counts = {
        'sample(s) have a repeated stamp and were dropped': check.repeated,
        'sample(s) have a stamp that goes backward and were dropped': check.backward,
        'message(s) could not be decoded and were dropped': check.lost,
        'sample(s) lack a value, or have an impossible one, and were dropped': check.incomplete,
        'sample(s) repeat the values of the previous one: the driver is slower than the topic': check.same,
    }
    lines += [f'! {count} {what}' for what, count in counts.items() if count]
    resting = [
        n for n, rests, own in zip(robot.joint_names, check.at_rest(), measured, strict=True) if rests and own
    ]
    if resting:
        lines.append(f'at rest: {", ".join(resting)}')
    for i, name in enumerate(robot.joint_names):
        if measured[i]:
            lines += [f'! {name}: {problem}' for problem in _joint_problems(check, robot, i, torque)]
    return lines


def _joint_problems(check: RecordingCheck, robot: Robot, i: int, torque: CorrelationSums) -> list[str]:
    found = []
    if check.unmeasured[i]:
        found.append(
            f'{check.unmeasured[i]} velocities are missing; differentiated positions are used instead'
        )
    if check.outliers[i]:
        found.append(f'{check.outliers[i]} sample(s) contradict their neighbours and were interpolated')
    if check.contradictory()[i]:
        slope = check.speed.slope(i)
        unit = ', as if in degrees' if 50 < slope < 65 else ''
        found.append(f'velocity is {slope:.3g} times the differentiated position{unit}')
    if check.frozen[i]:
        share = check.frozen[i] / max(check.moving[i], 1)
        found.append(f'effort does not change for {FROZEN} s or more in {share:.1%} of the motion')
    if check.saturated[i]:
        share = check.saturated[i] / check.count
        found.append(f'effort is at its limit of {robot.effort_limits[i]:.4g} N m in {share:.1%} of samples')
    elif check.peak[i] > 0 and check.flat[i] > max(FLAT * check.moving[i], 3):
        found.append(f'effort looks clipped: {check.flat[i]} samples are exactly {check.peak[i]:.4g} N m')
    if unit_is_doubtful(torque, i):
        found.append(_unit_problem(robot, i, torque.slope(i)))
    return found


def unit_is_doubtful(torque: CorrelationSums, i: int) -> bool:
    """Whether effort correlates with the model, but with a factor far from one."""
    correlation, slope = torque.figures(i).correlation, torque.slope(i)
    return bool(correlation > AGREES and not CURRENT < slope < 1 / CURRENT)


def _unit_problem(robot: Robot, i: int, slope: float) -> str:
    if slope > 1:
        return f'effort is {slope:.3g} times the predicted torque: its unit is wrong, or the model lacks much'
    motor = robot.config.joints[robot.joint_names[i]].motor
    known = ''
    if motor.torque_constant is not None:
        known = f' (k_m N is {motor.torque_constant * motor.gear:.4g} N m/A: try --effort current)'
    return f'effort is {slope:.3g} times the predicted torque: it looks like current, not torque{known}'
