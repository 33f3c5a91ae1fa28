"""Poses at rest from tables, or from the parts of bags in which nothing moves."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from ...errors import BagError
from ...robot.model import Robot
from ..io.reader import Bag
from ..io.table_file import Columns, read_table
from ..validation.joint_names import renamed
from ..validation.recording import Reading, Recording
from ..validation.recording_check import REST
from .static_fit import Poses

TABLES = ('.csv', '.txt', '.tsv', '.mat', '.npz', '.npy')
LEAST = 0.3  # duration of a rest that counts as a pose [s]
APART = 0.01  # poses closer than this are one [rad, m]


def read_poses(paths: Sequence[str | Path], robot: Robot, reading: Reading) -> Poses:
    """The poses of all files; torques that were not measured are NaN."""
    parts = [
        _of_table(Path(path), robot, reading)
        if Path(path).suffix in TABLES
        else _of_bag(Path(path), robot, reading)
        for path in paths
    ]
    return Poses(np.vstack([part.q for part in parts]), np.vstack([part.tau for part in parts]))


def _of_table(path: Path, robot: Robot, reading: Reading) -> Poses:
    table = read_table(path, Columns({}, {}, rate=1.0))
    names = renamed(table.joints, reading.maps)
    columns = {ours: k for k, ours in enumerate(names.values())}
    K = len(table.t)
    q, tau = np.tile(robot.home, (K, 1)), np.full((K, robot.nv), np.nan)
    missing = [n for n in robot.joint_names if n not in columns and n not in reading.locked]
    if missing and not reading.lock_rest:
        raise BagError(f'{path}: lacks q of {", ".join(missing)}; use --lock JOINT=VALUE or --lock-rest')
    positions, torques = table.values['q'], table.values['tau']
    for j, name in enumerate(robot.joint_names):
        if name in reading.locked:
            q[:, j] = reading.locked[name]
        elif name in columns and positions is not None:
            q[:, j] = positions[:, columns[name]]
            if torques is not None:
                tau[:, j] = torques[:, columns[name]]
    if not np.isfinite(q).all():
        raise BagError(f'{path}: a position is missing; every pose needs all joints')
    return Poses(q, tau)


def _of_bag(path: Path, robot: Robot, reading: Reading) -> Poses:
    """The mean of each part at rest."""
    recording = Recording(Bag(path), robot, reading)
    samples = recording.samples(recording.bag.start, recording.bag.stop + 1)
    speed = np.where(np.isnan(samples.v), np.gradient(samples.q, samples.t, axis=0), samples.v)
    still = np.asarray((np.abs(speed) < REST).all(axis=1))
    jumps = np.append(np.abs(np.diff(samples.q, axis=0)).max(axis=1) > APART, True)
    edges = np.flatnonzero(np.append(True, np.diff(still.astype(int)) != 0) | np.append(True, jumps[:-1]))
    q, tau = [], []
    for begin, end in pairwise([*edges.tolist(), len(samples.t)]):
        if still[begin] and samples.t[end - 1] - samples.t[begin] >= LEAST:
            q.append(samples.q[begin:end].mean(axis=0))
            tau.append(np.where(recording.measured, samples.effort[begin:end].mean(axis=0), np.nan))
    if not q:
        raise BagError(f'{path}: no part of {LEAST} s is at rest')
    return Poses(np.array(q), np.array(tau))
