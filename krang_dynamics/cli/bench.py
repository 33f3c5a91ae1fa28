"""`krang bench`: one benchmark of the folder bench/."""

import argparse
import importlib.util
import json
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..errors import UnknownNameError
from ..robot.library import share
from ..text import number, table
from .arguments import command_parser


def add_parser(commands: Any) -> argparse.ArgumentParser:
    parser = command_parser(
        commands,
        'bench',
        'run a benchmark; compare only figures of the same run',
        'krang bench tick --json tick.json',
    )
    parser.add_argument('name', help=', '.join(names()))
    parser.add_argument('--json', metavar='FILE', help='write the figures as JSON')
    return parser


def run(options: argparse.Namespace) -> int:
    from ..bags.io.files import write

    rows = _rows(options.name)
    print('\n'.join(table(list(rows[0]), [[_cell(value) for value in row.values()] for row in rows])))
    write(options.json, json.dumps({options.name: rows}, indent=2))
    return 0


def names() -> list[str]:
    """Every file of bench/ that has a run()."""
    return sorted(path.stem for path in (share() / 'bench').glob('*.py') if path.stem != 'timing')


def _rows(name: str) -> list[dict[str, Any]]:
    """The rows that a benchmark yields; it may import its neighbours in bench/."""
    if name not in names():
        raise UnknownNameError('benchmark', name, names())
    folder = str(share() / 'bench')
    sys.path.insert(0, folder)
    try:
        spec = importlib.util.spec_from_file_location(f'bench_{name}', Path(folder) / f'{name}.py')
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return list(_reported(module.run()))
    finally:
        sys.path.remove(folder)


def _reported(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The rows; each is reported on standard error when it is measured."""
    start = time.perf_counter()
    for row in rows:
        first = next(iter(row.values()))
        print(f'[{time.perf_counter() - start:6.1f} s] {_cell(first)}', file=sys.stderr, flush=True)
        yield row


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else number(float(value))
