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
    found = np.zeros(q.shape, dtype=bool, order='F')
    if len(t) < 5:  # the median takes five
        return found
    rates = np.diff(q, axis=0) * ((len(t) - 1) / (t[-1] - t[0]))
    fast, limits = _usual(rates), robot.velocity_limits
    limits = np.maximum(np.where(np.isfinite(limits), limits, 0.0), fast)  # robots exceed their limits
    low, high = np.percentile(effort, (1, 99), axis=0)
    for j, out in enumerate(found.T):
        out |= _replace_positions(t, q[:, j], IMPOSSIBLE * limits[j])
        out |= _replace_velocities(t, q[:, j], v[:, j], fast[j])
        out |= _replace_efforts(t, effort[:, j], EFFORT * (high[j] - low[j]))
    return found


def _replace_positions(t: Array, q: Array, fastest: float) -> Mask:
    wrong = _jumps(t, q, fastest)
    _interpolate(t, q, wrong)
    return wrong


def _replace_velocities(t: Array, q: Array, v: Array, fast: float) -> Mask:
    speed = np.gradient(q, t)
    wrong, error = np.zeros(len(t), dtype=bool), v - speed
    if _has_steps(v, SPEED * fast):
        usual = _median(v)
        wrong |= _suspects(v - usual, SPEED * fast) & (np.abs(error) > 0.5 * np.abs(v - usual))
    # A position that is held for a sample contradicts velocity too, but not for several samples.
    if not np.abs(error).max() <= CONTRADICTION * fast:
        wrong |= _suspects(np.where(np.isnan(v), np.nan, _median(error)), CONTRADICTION * fast)
    if wrong.any():
        v[wrong] = _median(speed)[wrong]
    return wrong


def _replace_efforts(t: Array, effort: Array, least: float) -> Mask:
    if not _has_steps(effort, least):
        return np.zeros(len(t), dtype=bool)
    wrong = _suspects(effort - _median(effort), least)
    _interpolate(t, effort, wrong)
    return wrong


def _has_steps(x: Array, least: float) -> bool:
    """Whether a sample can be farther than `least` from its neighbours' median, which is two steps away."""
    return not 2 * np.abs(np.diff(x)).max() <= least


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


def _suspects(error: Array, least: float) -> Mask:
    """Samples with a larger error than usual, and than `least`; none if too many."""
    distance = np.abs(error)
    far = distance > max(least, 1e-9)
    if far.any():
        far &= distance > SPREADS * 1.4826 * np.median(np.nan_to_num(distance))
        far &= far.mean() <= MOST
    return np.asarray(far)


def _median(x: Array) -> Array:
    """The median of each sample and two on either side; at the ends the first or last sample repeats."""
    x = np.nan_to_num(x)
    x = np.concatenate([x[:1], x[:1], x, x[-1:], x[-1:]])
    low, high = np.minimum(x[:-1], x[1:]), np.maximum(x[:-1], x[1:])
    # Of the four neighbours the two in the middle; the median of five is that of these and the sample.
    low, high = np.maximum(low[:-3], low[3:]), np.minimum(high[:-3], high[3:])
    return np.maximum(np.minimum(low, high), np.minimum(x[2:-2], np.maximum(low, high)))


def _usual(speed: Array) -> Array:
    """A speed that a joint rarely exceeds [rad/s]."""
    return np.asarray(np.maximum(2 * np.percentile(np.abs(speed), 99, axis=0), 1e-3))


def _interpolate(t: Array, x: Array, rows: Mask) -> None:
    good = ~rows & np.isfinite(x)
    if rows.any() and good.any():
        x[rows] = np.interp(t[rows], t[good], x[good])
