"""The figures of one bag: error, friction and offset of every joint, and the load at every hand."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...arrays import Array
from ...robot.library import load_robot
from ...robot.model import Robot
from ..io.reader import Bag
from ..validation.filtering import FilteredMotion, Filtering
from ..validation.prediction import Predictor
from ..validation.validation import Validation, validate
from ..validation.window_comparison import PlotSeries

MOVING = 0.02  # below this speed the sign of friction is not known [rad/s, m/s]
LEAST = 50  # samples of a moving joint from which friction is estimated
BEGINNING = 5.0  # part of a recording whose messages are counted [s]


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
    """One row of the fleet's table; `joint` is a joint, or a hand whose row has the load."""

    path: str
    size: int  # [bytes], which with `changed` tells whether a bag was seen already
    changed: int  # [ns]
    machine: str
    start: int  # of the recording [ns]
    joint: str
    rmse: float = np.nan  # measured - predicted torque [N m]
    friction: float = np.nan  # mean friction while the joint moves [N m]
    offset: float = np.nan  # mean torque that does not depend on the speed [N m]
    load: float = np.nan  # mass at a hand that the model does not have [kg]
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
        return [JointRow(task.path, size, changed, task.machine, start, '', error=text, model=task.model)]
    damage = '; '.join(result.damage)
    row = JointRow(
        task.path, size, changed, task.machine, start, '', rate=rate, model=task.model, damage=damage
    )
    return [replace(row, joint=name, **values) for name, values in figures.items()]


def _rate(bag: Bag, topic: str) -> float:
    """Messages per second at the beginning [Hz]."""
    part = min(BEGINNING, bag.duration)
    return sum(1 for _ in bag.messages([topic], stop=bag.start + round(1e9 * part))) / part


def figures_of(robot: Robot, result: Validation) -> dict[str, dict[str, Any]]:
    """rmse, friction and offset by joint, and load by hand, from the residual of the full model.

    The residual of a joint is offset + coulomb sign(v) + viscous v + load h, with h the torque for a
    mass of 1 kg at a hand. The load is common to all joints.
    """
    series, names = result.series, result.names
    residual = series.measured - series.predicted['friction']
    columns = [names.index(name) for name in result.joints]
    hands = list(robot.config.end_effectors) if not robot.config.rolling else []
    per_kg = np.array([_unit_load(robot, hand, series) for hand in hands])
    modelled = robot.friction.torque(series.v, series.predicted['gravity'])
    regressors = [_regressors(series.v[:, j]) for j in columns]
    load = _load(residual, per_kg, columns, regressors) if hands else np.zeros(0)
    rows: dict[str, dict[str, Any]] = {}
    for j, X in zip(columns, regressors, strict=True):
        y = residual[:, j] - (load @ per_kg[:, :, j] if hands else 0.0)
        (offset, coulomb, viscous), *_ = np.linalg.lstsq(X, y, rcond=None)
        rows[names[j]] = {
            'rmse': result.joints[names[j]]['friction'].rmse,
            'friction': _mean_friction(modelled[:, j], series.v[:, j], coulomb, viscous),
            'offset': float(offset),
        }
    return rows | {hand: {'load': float(mass)} for hand, mass in zip(hands, load, strict=True)}


def _regressors(v: Array) -> Array:
    return np.stack([np.ones_like(v), np.where(np.abs(v) > MOVING, np.sign(v), 0.0), v], axis=1)


def _unit_load(robot: Robot, hand: str, series: PlotSeries) -> Array:
    """Torque that moves a mass of 1 kg at a hand [N m/kg], by sample and joint."""
    loaded = robot.with_payload(hand, 1.0, np.zeros(3), np.zeros((3, 3)))
    a, times = np.gradient(series.v, series.t, axis=0), np.zeros(len(series.t), np.int64)
    motion = FilteredMotion(series.t, times, series.q, series.v, a, series.measured)
    with_load, without = (Predictor(one).torques(motion)['rotor'] for one in (loaded, robot))
    return with_load - without


def _load(residual: Array, per_kg: Array, columns: list[int], regressors: list[Array]) -> Array:
    """Masses [kg] at the hands by least squares; offset and friction of every joint are eliminated."""
    left, right = [], []
    for j, X in zip(columns, regressors, strict=True):
        Q, _ = np.linalg.qr(X[:, [0, 1]] if np.ptp(X[:, 1]) else X[:, [0]])
        scale = 1.0 / (np.std(residual[:, j]) + 1e-6)  # joints with a large error count less
        H = per_kg[:, :, j].T
        left.append(scale * (H - Q @ (Q.T @ H)))
        right.append(scale * (residual[:, j] - Q @ (Q.T @ residual[:, j])))
    masses, *_ = np.linalg.lstsq(np.concatenate(left), np.concatenate(right), rcond=1e-6)
    return np.asarray(masses)


def _mean_friction(modelled: Array, v: Array, coulomb: float, viscous: float) -> float:
    """Mean friction torque against the motion [N m], of model and residual together."""
    moving = np.abs(v) > MOVING
    if moving.sum() < LEAST:
        return float('nan')
    direction = np.sign(v[moving])
    return float(((modelled[moving] + viscous * v[moving]) * direction).mean() + coulomb)
