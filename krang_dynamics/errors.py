"""Errors of the package: every one says which value is wrong and what would have been valid."""

from collections.abc import Iterable
from difflib import get_close_matches


class KrangError(ValueError):
    """Base of all errors that the package raises on purpose."""


class InputError(KrangError):
    """A number, array or name given to a function is not usable."""


class UrdfError(KrangError):
    """A robot description cannot be a robot that this package controls."""


class ConfigError(KrangError):
    """A robot file has a missing, unknown or impossible entry."""


class BagError(KrangError):
    """A recording cannot be read or written, or does not hold what is asked of it."""


class UnknownNameError(InputError):
    """A joint, frame or robot that does not exist; `valid` holds the names that do."""

    def __init__(self, kind: str, name: object, valid: Iterable[str]) -> None:
        self.valid = tuple(valid)
        super().__init__(f'unknown {kind} {name!r}{suggestion(name, self.valid)}')


def suggestion(name: object, valid: Iterable[str]) -> str:
    """End of a sentence about a wrong name: the closest valid one, then all of them."""
    names = [str(entry) for entry in valid]
    close = get_close_matches(str(name), names, n=1)
    hint = f'; did you mean {close[0]!r}?' if close else '.'
    return f'{hint} Valid: {", ".join(names) or "none"}'
