"""`krang bench`: runs a benchmark of the folder bench/ and shows its rows."""

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

from ..errors import InputError, UnknownNameError
from ..robot.library import share
from ..text import number, table


def names() -> list[str]:
    """The benchmarks that exist: every file of bench/ that has a run()."""
    return sorted(path.stem for path in (share() / 'bench').glob('*.py') if path.stem != 'timing')


def run(name: str, json_file: str | None) -> None:
    """Print the rows of one benchmark, and write them where asked."""
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
        rows: list[dict[str, Any]] = list(module.run())
    finally:
        sys.path.remove(folder)
    print('\n'.join(table(list(rows[0]), [[_cell(value) for value in row.values()] for row in rows])))
    if json_file:
        try:
            Path(json_file).write_text(json.dumps({name: rows}, indent=2), encoding='utf-8')
        except OSError as error:
            raise InputError(f'{json_file}: cannot be written: {error.strerror}') from error


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else number(float(value))
