"""Samples split at gaps, resampled on their own time base, low-passed alike, and differentiated."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np

from ...arrays import Array, Integers, Mask
from ...errors import BagError
from .recording import RecordedSamples

ORDER = 2
LIGHT = 4.0  # cutoff of the light filter [cutoffs]
SETTLING = 2.5  # dropped at each end of a run [periods of the cutoff frequency]
GAP_PERIODS, SHORTEST_GAP = 5.0, 0.05  # a gap is longer than both [periods, s]
EVEN = 1e-4  # largest relative deviation of a period at which the rate counts as constant
SHORTEST_RUN = 20  # samples
DENSE, DENSEST = 20.0, 200.0  # least rate at which a model is evaluated [cutoffs], [Hz]: sign(v) is abrupt


@dataclass(frozen=True)
class Filtering:
    """Cutoff of the low pass [Hz], None: no filter; and the signal whose derivative is the acceleration."""

    cutoff: float | None = None
    acceleration: Literal['velocity', 'position'] = 'velocity'
    spline: bool = False  # differentiate cubic splines; central differences damp fast motion

    def __post_init__(self) -> None:
        if self.cutoff is not None and not 0 < self.cutoff < np.inf:
            raise BagError(f'--cutoff is {self.cutoff}; it must be a positive frequency in Hz')

    @property
    def settling(self) -> float:
        """Time at each end of a run in which the filter has not settled [s]."""
        return SETTLING / self.cutoff if self.cutoff else 0.0

    def margin(self, rate: float) -> float:
        """Time before and after a window in which the filters settle, or the shortest run [s]."""
        return max(2 * self.settling, SHORTEST_RUN / rate if rate else 0.0)

    def light(self, rate: float) -> 'Filtering':
        """The filter before a model is evaluated; it keeps the harmonics of Coulomb friction.

        Both sides of torque = model(q, v, a) then pass the low pass itself, so that they stay comparable.
        """
        keeps_all = self.cutoff is None or LIGHT * self.cutoff > 0.3 * rate
        return replace(self, cutoff=None if keeps_all or self.cutoff is None else LIGHT * self.cutoff)

    def stride(self, rate: float, densest: float = DENSEST) -> int:
        """Samples per evaluation of a model, after the light filter; the low pass removes what is between."""
        return max(1, int(rate / max(DENSE * self.cutoff, densest))) if self.cutoff else 1

    def describe(self) -> str:
        """One line for reports."""
        low_pass = (
            f'zero-phase Butterworth low pass of order {ORDER} at {self.cutoff:g} Hz on measured and '
            f'predicted torque, {self.settling:.3g} s dropped at each end'
            if self.cutoff
            else 'none'
        )
        source = {'velocity': 'central differences of velocity', 'position': 'second differences of position'}
        return f'filter: {low_pass}; acceleration: {source[self.acceleration]}'


@dataclass(frozen=True)
class FilteredMotion:
    """A run at a constant rate: t [s], and q, v, a, effort (K, n) in rad (m), s and N m (N)."""

    t: Array
    arrival: Integers  # [ns]
    q: Array
    v: Array
    a: Array
    effort: Array

    def between(self, start: int, stop: int) -> 'FilteredMotion':
        """The samples that arrived in start <= t < stop [ns]."""
        return self._rows(slice(*np.searchsorted(self.arrival, (start, stop)).tolist()))

    def every(self, step: int) -> 'FilteredMotion':
        """Every `step`-th sample."""
        return self._rows(slice(None, None, step))

    def _rows(self, rows: slice) -> 'FilteredMotion':
        return FilteredMotion(
            self.t[rows], self.arrival[rows], self.q[rows], self.v[rows], self.a[rows], self.effort[rows]
        )


def gaps(t: Array) -> Mask:
    """For each sample but the last: whether a gap follows."""
    steps = np.diff(t)
    if not len(steps):
        return np.zeros(0, dtype=bool)
    return np.asarray(steps > max(GAP_PERIODS * float(np.median(steps)), SHORTEST_GAP))


def filtered_motions(samples: RecordedSamples, filtering: Filtering) -> list[FilteredMotion]:
    """The filtered runs between gaps; runs that are too short to filter are dropped."""
    edges = [0, *(np.flatnonzero(gaps(samples.t)) + 1).tolist(), len(samples.t)]
    runs = (samples.part(begin, end) for begin, end in pairwise(edges))
    found = (_motion(run, filtering) for run in runs if len(run.t) >= SHORTEST_RUN)
    return [motion for motion in found if motion is not None]


def _motion(run: RecordedSamples, filtering: Filtering) -> FilteredMotion | None:
    missing, differentiated = np.isnan(run.v), _spline_slope if filtering.spline else _central_slope
    v = np.where(missing, differentiated(run.q, run.t), run.v) if missing.any() else run.v
    t, arrival, q, v, effort = _even(run, v)
    rate = (len(t) - 1) / (t[-1] - t[0])
    drop = round(filtering.settling * rate)
    if len(t) <= 2 * drop:
        return None
    if filtering.cutoff:
        q, v, effort = low_pass(np.stack([q, v, effort]), filtering.cutoff, rate)
    a = differentiated(v if filtering.acceleration == 'velocity' else differentiated(q, t), t)
    rows = slice(drop, len(t) - drop)
    return FilteredMotion(t[rows], arrival[rows], q[rows], v[rows], a[rows], effort[rows])


def smoothed(
    motion: FilteredMotion, torques: Mapping[str, Array], filtering: Filtering
) -> tuple[FilteredMotion, dict[str, Array]]:
    """Motion, effort and predicted torques through the same low pass, without the ends where it settles."""
    names, K = list(torques), len(motion.t)
    if not filtering.cutoff or K < SHORTEST_RUN:
        return motion, dict(torques)
    rate = (K - 1) / (motion.t[-1] - motion.t[0])
    signals = np.stack([motion.q, motion.v, motion.a, motion.effort, *(torques[name] for name in names)])
    drop = min(round(filtering.settling * rate), K // 2)
    rows = slice(drop, K - drop)
    q, v, a, effort, *rest = low_pass(signals, filtering.cutoff, rate)[:, rows]
    return (
        FilteredMotion(motion.t[rows], motion.arrival[rows], q, v, a, effort),
        dict(zip(names, rest, strict=True)),
    )


def _central_slope(x: Array, t: Array) -> Array:
    return np.asarray(np.gradient(x, t, axis=0))


def _spline_slope(x: Array, t: Array) -> Array:
    from scipy.interpolate import CubicSpline  # scipy is slow to import, and not every recording needs it

    return np.asarray(CubicSpline(t, x, axis=0)(t, 1))


def low_pass(x: Array, cutoff: float, rate: float) -> Array:
    """Zero-phase Butterworth filter along the last axis but one.

    Second-order sections: transfer-function coefficients are inaccurate at low cutoffs.
    """
    from scipy.signal import sosfiltfilt

    if 2 * cutoff >= rate:
        raise BagError(f'--cutoff {cutoff:g} Hz is above half the sample rate, {rate / 2:.4g} Hz')
    rows = np.ascontiguousarray(np.swapaxes(x, -1, -2))  # filtering contiguous rows is twice as fast
    return np.swapaxes(sosfiltfilt(_sections(cutoff, rate), rows, axis=-1), -1, -2)


@lru_cache(maxsize=16)
def _sections(cutoff: float, rate: float) -> Array:
    from scipy.signal import butter

    return np.asarray(butter(ORDER, cutoff, fs=rate, output='sos'))


def _even(run: RecordedSamples, v: Array) -> tuple[Array, Integers, Array, Array, Array]:
    """The run at its mean rate: unchanged if the recorded stamps are even, else interpolated between them."""
    steps = np.diff(run.t)
    period = (run.t[-1] - run.t[0]) / len(steps)
    if np.abs(steps - period).max() <= EVEN * period:
        return run.t, run.arrival, run.q, v, run.effort
    from scipy.interpolate import CubicSpline

    t = run.t[0] + period * np.arange(len(run.t))
    t[-1] = run.t[-1]
    arrival = np.interp(t, run.t, run.arrival - run.arrival[0]).astype(np.int64) + run.arrival[0]
    q, v, effort = (np.asarray(CubicSpline(run.t, x, axis=0)(t)) for x in (run.q, v, run.effort))
    return t, arrival, q, v, effort
