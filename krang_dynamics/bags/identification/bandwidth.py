"""The cutoff frequency that a recording needs: noise above the bandwidth of the motion biases inertias."""

import numpy as np
from scipy.signal import welch

from ..validation.filtering import Filtering, filtered_motions
from ..validation.recording import Recording

SEGMENT = 10.0  # of the spectra [s]
ABOVE = 10.0  # spectral density from which it is signal [densities of the noise]
ENERGY = 0.99  # share of the energy of the acceleration below the bandwidth
FACTOR = 4.0  # cutoff [bandwidths]
SLOWEST, FASTEST = 1.0, 10.0  # cutoff [Hz]
RATE = 0.2  # largest cutoff [sample rates]
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
