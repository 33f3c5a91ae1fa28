"""The table of a fleet: bags are found, read once, and kept as Parquet."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatch
from functools import cached_property, lru_cache
from glob import glob
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from ...errors import ConfigError, KrangError
from ...robot.library import load_robot, robots
from ...robot.schema import load_yaml
from ..parallel import Progress, on_cluster
from .bag_figures import FIGURES, MOVING, SPEEDS, BagTask, JointRow, read_bag, signature
from .change_points import SIDE, Change, find_changes

METRICS = {'load': 'kg', 'friction': 'N m', 'offset': 'N m', 'rmse': 'N m', 'remaining_rmse': 'N m'}
JUDGED = ('load', 'friction', 'offset', 'remaining_rmse')  # causes before what they explain
SMALLEST = 0.1  # change of a load that is reported [kg]
SHARE, NOTICED = 0.1, 0.01  # smallest change of the others [value before], [torque of the joint]
# Errors are compared only between recordings whose rates and speeds differ by less: noise depends on them.
SAME_RATE, SAME_SPEED = 1.2, 1.5
# Largest change of an offset or an error that another change explains, a load at 1 m [N m / unit].
EXPLAINED = {'load': 9.81, 'friction': 1.0, 'offset': 1.0}
DAY = 86_400 * 10**9  # [ns]
SAVED = 30.0  # between two times that the store is written while bags are read [s]


@dataclass(frozen=True)
class Finding:
    """A figure of a joint, or of a hand, that has changed."""

    machine: str
    joint: str
    metric: str
    since: int  # [ns]
    change: Change
    until: int = 0  # of odd recordings: the last one [ns]

    def __str__(self) -> str:
        first, last = (np.datetime64(at, 'ns').astype('datetime64[D]') for at in (self.since, self.until))
        when = f'since {first}'
        if self.change.kind == 'odd':
            when = f'on {first} only' if first == last else f'from {first} to {last} only'
        unit, delta = METRICS[self.metric], self.delta
        size = f'{100 * self.change.relative:+.0f} %' if self.is_relative else f'{delta:+.2g} {unit}'
        what = 'hand' if self.metric == 'load' else 'joint'
        values = f'{self.change.before:.3g} to {self.change.after:.3g} {unit}'
        # A load below that of the model is no mass that somebody added.
        doubt = '; a tool was removed, or a position has an offset' if what == 'hand' and delta < 0 else ''
        metric = self.metric.replace('_', ' ')
        return f'{what} {self.joint} of {self.machine}: {metric} {size} {when} ({values}){doubt}'

    @property
    def delta(self) -> float:
        """The change in the unit of the figure."""
        return self.change.after - self.change.before

    @property
    def is_relative(self) -> bool:
        """Whether it is given in per cent: of a value near 0 that would say nothing."""
        is_small = abs(self.change.before) < SHARE * abs(self.change.after)
        return self.metric in ('friction', 'remaining_rmse') and not is_small


class Fleet:
    """All rows, of bags that were read now or before."""

    def __init__(self, rows: Sequence[JointRow]) -> None:
        self.rows = sorted(rows, key=lambda row: (row.machine, row.joint, row.start, row.path))

    @property
    def broken(self) -> list[JointRow]:
        """Bags that cannot be used, with the reason."""
        return [row for row in self.rows if row.error]

    @property
    def damaged(self) -> dict[str, str]:
        """Bags of which a part is missing, with the reason; the rest of them is used."""
        return {row.path: row.damage for row in self.rows if row.damage}

    @cached_property
    def series(self) -> dict[tuple[str, str], list[JointRow]]:
        """Rows of every machine and joint, in the order of time."""
        found: dict[tuple[str, str], list[JointRow]] = {}
        for row in self.rows:
            if not row.error:
                found.setdefault((row.machine, row.joint), []).append(row)
        return {key: _at_one_speed(rows) for key, rows in found.items()}

    def findings(self) -> list[Finding]:
        """Changes of all figures, except those that another change explains."""
        return self._found

    @cached_property
    def _found(self) -> list[Finding]:
        found: dict[str, list[Finding]] = {}  # by machine
        for metric in JUDGED:
            for (machine, joint), rows in self.series.items():
                causes = found.setdefault(machine, [])
                groups = _alike(rows) if metric == 'remaining_rmse' else [rows]
                new = [finding for some in groups for finding in _findings(machine, joint, metric, some)]
                causes += [f for f in new if not any(_explains(cause, f, rows) for cause in causes)]
        return [finding for some in found.values() for finding in some]

    def weeks(self) -> list[list[str]]:
        """Machine, joint, week, number of bags, and means of the figures."""
        lines = []
        for (machine, joint), rows in self.series.items():
            by_week: dict[str, list[JointRow]] = {}
            for row in rows:
                by_week.setdefault(week_of(row.start), []).append(row)
            for week, some in by_week.items():
                lines.append([machine, joint, week, str(len(some)), *(_mean(some, m) for m in METRICS)])
        return lines


def _at_one_speed(rows: list[JointRow]) -> list[JointRow]:
    """Rows of a joint with the friction at the speed at which most recordings, and fast ones, have it."""
    known = np.isfinite([row.frictions for row in rows]).sum(axis=0)
    best = len(known) - 1 - int(np.argmax(known[::-1]))
    return [replace(row, friction=row.frictions[best]) for row in rows]


def _mean(rows: list[JointRow], metric: str) -> str:
    """The mean of a figure over the rows that have it."""
    values = [value for row in rows if np.isfinite(value := getattr(row, metric))]
    return f'{np.mean(values):.3g}' if values else '-'


def _alike(rows: Iterable[JointRow]) -> list[list[JointRow]]:
    """Rows with about the same rate of the states and the same speed, in the order of time."""
    groups: list[list[JointRow]] = []
    for row in rows:
        for group in groups:
            rate = row.rate / group[0].rate
            speed = max(row.speed, MOVING) / max(group[0].speed, MOVING)
            if 1 / SAME_RATE < rate < SAME_RATE and 1 / SAME_SPEED < speed < SAME_SPEED:
                group.append(row)
                break
        else:
            groups.append([row])
    return groups


def _findings(machine: str, joint: str, metric: str, rows: list[JointRow]) -> list[Finding]:
    rows = [row for row in rows if np.isfinite(getattr(row, metric))]
    days = np.array([row.start / DAY for row in rows])
    values = np.array([getattr(row, metric) for row in rows])
    found = []
    for change in find_changes(days, values):
        least = SMALLEST if metric == 'load' else NOTICED * float(np.median([row.torque for row in rows]))
        if metric in ('friction', 'remaining_rmse'):
            least = max(least, SHARE * abs(change.before))
        if metric == 'friction':
            least = max(least, float(np.median([row.remaining_rmse for row in rows])))
        if abs(change.after - change.before) >= least:
            since, until = rows[change.index].start, rows[change.last].start
            found.append(Finding(machine, joint, metric, since, change, until))
    return found


def _explains(cause: Finding, effect: Finding, rows: list[JointRow]) -> bool:
    """Whether a change is the consequence of another one at the same time; `rows` are of its joint."""
    if cause.metric == 'load':
        is_related = cause.joint in rows[0].hands.split(',')
    else:
        is_related = cause.joint == effect.joint and effect.metric == 'remaining_rmse'
    if effect.metric not in ('offset', 'remaining_rmse') or not is_related:
        return False
    first, last = sorted((cause.since, effect.since))
    between = sum(first <= row.start < last for row in rows)
    same_time = between < SIDE or (cause.change.kind == 'ramp' and first == cause.since)
    same_kind = (cause.change.kind == 'odd') == (effect.change.kind == 'odd')
    return same_time and same_kind and abs(effect.delta) <= EXPLAINED[cause.metric] * abs(cause.delta)


def week_of(time: int) -> str:
    """The ISO week of a time [ns]."""
    year, week, _ = np.datetime64(time, 'ns').astype('datetime64[s]').item().isocalendar()
    return f'{year}-W{week:02d}'


def find_bags(patterns: Iterable[str]) -> list[str]:
    """All bags in folders or at globs: folders with metadata.yaml, and .mcap or .db3 files elsewhere.

    Each is named once, also if links lead to it.
    """
    found: dict[Path, str] = {}
    for pattern in patterns:
        places = [pattern] if os.path.lexists(pattern) else sorted(glob(pattern, recursive=True))
        if not places:
            raise KrangError(f'{pattern}: there is no such file or folder')
        for place in places:
            for bag in _bags_below(Path(place), set()):
                found.setdefault(bag.resolve(), str(bag))
    if not found:
        raise KrangError(f'{", ".join(patterns)}: no bag was found (metadata.yaml, .mcap or .db3)')
    return list(found.values())


def _bags_below(place: Path, seen: set[Path]) -> Iterator[Path]:
    """The bags in a place, without the folders seen before, to which links may lead back."""
    if not place.is_dir():
        if place.suffix in ('.mcap', '.db3') and (place.is_file() or not place.exists()):
            yield place
    elif (place / 'metadata.yaml').exists():
        yield place
    elif (real := place.resolve()) not in seen:
        seen.add(real)
        try:
            entries = sorted(place.iterdir())
        except OSError:
            yield place  # it will be listed with the reason
            return
        for entry in entries:
            yield from _bags_below(entry, seen)


def machine_of(path: str, names: Iterable[str]) -> str:
    """The folder that names the machine: the nearest one that matches, else the folder of the bag."""
    folders = [parent.name for parent in Path(os.path.abspath(path)).parents]
    return next((folder for folder in folders if any(_matches(folder, name) for name in names)), folders[0])


def _matches(machine: str, pattern: str) -> bool:
    return machine == pattern or fnmatch(machine, pattern)


def load_models(path: str | None) -> dict[str, str]:
    """Robots by pattern of machine names, from a YAML file; without a file the shipped names: 'krang-*'.

    Robot files are sought beside the YAML file, then in the working directory.
    """
    if path is None:
        names = sorted(robots(), key=len, reverse=True)
        return {name + end: name for name in names for end in ('', '-*', '[0-9]*', '_[0-9]*')}
    data = load_yaml(path)
    if not isinstance(data, dict) or not all(isinstance(v, str) for v in data.values()):
        raise ConfigError(f'{path}: it must have lines `machine: robot`, for example krang-*: krang')
    folder = Path(path).parent
    found = {
        str(key): str(folder / robot) if (folder / robot).is_file() else robot for key, robot in data.items()
    }
    for robot in found.values():
        load_robot(robot)
    return found


def update(
    bags: Sequence[str],
    models: Mapping[str, str],
    store: str,
    cutoff: float,
    workers: int,
    scheduler: str | None = None,
) -> Fleet:
    """The table after reading the bags that are new, or have changed, or have another model.

    The store is written at the beginning, at the end, and now and then.
    """
    tasks = {printable(task.path): task for task in (_task(bag, models, cutoff) for bag in bags)}
    known = load_store(store)
    present = {path: _signature(path) for path in {row.path for row in known}}
    rows = []
    for row in known:
        task = tasks.get(row.path)
        if (row.size, row.changed) == present[row.path] and (task is None or row.model == task.model):
            rows.append(replace(row, machine=task.machine) if task else row)
    seen = {row.path for row in rows}
    new = [task for task in tasks.values() if task.path not in seen]
    save_store(store, rows)
    saved_at, progress = monotonic(), Progress('reading bags', len(new))
    try:
        for result in on_cluster(read_bag, new, workers, scheduler) if new else ():
            rows += [replace(row, path=printable(row.path)) for row in result]
            progress.step()
            if monotonic() > saved_at + SAVED:
                save_store(store, rows)
                saved_at = monotonic()
    finally:
        save_store(store, rows)
    progress.end()
    return Fleet([row for row in rows if row.path in tasks])


def _signature(path: str) -> tuple[int, int]:
    try:
        return signature(path)
    except OSError:
        return -1, -1


def _task(bag: str, models: Mapping[str, str], cutoff: float) -> BagTask:
    machine = machine_of(bag, models)
    robot = next((robot for pattern, robot in models.items() if _matches(machine, pattern)), '') or machine
    key = f'{cutoff:g} Hz {_digest(robot)} {FIGURES}'
    return BagTask(str(Path(bag).resolve()), machine, robot, cutoff, key)


@lru_cache
def _digest(name: str) -> str:
    """Of URDF and robot file, so that figures of another model are computed again; empty without one."""
    try:
        robot = load_robot(name)
    except KrangError:
        return ''
    return sha256(f'{robot.urdf.text!r}{robot.config}'.encode()).hexdigest()[:16]


def load_store(path: str) -> list[JointRow]:
    """The rows of a Parquet file; none if it does not exist."""
    from pyarrow.lib import ArrowException
    from pyarrow.parquet import read_table

    if not Path(path).exists():
        return []
    try:
        table = read_table(path, page_checksum_verification=True)
        schema = _schema()
        columns = table.cast(schema.empty_table().select(table.column_names).schema)
        return [JointRow(**row) for row in columns.to_pylist()]
    except (OSError, ValueError, TypeError, KeyError, ArrowException) as error:
        reason = ' '.join(str(error).split())
        remedy = 'delete it, or choose another --store'
        raise KrangError(f'{path}: is no table of krang fleet: {reason}; {remedy}') from None


def save_store(path: str, rows: Iterable[JointRow]) -> None:
    """Write all rows; the old file is replaced only when the new one is complete."""
    from pyarrow import table
    from pyarrow.parquet import write_table

    rows = sorted(rows, key=lambda row: (row.path, row.joint))
    columns = {field.name: [getattr(row, field.name) for row in rows] for field in fields(JointRow)}
    real = Path(path).resolve()  # a link stays one
    partial = real.with_name(f'{real.name}.{os.getpid()}.partial')  # another process may write, too
    try:
        write_table(table(columns, schema=_schema()), partial, write_page_checksum=True)
        partial.replace(real)
    except OSError as error:
        raise KrangError(f'{path}: cannot be written: {error}') from None


def printable(path: str) -> str:
    """A path with escapes for what is not UTF-8."""
    return path.encode('utf-8', 'backslashreplace').decode()


def _schema() -> Any:
    """The columns of the store; none of their values is missing."""
    import pyarrow

    number = pyarrow.field('number', pyarrow.float64(), nullable=False)
    kinds: dict[Any, Any] = {str: pyarrow.string(), int: pyarrow.int64(), float: number.type}
    kinds[Sequence[float]] = pyarrow.list_(number, len(SPEEDS))
    return pyarrow.schema([pyarrow.field(f.name, kinds[f.type], nullable=False) for f in fields(JointRow)])
