"""The equations tau = Y theta of one window of a recording, filtered and reduced to triangular factors."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ...arrays import Array
from ...robot.config import RobotConfig
from ...robot.model import Robot
from ...robot.urdf import Urdf
from ..io.reader import Bag
from ..parallel import ParallelJob
from ..validation.filtering import SHORTEST_RUN, FilteredMotion, Filtering, filtered_motions, low_pass
from ..validation.recording import Reading, Recording, Window
from .least_squares import TriangularFactor
from .regressor import Regressor, Unknowns

THIN = 2.5  # used samples per period of the cutoff frequency: the noise of closer samples is correlated
LIGHT, DENSE = 4.0, 20.0  # cutoff [cutoffs] and rate [samples per period] at which Y is evaluated


@dataclass(frozen=True)
class IdentificationJob(ParallelJob[tuple[int, Window], list[TriangularFactor]]):
    """The inputs of a process that reduces windows of several recordings to factors of [Y y]."""

    paths: tuple[Path, ...]
    config: RobotConfig
    urdf: tuple[str | bytes, str]  # text and source
    reading: Reading
    filtering: Filtering
    unknowns: Unknowns

    def open(self) -> Callable[[tuple[int, Window]], list[TriangularFactor]]:
        robot = Robot(self.config, Urdf(*self.urdf))
        recordings = [Recording(Bag(path), robot, self.reading) for path in self.paths]
        regressor = Regressor(robot, self.unknowns, recordings[0].moving, recordings[0].measured)

        def work(item: tuple[int, Window]) -> list[TriangularFactor]:
            number, window = item
            return window_factors(recordings[number], regressor, self.filtering, window)

        return work


def window_factors(
    recording: Recording, regressor: Regressor, filtering: Filtering, window: Window
) -> list[TriangularFactor]:
    """One factor per row of the regressor, of the samples that arrived in the window."""
    start, stop = window
    margin = round(1e9 * max(2 * filtering.settling, 20 / recording.rate if recording.rate else 0.0))
    samples = recording.samples(start - margin, stop + margin)
    rows = np.flatnonzero(regressor.rows).tolist()
    total = [TriangularFactor(np.zeros((0, len(regressor.names) + 1)), 0) for _ in rows]
    for motion in filtered_motions(samples, _light_filter(filtering, recording.rate)):
        if len(motion.t) < SHORTEST_RUN:
            continue
        for factor, (Y, y) in zip(total, _equations(regressor, motion, filtering, window), strict=True):
            factor.add(TriangularFactor.of(Y, y))
    return total


def _light_filter(filtering: Filtering, rate: float) -> Filtering:
    """The filter before Y is evaluated; it keeps the harmonics of Coulomb friction."""
    if filtering.cutoff is None or LIGHT * filtering.cutoff > 0.3 * rate:
        return replace(filtering, cutoff=None)
    return replace(filtering, cutoff=LIGHT * filtering.cutoff)


def _equations(
    regressor: Regressor, motion: FilteredMotion, filtering: Filtering, window: Window
) -> Iterator[tuple[Array, Array]]:
    """Per row: Y and torque with the same low pass, so that tau = Y theta still holds."""
    rate, cutoff = 1 / float(np.median(np.diff(motion.t))), filtering.cutoff
    step = max(1, int(rate / (DENSE * cutoff))) if cutoff else 1
    motion, rate = motion.every(step), rate / step
    Y = regressor.matrix(motion)
    drop = round(filtering.settling * rate)
    arrival = motion.arrival[drop : len(motion.t) - drop]
    first, last = (drop + np.searchsorted(arrival, window)).tolist()
    kept = slice(first, last, max(1, round(rate / (THIN * cutoff))) if cutoff else 1)
    for j in np.flatnonzero(regressor.rows):
        columns = np.column_stack([Y[:, j], motion.effort[:, j]])
        if cutoff:
            nonzero = np.flatnonzero(columns.any(axis=0))
            columns[:, nonzero] = low_pass(columns[:, nonzero], cutoff, rate)
        yield columns[kept, :-1], columns[kept, -1]
