"""When a figure of a joint began to change: a step or a ramp, found by least squares."""

from dataclasses import dataclass

import numpy as np

from ...arrays import Array

FEWEST = 8  # recordings, and ...
SIDE = 3  # ... recordings before a change and after it
SIGNIFICANT = 50.0  # reduction of the squared error by a change, in mean squared errors


@dataclass(frozen=True)
class Change:
    """A figure changes from recording `index` on."""

    index: int
    before: float  # mean before the change
    after: float  # at the end
    kind: str  # step or ramp

    @property
    def relative(self) -> float:
        """Change relative to the value before."""
        return (self.after - self.before) / abs(self.before) if self.before else np.inf


def find_change(times: Array, values: Array) -> Change | None:
    """The most significant change of a series, None if there is none; times increase [any unit]."""
    n = len(values)
    if n < FEWEST or not np.isfinite(values).all():
        return None
    best: tuple[float, Change] | None = None
    constant = float(((values - values.mean()) ** 2).sum())
    for k in range(SIDE, n - SIDE + 1):
        ramp = np.maximum(0.0, times - times[k - 1])
        for kind, shape in (('step', (np.arange(n) >= k).astype(float)), ('ramp', ramp)):
            X = np.stack([np.ones(n), shape], axis=1)
            (level, slope), *_ = np.linalg.lstsq(X, values, rcond=None)
            error = float(((values - X @ (level, slope)) ** 2).sum())
            if best is None or error < best[0]:
                change = Change(k, float(level), float(level + slope * shape[-1]), kind)
                best = error, change
    if best is None:
        return None
    error, change = best
    noise = error / (n - 3)
    return change if constant - error > SIGNIFICANT * noise and constant > 0 else None
