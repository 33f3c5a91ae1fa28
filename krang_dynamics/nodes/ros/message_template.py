"""Joint states and commands as the bytes that DDS carries: read and written without message objects.

A message object of 17 joints costs more than the step that it is for.
"""

import struct
from typing import Any

import numpy as np
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState

from ...arrays import Array
from ...errors import InputError
from ...safety.joint_buffer import JointSamples

LITTLE_ENDIAN = b'\x00\x01'  # the plain encoding that every vendor sends; others go the long way
HEADER = 4  # bytes before the content, from which alignment counts
_counts = struct.Struct('<I').unpack_from
_stamp = struct.Struct('<iI')


class JointStateReader:
    """Reads sensor_msgs/JointState; lists of names that repeat are read once."""

    def __init__(self) -> None:
        self.stamp = (0, 0)  # of the last message [s, ns]
        self._names: tuple[str, ...] = ()
        self._encoded = b''  # the names as they were in the last message

    def read(self, data: bytes, arrival: float) -> JointSamples:
        """One message that came at `arrival` [s]; InputError where the bytes are none."""
        try:
            if data[:2] != LITTLE_ENDIAN:
                return self._decoded(data, arrival)
            self.stamp = seconds, nanoseconds = _stamp.unpack_from(data, HEADER)
            start = HEADER + 12 + _counts(data, HEADER + 8)[0]  # behind frame_id
            start += -start % 4
            if self._encoded and data.startswith(self._encoded, start):
                end = start + len(self._encoded)
            else:
                self._names, end = _read_names(data, start)
                self._encoded = data[start:end]
            position, end = _read_doubles(data, end)
            velocity, end = _read_doubles(data, end)
            effort, end = _read_doubles(data, end)
        except (struct.error, ValueError) as error:
            raise InputError(f'joint_states: the message cannot be read: {error}') from None
        return JointSamples(self._names, position, velocity, effort, seconds + 1e-9 * nanoseconds, arrival)

    def _decoded(self, data: bytes, arrival: float) -> JointSamples:
        """The same the long way."""
        try:
            message = deserialize_message(data, JointState)
        except Exception as error:  # of the middleware's own kind
            raise ValueError(str(error)) from None
        stamp = message.header.stamp
        self.stamp = (stamp.sec, stamp.nanosec)
        position, velocity, effort = map(np.array, (message.position, message.velocity, message.effort))
        moment = stamp.sec + 1e-9 * stamp.nanosec
        return JointSamples(tuple(message.name), position, velocity, effort, moment, arrival)


def stamp_of(data: bytes) -> float:
    """Stamp of a message that begins with a header [s], 0 where it cannot be read."""
    if data[:2] != LITTLE_ENDIAN or len(data) < HEADER + _stamp.size:
        return 0.0
    seconds, nanoseconds = _stamp.unpack_from(data, HEADER)
    return float(seconds + 1e-9 * nanoseconds)


class Template:
    """A message of which only some numbers change: made once, then these are exchanged.

    `fields` names lists of `count` doubles, or parts such as pose.pose.position, whose own numbers count.
    """

    def __init__(self, message: Any, fields: str, count: int = 0) -> None:
        # Numbers that stand nowhere else in a message; behind its end there may be anything.
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


def _mark(message: Any, field: str, count: int, first: int) -> Array:
    """Write numbers into a field that can be found again; a part's own, in their order, or a list's."""
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


def _read_names(data: bytes, start: int) -> tuple[tuple[str, ...], int]:
    """Names, and where they end; `start` is the place of their count."""
    names = []
    count, place = _counts(data, start)[0], start + 4
    for _ in range(count):
        place += -place % 4
        length, place = _counts(data, place)[0], place + 4
        if place + length > len(data):
            raise ValueError('a name is longer than the message')
        names.append(data[place : place + length - 1].decode('utf-8', 'replace'))
        place += length
    return tuple(names), place


def _read_doubles(data: bytes, place: int) -> tuple[Array, int]:
    """A list of doubles, and where it ends."""
    place += -place % 4
    count, place = _counts(data, place)[0], place + 4
    if count == 0:
        return _NONE, place
    place += (HEADER - place) % 8
    return np.frombuffer(data, '<f8', count, place), place + 8 * count


_NONE = np.zeros(0)
