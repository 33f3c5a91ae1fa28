"""Single samples that contradict their neighbours, found and replaced by interpolation."""

import numpy as np

from ...arrays import Array, Mask
from ...robot.model import Robot

SPREADS = 10.0  # distance from the neighbours' median at which a sample is suspect [standard deviations]
SPEED, EFFORT = 0.1, 0.2  # and the least distance [velocity limits, ranges of the effort]
MOST = 0.05  # a larger share of suspects is noise, not outliers


def replace_outliers(robot: Robot, t: Array, q: Array, v: Array, effort: Array) -> Mask:
    """Replace outliers of q, v and effort (K, n) in place; returns where there were some (K, n).

    A velocity that the positions confirm is no outlier; a missing one stays missing.
    """
    if len(t) < 5:  # the median takes five
        return np.zeros(q.shape, dtype=bool)
    period = (t[-1] - t[0]) / (len(t) - 1)
    fast = robot.velocity_limits
    if not np.isfinite(fast).all():
        fast = np.where(np.isfinite(fast), fast, _usual(np.diff(q, axis=0) / period))
    jumps = _suspects(q - _median(q), 3 * period * fast)
    _interpolate(t, q, jumps)
    distance = v - _median(v)
    spikes = _suspects(distance, SPEED * fast)
    if spikes.any():
        spikes &= np.abs(v - np.gradient(q, t, axis=0)) > 0.5 * np.abs(distance)
    low, high = np.percentile(effort, (1, 99), axis=0)
    peaks = _suspects(effort - _median(effort), EFFORT * (high - low))
    _interpolate(t, v, spikes)
    _interpolate(t, effort, peaks)
    return jumps | spikes | peaks


def _suspects(distance: Array, least: Array) -> Mask:
    """Samples farther from the median of their neighbours than usual, and than `least` per joint."""
    distance = np.abs(distance)
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
    """A speed that a joint without a velocity limit rarely exceeds [rad/s]."""
    return np.asarray(np.maximum(2 * np.percentile(np.abs(speed), 99, axis=0), 1e-3))


def _interpolate(t: Array, x: Array, rows: Mask) -> None:
    for j in np.flatnonzero(rows.any(axis=0)):
        good = ~rows[:, j] & np.isfinite(x[:, j])
        if good.any():
            x[rows[:, j], j] = np.interp(t[rows[:, j]], t[good], x[good, j])
