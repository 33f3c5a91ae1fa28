"""`krang validate`: predicted against measured torque, joint by joint, and a check of the recording."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...arrays import Array
from ...errors import BagError
from ...robot.config import RobotConfig
from ...robot.model import Robot
from ...robot.payload import Payload
from ...robot.urdf import Urdf
from ...text import number, table
from ..io import parallel
from ..io.reader import Bag
from . import recording_check as check
from .filtering import Filtering, motions
from .hints import load_hint
from .prediction import LEVELS, Predictor
from .recording import Reading, Recording, Window
from .recording_check import Check
from .statistics import Figures, Moments
from .wrenches import WARM_UP, WrenchCheck, sources

POINTS = 3000  # of a curve in a report
WORST, CANDIDATES = 3, 150  # moments that are named per joint, and among which they are chosen
APART = 1.0  # by how much these differ [s]


@dataclass
class Series:
    """A thinned copy of the motion, for reports: (K,) and (K, n)."""

    t: Array
    q: Array
    v: Array
    measured: Array
    predicted: dict[str, Array]

    def add(self, other: 'Series') -> None:
        for name in ('t', 'q', 'v', 'measured'):
            setattr(self, name, np.concatenate([getattr(self, name), getattr(other, name)]))
        for level, values in other.predicted.items():
            self.predicted[level] = np.concatenate([self.predicted[level], values])


@dataclass
class Part:
    """What one window adds."""

    levels: dict[str, Moments]
    check: Check
    worst: list[list[tuple[float, float]]]  # per joint (time [s], error [N m])
    series: Series
    wrenches: dict[str, Moments]
    damage: list[str]

    def add(self, other: 'Part') -> None:
        for name, moments in other.levels.items():
            self.levels[name].add(moments)
        self.add_wrenches(other.wrenches)
        self.check.add(other.check)
        self.series.add(other.series)
        self.worst = [_worst(mine + theirs) for mine, theirs in zip(self.worst, other.worst, strict=True)]
        self.damage += [line for line in other.damage if line not in self.damage]

    def add_wrenches(self, found: dict[str, Moments]) -> None:
        for name, moments in found.items():
            if name in self.wrenches:
                self.wrenches[name].add(moments)
            else:
                self.wrenches[name] = moments


@dataclass(frozen=True)
class ValidateJob(parallel.Job[Window, Part]):
    """Everything that a process needs to work on windows of one recording."""

    path: Path
    config: RobotConfig
    urdf: tuple[str | bytes, str]  # text and source, which are smaller than what was read of them
    payloads: tuple[Payload, ...]
    reading: Reading
    filtering: Filtering
    points: int  # of the series, per window

    def open(self) -> Callable[[Window], Part]:
        robot = Robot(self.config, Urdf(*self.urdf), self.payloads)
        bag = Bag(self.path)
        recording = Recording(bag, robot, self.reading)
        found, _ = sources(bag, robot)
        wrenches = WrenchCheck(bag, robot, found, self.filtering) if found else None
        return _Worker(recording, Predictor(robot), self.filtering, wrenches, self.points).part


class _Worker:
    def __init__(
        self,
        recording: Recording,
        predictor: Predictor,
        filtering: Filtering,
        wrenches: WrenchCheck | None,
        points: int,
    ) -> None:
        self._recording, self._predictor, self._filtering = recording, predictor, filtering
        self._wrenches, self._points = wrenches, points
        period = 20 / recording.rate if recording.rate else 0.0
        margin = max(2 * filtering.settling, period, WARM_UP if wrenches else 0.0)
        self._margin = round(1e9 * margin)

    def part(self, window: Window) -> Part:
        """Work on start <= t < stop; a margin on both sides lets the filter settle."""
        start, stop = window
        robot = self._recording.robot
        samples = self._recording.samples(start - self._margin, stop + self._margin)
        seen = Check.of(samples, start, stop, robot.effort_limits)
        none = np.zeros((0, robot.nv))
        part = Part(
            {level: Moments(none, none) for level in LEVELS},
            seen,
            [[] for _ in robot.joint_names],
            Series(np.zeros(0), none, none, none, dict.fromkeys(LEVELS, none)),
            {},
            self._recording.bag.damage,
        )
        for whole in motions(samples, self._filtering):
            motion = whole.between(start, stop)
            if not len(motion.t):
                continue
            seen.see(motion)
            predicted = self._predictor.torques(whole if self._wrenches else motion)
            if self._wrenches:
                part.add_wrenches(self._wrenches.compare(whole, predicted['friction'], start, stop))
                rows = slice(*np.searchsorted(whole.arrival, (start, stop)).tolist())
                predicted = {level: torque[rows] for level, torque in predicted.items()}
            for level, torque in predicted.items():
                part.levels[level].add(Moments(motion.effort, torque))
            self._keep(part, motion.t, motion.q, motion.v, motion.effort, predicted)
        return part

    def _keep(
        self, part: Part, t: Array, q: Array, v: Array, effort: Array, predicted: dict[str, Array]
    ) -> None:
        error = effort - predicted['friction']
        for joint, moments in enumerate(part.worst):
            size = np.abs(error[:, joint])
            for k in np.argpartition(size, -min(len(t), CANDIDATES))[-CANDIDATES:]:
                moments.append((float(t[k]), float(error[k, joint])))
        part.worst = [_worst(moments) for moments in part.worst]
        step = max(1, len(t) // max(self._points, 1))
        thin = {level: torque[::step].copy() for level, torque in predicted.items()}
        part.series.add(Series(t[::step], q[::step], v[::step], effort[::step], thin))


def _worst(moments: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The largest errors that are not of one and the same moment."""
    kept: list[tuple[float, float]] = []
    for time, error in sorted(moments, key=lambda entry: -abs(entry[1])):
        if len(kept) < WORST and all(abs(time - other) > APART for other, _ in kept):
            kept.append((time, error))
    return kept


@dataclass
class Validation:
    """The result: figures by joint and level, and everything a report says."""

    robot: str
    bag: str
    topic: str
    duration: float  # [s]
    filtering: str
    joints: dict[str, dict[str, Figures]]
    worst: dict[str, list[tuple[float, float]]]
    check: list[str]
    hints: list[str]
    wrenches: dict[str, dict[str, Figures]]
    series: Series = field(repr=False)
    names: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        def plain(figures: dict[str, dict[str, Figures]]) -> dict[str, Any]:
            return {name: {key: f.as_dict() for key, f in levels.items()} for name, levels in figures.items()}

        return {
            'robot': self.robot,
            'bag': self.bag,
            'topic': self.topic,
            'duration': self.duration,
            'filtering': self.filtering,
            'joints': plain(self.joints),
            'wrenches': plain(self.wrenches),
            'worst': {name: [list(moment) for moment in moments] for name, moments in self.worst.items()},
            'check': self.check,
            'hints': self.hints,
        }

    def text(self) -> str:
        """The table for a terminal."""
        lines = [f'{self.bag}: {self.topic}, {self.duration:.1f} s, against {self.robot}', self.filtering]
        lines += ['', 'The recording', *(f'  {line}' for line in self.check)]
        lines += ['', 'RMSE of measured - predicted torque [N m], and of the last step its other figures']
        lines += [f'  {line}' for line in self.table()]
        lines += ['', 'Worst moments [s: N m], the whole model']
        for name, moments in self.worst.items():
            lines.append(f'  {name}: ' + ', '.join(f'{t:.2f}: {number(e, 3)}' for t, e in moments))
        if self.wrenches:
            lines += ['', 'Measured wrenches, J^T f against effort - predicted, and against the observer']
            lines += [f'  {line}' for line in self._wrench_table()]
        if self.hints:
            lines += ['', *(f'! {hint}' for hint in self.hints)]
        return '\n'.join(lines)

    def table(self) -> list[str]:
        header = ['joint', 'gravity', '+ motion', '+ rotor', '+ friction', 'correlation', 'r2', 'bias']
        rows = []
        for name, levels in self.joints.items():
            last = levels[LEVELS[-1]]
            figures = [levels[level].rmse for level in LEVELS]
            rows.append([name, *map(_cell, (*figures, last.correlation, last.r2, last.bias))])
        return table(header, rows)

    def _wrench_table(self) -> list[str]:
        rows = [
            [name, *(_cell(x) for f in levels.values() for x in (f.rmse, f.correlation))]
            for name, levels in self.wrenches.items()
        ]
        return table(['joint', 'residual RMSE', 'correlation', 'observer RMSE', 'correlation'], rows)

    def missed(self, max_rmse: float | None, min_r2: float | None) -> list[str]:
        """Joints that miss what is demanded of the whole model, a sentence each."""
        said = []
        for name, levels in self.joints.items():
            last = levels[LEVELS[-1]]
            if max_rmse is not None and not last.rmse <= max_rmse:
                said.append(f'{name}: RMSE {last.rmse:.4g} N m exceeds {max_rmse:g}')
            if min_r2 is not None and not last.r2 >= min_r2:
                said.append(f'{name}: r2 {last.r2:.4g} is below {min_r2:g}')
        return said


def _cell(value: float) -> str:
    return '-' if not np.isfinite(value) else f'{value:.3f}' if abs(value) < 100 else f'{value:.4g}'


def validate(
    path: str | Path,
    robot: Robot,
    reading: Reading | None = None,
    filtering: Filtering | None = None,
    share: tuple[float, float] = (0.0, 1.0),
) -> Validation:
    """A recording against a robot's model; `share` takes a part of its duration only."""
    reading, filtering = reading or Reading(), filtering or Filtering()
    bag = Bag(path)
    recording = Recording(bag, robot, reading)
    _, problems = sources(bag, robot)
    windows = recording.windows(*share)
    urdf, points = (robot.urdf.text, robot.urdf.source), POINTS // len(windows) + 1
    job = ValidateJob(Path(path), robot.config, urdf, robot.payloads, reading, filtering, points)
    parts = parallel.run(job, windows, f'validating {Path(path).name}')
    total = next(parts)
    for part in parts:
        total.add(part)
    if not total.levels['friction'].count:
        raise BagError(f'{path}: {total.check.count} samples are too few, or too torn, to compare')
    return _summary(recording, total, problems, filtering, share)


def _summary(
    recording: Recording,
    total: Part,
    problems: list[str],
    filtering: Filtering,
    share: tuple[float, float],
) -> Validation:
    robot, bag, names = recording.robot, recording.bag, recording.robot.joint_names
    # A joint that nothing drives is compared with no torque; wheels that roll leave it undetermined.
    shown = recording.measured if robot.config.rolling else recording.moving
    joints = {names[i]: int(i) for i in np.flatnonzero(shown)}
    series, whole = total.series, total.levels['friction']
    hint = None
    if not any(check.unit_is_doubtful(whole, i) for i in joints.values()):
        residual = series.measured - series.predicted['friction']
        hint = load_hint(robot, series.q, series.v, residual, recording.measured)
    told = check.lines(total.check, robot, recording.measured.tolist(), whole)

    def figures(kinds: dict[str, Moments], i: int) -> dict[str, Figures]:
        return {kind: moments.figures(i) for kind, moments in kinds.items()}

    return Validation(
        robot=robot.name,
        bag=str(bag.path),
        topic=recording.topic,
        duration=bag.duration * (share[1] - share[0]),
        filtering=filtering.describe(),
        joints={name: figures(total.levels, i) for name, i in joints.items()},
        worst={name: total.worst[i] for name, i in joints.items()},
        check=[*(f'! {line}' for line in [*total.damage, *problems]), *told],
        hints=[hint] if hint else [],
        wrenches={name: figures(total.wrenches, i) for name, i in joints.items()} if total.wrenches else {},
        series=series,
        names=names,
    )
