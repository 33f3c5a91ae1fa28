"""Output files of commands: checked before the work begins; existing ones are replaced only with --force."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from ...errors import KrangError

BAG_FILES = ('.mcap', '.db3', '.yaml')


def refuse_existing(paths: Iterable[str | None], force: bool) -> None:
    """Raise KrangError for the first path that exists, or whose folder does not."""
    for path in paths:
        if path is None:
            continue
        if Path(path).exists() and not force:
            raise KrangError(f'{path} exists already; choose another name, or add --force')
        if Path(path).is_dir() or not Path(path).resolve().parent.is_dir():
            raise KrangError(f'{path}: cannot be written: it is a folder, or its folder does not exist')


def make_way(path: str | Path, force: bool) -> None:
    """Make sure that a new bag can be written to `path`; `force` deletes an old bag, but no other folder."""
    folder = Path(path)
    if not folder.resolve().parent.is_dir():
        raise KrangError(f'{path}: its folder does not exist')
    if not folder.exists():
        return
    if not force:
        raise KrangError(f'{path} exists already; choose another name, or add --force')
    if not folder.is_dir() or any(entry.suffix not in BAG_FILES for entry in folder.iterdir()):
        raise KrangError(f'{path} is not a bag, so it is not replaced; choose another name')
    shutil.rmtree(folder)


def write(path: str | None, text: str) -> None:
    """Write a text file, and print its name; without a path do nothing."""
    if path is None:
        return
    try:
        Path(path).write_text(text, encoding='utf-8')
    except OSError as error:
        raise KrangError(f'{path}: cannot be written: {error.strerror}') from error
    print(f'written: {path}')
