"""The equations tau = Y theta of one window of a recording, filtered and reduced to triangular factors."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.interpolate import CubicSpline

from ...arrays import Array, Mask
from ...robot.model import Robot
from ..io.reader import Bag
from ..validation.filtering import SHORTEST_RUN, FilteredMotion, Filtering, filtered_motions, low_pass
from ..validation.recording import Reading, Recording, Window
from .delay import DELAYS
from .friction_shape import shape_columns
from .least_squares import CORRELATED, TriangularFactor
from .regressor import Regressor, Unknowns

THIN = 2.5  # used samples per period of the cutoff frequency: closer ones add little
FOLD = 2.0  # length of the alternating parts of a recording for choices by held-out error [s]
HUBER = 2.5  # residual from which an equation loses weight [standard deviations]
MEMORY = 2.0  # longest correlation of residuals that is considered [s]
SHIFT = 1e-3  # for the derivative of the effort by the delay [s]


@dataclass(frozen=True)
class Source:
    """The inputs of the processes: recordings, robot, filter and the joints that are used."""

    paths: tuple[Path, ...]
    robot: Robot
    reading: Reading
    filtering: Filtering
    moving: Mask
    measured: Mask
    known: Mask

    def open(self, unknowns: Unknowns) -> tuple[list[Recording], Regressor]:
        """Recordings and regressor; once per process."""
        recordings = [Recording(Bag(path), self.robot, self.reading) for path in self.paths]
        return recordings, Regressor(self.robot, unknowns, self.moving, self.measured, self.known)


Item = tuple[int, Window]  # number of the recording, and a window of it
Survey = list[tuple[TriangularFactor, TriangularFactor]]  # per row, of alternating parts


def surveying(source: Source, unknowns: Unknowns) -> Callable[[Item], Survey]:
    """Factors of [Y, other shapes of friction, effort at several delays], from which these are chosen."""
    recordings, regressor = source.open(unknowns)
    return lambda item: survey(recordings[item[0]], regressor, source.filtering, item[1])


def survey(recording: Recording, regressor: Regressor, filtering: Filtering, window: Window) -> Survey:
    """Two factors per row of the regressor, of the samples that arrived in the window."""
    parts = window_equations(recording, regressor, filtering, window, DELAYS, shapes=True)
    total: Survey = []
    for t, rows in parts:
        even = (t // FOLD) % 2 == 0
        found = [
            (TriangularFactor.of(columns[even], y[even]), TriangularFactor.of(columns[~even], y[~even]))
            for columns, y in rows
        ]
        total = added(total, found)
    return total


def added(total: Survey, other: Survey) -> Survey:
    """The sum of two surveys; an empty one is zero."""
    if not total or not other:
        return total or other
    for mine, theirs in zip(total, other, strict=True):
        for factor, more in zip(mine, theirs, strict=True):
            factor.add(more)
    return total


@dataclass(frozen=True)
class Estimate:
    """A first result: theta, the standard deviation of each row [N m], and the delay of the effort [s]."""

    theta: Array
    noise: Array
    delay: float


@dataclass
class WeightedEquations:
    """Factors of [Y, d effort / d delay, change of friction with its width, effort]; sums over windows.

    Outliers are weighted down. The third part is that of one standard deviation of the width.
    """

    factors: list[TriangularFactor]
    products: Array  # (rows, lags) sums of residual(t) residual(t + lag) [N2 m2]
    repeats: Array  # per row: see `repeated` [N2 m2]
    light: Array  # equations per row that lost weight

    def add(self, other: 'WeightedEquations') -> None:
        """Add another window."""
        for factor, more in zip(self.factors, other.factors, strict=True):
            factor.add(more)
        self.products = self.products + other.products
        self.repeats = self.repeats + other.repeats
        self.light = self.light + other.light

    def correlation(self) -> Array:
        """Per row: how many samples count as one, 1 + 2 sum of the residual's autocorrelations.

        Estimated as by Newey and West; at least the correlation that the low pass makes.
        """
        taper = 1 - np.arange(self.products.shape[1]) / self.products.shape[1]
        sums = self.products @ (taper * np.where(np.arange(len(taper)) == 0, 1.0, 2.0))
        return np.asarray(np.maximum(sums / np.maximum(self.products[:, 0], 1e-300), CORRELATED))

    def repetition(self) -> Array:
        """Per row: how many samples count as one, if errors that repeat with the motion count once."""
        repeats = self.repeats / np.maximum(self.products[:, 0], 1e-300)
        return np.asarray(np.maximum(repeats, self.correlation()))


def repeated(products: Array) -> float:
    """Samples that count as one, times the product of lag 0, from the products of a run at all lags.

    The error of a model repeats with a periodic motion, and is as slow as it. The sum of squared correlations
    over all lags is two thirds of its repetitions, but twice CORRELATED for noise.
    """
    if not products[0] > 0:
        return 0.0
    squares = 2 * float(products @ products) / float(products[0]) - float(products[0])
    return 1.5 * squares - 2 * CORRELATED * float(products[0])


def weighting(source: Source, unknowns: Unknowns, estimate: Estimate) -> Callable[[Item], WeightedEquations]:
    """Equations of the chosen model, weighted by the residuals of a first estimate."""
    recordings, regressor = source.open(unknowns)
    regressor.set_links(estimate.theta[: regressor.inertial])
    return lambda item: weighted_equations(
        recordings[item[0]], regressor, source.filtering, item[1], estimate
    )


def weighted_equations(
    recording: Recording, regressor: Regressor, filtering: Filtering, window: Window, estimate: Estimate
) -> WeightedEquations:
    """The equations of the samples that arrived in the window; Huber's weights."""
    active = regressor.active
    lags = 1 + round(MEMORY * THIN * (filtering.cutoff or 10.0))
    empty = [TriangularFactor(np.zeros((0, len(columns) + 3)), 0) for columns in active]
    total = WeightedEquations(empty, np.zeros((len(active), lags)), *np.zeros((2, len(active))))
    delays = estimate.delay + SHIFT * np.array([-1, 0, 1])
    dry = regressor.value(estimate.theta, 'coulomb')[regressor.rows]
    for _, rows in window_equations(recording, regressor, filtering, window, delays):
        for j, (columns, (before, y, after)) in enumerate((Y, efforts.T) for Y, efforts in rows):
            Y, width = columns[:, :-1], columns[:, -1]
            residual = (y - Y @ estimate.theta[active[j]]) / estimate.noise[j]
            weight = np.sqrt(np.minimum(1.0, HUBER / np.maximum(np.abs(residual), 1e-9)))
            slope = (after - before) / (2 * SHIFT)
            columns = np.column_stack([Y, -slope, dry[j] * width]) * weight[:, None]
            total.factors[j].add(TriangularFactor.of(columns, (y * weight)[:, None]))
            total.light[j] += int((weight < 1).sum())
            clipped = estimate.noise[j] * np.clip(residual, -HUBER, HUBER)
            products = np.fft.irfft(np.abs(np.fft.rfft(clipped, 2 * len(y))) ** 2)[: len(y)]
            total.products[j, : len(y)] += products[:lags]
            total.repeats[j] += repeated(products)
    return total


Rows = list[tuple[Array, Array]]  # per row of the regressor: columns (K, c), and efforts (K, delays) [N m]


def window_equations(
    recording: Recording,
    regressor: Regressor,
    filtering: Filtering,
    window: Window,
    delays: Array,
    shapes: bool = False,
) -> Iterator[tuple[Array, Rows]]:
    """Of each run: times [s], and the equations of the samples that arrived in the window."""
    start, stop = window
    margin = round(1e9 * filtering.margin(recording.rate))
    samples = recording.samples(start - margin, stop + margin)
    light = replace(filtering.light(recording.rate), spline=True)
    for motion in filtered_motions(samples, light):
        if len(motion.t) >= SHORTEST_RUN:
            t, rows = _equations(regressor, motion, filtering, window, delays, shapes)
            if len(t):
                yield t, rows


def _equations(
    regressor: Regressor,
    motion: FilteredMotion,
    filtering: Filtering,
    window: Window,
    delays: Array,
    shapes: bool,
) -> tuple[Array, Rows]:
    """Y and torque with the same low pass, so that tau = Y theta still holds."""
    rate, cutoff = (len(motion.t) - 1) / (motion.t[-1] - motion.t[0]), filtering.cutoff
    effort = motion.effort if not cutoff else low_pass(motion.effort, cutoff, rate)
    shifted = CubicSpline(motion.t, effort, axis=0)
    # Friction is abrupt but cheap; the links are smooth and expensive: they are evaluated at fewer samples.
    step = filtering.stride(rate)
    coarse = 1 if regressor.robot.config.rolling else max(1, filtering.stride(rate, 0.0) // step)
    dense, motion, rate = motion.every(step), motion.every(step * coarse), rate / step
    Y, loads = regressor.matrix(motion), regressor.load(motion.q)
    drop = round(filtering.settling * rate / coarse)
    arrival = motion.arrival[drop : len(motion.t) - drop]
    first, last = (drop + np.searchsorted(arrival, window)).tolist()
    kept = slice(first, last, max(1, round(rate / coarse / (THIN * cutoff))) if cutoff else 1)
    t = motion.t[kept]
    efforts = np.array([shifted(np.clip(t + delay, motion.t[0], motion.t[-1])) for delay in delays])
    rows = []
    for j, active in zip(np.flatnonzero(regressor.rows), regressor.active, strict=True):
        smooth = Y[:, j, active]
        own = active >= regressor.inertial
        load = np.interp(dense.t, motion.t, loads[:, j])
        abrupt = regressor.own_columns(int(j), active[own], dense, load) if coarse > 1 else smooth[:, own]
        if shapes:
            abrupt = np.column_stack([abrupt, shape_columns(regressor, int(j), dense.v[:, j], load)])
        else:
            abrupt = np.column_stack([abrupt, regressor.width_slope(int(j), dense.v[:, j])])
        smooth = smooth[:, ~own]
        if cutoff:
            smooth, abrupt = low_pass(smooth, cutoff, rate / coarse), low_pass(abrupt, cutoff, rate)
        columns = np.column_stack([smooth[kept], abrupt[::coarse][kept]])
        rows.append((columns, efforts[:, :, j].T.reshape(len(t), len(delays))))
    return t, rows
