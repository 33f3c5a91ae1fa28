"""Motions and poses that were taught by hand: smoothed, written, and fitted to a robot's limits."""

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt

import numpy as np

from ...arrays import Array
from ...control.reference.trajectory import JointTrajectory
from ...errors import InputError

PERIOD = 0.02  # between the points of a taught motion [s]
SMOOTHING = 0.05  # standard deviation of the smoothing in time [s]
REST = 0.05  # speed below which a recording begins or ends at rest [rad/s, m/s]
EASE = 0.4  # time in which a motion that does not is sped up or slowed down [s]
MOVES = 1e-3  # change of a joint that counts as motion [rad, m]
POSE_TIME = 3.0  # from one taught pose to the next, before it is fitted to the limits [s]
LEAST_TIME = 1.0  # of the way to the first point [s]


def taught_motion(names: Sequence[str], times: Array, positions: Array) -> JointTrajectory:
    """The motion (K, n) without the rests before and after it, smoothed, from rest to rest."""
    if len(times) < 2:
        raise InputError('no joint states were received; is the robot running?')
    begin, end = _moving(positions)
    t, q = times[begin:end] - times[begin], positions[begin:end]
    if len(t) < 3 or t[-1] < 5 * PERIOD:
        raise InputError('the robot has not moved; guide it while this command runs')
    grid, path = _eased(t, q)
    return JointTrajectory(tuple(names), grid, np.column_stack([_smooth(path, t, x) for x in q.T]))


def taught_poses(names: Sequence[str], poses: Sequence[Array]) -> JointTrajectory:
    """A motion that rests at every pose."""
    if not poses:
        raise InputError('no pose was taught')
    times: Array = POSE_TIME * np.arange(1.0, len(poses) + 1)
    q = np.array(poses)
    return JointTrajectory(tuple(names), times, q, np.zeros_like(q), np.zeros_like(q))


def fitted(motion: JointTrajectory, start: Array, speed: Array, acceleration: Array) -> JointTrajectory:
    """The motion from `start`, slower where it exceeds speed [rad/s] or acceleration [rad/s2] (n,)."""
    way = np.abs(motion.positions[0] - start)
    approach = max(LEAST_TIME, _shortest(way, speed, acceleration))
    if len(motion.times) < 3 or (motion.velocities is not None and not motion.velocities.any()):
        # Poses: each way by itself.
        steps = np.abs(np.diff(motion.positions, axis=0))
        durations = np.diff(motion.times)
        durations = np.maximum(durations, [_shortest(step, speed, acceleration) for step in steps])
        return replace(motion, times=approach + np.concatenate([[0.0], np.cumsum(durations)]))
    v = np.gradient(motion.positions, motion.times, axis=0, edge_order=1)
    a = np.gradient(v, motion.times, axis=0, edge_order=1)
    factor = max(1.0, float((np.abs(v) / speed).max()), sqrt(float((np.abs(a) / acceleration).max())))
    if factor > 1:
        factor *= 1.02  # the spline through the points is a little faster than their differences
    return replace(
        motion,
        times=approach + factor * (motion.times - motion.times[0]),
        velocities=None if motion.velocities is None else motion.velocities / factor,
        accelerations=None if motion.accelerations is None else motion.accelerations / factor**2,
    )


def _moving(q: Array) -> tuple[int, int]:
    """The rows from the first to the last that differ from the rest before and after."""
    begins = (np.abs(q - q[0]) > MOVES).any(axis=1)
    ends = (np.abs(q - q[-1]) > MOVES).any(axis=1)
    if not begins.any():
        return 0, 0
    first, last = int(np.argmax(begins)), len(q) - int(np.argmax(ends[::-1]))
    return max(first - 1, 0), min(last + 1, len(q))


def _eased(t: Array, q: Array) -> tuple[Array, Array]:
    """Times of the points of a motion from rest to rest, and the times of the recording there [s]."""
    length = float(t[-1])
    begin, end = (
        min(EASE, length) if np.abs(q[part][-1] - q[part][0]).max() > REST * np.ptp(t[part]) else 0.0
        for part in (t <= 2 * PERIOD, t >= length - 2 * PERIOD)
    )
    total = length + (begin + end) / 2
    times = np.linspace(0.0, total, max(round(total / PERIOD), 3) + 1)
    # At the ends the recording's time increases quadratically.
    path = times - begin / 2 + np.maximum(begin - times, 0.0) ** 2 / (2 * begin or 1.0)
    return times, path - np.maximum(times - total + end, 0.0) ** 2 / (2 * end or 1.0)


def _smooth(grid: Array, t: Array, x: Array) -> Array:
    """Means of x with Gaussian weights at the times of the grid; the ends are kept."""
    line = np.interp(grid, [t[0], t[-1]], [x[0], x[-1]])
    rest = x - np.interp(t, [t[0], t[-1]], [x[0], x[-1]])
    # Odd continuation, so that the ends stay and a moving average has no bias there.
    t3 = np.concatenate([2 * t[0] - t[:0:-1], t, 2 * t[-1] - t[-2::-1]])
    x3 = np.concatenate([-rest[:0:-1], rest, -rest[-2::-1]])
    values = np.empty(len(grid))
    for k, time in enumerate(grid):
        near = slice(*np.searchsorted(t3, [time - 4 * SMOOTHING, time + 4 * SMOOTHING]))
        weights = np.exp(-0.5 * ((t3[near] - time) / SMOOTHING) ** 2)
        values[k] = weights @ x3[near] / weights.sum()
    return np.asarray(line + values)


def _shortest(way: Array, speed: Array, acceleration: Array) -> float:
    """Time of a quintic from rest to rest over a way (n,) within the limits [s]."""
    times = np.maximum(15 / 8 * way / speed, np.sqrt(10 / sqrt(3) * way / acceleration))
    return float(times.max(initial=0.0))
