"""Errors of the package; each message names the wrong value and the valid ones."""

from collections.abc import Iterable
from difflib import get_close_matches


class KrangError(ValueError):
    """Base of all errors that the package raises on purpose."""


class InputError(KrangError):
    """An invalid number, array or name was passed to a function."""


class UrdfError(KrangError):
    """A URDF is invalid or not supported."""


class ConfigError(KrangError):
    """A robot file or a parameter has a missing, unknown or invalid entry."""


class BagError(KrangError):
    """A bag cannot be read or written, or lacks the requested data."""


class UnknownNameError(InputError):
    """A name that does not exist, of a joint, frame or robot for example; `valid` holds the existing ones."""

    def __init__(self, kind: str, name: object, valid: Iterable[str]) -> None:
        self.valid = tuple(valid)
        super().__init__(f'unknown {kind} {name!r}{suggestion(name, self.valid)}')


def suggestion(name: object, valid: Iterable[str]) -> str:
    """The end of an error message about a wrong name: the closest valid name, then all of them."""
    names = [str(entry) for entry in valid]
    close = get_close_matches(str(name), names, n=1)
    hint = f'; did you mean {close[0]!r}?' if close else '.'
    return f'{hint} Valid: {", ".join(names) or "none"}'
