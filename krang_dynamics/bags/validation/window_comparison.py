"""One window of a recording compared with the model; the results of windows can be added."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...arrays import Array
from ...robot.model import Robot
from ..io.reader import Bag
from .filtering import FilteredMotion, Filtering, filtered_motions, smoothed
from .prediction import LEVELS, Predictor
from .recording import Reading, Recording, Window
from .recording_check import RecordingCheck
from .statistics import CorrelationSums
from .wrenches import WARM_UP, WrenchComparison, wrench_topics

WORST = 3  # reported largest errors per joint
APART = 1.0  # least time between them [s]

Error = tuple[float, float]  # time [s], measured - predicted [N m]


@dataclass
class PlotSeries:
    """A subset of the samples, for plots: (K,) and (K, n)."""

    t: Array
    q: Array
    v: Array
    a: Array
    measured: Array
    predicted: dict[str, Array]

    def add(self, other: 'PlotSeries') -> None:
        """Append the samples of another window."""
        for name in ('t', 'q', 'v', 'a', 'measured'):
            setattr(self, name, np.concatenate([getattr(self, name), getattr(other, name)]))
        for level, values in other.predicted.items():
            self.predicted[level] = np.concatenate([self.predicted[level], values])


@dataclass
class WindowResult:
    """Comparison of one window, or of several after `add`."""

    levels: dict[str, CorrelationSums]
    check: RecordingCheck
    worst: list[list[Error]]  # per joint
    series: PlotSeries
    wrenches: dict[str, CorrelationSums]
    damage: list[str]

    def add(self, other: 'WindowResult') -> None:
        """Add another window."""
        for name, sums in other.levels.items():
            self.levels[name].add(sums)
        self.add_wrenches(other.wrenches)
        self.check.add(other.check)
        self.series.add(other.series)
        self.worst = [_largest(mine + theirs) for mine, theirs in zip(self.worst, other.worst, strict=True)]
        self.damage += [line for line in other.damage if line not in self.damage]

    def add_wrenches(self, wrenches: dict[str, CorrelationSums]) -> None:
        """Add a comparison of wrenches."""
        for name, sums in wrenches.items():
            if name in self.wrenches:
                self.wrenches[name].add(sums)
            else:
                self.wrenches[name] = sums


class WindowComparison:
    """Compares windows of one recording with a robot; `points` is the size of their plot series."""

    def __init__(self, path: Path, robot: Robot, reading: Reading, filtering: Filtering, points: int) -> None:
        self._recording = recording = Recording(Bag(path), robot, reading)
        self._filtering, self._points = filtering, points
        self._predictor = Predictor(robot)
        topics, _ = wrench_topics(recording.bag, robot)
        self._wrenches = WrenchComparison(recording.bag, robot, topics, filtering) if topics else None
        self._margin = round(1e9 * max(filtering.margin(recording.rate), WARM_UP if topics else 0.0))

    def __call__(self, window: Window) -> WindowResult:
        """Compare start <= t < stop; the filter settles in a margin on both sides."""
        start, stop = window
        robot = self._recording.robot
        samples = self._recording.samples(start - self._margin, stop + self._margin)
        empty = np.zeros((0, robot.nv))
        result = WindowResult(
            {level: CorrelationSums(empty, empty) for level in LEVELS},
            RecordingCheck.of(samples, start, stop, robot.effort_limits),
            [[] for _ in robot.joint_names],
            PlotSeries(np.zeros(0), empty, empty, empty, empty, dict.fromkeys(LEVELS, empty)),
            {},
            self._recording.bag.damage,
        )
        for motion in filtered_motions(samples, self._filtering.light(self._recording.rate)):
            self._compare(result, motion, window)
        return result

    def _compare(self, result: WindowResult, motion: FilteredMotion, window: Window) -> None:
        """Add one run without gaps; the filter and the observer need the margin."""
        if not self._wrenches:
            motion = motion.every(self._filtering.stride(self._recording.rate))
        with_margin, predicted = smoothed(motion, self._predictor.torques(motion), self._filtering)
        if self._wrenches and len(with_margin.t):
            result.add_wrenches(self._wrenches.compare(with_margin, predicted['friction'], *window))
        rows = slice(*np.searchsorted(with_margin.arrival, window).tolist())
        motion = with_margin.between(*window)
        if not len(motion.t):
            return
        result.check.add_velocities(motion)
        predicted = {level: torque[rows] for level, torque in predicted.items()}
        for level, torque in predicted.items():
            result.levels[level].add(CorrelationSums(motion.effort, torque))
        self._add_worst(result, motion.t, motion.effort - predicted['friction'])
        step = max(1, len(motion.t) // max(self._points, 1))
        thinned = {level: torque[::step].copy() for level, torque in predicted.items()}
        few = motion.every(step)
        result.series.add(PlotSeries(few.t, few.q, few.v, few.a, few.effort, thinned))

    @staticmethod
    def _add_worst(result: WindowResult, t: Array, error: Array) -> None:
        for errors, values in zip(result.worst, np.ascontiguousarray(error.T), strict=True):
            size = np.abs(values)
            for _ in range(WORST):
                k = int(size.argmax())
                errors.append((float(t[k]), float(values[k])))
                size[np.searchsorted(t, t[k] - APART) : np.searchsorted(t, t[k] + APART, 'right')] = 0.0
        result.worst = [_largest(errors) for errors in result.worst]


def _largest(errors: list[Error]) -> list[Error]:
    """The largest errors that are at least APART from each other."""
    kept: list[Error] = []
    for time, error in sorted(errors, key=lambda entry: -abs(entry[1])):
        if len(kept) < WORST and all(abs(time - other) > APART for other, _ in kept):
            kept.append((time, error))
    return kept
