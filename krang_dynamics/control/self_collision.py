"""Self-collision: which links come too near to each other, now or along a trajectory."""

import numpy as np

from ..arrays import Array
from ..robot.self_distance import SelfDistance
from .reference.trajectory import PreparedTrajectory

STEP = 0.02  # largest motion of a joint between two samples of a trajectory [rad, m]
MOST_SAMPLES = 3000  # of one trajectory
BEGIN = 50  # samples from which the number of the others follows


def pose_problem(distance: SelfDistance, q: Array, limit: float) -> str:
    """The links that are nearer than the limit [m] in a pose q [rad]; empty if none are."""
    found, pair = distance.minimum(q)
    return '' if pair is None or found >= limit else _text(found, pair, limit)


def path_problem(distance: SelfDistance, trajectory: PreparedTrajectory, q: Array, limit: float) -> str:
    """The nearest links along a trajectory, if they are nearer than the limit [m]; empty if not.

    q [rad] is the present pose. Joints without a trajectory stay there. A path that begins below the limit
    may lead out, not farther in.
    """
    if trajectory.is_stop:
        return ''
    times, path = _sampled(trajectory, q)
    row, found, pair = distance.along(path)
    if pair is None or found >= min(limit, distance.minimum(q)[0]):
        return ''
    return f'{_text(found, pair, limit)} at {times[row]:.2f} s'


def _text(found: float, pair: tuple[str, str], limit: float) -> str:
    return f'links {pair[0]!r} and {pair[1]!r}: distance {found:.3f} m, limits.self_distance is {limit:g} m'


def _sampled(trajectory: PreparedTrajectory, q: Array) -> tuple[Array, Array]:
    """Times [s] and poses (K, n) along a trajectory, dense enough for STEP."""
    columns, points = trajectory.columns, trajectory.points
    if trajectory.is_set_point:
        ends = np.array([q[columns], points.positions[0]])
        count = int(np.ceil(np.abs(np.diff(ends, axis=0)).max(initial=0.0) / STEP)) + 1
        values = ends[0] + np.linspace(0, 1, count + 1)[:, None] * (ends[1] - ends[0])
        times = np.zeros(count + 1)
    else:
        motion = trajectory.joined(np.array([q[columns], *np.zeros((3, len(columns)))]), 0.0)
        rough = np.array([motion.sample(t)[0] for t in np.linspace(0, trajectory.duration, BEGIN)])
        way = float(np.abs(np.diff(rough, axis=0)).max(axis=1).sum())
        times = np.linspace(0, trajectory.duration, min(int(way / STEP) + BEGIN, MOST_SAMPLES))
        values = np.array([motion.sample(t)[0] for t in times])
    path = np.tile(q, (len(times), 1))
    path[:, columns] = values
    return np.asarray(times, float), path
