"""The table of a fleet: bags are found, read once, and kept as Parquet."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from fnmatch import fnmatch
from functools import lru_cache
from glob import glob
from hashlib import sha256
from pathlib import Path

import numpy as np

from ...errors import ConfigError, KrangError
from ...robot.library import load_robot, robots
from ...robot.schema import load_yaml
from ..parallel import Progress, on_cluster
from .bag_figures import BagTask, JointRow, read_bag, signature
from .change_points import Change, find_changes

METRICS = {'load': 'kg', 'friction': 'N m', 'offset': 'N m', 'rmse': 'N m'}
SMALLEST = {'load': 0.1, 'friction': 0.0, 'offset': 0.0, 'rmse': 0.0}  # change that is reported [unit]
SHARE = 0.1  # smallest relative change that is reported
SAME_RATE = 1.2  # recordings whose rates differ by more are not compared by their error: noise depends on it
DAY = 86_400 * 10**9  # [ns]


@dataclass(frozen=True)
class Finding:
    """A figure of a joint, or of a hand, that has changed."""

    machine: str
    joint: str
    metric: str
    since: int  # [ns]
    change: Change

    def __str__(self) -> str:
        day = np.datetime64(self.since, 'ns').astype('datetime64[D]')
        unit, delta = METRICS[self.metric], self.change.after - self.change.before
        size = f'{100 * self.change.relative:+.0f} %' if self.is_relative else f'{delta:+.3g} {unit}'
        what = 'hand' if self.metric == 'load' else 'joint'
        values = f'{self.change.before:.3g} to {self.change.after:.3g} {unit}'
        # A load below that of the model is no mass that somebody added.
        doubt = '; a tool was removed, or a position has an offset' if what == 'hand' and delta < 0 else ''
        return f'{what} {self.joint} of {self.machine}: {self.metric} {size} since {day} ({values}){doubt}'

    @property
    def is_relative(self) -> bool:
        """Whether it is given in per cent: of a value near 0 that would say nothing."""
        is_small = abs(self.change.before) < SHARE * abs(self.change.after)
        return self.metric in ('friction', 'rmse') and not is_small


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

    def series(self) -> dict[tuple[str, str], list[JointRow]]:
        """Rows of every machine and joint, in the order of time."""
        found: dict[tuple[str, str], list[JointRow]] = {}
        for row in self.rows:
            if not row.error:
                found.setdefault((row.machine, row.joint), []).append(row)
        return found

    def findings(self) -> list[Finding]:
        """Changes of load, friction and offset; those of the error only where nothing else explains it."""
        found: list[Finding] = []
        for metric in METRICS:
            for (machine, joint), rows in self.series().items():
                explained = any(
                    f.machine == machine and (f.metric == 'load' or f.joint == joint) for f in found
                )
                if explained and metric in ('rmse', 'offset'):
                    continue
                for some in _by_rate(rows) if metric == 'rmse' else [rows]:
                    found += _findings(machine, joint, metric, some)
        return found

    def weeks(self) -> list[list[str]]:
        """Machine, joint, week, number of bags, and means of the figures."""
        lines = []
        for (machine, joint), rows in self.series().items():
            by_week: dict[str, list[JointRow]] = {}
            for row in rows:
                by_week.setdefault(week_of(row.start), []).append(row)
            for week, some in by_week.items():
                means = [np.mean([getattr(row, metric) for row in some]) for metric in METRICS]
                cells = ['-' if np.isnan(x) else f'{x:.3g}' for x in means]
                lines.append([machine, joint, week, str(len(some)), *cells])
        return lines


def _by_rate(rows: Iterable[JointRow]) -> list[list[JointRow]]:
    """Rows with about the same rate of the states, in the order of time."""
    groups: list[list[JointRow]] = []
    for row in rows:
        for group in groups:
            if 1 / SAME_RATE < row.rate / group[0].rate < SAME_RATE:
                group.append(row)
                break
        else:
            groups.append([row])
    return groups


def _findings(machine: str, joint: str, metric: str, rows: list[JointRow]) -> list[Finding]:
    rows = [row for row in rows if np.isfinite(getattr(row, metric))]
    times = np.array([row.start for row in rows], dtype=float) / DAY
    found = []
    for change in find_changes(times - times[:1], np.array([getattr(row, metric) for row in rows])):
        delta = abs(change.after - change.before)
        scale = float(np.mean([row.rmse for row in rows])) if metric == 'offset' else abs(change.before)
        if delta >= SMALLEST[metric] and (metric == 'load' or delta >= SHARE * scale):
            found.append(Finding(machine, joint, metric, rows[change.index].start, change))
    return found


def week_of(time: int) -> str:
    """The ISO week of a time [ns]."""
    year, week, _ = np.datetime64(time, 'ns').astype('datetime64[s]').item().isocalendar()
    return f'{year}-W{week:02d}'


def find_bags(patterns: Iterable[str]) -> list[str]:
    """All bags in folders or at globs: folders with metadata.yaml, and .mcap or .db3 files elsewhere."""
    found: dict[str, None] = {}
    for pattern in patterns:
        places = [Path(place) for place in sorted(glob(pattern, recursive=True))]
        if not places:
            raise KrangError(f'{pattern}: there is no such file or folder')
        for place in places:
            found |= dict.fromkeys(map(str, _bags_below(place)))
    if not found:
        raise KrangError(f'{", ".join(patterns)}: no bag was found (metadata.yaml, .mcap or .db3)')
    return list(found)


def _bags_below(place: Path) -> list[Path]:
    if place.is_file():
        return [place] if place.suffix in ('.mcap', '.db3') else []
    if (place / 'metadata.yaml').exists():
        return [place]
    return [bag for entry in sorted(place.iterdir()) for bag in _bags_below(entry)]


def machine_of(path: str, names: Iterable[str]) -> str:
    """The folder that names the machine: the nearest one that matches, else the folder of the bag."""
    folders = [parent.name for parent in Path(path).resolve().parents]
    return next((folder for folder in folders if any(fnmatch(folder, name) for name in names)), folders[0])


def load_models(path: str | None) -> dict[str, str]:
    """Robots by pattern of machine names, from a YAML file; without a file the shipped names: 'krang*'."""
    if path is None:
        return {f'{name}*': name for name in sorted(robots(), key=len, reverse=True)}
    data = load_yaml(path)
    if not isinstance(data, dict) or not all(isinstance(v, str) for v in data.values()):
        raise ConfigError(f'{path}: it must have lines `machine: robot`, for example krang-*: krang')
    return {str(key): value for key, value in data.items()}


def update(
    bags: Sequence[str],
    models: Mapping[str, str],
    store: str,
    cutoff: float,
    workers: int,
    scheduler: str | None = None,
) -> Fleet:
    """The table after reading the bags that are new, or have changed, or have another model.

    The store is written at the end.
    """
    known = load_store(store)
    present = {path: _signature(path) for path in {row.path for row in known}}
    tasks = [_task(str(Path(bag).resolve()), models, cutoff) for bag in bags]
    wanted = {task.path: task.model for task in tasks}
    rows = [
        row
        for row in known
        if (row.size, row.changed) == present[row.path] and row.model == wanted.get(row.path, row.model)
    ]
    seen = {row.path for row in rows}
    new = [task for task in tasks if task.path not in seen]
    progress = Progress('reading bags', len(new))
    try:
        if new:
            for result in on_cluster(read_bag, new, workers, scheduler):
                rows += result
                progress.step()
    finally:
        save_store(store, rows)
    progress.end()
    return Fleet([row for row in rows if row.path in wanted])


def _signature(path: str) -> tuple[int, int]:
    try:
        return signature(path)
    except OSError:
        return -1, -1


def _task(path: str, models: Mapping[str, str], cutoff: float) -> BagTask:
    machine = machine_of(path, models)
    robot = next((robot for pattern, robot in models.items() if fnmatch(machine, pattern)), '') or machine
    return BagTask(path, machine, robot, cutoff, f'{cutoff:g} Hz {_digest(robot)}')


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
    import pyarrow.parquet

    if not Path(path).exists():
        return []
    try:
        columns = pyarrow.parquet.read_table(path).to_pylist()
        return [JointRow(**row) for row in columns]
    except (OSError, ValueError, TypeError) as error:
        raise KrangError(f'{path}: is no table of krang fleet: {error}; choose another --store') from None


def save_store(path: str, rows: Sequence[JointRow]) -> None:
    """Write all rows; the old file is replaced only when the new one is complete."""
    import pyarrow
    import pyarrow.parquet

    kinds: dict[type, Callable[[], object]] = {
        str: pyarrow.string,
        int: pyarrow.int64,
        float: pyarrow.float64,
    }
    schema = pyarrow.schema([(f.name, kinds[f.type]()) for f in fields(JointRow) if isinstance(f.type, type)])
    table = pyarrow.Table.from_pylist([asdict(row) for row in rows], schema=schema)
    partial = Path(f'{path}.partial')
    try:
        pyarrow.parquet.write_table(table, partial)
        partial.replace(path)
    except OSError as error:
        raise KrangError(f'{path}: cannot be written: {error}') from None
