"""The figures of one bag: error, friction and offset of every joint, and the load at every hand."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ...arrays import Array
from ...errors import KrangError
from ...robot.library import load_robot
from ...robot.model import Robot
from ..io.reader import Bag
from ..validation.filtering import FilteredMotion, Filtering
from ..validation.prediction import Predictor
from ..validation.validation import Validation, validate
from ..validation.window_comparison import PlotSeries

FIGURES = 3  # version of this estimate; with another one all bags are read again
MOVING = 0.02  # below this speed the sign of friction is not known [rad/s, m/s]
LEAST = 50  # samples of a moving joint from which friction and offset are estimated
SPEEDS: Array = 0.05 * 1.5 ** np.arange(12.0)  # at which friction can be compared [rad/s, m/s] ...
SLOW = 0.25  # ... if they are between this share of the speed of a motion and the whole
SPREAD = 5.0  # largest standard error of a friction or an offset, in those of the mean of the samples
UNSURE = 0.02, 0.1  # largest standard error of a load [kg, share of it]
LEVER = 0.1  # torque of a load from which the offset of a joint depends on it [N m/kg]
TINY = 1e-9  # keeps normal equations regular
COUNTED = 1000  # messages from which their rate is known


@dataclass(frozen=True)
class BagTask:
    """One bag to read."""

    path: str
    machine: str
    robot: str  # a shipped name, robot file or URDF
    cutoff: float  # [Hz]
    model: str  # which model and filter the figures depend on


@dataclass(frozen=True)
class JointRow:
    """One row of the fleet's table; `joint` is a joint, or a hand whose row has the load.

    A figure that the recording does not determine is NaN.
    """

    path: str
    size: int  # [bytes], which with `changed` tells whether a bag was seen already
    changed: int  # [ns]
    machine: str
    start: int  # of the recording [ns]
    joint: str
    rmse: float = np.nan  # measured - predicted torque [N m]
    remaining_rmse: float = np.nan  # without the part that friction, offset and load explain [N m]
    frictions: Sequence[float] = (np.nan,) * len(SPEEDS)  # [N m]
    friction: float = np.nan  # at the speed at which the fleet compares this joint [N m]
    offset: float = np.nan  # mean torque that does not depend on the speed [N m]
    load: float = np.nan  # mass at a hand that the model does not have [kg]
    hands: str = ''  # whose loads load this joint, with commas
    torque: float = np.nan  # RMS of the measured torque [N m]
    speed: float = np.nan  # that 95 % of the samples do not exceed [rad/s, m/s]
    rate: float = np.nan  # of the states [Hz]
    model: str = ''  # that of the task
    error: str = ''  # why the bag cannot be used
    damage: str = ''  # of a bag whose remaining part is used


def signature(path: str) -> tuple[int, int]:
    """Size [bytes] and time of the last change [ns] of a bag."""
    files = [p for p in Path(path).rglob('*') if p.is_file()] if Path(path).is_dir() else [Path(path)]
    stats = [p.stat() for p in files]
    return sum(s.st_size for s in stats), max((s.st_mtime_ns for s in stats), default=0)


def read_bag(task: BagTask) -> list[JointRow]:
    """The rows of a bag; a bag that cannot be used has one row with the reason."""
    size, changed, start = 0, 0, 0
    try:
        size, changed = signature(task.path)
        robot = load_robot(task.robot)
        bag = Bag(task.path)
        start = int(bag.start)
        result = validate(task.path, robot, filtering=Filtering(task.cutoff))
        rate = _rate(bag, result.topic)
        figures = figures_of(robot, result)
    except Exception as error:  # whatever is wrong with one bag, the others are read
        text = ' '.join(str(error).split()) or type(error).__name__
        text = text.removeprefix(f'{task.path}: ')
        if not isinstance(error, KrangError):  # perhaps not the fault of the bag: it is read again next time
            changed = -1
        return [JointRow(task.path, size, changed, task.machine, start, '', error=text, model=task.model)]
    damage = '; '.join(result.damage)
    row = JointRow(
        task.path, size, changed, task.machine, start, '', rate=rate, model=task.model, damage=damage
    )
    return [replace(row, joint=name, **values) for name, values in figures.items()]


def _rate(bag: Bag, topic: str) -> float:
    """Messages per second at the beginning of a topic [Hz]."""
    times = [time for _, time, _ in islice(bag.messages([topic]), COUNTED)]
    span = 1e-9 * (max(times) - min(times))
    return (len(times) - 1) / span if span else float('nan')


def figures_of(robot: Robot, result: Validation) -> dict[str, dict[str, Any]]:
    """Errors, friction and offset by joint, and load by hand, from the residual of the full model.

    The residual of a joint is offset + coulomb sign(v) + smooth tanh(v) + viscous v + load h, with h the
    torque for a mass of 1 kg at a hand. The load is common to all joints.
    """
    series, names = result.series, result.names
    residual = series.measured - series.predicted['friction']
    columns = [names.index(name) for name in result.joints]
    hands = list(robot.config.end_effectors) if not robot.config.rolling else []
    per_kg = np.reshape([_unit_load(robot, hand, series) for hand in hands], (len(hands), *residual.shape))
    regressors = [_regressors(series.v[:, j], robot.friction.width[j]) for j in columns]
    load = _load(residual, per_kg, columns, regressors)
    residual -= np.tensordot(np.nan_to_num(load), per_kg, 1)
    lever = np.abs(per_kg[np.isnan(load)].mean(axis=1)).sum(axis=0)  # of loads that are not known
    modelled = _modelled_friction(robot)
    rows: dict[str, dict[str, Any]] = {}
    for j, X in zip(columns, regressors, strict=True):
        offset, frictions, remaining = _fit(X, residual[:, j], series.v[:, j], robot.friction.width[j])
        rows[names[j]] = {
            'rmse': result.joints[names[j]]['friction'].rmse,
            'remaining_rmse': remaining,
            'frictions': (modelled[:, j] + frictions).tolist(),
            'offset': offset if lever[j] < LEVER else np.nan,
            'torque': float(np.sqrt(np.mean(series.measured[:, j] ** 2))),
            'speed': _speed(series.v[:, j]),
            'hands': ','.join(h for h, x in zip(hands, per_kg, strict=True) if np.abs(x[:, j]).max() > TINY),
        }
    return rows | {hand: {'load': float(mass)} for hand, mass in zip(hands, load, strict=True)}


def _regressors(v: Array, width: float) -> Array:
    sign = np.where(np.abs(v) > MOVING, np.sign(v), 0.0)
    return np.stack([np.ones_like(v), sign, np.tanh(v / width), v], axis=1)


def _speed(v: Array) -> float:
    return float(np.quantile(np.abs(v), 0.95))


def _modelled_friction(robot: Robot) -> Array:
    """Friction of the model at SPEEDS [N m], by speed and joint, under the gravity of the home position."""
    v = np.repeat(SPEEDS[:, None], robot.nv, axis=1)
    Q = robot.gravity_torque(robot.home)
    return (robot.friction.torque(v, Q) - robot.friction.torque(-v, Q)) / 2


def _fit(X: Array, y: Array, v: Array, width: float) -> tuple[float, Array, float]:
    """Offset, friction at SPEEDS and remaining RMSE [N m] of a residual y; NaN if v does not determine them.

    Friction is not extrapolated: it depends on the speed in more ways than X.
    """
    covariance = np.linalg.inv(X.T @ X / len(X) + TINY * np.eye(X.shape[1]))  # of noise of size 1
    coefficients = covariance @ (X.T @ y) / len(X)
    remaining = float(np.sqrt(np.mean((y - X @ coefficients) ** 2)))
    wanted = np.concatenate([[(1.0, 0.0, 0.0, 0.0)], _regressors(SPEEDS, width) * (0, 1, 1, 1)])
    spread = np.sqrt(np.einsum('ij,jk,ik->i', wanted, covariance, wanted))
    speed = _speed(v) if (np.abs(v) > MOVING).sum() >= LEAST else 0.0
    outside = np.concatenate([[speed == 0], (speed * SLOW > SPEEDS) | (speed < SPEEDS)])
    values = np.where(outside | (spread > SPREAD), np.nan, wanted @ coefficients)
    return float(values[0]), values[1:], remaining


def _unit_load(robot: Robot, hand: str, series: PlotSeries) -> Array:
    """Torque that moves a mass of 1 kg at a hand [N m/kg], by sample and joint."""
    loaded = robot.with_payload(hand, 1.0, np.zeros(3), np.zeros((3, 3)))
    a, times = np.gradient(series.v, series.t, axis=0), np.zeros(len(series.t), np.int64)
    motion = FilteredMotion(series.t, times, series.q, series.v, a, series.measured)
    with_load, without = (Predictor(one).torques(motion)['rotor'] for one in (loaded, robot))
    return with_load - without


def _load(residual: Array, per_kg: Array, columns: list[int], regressors: list[Array]) -> Array:
    """Masses [kg] at the hands by least squares; offset and friction of every joint are eliminated.

    NaN where the motion does not determine a mass.
    """
    left: list[Array] = []
    right: list[Array] = []
    for j, X in zip(columns, regressors, strict=True):
        Q, _ = np.linalg.qr(X)
        for x, rows in ((per_kg[:, :, j].T, left), (residual[:, j], right)):
            rows.append(x - Q @ (Q.T @ x))
    H, y = np.concatenate(left), np.concatenate(right)
    inverse = np.linalg.inv(H.T @ H + TINY * np.eye(len(per_kg)))
    masses = inverse @ (H.T @ y)
    errors = np.sqrt(np.diag(inverse) * (np.var(y - H @ masses) + TINY))
    least, share = UNSURE
    return np.where(errors < np.maximum(least, share * np.abs(masses)), masses, np.nan)
