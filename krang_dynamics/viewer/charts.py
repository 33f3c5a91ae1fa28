"""Charts of the last ten seconds."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..arrays import Array
from ..bags.observed_robot import Report, Snapshot
from ..colours import MEASURED, SERIES
from ..robot.model import Robot

SPAN = 10.0  # [s]
MOST = 6  # curves of a chart: the joints with the largest values
LEAST = (-0.05, 0.05)  # range of a y axis, whose labels have three decimals
HEIGHT = 150  # of a chart [pixels]
CLEARLY = 1.2  # by which another joint must be loaded more than the one that is shown


class Charts:
    """Torque by term, tracking error, external torque, energy, latency and answered share."""

    def __init__(self, gui: Any, tab: Any, robot: Robot) -> None:
        self._robot = robot
        self._rows: deque[Snapshot] = deque(maxlen=400)
        self._reports: deque[tuple[float, Report]] = deque(maxlen=30)
        self.joint: str | None = None  # whose terms are shown; None: the one that is loaded most
        self._loaded = 0
        self._chosen: dict[Chart, tuple[float, list[int]]] = {}  # joints of a chart, and since when
        slides = [robot.urdf.joints[name].type == 'prismatic' for name in robot.joint_names]
        self._units = ['N' if is_slide else 'N m' for is_slide in slides]
        errors, efforts = ('mrad, mm', 'N m, N') if any(slides) else ('mrad', 'N m')
        self.torque = Chart(gui, tab, 'torque by term', 1)
        self._error = Chart(gui, tab, f'tracking error [{errors}]', 2)
        self._external = Chart(gui, tab, f'external torque [{efforts}]', 3)
        is_passive = len(robot.actuated_joint_names) < robot.nv and not robot.config.rolling
        self._energy = Chart(gui, tab, 'energy [J]', 4) if is_passive else None
        self._latency = Chart(gui, tab, 'latency from state to command [ms]', 5)
        self._share = Chart(gui, tab, 'states answered by a command [%]', 6, (0.0, 100.0))

    def add(self, snapshot: Snapshot, report: Report | None) -> None:
        """Keep a snapshot, and the controller's report, for the next drawing."""
        step = snapshot.time - self._rows[-1].time if self._rows else SPAN
        if step == 0:
            return  # a recording that does not play
        if not 0 < step < SPAN:
            self.clear()  # a recording was moved to another time
        self._rows.append(snapshot)
        if report is not None and (not self._reports or self._reports[-1][1] is not report):
            self._reports.append((snapshot.time, report))

    def clear(self) -> None:
        self._rows.clear()
        self._reports.clear()

    def draw(self, limits: Array) -> None:
        """Send the curves to the browsers; `limits` are the effort limits [N m]."""
        if not self._rows:
            return
        now = self._rows[-1].time
        rows = [row for row in self._rows if now - row.time <= SPAN]
        t = np.array([row.time - now for row in rows])
        self._draw_torque(t, rows, limits)
        errors = [1000 * (_or_nan(row.reference, row.q) - row.q) for row in rows]
        external = [_or_nan(row.external, row.q) for row in rows]
        for chart, values in ((self._error, np.array(errors)), (self._external, np.array(external))):
            chart.draw(t, self._largest(chart, values, now))
        if self._energy is not None:
            self._draw_energy(self._energy, t, rows)
        self._draw_reports(now)

    def _draw_torque(self, t: Array, rows: list[Snapshot], limits: Array) -> None:
        torque = np.array([row.torque for row in rows])
        j = self._shown_joint(torque, limits)
        curves = {'command': torque[:, j]}
        for term in dict.fromkeys(name for row in rows for name in row.terms):
            curves[term] = np.array([row.terms[term][j] if term in row.terms else np.nan for row in rows])
        self.torque.title = f'torque of {self._robot.joint_names[j]} by term [{self._units[j]}]'
        self.torque.draw(t, {name: x for name, x in curves.items() if np.isfinite(x).any()})

    def _shown_joint(self, torque: Array, limits: Array) -> int:
        """The chosen joint, or the one that is loaded most, without frequent changes."""
        if self.joint in self._robot.joint_names:
            return self._robot.joint_names.index(self.joint)
        use = np.nan_to_num(np.abs(torque)).mean(axis=0) / np.where(limits > 0, limits, np.inf)
        if use.max() > CLEARLY * use[self._loaded]:
            self._loaded = int(use.argmax())
        return self._loaded

    def _largest(self, chart: 'Chart', values: Array, now: float) -> dict[str, Array]:
        """The curves of the joints with the largest values; the choice stays for a while."""
        names, known = self._robot.joint_names, np.isfinite(values).any(axis=0)
        if not known.any():
            return {}
        chosen_at, chosen = self._chosen.get(chart, (-np.inf, []))
        if not 0 <= now - chosen_at < SPAN:
            peaks = np.nan_to_num(np.abs(values)).max(axis=0)
            order = np.argsort(np.where(known, -peaks, 1.0), kind='stable')
            chosen = sorted(order[: min(MOST, int(known.sum()))].tolist())
            self._chosen[chart] = now, chosen
        return {names[i]: values[:, i] for i in chosen}

    def _draw_energy(self, chart: 'Chart', t: Array, rows: list[Snapshot]) -> None:
        known = [(at, row) for at, row in zip(t, rows, strict=True) if np.isfinite([row.q, row.v]).all()]
        if not known:
            return
        kinetic = np.array([self._robot.kinetic_energy(row.q, row.v) for _, row in known])
        potential = np.array([self._robot.potential_energy(row.q) for _, row in known])
        curves = {'total': kinetic + potential, 'kinetic': kinetic, 'potential': potential}
        chart.draw(np.array([at for at, _ in known]), curves)

    def _draw_reports(self, now: float) -> None:
        known = [(at - now, latency(report)) for at, report in self._reports if now - at <= SPAN]
        t = np.array([at for at, _ in known])
        values = np.array([x for _, x in known]).reshape(-1, 3)
        self._latency.draw(t, {'median': values[:, 0] / 1000, '99th percentile': values[:, 1] / 1000})
        self._share.draw(t, {'answered': values[:, 2]})


class Chart:
    """One uPlot chart in a tab, from its first curves on.

    It is made anew for other curves: a browser does not redraw the axes of a chart whose curves change.
    """

    def __init__(
        self,
        gui: Any,
        tab: Any,
        title: str,
        order: int,
        at_least: tuple[float, float] = LEAST,
        height: int = HEIGHT,
    ) -> None:
        self._gui, self._tab, self._order, self._height = gui, tab, order, height
        self.title, self._at_least = title, at_least
        self._shown: tuple[str, ...] = ()  # title and names of the curves
        self._plot: Any = None

    def draw(self, t: Array, curves: Mapping[str, Array], colours: Sequence[str] = ()) -> None:
        """Show curves over t [s]; values that are not known are drawn as zero."""
        if not curves or len(t) < 2:
            return
        data = (t, *(np.nan_to_num(x) for x in curves.values()))
        if (self.title, *curves) == self._shown:
            self._plot.data = data
            return
        self._shown = (self.title, *curves)
        if self._plot is not None:
            self._plot.remove()
        colours = colours or ((MEASURED, *SERIES) if len(curves) > 1 else SERIES)
        series = [
            {'label': name, 'stroke': colour, 'width': 1.5, 'points': {'show': False}}
            for name, colour in zip(curves, colours, strict=False)
        ]
        low, high = ({'pad': 0.1, 'soft': limit, 'mode': 1} for limit in self._at_least)
        with self._tab:
            self._plot = self._gui.add_uplot(
                data, ({'label': 's'}, *series), title=self.title, height=self._height, order=self._order,
                scales={'x': {'time': False}, 'y': {'range': {'min': low, 'max': high}}},
                cursor={'drag': {'x': True, 'y': False}},
                axes=({'size': 36}, {'size': 60}), padding=(8, 12, 0, 0), legend={'live': False},
            )  # fmt: skip


def _or_nan(values: Array | None, like: Array) -> Array:
    return np.full_like(like, np.nan) if values is None else values


def latency(report: Report) -> tuple[float, float, float]:
    """Upper bounds of half and of 99 % of the latencies [us], and the answered share [%]."""
    histogram = [
        entry.removeprefix('<').split(':')
        for entry in report.values.get('latency histogram [us]', '').split()
    ]
    bounds, counts = np.array([(float(b), float(n)) for b, n in histogram]).reshape(-1, 2).T
    share = np.cumsum(counts) / (counts.sum() or 1.0)
    half, most = (float(bounds[np.searchsorted(share, x)]) if len(bounds) else 0.0 for x in (0.5, 0.99))
    states, commands = (float(report.values.get(f'{name} rate [Hz]', 0)) for name in ('state', 'command'))
    return half, most, 100 * min(commands / states, 1.0) if states else 0.0
