"""Samples split at gaps, filtered by the same zero-phase low pass on all signals, and differentiated."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from scipy.signal import butter, sosfiltfilt

from ...arrays import Array, Integers, Mask
from ...errors import BagError
from .recording import RecordedSamples

ORDER = 2
SETTLING = 2.5  # dropped at each end of a run [periods of the cutoff frequency]
GAP_PERIODS, SHORTEST_GAP = 5.0, 0.05  # a gap is longer than both [periods, s]
JITTER = 0.1  # relative spread of the period above which samples are interpolated to a constant rate
SHORTEST_RUN = 20  # samples


@dataclass(frozen=True)
class Filtering:
    """Cutoff of the low pass [Hz], None: no filter; and the signal whose derivative is the acceleration."""

    cutoff: float | None = None
    acceleration: Literal['velocity', 'position'] = 'velocity'

    def __post_init__(self) -> None:
        if self.cutoff is not None and not 0 < self.cutoff < np.inf:
            raise BagError(f'--cutoff is {self.cutoff}; it must be a positive frequency in Hz')

    @property
    def settling(self) -> float:
        """Time at each end of a run in which the filter has not settled [s]."""
        return SETTLING / self.cutoff if self.cutoff else 0.0

    def describe(self) -> str:
        """One line for reports."""
        low_pass = (
            f'zero-phase Butterworth low pass of order {ORDER} at {self.cutoff:g} Hz on position, velocity '
            f'and effort, {self.settling:.3g} s dropped at each end'
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
    period = float(np.median(np.diff(run.t)))
    t, arrival, q, v, effort = _even(run, period)
    if np.isnan(v).any():
        v = np.where(np.isnan(v), np.gradient(q, period, axis=0), v)
    if filtering.cutoff:
        q, v, effort = low_pass(np.stack([q, v, effort]), filtering.cutoff, 1 / period)
    if filtering.acceleration == 'velocity':
        a = np.gradient(v, period, axis=0)
    else:
        a = np.gradient(np.gradient(q, period, axis=0), period, axis=0)
    drop = round(filtering.settling / period)
    rows = slice(drop, len(t) - drop)
    if len(t) <= 2 * drop:
        return None
    return FilteredMotion(t[rows], arrival[rows], q[rows], v[rows], a[rows], effort[rows])


def low_pass(x: Array, cutoff: float, rate: float) -> Array:
    """Zero-phase Butterworth filter along the last axis but one.

    Second-order sections: transfer-function coefficients are inaccurate at low cutoffs.
    """
    if 2 * cutoff >= rate:
        raise BagError(f'--cutoff {cutoff:g} Hz is above half the sample rate, {rate / 2:.4g} Hz')
    sections = butter(ORDER, cutoff, fs=rate, output='sos')
    rows = np.ascontiguousarray(np.swapaxes(x, -1, -2))  # filtering contiguous rows is twice as fast
    return np.swapaxes(sosfiltfilt(sections, rows, axis=-1), -1, -2)


def _even(run: RecordedSamples, period: float) -> tuple[Array, Integers, Array, Array, Array]:
    """The run at a constant rate: unchanged, or interpolated where the period varies."""
    if np.diff(run.t).std() <= JITTER * period:
        return run.t, run.arrival, run.q, run.v, run.effort
    t = np.arange(run.t[0], run.t[-1] + 1e-9, period)
    arrival = np.interp(t, run.t, run.arrival - run.arrival[0]).astype(np.int64) + run.arrival[0]
    q, v, effort = (
        np.column_stack([np.interp(t, run.t, column) for column in x.T]) for x in (run.q, run.v, run.effort)
    )
    return t, arrival, q, v, effort
