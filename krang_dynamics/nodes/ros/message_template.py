"""Messages of which only some numbers change, written as serialized bytes without message objects."""

import struct
from typing import Any

import numpy as np
from rclpy.serialization import serialize_message

from ...arrays import Array
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
            raise InputError(f'{type(message).__name__}: the middleware encodes it in an unknown way')
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
