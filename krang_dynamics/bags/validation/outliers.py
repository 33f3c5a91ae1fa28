"""Single samples that contradict their neighbours, found and replaced by interpolation."""

import numpy as np
from scipy.ndimage import median_filter

from ...arrays import Array, Mask
from ...robot.model import Robot

NEIGHBOURS = 5  # samples, the suspect included
SPREADS = 10.0  # distance from the neighbours' median at which a sample is suspect [standard deviations]
SPEED, EFFORT = 0.1, 0.2  # and the least distance [velocity limits, ranges of the effort]
MOST = 0.05  # a larger share of suspects is noise, not outliers


def replace_outliers(robot: Robot, t: Array, q: Array, v: Array, effort: Array) -> Mask:
    """Replace outliers of q, v and effort (K, n) in place; returns where there were some (K, n).

    A velocity that the positions confirm is no outlier; a missing one stays missing.
    """
    if len(t) < NEIGHBOURS:
        return np.zeros(q.shape, dtype=bool)
    period = (t[-1] - t[0]) / (len(t) - 1)
    usual = _usual(np.diff(q, axis=0) / period)
    fast = np.where(np.isfinite(robot.velocity_limits), robot.velocity_limits, usual)
    jumps = _suspects(q, 3 * period * fast)
    _interpolate(t, q, jumps)
    speed = np.gradient(q, t, axis=0)
    spikes = _suspects(v, SPEED * fast) & (np.abs(v - speed) > 0.5 * np.abs(v - _median(v)))
    low, high = np.percentile(effort, (1, 99), axis=0)
    peaks = _suspects(effort, EFFORT * (high - low))
    _interpolate(t, v, spikes)
    _interpolate(t, effort, peaks)
    return jumps | spikes | peaks


def _suspects(x: Array, least: Array) -> Mask:
    """Samples farther from the median of their neighbours than usual, and than `least` per joint."""
    distance = np.abs(x - _median(x))
    deviation = 1.4826 * np.median(np.nan_to_num(distance), axis=0)
    far = distance > np.maximum(SPREADS * deviation, np.maximum(least, 1e-9))
    return np.asarray(far & (far.mean(axis=0) <= MOST))


def _median(x: Array) -> Array:
    return np.asarray(median_filter(np.nan_to_num(x), size=(NEIGHBOURS, 1), mode='nearest'))


def _usual(speed: Array) -> Array:
    """A speed that a joint without a velocity limit rarely exceeds [rad/s]."""
    return np.asarray(np.maximum(2 * np.percentile(np.abs(speed), 99, axis=0), 1e-3))


def _interpolate(t: Array, x: Array, rows: Mask) -> None:
    for j in np.flatnonzero(rows.any(axis=0)):
        good = ~rows[:, j] & np.isfinite(x[:, j])
        if good.any():
            x[rows[:, j], j] = np.interp(t[rows[:, j]], t[good], x[good, j])
