"""Commands of the drivers as messages: in which order their numbers are, and which state they answer."""

from typing import Any

from std_msgs.msg import Float64MultiArray, MultiArrayDimension, MultiArrayLayout

from ...arrays import Array
from .message_template import Template

Stamp = tuple[int, int]  # seconds and nanoseconds
UNKNOWN = '0000000000.000000000'


def stamp_label(stamp: Stamp) -> str:
    """A stamp as text, always of the same length; what is no time is unknown."""
    seconds, nanoseconds = stamp
    is_time = 0 <= seconds < 10**10 and nanoseconds < 10**9
    return f'{seconds:010d}.{nanoseconds:09d}' if is_time else UNKNOWN


class CommandTemplate(Template):
    """n x 1 numbers; the first dimension is labelled with the drivers' names, the second with the stamp.

    Drivers that do not care ignore both.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        n = len(names)
        dimensions = [
            MultiArrayDimension(label=','.join(names), size=n, stride=n),
            MultiArrayDimension(label=UNKNOWN, size=1, stride=1),
        ]
        super().__init__(Float64MultiArray(layout=MultiArrayLayout(dim=dimensions)), 'data', n)
        first = self._bytes.rfind(UNKNOWN.encode())  # names come before it, whatever they are
        self._label = slice(first, first + len(UNKNOWN))

    def answering(self, stamp: Stamp, numbers: Array) -> bytes:
        """The command with these numbers, to the state of this stamp."""
        self._bytes[self._label] = stamp_label(stamp).encode()
        return self.filled(numbers)


def names_of(command: Any) -> str:
    """The drivers' names in the order of the numbers, separated by commas; empty where it does not say."""
    return command.layout.dim[0].label if command.layout.dim else ''


def answers(command: Any, stamp: Stamp) -> bool:
    """Whether it may be the answer to the state of this stamp: it says so, or does not say."""
    dimensions = command.layout.dim
    return len(dimensions) < 2 or dimensions[1].label == stamp_label(stamp)
