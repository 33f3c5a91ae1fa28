"""`krang validate`: measured and predicted torque compared joint by joint, and a check of the recording."""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...arrays import Mask
from ...errors import BagError
from ...robot.model import Robot
from ...text import number, table
from .. import parallel
from ..io.reader import Bag
from .filtering import Filtering
from .prediction import LEVELS
from .recording import Reading, Recording
from .recording_check import check_lines, unit_is_doubtful, unit_problems
from .residual import is_inverted, load_hint, residual_hints, verdict
from .statistics import CorrelationSums, FitFigures
from .window_comparison import Error, PlotSeries, WindowComparison, WindowResult
from .wrenches import wrench_topics

POINTS = 3000  # of a curve in a report
STUCK = 0.1  # share of the motion with unchanged effort from which a joint was not measured
INVERTED = 'the sign of its effort, or of its position and velocity, is inverted'
NOTICED = 0.005  # of the largest torque; a smaller residual needs no explanation


@dataclass
class Validation:
    """The result: figures by joint and level, and the content of the reports."""

    robot: str
    bag: str
    topic: str
    duration: float  # compared, in the time of the stamps [s]
    filtering: str
    joints: dict[str, dict[str, FitFigures]]
    verdicts: dict[str, str]  # by joint, in words
    worst: dict[str, list[Error]]  # largest errors by joint
    check: list[str]
    hints: list[str]
    wrenches: dict[str, dict[str, FitFigures]]
    series: PlotSeries = field(repr=False)
    names: tuple[str, ...] = ()
    resting: tuple[str, ...] = ()  # joints that do not move
    contradictory: tuple[str, ...] = ()  # whose velocity is not the derivative of their position
    frozen: tuple[str, ...] = ()  # whose effort does not change for a large part of the motion
    inverted: tuple[str, ...] = ()  # whose effort, or position and velocity, has the wrong sign
    factors: dict[str, float] = field(default_factory=dict)  # effort / predicted torque, where it is doubtful
    wrong: list[str] = field(default_factory=list)  # sentences on what makes a recording useless
    damage: list[str] = field(default_factory=list)  # of its files

    def as_json(self) -> dict[str, Any]:
        """The figures without the curves."""

        def plain(figures: dict[str, dict[str, FitFigures]]) -> dict[str, Any]:
            return {name: {key: f.as_dict() for key, f in levels.items()} for name, levels in figures.items()}

        return {
            'robot': self.robot,
            'bag': self.bag,
            'topic': self.topic,
            'duration': self.duration,
            'filtering': self.filtering,
            'verdicts': self.verdicts,
            'joints': plain(self.joints),
            'wrenches': plain(self.wrenches),
            'worst': {name: [list(error) for error in errors] for name, errors in self.worst.items()},
            'check': self.check,
            'hints': self.hints,
        }

    def text(self) -> str:
        """The report for a terminal."""
        lines = [f'{self.bag}: {self.topic}, {self.duration:.1f} s; model: {self.robot}', self.filtering]
        lines += ['', *(f'  {line}' for line in table(['joint', 'verdict'], list(self.verdicts.items())))]
        lines += ['', 'Recording', *(f'  {line}' for line in self.check)]
        lines += [
            '',
            'RMSE of measured - predicted torque by level [N m]; other figures of the full model',
        ]
        lines += [f'  {line}' for line in table(*self.figures())]
        lines += ['', 'Largest errors of the full model [s: N m]']
        for name, errors in self.worst.items():
            lines.append(f'  {name}: ' + ', '.join(f'{t:.2f}: {number(e, 3)}' for t, e in errors))
        if self.wrenches:
            lines += ['', 'Measured wrenches: J^T f compared with effort - predicted, and with the observer']
            lines += [f'  {line}' for line in self._wrench_table()]
        if self.hints:
            lines += ['', *(f'! {hint}' for hint in self.hints)]
        return '\n'.join(lines)

    def figures(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows: RMSE of each level, then correlation, r2 and bias of the whole model."""
        header = ['joint', 'gravity', '+ motion', '+ rotor', '+ friction', 'correlation', 'r2', 'bias']
        rows = []
        for name, levels in self.joints.items():
            last = levels[LEVELS[-1]]
            figures = [levels[level].rmse for level in LEVELS]
            rows.append([name, *map(cell, (*figures, last.correlation, last.r2, last.bias))])
        return header, rows

    def _wrench_table(self) -> list[str]:
        rows = [
            [name, *(cell(x) for f in levels.values() for x in (f.rmse, f.correlation))]
            for name, levels in self.wrenches.items()
        ]
        return table(['joint', 'residual RMSE', 'correlation', 'observer RMSE', 'correlation'], rows)

    def missed(self, max_rmse: float | None, min_r2: float | None) -> list[str]:
        """A sentence on each joint at which the full model misses a requirement."""
        lines = []
        for name, levels in self.joints.items():
            last = levels[LEVELS[-1]]
            if max_rmse is not None and not last.rmse <= max_rmse:
                lines.append(f'{name}: RMSE {last.rmse:.4g} N m exceeds {max_rmse:g}')
            if min_r2 is not None and not last.r2 >= min_r2:
                lines.append(f'{name}: r2 {last.r2:.4g} is below {min_r2:g}')
        return lines


def cell(value: float) -> str:
    """A number of a table; a dash if it does not exist."""
    return '-' if not np.isfinite(value) else f'{value:.3f}' if abs(value) < 100 else f'{value:.4g}'


@np.errstate(over='ignore', invalid='ignore')  # damaged recordings have numbers of any size
def validate(
    path: str | Path,
    robot: Robot,
    reading: Reading | None = None,
    filtering: Filtering | None = None,
    share: tuple[float, float] = (0.0, 1.0),
) -> Validation:
    """Compare a recording with the model of a robot; `share` selects a part of its duration."""
    reading, filtering = reading or Reading(), filtering or Filtering()
    bag = Bag(path)
    recording = Recording(bag, robot, reading)
    _, problems = wrench_topics(bag, robot)
    windows = recording.windows(*share)
    points = POINTS // len(windows) + 1
    prepare = partial(WindowComparison, Path(path), robot, reading, filtering, points)
    results = parallel.run(prepare, windows, f'validating {Path(path).name}')
    total = next(results)
    for result in results:
        total.add(result)
    if not total.levels['friction'].count:
        raise BagError(f'{path}: {total.check.count} samples are too few, or have too many gaps, to compare')
    return _summary(recording, total, problems, filtering)


def _summary(
    recording: Recording, total: WindowResult, problems: list[str], filtering: Filtering
) -> Validation:
    robot, bag, names = recording.robot, recording.bag, recording.robot.joint_names
    # The torque of a passive joint is compared with zero; with rolling wheels it is undetermined.
    shown = recording.measured if robot.config.rolling else recording.known
    joints = {names[i]: int(i) for i in np.flatnonzero(shown)}
    series, full = total.series, total.levels['friction']
    hints: list[str] = []
    load = None
    factors = {name: full.slope(i) for name, i in joints.items() if unit_is_doubtful(full, i)}
    inverted = np.array([own and is_inverted(series, i) for i, own in enumerate(recording.measured)])
    if not factors and not inverted.any():
        residual = series.measured - series.predicted['friction']
        load = load_hint(robot, series.q, series.v, residual, recording.measured)
        least = NOTICED * np.abs(series.measured).max(axis=0)
        large = recording.measured & (np.sqrt(np.mean(residual**2, axis=0)) > least)
        hints = [load] if load else residual_hints(robot, series.v, series.a, residual, large)
    lines = check_lines(total.check, robot, recording.measured.tolist(), full)
    wrong = unit_problems(total.check, robot, recording.moving)
    frozen = total.check.frozen > STUCK * np.maximum(total.check.moving, 1)
    signs = [f'! {name}: {INVERTED}' for name in np.array(names)[inverted]]
    silent = [f'{name}: effort is missing or always zero; it is left out' for name in recording.silent]

    def figures(levels: dict[str, CorrelationSums], i: int) -> dict[str, FitFigures]:
        return {level: sums.figures(i) for level, sums in levels.items()}

    def named(mask: Mask) -> tuple[str, ...]:
        return tuple(name for name, chosen in zip(names, mask, strict=True) if chosen)

    return Validation(
        robot=robot.name,
        bag=str(bag.path),
        topic=recording.topic,
        duration=float(np.ptp(series.t)),
        filtering=filtering.describe(),
        joints={name: figures(total.levels, i) for name, i in joints.items()},
        verdicts={name: verdict(series, i, load is not None) for name, i in joints.items()},
        worst={name: total.worst[i] for name, i in joints.items()},
        check=[*(f'! {line}' for line in [*total.damage, *problems, *silent, *wrong]), *lines, *signs],
        hints=hints,
        wrenches={name: figures(total.wrenches, i) for name, i in joints.items()} if total.wrenches else {},
        series=series,
        names=names,
        resting=named(total.check.at_rest()),
        contradictory=named(total.check.contradictory() & recording.moving),
        frozen=named(frozen & recording.measured),
        inverted=named(inverted),
        factors=factors,
        wrong=wrong,
        damage=total.damage,
    )
