"""What is read from the files of others: regular files, and numbers as they are usually written."""

import errno
from pathlib import Path
from stat import S_ISREG


def regular_file(path: Path) -> Path:
    """The path itself; OSError if there is no file, or a pipe or device, which may never end."""
    if not S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, 'it is a folder, a pipe or a device; give a regular file', str(path))
    return path


def plain_number(word: str) -> float:
    """The number in a word; ValueError also for 1_0 and for digits beyond ASCII, which Python accepts."""
    return float(word.replace('_', '?').encode('ascii'))
