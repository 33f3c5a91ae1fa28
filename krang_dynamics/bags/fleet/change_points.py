"""When a figure of a joint began to change: steps or a ramp, found by least squares."""

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
    after: float  # mean after it, at the end of a ramp
    kind: str  # step or ramp

    @property
    def relative(self) -> float:
        """Change relative to the value before."""
        return (self.after - self.before) / abs(self.before) if self.before else np.inf


def find_changes(times: Array, values: Array) -> list[Change]:
    """The changes of a series: none, one, or two steps; times increase [any unit]."""
    n = len(values)
    if n < FEWEST or not np.isfinite(values).all():
        return []
    found: list[Change] = []
    error = float(((values - values.mean()) ** 2).sum())
    for candidate in (_one_change(times, values), _two_steps(values)):
        remaining, changes = candidate
        noise = remaining / (n - 1 - 2 * len(changes))
        if changes and error - remaining > SIGNIFICANT * noise:
            error, found = remaining, changes
    return found


def _one_change(times: Array, values: Array) -> tuple[float, list[Change]]:
    """The step or ramp with the smallest squared error, and that error."""
    n = len(values)
    best: tuple[float, list[Change]] = (np.inf, [])
    for k in range(SIDE, n - SIDE + 1):
        ramp = np.maximum(0.0, times - times[k - 1])
        for kind, shape in (('step', (np.arange(n) >= k).astype(float)), ('ramp', ramp)):
            X = np.stack([np.ones(n), shape], axis=1)
            (level, slope), *_ = np.linalg.lstsq(X, values, rcond=None)
            error = float(((values - X @ (level, slope)) ** 2).sum())
            if error < best[0]:
                best = error, [Change(k, float(level), float(level + slope * shape[-1]), kind)]
    return best


def _two_steps(values: Array) -> tuple[float, list[Change]]:
    """The pair of steps with the smallest squared error, and that error: up and back, or twice up."""
    n = len(values)
    sums = np.concatenate([[0.0], np.cumsum(values - values.mean())])
    i, j = np.arange(n + 1)[:, None], np.arange(n + 1)
    possible = (i >= SIDE) & (j - i >= SIDE) & (n - j >= SIDE)
    if not possible.any():
        return np.inf, []
    with np.errstate(all='ignore'):  # impossible pairs have no samples between them
        explained = sums[i] ** 2 / i + (sums[j] - sums[i]) ** 2 / (j - i) + sums[j] ** 2 / (n - j)
    first, second = divmod(int(np.argmax(np.where(possible, explained, -np.inf))), n + 1)
    parts = np.split(values, [first, second])
    before, between, after = (float(part.mean()) for part in parts)
    error = sum(float(((part - part.mean()) ** 2).sum()) for part in parts)
    return error, [Change(first, before, between, 'step'), Change(second, between, after, 'step')]
