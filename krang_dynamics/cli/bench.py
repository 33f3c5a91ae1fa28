"""`krang bench`: the benchmarks of the folder bench/."""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import KrangError, UnknownNameError
from ..robot.library import share
from ..text import number, table

WORSE = 1.25  # a ratio above this multiple of the recorded one is a regression
PURPOSE = 'run benchmarks; compare only figures of the same run'
EXAMPLES = ('krang bench model', 'krang bench figures --json figures.json')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('name', nargs='*', default=['figures'], help=f'default: figures, all goals; or {", ".join(names())}')
    add('--json', metavar='FILE', help='write the figures as JSON')
    add('--plot', metavar='FILE', help='write a plot, of benchmarks that have one')
    add('--compare', metavar='FILE', help='compare with recorded JSON; exit status 1 if a ratio is worse')


def run(options: argparse.Namespace) -> int:
    from ..bags.io.files import write

    state = machine()
    print(state)
    results: dict[str, Any] = {'machine': state}
    for name in options.name:
        module = _module(name)
        results[name] = rows = list(_reported(module.run()))
        columns = list(dict.fromkeys(key for row in rows for key in row))
        print('\n'.join(table(columns, [[_cell(row.get(key, '')) for key in columns] for row in rows])))
        if options.plot:
            if not hasattr(module, 'plot'):
                raise KrangError(f'benchmark {name} has no plot; leave --plot out')
            module.plot(rows, options.plot)
    print(f'afterwards: load {load()}')
    write(options.json, json.dumps(results, indent=2))
    return 0 if options.compare is None else _compare(results, read_json(options.compare))


def machine() -> str:
    """What the figures depend on: processor, load and versions."""
    import numpy as np
    import pinocchio as pin

    versions = f'Python {platform.python_version()}, Pinocchio {pin.__version__}, numpy {np.__version__}'
    return f'{_processor()}, {os.cpu_count()} cores, load {load()}, {versions}'


def load() -> str:
    """Mean number of running processes in the last 1, 5 and 15 minutes."""
    return ' '.join(f'{value:.1f}' for value in os.getloadavg())


def _processor() -> str:
    try:
        lines = Path('/proc/cpuinfo').read_text().splitlines()
        return next(line.split(':')[1].strip() for line in lines if line.startswith('model name'))
    except (OSError, StopIteration):
        return platform.machine()


def read_json(path: str) -> dict[str, Any]:
    """Figures that an earlier run wrote."""
    try:
        return dict(json.loads(Path(path).read_text()))
    except (OSError, ValueError) as error:
        raise KrangError(
            f'{path} cannot be read as figures, which krang bench --json writes: {error}'
        ) from error


def _compare(now: dict[str, Any], recorded: dict[str, Any]) -> int:
    """Print the ratios that are worse than the recorded ones; status 1 if there are any.

    Only ratios within one run are compared: times depend on the machine.
    """
    before, worse = _ratios(recorded), []
    for name, value in _ratios(now).items():
        if name in before and value > WORSE * before[name]:
            worse.append([name, number(before[name]), number(value)])
    if worse:
        print('\n'.join(['regressions:', *table(['figure', 'recorded', 'now'], worse)]))
    return 1 if worse else 0


def _ratios(results: dict[str, Any]) -> dict[str, float]:
    rows = [row for name, part in results.items() if name != 'machine' for row in part]
    return {row['figure']: row['value'] for row in rows if ' / ' in row.get('figure', '')}


def names() -> list[str]:
    """Every file of bench/ that has a run()."""
    return sorted(path.stem for path in (share() / 'bench').glob('*.py') if path.stem != 'timing')


def _module(name: str) -> ModuleType:
    """A benchmark; it may import its neighbours in bench/."""
    if name not in names():
        raise UnknownNameError('benchmark', name, names())
    folder = str(share() / 'bench')
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return import_module(name)  # by its own name, so that processes that it starts find it


def _reported(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The rows; each is reported on standard error when it is measured."""
    start = time.perf_counter()
    for row in rows:
        first = next(iter(row.values()))
        print(f'[{time.perf_counter() - start:6.1f} s] {_cell(first)}', file=sys.stderr, flush=True)
        yield row


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else number(float(value))
