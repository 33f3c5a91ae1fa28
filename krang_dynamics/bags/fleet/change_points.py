"""When a figure of a joint changed: a series is divided into levels and ramps by dynamic programming."""

from dataclasses import dataclass

import numpy as np

from ...arrays import Array, Integers

FEWEST = 8  # recordings in which a change is looked for
SIDE = 3  # a level has so many recordings; fewer that differ from the others are odd
RAMP = 6  # fewest recordings of a ramp
SIGNIFICANT = 50.0  # reduction of the squared error by one more level, in variances of the noise
PLACES = 150  # of a change in a long series: evenly spaced, and as many at the largest differences
SMALLEST = 1e-6  # noise [largest value], for series without any; and time of a ramp [time of the series]


@dataclass(frozen=True)
class Change:
    """A figure changes from recording `index` on; if it is odd, it is another one up to `last` only."""

    index: int
    before: float  # level before the change
    after: float  # level after it, at the end of a ramp
    kind: str  # step, ramp or odd
    last: int = 0

    @property
    def relative(self) -> float:
        """Change relative to the value before."""
        return (self.after - self.before) / abs(self.before) if self.before else np.inf


def find_changes(times: Array, values: Array) -> list[Change]:
    """The steps, ramps and odd recordings of a series; times increase [any unit]."""
    if len(values) < FEWEST or not np.isfinite(values).all() or not np.ptp(values):
        return []
    kept, odd = np.arange(len(values)), list[Integers]()
    while True:
        noise, fits = _divide(times[kept], values[kept])
        runs = np.split(kept, np.cumsum([len(fit) for fit in fits])[:-1])
        short = [run for run in runs if len(run) < SIDE]
        if not short:
            break
        odd += short
        kept = np.setdiff1d(kept, np.concatenate(short))
        if 2 * len(kept) < len(values):  # no level that most of them share
            return []
    least = SIGNIFICANT * noise**2
    found = _changes(runs, fits, least) + _odd(kept, np.concatenate(fits), odd, values, least)
    return sorted(found, key=lambda change: change.index)


def _changes(runs: list[Integers], fits: list[Array], least: float) -> list[Change]:
    """Steps and ramps from the end of one part to the end of the next one."""
    found = []
    for run, fit, last in zip(runs, fits, [fits[0][:1], *fits], strict=False):
        before, after = float(last[-1]), float(fit[-1])
        if (after - before) ** 2 > least * (1 / len(fit) + 1 / len(last)):
            begun = np.argmax((fit - before) * (after - before) >= 0)  # a line may first cross the level
            kind = 'step' if fit[0] == after else 'ramp'
            found.append(Change(int(run[begun]), before, after, kind))
    return found


def _odd(kept: Integers, fitted: Array, runs: list[Integers], values: Array, least: float) -> list[Change]:
    """Short runs that are above, or below, the recordings on both sides."""
    found = []
    for run in runs:
        value, place = float(values[run].mean()), int(np.searchsorted(kept, run[0]))
        sides = fitted[max(place - 1, 0) : place + 1]
        nearest = float(sides[np.argmin(np.abs(sides - value))])
        if np.ptp(np.sign(sides - value)) == 0 and len(run) * (value - nearest) ** 2 > 2 * least:
            found.append(Change(int(run[0]), nearest, value, 'odd', int(run[-1])))
    return found


def _divide(times: Array, values: Array) -> tuple[float, list[Array]]:
    """The noise of a series, and the fitted values of the levels and lines it consists of.

    The squared error, and SIGNIFICANT variances of the noise for each parameter, have the smallest sum.
    """
    t, offset = (times - times[0]) / max(np.ptp(times), 1e-300), np.median(values)
    y, edges = values - offset, _edges(values)
    sums = np.cumsum([np.ones_like(t), t, y, t * t, t * y, y * y], axis=1)
    sums = np.insert(sums, 0, 0.0, axis=1)[:, edges]
    n, T, Y, TT, TY, YY = sums[:, None, :] - sums[:, :, None]  # from edge i to edge j
    with np.errstate(all='ignore'):  # nothing is between edge j and edge i
        flat = YY - Y**2 / n
        spread = TT - T**2 / n
        line = flat - (TY - T * Y / n) ** 2 / spread
    line[(n < RAMP) | ~(spread > SMALLEST)] = np.inf
    noise = max(_noise(t, y), SMALLEST * float(np.abs(y).max()))
    while True:
        penalty = SIGNIFICANT * noise**2
        parts = _cheapest(np.minimum(flat + penalty, line + 2 * penalty))
        is_line = [line[part] + penalty < flat[part] for part in parts]
        error = sum(line[part] if ramp else flat[part] for part, ramp in zip(parts, is_line, strict=True))
        remaining = float(np.sqrt(max(error, 0.0) / max(len(y) - len(parts) - sum(is_line), 1)))
        if remaining <= noise:
            break
        noise = remaining  # the neighbours have shown too little of it
    fits = []
    for (i, j), ramp in zip(parts, is_line, strict=True):
        part = slice(edges[i], edges[j])
        fits.append(offset + np.polyval(np.polyfit(t[part], y[part], int(ramp)), t[part]))
    return noise, fits


def _noise(t: Array, y: Array) -> float:
    """Standard deviation of what neighbours do not share: a level, or else a line."""
    weight = np.divide(t[1:-1] - t[:-2], t[2:] - t[:-2], out=np.full(len(t) - 2, 0.5), where=t[2:] > t[:-2])
    bends = y[1:-1] - (1 - weight) * y[:-2] - weight * y[2:]
    of_line = bends / np.sqrt(1 + weight**2 + (1 - weight) ** 2)
    return 1.4826 * min(float(np.median(np.abs(x))) for x in (np.diff(y) / np.sqrt(2), of_line))


def _cheapest(cost: Array) -> list[tuple[int, int]]:
    """The way from the first edge to the last one with the smallest sum of costs, as pairs of edges."""
    best, previous = np.zeros(len(cost)), np.zeros(len(cost), dtype=int)
    for j in range(1, len(cost)):
        totals = best[:j] + cost[:j, j]
        previous[j] = np.argmin(totals)
        best[j] = totals[previous[j]]
    way, j = [], len(cost) - 1
    while j:
        way.append((int(previous[j]), j))
        j = int(previous[j])
    return way[::-1]


def _edges(values: Array) -> Integers:
    """Where a part may begin or end; everywhere, unless the series is long."""
    count = len(values)
    if count <= 2 * PLACES:
        return np.arange(count + 1)
    jumps = 1 + np.argsort(np.abs(np.diff(values)))[-PLACES:]
    return np.union1d(np.linspace(0, count, PLACES).astype(int), jumps)
