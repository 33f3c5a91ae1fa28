"""Samples that contradict their neighbours, the limits or each other, found and replaced."""

import numpy as np

from ...arrays import Array, Mask
from ...robot.model import Robot

SPREADS = 10.0  # distance from the neighbours' median at which a sample is suspect [standard deviations]
SPEED, EFFORT = 0.1, 0.2  # and the least distance [usual speeds, ranges of the effort]
CONTRADICTION = 0.5  # and from the differentiated position, of a velocity [usual speeds]
IMPOSSIBLE = 3.0  # speed of a step of positions [velocity limits]
LONGEST = 0.25  # of a run of wrong positions; after a longer one the joint is somewhere else [s]
MOST = 0.05  # a larger share of suspects is noise, not outliers


def replace_outliers(robot: Robot, t: Array, q: Array, v: Array, effort: Array) -> Mask:
    """Replace outliers of q, v and effort (K, n) in place; returns where there were some (K, n).

    Wrong velocities become differentiated positions; a missing one stays missing.
    """
    if len(t) < 5:  # the median takes five
        return np.zeros(q.shape, dtype=bool)
    rates = np.diff(q, axis=0) * ((len(t) - 1) / (t[-1] - t[0]))
    fast, limits = _usual(rates), robot.velocity_limits
    limits = np.maximum(np.where(np.isfinite(limits), limits, 0.0), fast)  # robots exceed their limits
    jumps = np.column_stack([_jumps(t, x, IMPOSSIBLE * limit) for x, limit in zip(q.T, limits, strict=True)])
    _interpolate(t, q, jumps)
    speed = np.gradient(q, t, axis=0)
    usual = _median(v)
    spikes = _suspects(v, usual, SPEED * fast) & (np.abs(v - speed) > 0.5 * np.abs(v - usual))
    # A position that is held for a sample contradicts velocity too, but not for several samples.
    spikes |= _suspects(np.where(np.isnan(v), np.nan, _median(v - speed)), 0.0 * v, CONTRADICTION * fast)
    v[spikes] = _median(speed)[spikes]
    low, high = np.percentile(effort, (1, 99), axis=0)
    peaks = _suspects(effort, _median(effort), EFFORT * (high - low))
    _interpolate(t, effort, peaks)
    return jumps | spikes | peaks


def _jumps(t: Array, q: Array, fastest: float) -> Mask:
    """Samples between a step that is faster than possible [rad/s] and the step back."""
    period = (t[-1] - t[0]) / (len(t) - 1)
    steps = np.flatnonzero(np.abs(np.diff(q)) > fastest * np.maximum(np.diff(t), period))
    wrong, after = np.zeros(len(q), dtype=bool), 0
    for step in steps.tolist() if len(steps) <= MOST * len(q) else ():
        last = int(np.searchsorted(t, t[step] + LONGEST))
        for back in steps[(steps > step) & (steps < last)].tolist() if step >= after else ():
            returns = (q[back + 1] - q[back]) * (q[step + 1] - q[step]) < 0
            if returns and abs(q[back + 1] - q[step]) <= fastest * (t[back + 1] - t[step]):
                wrong[step + 1 : back + 1], after = True, back + 1
                break
    return wrong & (wrong.mean() <= MOST)


def _suspects(x: Array, expected: Array, least: Array) -> Mask:
    """Samples farther from what is expected than usual, and than `least` per joint; none if too many."""
    distance = np.abs(x - expected)
    far = distance > np.maximum(least, 1e-9)
    if far.any():
        deviation = 1.4826 * np.median(np.nan_to_num(distance), axis=0)
        far &= distance > SPREADS * deviation
        far &= far.mean(axis=0) <= MOST
    return np.asarray(far)


def _median(x: Array) -> Array:
    """The median of each sample and two on either side; at the ends the first or last sample repeats."""
    x = np.pad(np.nan_to_num(x), ((2, 2), (0, 0)), mode='edge')
    low, high = np.minimum(x[:-1], x[1:]), np.maximum(x[:-1], x[1:])
    # Of the four neighbours the two in the middle; the median of five is that of these and the sample.
    low, high = np.maximum(low[:-3], low[3:]), np.minimum(high[:-3], high[3:])
    return np.maximum(np.minimum(low, high), np.minimum(x[2:-2], np.maximum(low, high)))


def _usual(speed: Array) -> Array:
    """A speed that a joint rarely exceeds [rad/s]."""
    return np.asarray(np.maximum(2 * np.percentile(np.abs(speed), 99, axis=0), 1e-3))


def _interpolate(t: Array, x: Array, rows: Mask) -> None:
    for j in np.flatnonzero(rows.any(axis=0)):
        good = ~rows[:, j] & np.isfinite(x[:, j])
        if good.any():
            x[rows[:, j], j] = np.interp(t[rows[:, j]], t[good], x[good, j])
