"""What a campaign found: outcomes by cause, what the set-up survives, and the worst runs."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from math import isfinite, nan
from typing import Any

import numpy as np

from ...arrays import Array
from ...bags.io.html_page import PageLink, html_table, image, new_figure, page, paragraph
from ...text import number, table
from .campaign_loop import RunResult
from .campaign_monitor import BEYOND, HELD, OUTCOMES, STOPPED, UNSAFE
from .campaign_plan import DISTURBANCES, Disturbance, Plan

BINS = 5  # sizes of a disturbance that are distinguished
WORST = 10  # runs that the report shows
# The robustness criteria of RealAIGym, by the disturbances that stand for them.
CRITERIA = {
    'model inaccuracy': ('mass', 'inertia', 'friction', 'rotor', 'payload'),
    'measurement noise': ('position_noise', 'velocity_noise', 'quantisation'),
    'torque noise': ('torque_noise',),
    'torque response': ('torque_lag',),
    'time delay': ('delay', 'jitter'),
    'perturbation': ('push',),
}


@dataclass(frozen=True)
class Campaign:
    """The results of all runs of a plan."""

    robot: str
    command: str  # that repeats one run, without its seed
    plan: Plan
    nominal: RunResult  # without a disturbance
    results: list[RunResult]

    def count(self, outcome: str) -> int:
        return sum(result.outcome == outcome for result in self.results)

    @property
    def held(self) -> float:
        """Share of the runs that were held, of those that a controller can master."""
        possible = len(self.results) - self.count(BEYOND)
        return self.count(HELD) / possible if possible else nan

    def alone(self, name: str) -> list[RunResult]:
        """Runs with this disturbance and no other, the smallest first."""
        row = next(row for row in DISTURBANCES if row.name == name)
        runs = [result for result in self.results if set(result.values) == {name}]
        return sorted(runs, key=lambda result: size_of(row, result))

    def causes(self) -> list[Disturbance]:
        return [row for row in DISTURBANCES if row.name in self.plan.vary]

    def survived(self, row: Disturbance) -> tuple[float, float]:
        """Size up to which every run was held, and the first that was not; NaN if there is none."""
        largest = nan
        for result in self.alone(row.name):
            if result.outcome != HELD:
                return largest, size_of(row, result)
            largest = size_of(row, result)
        return largest, nan

    def scores(self) -> dict[str, float]:
        """Share of the runs that were held, by criterion [%]."""
        scores = {}
        for criterion, names in CRITERIA.items():
            runs = [r for name in names if name in self.plan.vary for r in self.alone(name)]
            if runs:
                scores[criterion] = 100 * sum(r.outcome == HELD for r in runs) / len(runs)
        return scores

    def worst(self) -> list[RunResult]:
        """Unsafe runs, then the fastest stops, then those beyond control."""
        rank = {UNSAFE: 0, STOPPED: 1, BEYOND: 2}
        found = [result for result in self.results if result.outcome in rank]
        return sorted(found, key=lambda r: (rank[r.outcome], -r.speed))[:WORST]

    # -- reports ---------------------------------------------------------------------------------------

    def as_json(self) -> dict[str, Any]:
        def plain(value: Any) -> Any:
            return None if isinstance(value, float) and not isfinite(value) else value

        return {
            'robot': self.robot,
            'rate': self.plan.rate,
            'duration': self.plan.duration,
            'vary': {name: list(limits) for name, limits in self.plan.vary.items()},
            'nominal': f'{self.nominal.outcome} {self.nominal.reason}'.strip(),
            'outcomes': {outcome: self.count(outcome) for outcome in OUTCOMES},
            'held': plain(self.held),
            'scores': self.scores(),
            'survived': {
                row.name: {'held_up_to': plain(a), 'not_held_at': plain(b), 'unit': row.unit}
                for row in self.causes()
                for a, b in [self.survived(row)]
            },
            'runs': [{key: plain(value) for key, value in asdict(r).items()} for r in self.results],
        }

    def text(self) -> str:
        """The report for a terminal."""
        lines = [
            f'{self.robot}: {len(self.results)} runs of {self.plan.duration:g} s at {self.plan.rate:g} Hz'
        ]
        lines += [f'  {outcome}: {self.count(outcome)}' for outcome in OUTCOMES]
        if warning := self.warning():
            lines.append(f'! {warning}')
        lines += ['', *table(self._cause_header(), self._cause_rows())]
        lines += ['', 'Beyond control: ' + (_counts(r.reason for r in self._with(BEYOND)) or 'none')]
        lines += ['Stopped safely: ' + (_counts(r.reason for r in self._with(STOPPED)) or 'none')]
        for result in self._with(UNSAFE)[:WORST]:
            lines.append(f'! {result.reason}, at {result.time:.3f} s: {self.command} --again {result.seed}')
        return '\n'.join(lines)

    def warning(self) -> str:
        """What to do before the disturbances mean anything; empty if the set-up works without them."""
        if self.nominal.outcome == HELD:
            return ''
        return (
            f'without any disturbance the robot is {self.nominal.outcome} ({self.nominal.reason}): mend the '
            'set-up first, for example gains.bandwidth or friction.scale in the settings of a plan'
        )

    def _with(self, outcome: str) -> list[RunResult]:
        return [result for result in self.results if result.outcome == outcome]

    def _cause_header(self) -> list[str]:
        return ['disturbance', 'unit', 'runs', *OUTCOMES, 'held up to', 'not held at']

    def _cause_rows(self) -> list[list[str]]:
        """One row per disturbance, of the runs that have no other."""
        rows = []
        for row in self.causes():
            runs = self.alone(row.name)
            counts = Counter(result.outcome for result in runs)
            survived = ['-' if np.isnan(x) else number(x, 3) for x in self.survived(row)]
            rows.append(
                [row.name, row.unit or '-', str(len(runs)), *(str(counts[o]) for o in OUTCOMES), *survived]
            )
        return rows

    def html(self, figures: Mapping[int, Any]) -> str:
        """The report as one HTML file; `figures` show the worst runs, by seed."""
        plan, outcomes = self.plan, ', '.join(f'{self.count(outcome)} {outcome}' for outcome in OUTCOMES)
        worst: list[list[str | PageLink]] = [
            [
                PageLink(str(r.seed), f'run-{r.seed}'),
                r.outcome,
                r.reason,
                number(r.speed, 3),
                number(r.force, 3),
                ', '.join(f'{k} {number(v, 3)}' for k, v in r.values.items()),
                f'{self.command} --again {r.seed}',
            ]
            for r in self.worst()
        ]
        return page(
            f'Campaign of {self.robot}',
            [
                paragraph(
                    f'{len(self.results)} runs of {plan.duration:g} s at {plan.rate:g} Hz: {outcomes}. '
                    f'Terms: {", ".join(plan.settings.terms)}.'
                ),
                *([paragraph(warning)] if (warning := self.warning()) else []),
                '<h2>Worst runs</h2>',
                html_table(
                    ['seed', 'outcome', 'reason', 'speed [m/s]', 'force [N]', 'disturbances', 'again'], worst
                ),
                '<h2>By cause: runs with one disturbance</h2>',
                html_table(self._cause_header(), self._cause_rows()),
                image(self._heat_maps()),
                image(self._curves()),
                '<h2>Robustness: held runs by criterion [%]</h2>',
                html_table(['criterion', 'held [%]'], [[k, f'{v:.1f}'] for k, v in self.scores().items()]),
                '<h2>What the worst runs looked like</h2>',
                *(image(figure, f'run-{seed}') for seed, figure in figures.items()),
            ],
        )

    def _shares(self, row: Disturbance, outcomes: tuple[str, ...]) -> Array:
        """Share of the runs with one of these outcomes, by size; NaN where there are no runs."""
        runs = self.alone(row.name)
        sizes = np.array([size_of(row, r) for r in runs])
        good = np.array([r.outcome in outcomes for r in runs], dtype=float)
        low, high = self.plan.vary[row.name]
        largest = max(abs(low - row.nominal), abs(high - row.nominal)) or 1.0
        place = np.minimum((BINS * sizes / largest).astype(int), BINS - 1) if len(runs) else np.zeros(0, int)
        counts = np.bincount(place, minlength=BINS)
        with np.errstate(invalid='ignore'):
            return np.asarray(np.bincount(place, good, minlength=BINS) / np.where(counts, counts, nan))

    def _heat_maps(self) -> Any:
        causes = self.causes()
        figure = new_figure(12, 0.28 * len(causes) + 1.2)
        kinds = (('held', (HELD,)), ('held or stopped safely', (HELD, STOPPED)))
        for axes, (title, outcomes) in zip(figure.subplots(1, 2, sharey=True), kinds, strict=True):
            shares = np.array([self._shares(row, outcomes) for row in causes])
            cells = axes.imshow(100 * shares, aspect='auto', cmap='RdYlGn', vmin=0, vmax=100)
            axes.set(title=f'{title}; grey: no runs', xlabel='size [% of its range]', facecolor='#ddd')
            axes.set_xticks(np.arange(BINS + 1) - 0.5, [f'{100 * k // BINS}' for k in range(BINS + 1)])
            axes.set_yticks(range(len(causes)), [row.name for row in causes])
        figure.colorbar(cells, ax=figure.axes, label='runs [%]')
        return figure

    def _curves(self) -> Any:
        vary = self.plan.vary
        causes = [
            row for row in self.causes() if vary[row.name][0] < vary[row.name][1] and self.alone(row.name)
        ]
        rows = max(1, -(-len(causes) // 4))
        figure = new_figure(12, 1.8 * rows)
        grid = figure.subplots(rows, 4, squeeze=False).ravel()
        for axes in grid[len(causes) :]:
            axes.set_axis_off()
        for axes, row in zip(grid, causes, strict=False):
            low, high = vary[row.name]
            largest = max(abs(low - row.nominal), abs(high - row.nominal))
            centres = largest * (np.arange(BINS) + 0.5) / BINS
            axes.plot(centres, 100 * self._shares(row, (HELD,)), 'o-')
            axes.set(title=f'{row.name} [{row.unit or "1"}]', ylabel='held [%]')
            axes.set(xlim=(0, largest), ylim=(-5, 105))
        return figure


def size_of(row: Disturbance, result: RunResult) -> float:
    """How far a disturbance is from its nominal value."""
    return abs(result.values[row.name] - row.nominal)


def _counts(reasons: Iterable[str]) -> str:
    return ', '.join(f'{reason} {count}' for reason, count in Counter(reasons).most_common())
