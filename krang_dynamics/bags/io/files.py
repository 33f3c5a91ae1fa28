"""Output files of commands: checked before the work begins; existing ones are replaced only with --force."""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ...errors import InputError, KrangError

BAG_FILES = {'.mcap', '.db3', '.yaml'}


def refuse_existing(paths: Iterable[str | None], force: bool) -> None:
    """Raise KrangError for the first path that exists, is given twice, or cannot be written."""
    seen = set()
    for path in paths:
        if path is None:
            continue
        if (real := Path(path).resolve()) in seen:
            raise KrangError(f'{path} is given twice; each output needs a name of its own')
        seen.add(real)
        if real.exists() and not force:
            raise KrangError(f'{path} exists already; choose another name, or add --force')
        if real.is_dir() or not real.parent.is_dir():
            raise KrangError(f'{path}: cannot be written: it is a folder, or its folder does not exist')
        if not os.access(real if real.exists() else real.parent, os.W_OK):
            raise KrangError(f'{path}: cannot be written: permission denied')


def require_suffix(path: str | None, *suffixes: str) -> None:
    """Raise KrangError if the name of a file to write, if any, ends otherwise."""
    if path is not None and Path(path).suffix not in suffixes:
        raise KrangError(f'{path}: the name must end in {" or ".join(suffixes)}')


def refuse_bag(path: str | Path, force: bool) -> None:
    """Raise KrangError unless a bag can be written to `path`; `force` allows to replace an old bag."""
    folder = Path(path)
    if not folder.resolve().parent.is_dir():
        raise KrangError(f'{path}: its folder does not exist')
    if folder.exists() and not force:
        raise KrangError(f'{path} exists already; choose another name, or add --force')
    if folder.exists() and not _is_bag(folder):
        raise KrangError(f'{path} is not a bag, so it is not replaced; choose another name')


def make_way(path: str | Path, force: bool) -> None:
    """Make sure that a new bag can be written to `path`; `force` deletes an old bag, but no other folder."""
    refuse_bag(path, force)
    if Path(path).exists():
        shutil.rmtree(path)


def _is_bag(folder: Path) -> bool:
    kinds = {entry.suffix for entry in folder.iterdir()} if folder.is_dir() else set()
    return bool(kinds) and kinds <= BAG_FILES


def write(path: str | None, text: str) -> None:
    """Write a text file, and print its name; without a path do nothing."""
    if path is None:
        return
    with writing(path):
        Path(path).write_text(text, encoding='utf-8')
    print(f'written: {path}')


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Raise InputError with the name of the file if the system refuses to write it."""
    try:
        yield
    except OSError as error:
        raise InputError(f'{path}: cannot be written: {error.strerror}') from error
