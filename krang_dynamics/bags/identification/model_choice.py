"""Cutoff frequency, delay of the effort and shape of friction, chosen from the recordings."""

from functools import partial

import numpy as np
from scipy.signal import welch

from ...errors import BagError
from .. import parallel
from ..validation.filtering import Filtering, filtered_motions
from ..validation.recording import Recording
from .delay import DELAYS, at_delay, estimate_delay
from .friction_shape import choose_shape, shape_places
from .least_squares import TriangularFactor
from .parameter_fit import noise_levels
from .regressor import Regressor, Unknowns
from .window_equations import Item, Source, Survey, added, surveying

SEGMENT = 10.0  # of the spectra [s]
ABOVE = 10.0  # spectral density from which it is signal [densities of the noise]
ENERGY = 0.99  # share of the energy of the acceleration below the bandwidth
FACTOR = 4.0  # cutoff [bandwidths]
SLOWEST, FASTEST = 1.0, 10.0  # cutoff [Hz]
RATE = 0.2  # largest cutoff [sample rates]
ROUNDS = 3  # of the choice of shapes: friction that is missing at one joint spoils the links of others
LEAST = 20  # samples of each joint that are needed
SHORT = 30.0  # least cutoff [1 / duration]: a slower filter needs too much of the recording to settle


def suitable_cutoff(recording: Recording) -> float:
    """FACTOR times the largest bandwidth of a joint's acceleration [Hz], within limits.

    Differentiated noise in Y makes inertias too small. Its energy grows with the third power of the cutoff.
    """
    largest = min(FASTEST, RATE * recording.rate)
    start, stop = recording.windows()[0]
    least = max(SLOWEST, SHORT / recording.bag.duration)
    bandwidths = []
    for motion in filtered_motions(recording.samples(start, stop), Filtering()):
        rate = (len(motion.t) - 1) / (motion.t[-1] - motion.t[0])
        f, density = welch(
            motion.v[:, recording.moving], rate, nperseg=min(len(motion.t), round(SEGMENT * rate)), axis=0
        )
        noise = np.median(density[f > rate / 4], axis=0)
        energy = np.where(density > ABOVE * noise, density, 0.0) * f[:, None] ** 2
        share = np.cumsum(energy, axis=0) / np.maximum(energy.sum(axis=0), 1e-300)
        bandwidths += [float(f[k]) for k in (share < ENERGY).sum(axis=0) if 0 < k < len(f)]
    return float(np.clip(FACTOR * max(bandwidths, default=FASTEST), min(least, largest), largest))


def survey_all(source: Source, unknowns: Unknowns, items: list[Item]) -> Survey:
    """The sum of the surveys of all windows."""
    surveyed: Survey = []
    for result in parallel.run(partial(surveying, source, unknowns), items, 'reading'):
        surveyed = added(surveyed, result)
    count = sum(part.count for part in surveyed[0]) if surveyed else 0
    if count < LEAST:
        raise BagError(
            f'{source.paths[0]}: {count} samples are left after filtering and thinning, {LEAST} are needed; '
            'it is too short or has too many gaps'
        )
    return surveyed


def choose_model(regressor: Regressor, surveyed: Survey) -> tuple[Regressor, float]:
    """The regressor with the best shape of friction, and the delay of the effort [s]."""
    active = regressor.active
    plain = [
        TriangularFactor(np.delete(f.R, slice(len(own), f.R.shape[1] - len(DELAYS)), axis=1), f.count)
        for f, own in zip(map(_total, surveyed), active, strict=True)
    ]
    priors = [(regressor.prior[own], regressor.spread[own]) for own in active]
    delay = estimate_delay(plain, priors)
    wide = [
        _at(f, delay).columns(own, len(regressor.names), np.array([1.0]))
        for f, own in zip(plain, active, strict=True)
    ]
    chosen, driven = regressor, regressor.measured[regressor.rows]
    for _ in range(ROUNDS):
        theta, _ = noise_levels(chosen, wide, driven)
        unknowns = regressor.unknowns
        for j, own, (first, second) in zip(np.flatnonzero(regressor.rows), active, surveyed, strict=True):
            parts = (_at(first, delay), _at(second, delay))
            unknowns = choose_shape(regressor, unknowns, int(j), own, parts, theta)
        if unknowns == chosen.unknowns:
            break
        chosen = Regressor(regressor.robot, unknowns, regressor.moving, regressor.measured, regressor.rows)
        wide = chosen_factors(regressor, chosen, surveyed, delay)
    return chosen, delay


def _total(parts: tuple[TriangularFactor, TriangularFactor]) -> TriangularFactor:
    total = TriangularFactor(parts[0].R, parts[0].count)
    total.add(parts[1])
    return total


def _at(factor: TriangularFactor, delay: float) -> TriangularFactor:
    """The factor with the effort at one delay [s]."""
    columns = factor.R.shape[1] - len(DELAYS)
    return factor.columns(np.arange(columns), columns, at_delay(delay))


def chosen_factors(
    first: Regressor, final: Regressor, surveyed: Survey, delay: float
) -> list[TriangularFactor]:
    """The factors of the chosen regressor, from a survey with the columns of the first and all shapes."""
    factors = []
    rows = np.flatnonzero(first.rows)
    for j, own, factor in zip(rows, first.active, map(_total, surveyed), strict=True):
        places = {first.names[i]: k for k, i in enumerate(own)}
        places |= shape_places(final, int(j), len(own), factor.R.shape[1] - len(DELAYS))
        kept = [k for k, column in enumerate(final.names) if column in places]
        R = _at(factor, delay).R[:, [*(places[final.names[k]] for k in kept), -1]]
        factors.append(
            TriangularFactor(R, factor.count).columns(np.array(kept), len(final.names), np.ones(1))
        )
    return factors
