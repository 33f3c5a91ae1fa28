"""Messages of which only some numbers change, written as serialized bytes without message objects."""

import struct
from typing import Any

import numpy as np
from rclpy.serialization import serialize_message
from std_msgs.msg import Float64MultiArray, MultiArrayDimension, MultiArrayLayout

from ...arrays import Array
from ...bags.io.command_message import UNKNOWN, Stamp, dimensions, time_label
from ...errors import InputError

LITTLE_ENDIAN = b'\x00\x01'  # plain CDR
HEADER = 4  # bytes of the encapsulation
_stamp = struct.Struct('<iI')


class Template:
    """A message that is serialized once; after that only its numbers are replaced.

    `fields` names lists of `count` doubles, or parts such as pose.pose.position with doubles in them.
    """

    def __init__(self, message: Any, fields: str, count: int = 0) -> None:
        # Numbers that occur nowhere else show where the fields are.
        marks = [_mark(message, field, count, 1000 * k) for k, field in enumerate(fields.split())]
        self._bytes = bytearray(serialize_message(message))
        firsts = [self._bytes.find(mark.tobytes()) for mark in marks]
        if self._bytes[:2] != LITTLE_ENDIAN or min(firsts) < 0:
            raise InputError(f'{type(message).__name__}: this middleware encodes it in an unknown way')
        self._places = [slice(f, f + mark.nbytes) for f, mark in zip(firsts, marks, strict=True)]

    def filled(self, *values: Array) -> bytes:
        """The message with these numbers, one array for each field."""
        for place, numbers in zip(self._places, values, strict=True):
            self._bytes[place] = numbers.tobytes()
        return bytes(self._bytes)

    def stamped(self, stamp: tuple[int, int], *values: Array) -> bytes:
        """The same for a message that begins with a header; the stamp is seconds and nanoseconds."""
        _stamp.pack_into(self._bytes, HEADER, *stamp)
        return self.filled(*values)


class CommandTemplate(Template):
    """The command of some drivers; its labels are described in bags/io/command_message.py."""

    def __init__(self, names: tuple[str, ...]) -> None:
        layout = MultiArrayLayout(
            dim=[MultiArrayDimension(label=label, size=n, stride=m) for label, n, m in dimensions(names)]
        )
        super().__init__(Float64MultiArray(layout=layout), 'data', len(names))
        # The times are the last labels, whatever the names contain.
        self._labels: list[slice] = []
        end = len(self._bytes)
        for _ in range(3):
            end = self._bytes.rfind(UNKNOWN.encode(), 0, end)
            self._labels.insert(0, slice(end, end + len(UNKNOWN)))

    def labelled(self, times: tuple[Stamp, Stamp, Stamp], numbers: Array) -> bytes:
        """The command with these numbers; times of the state answered, the step, and the node's clock."""
        for place, time in zip(self._labels, times, strict=True):
            self._bytes[place] = time_label(time).encode()
        return self.filled(numbers)


def _mark(message: Any, field: str, count: int, first: int) -> Array:
    """Write numbers that can be found again into a list, or into the doubles of a part, in their order."""
    *path, last = field.split('.')
    for name in path:
        message = getattr(message, name)
    part = getattr(message, last)
    numbers = [
        name for name, kind in getattr(part, 'get_fields_and_field_types', dict)().items() if kind == 'double'
    ]
    marks = np.pi * (first + np.arange(1.0, (len(numbers) or count) + 1))
    if not numbers:
        setattr(message, last, marks.tolist())
    for name, mark in zip(numbers, marks.tolist(), strict=False):
        setattr(part, name, mark)
    return marks
