"""trajectory_msgs/JointTrajectory between CDR bytes and arrays, without ROS and without message objects.

Converting 5,000 points to message objects would keep the interpreter busy for longer than a control period.
"""

import struct
from typing import NamedTuple

import numpy as np

from ...arrays import Array
from ...control.reference.trajectory import JointTrajectory
from ...errors import InputError
from .cdr import (
    EMPTY,
    find_numbers,
    header_and_names,
    pad,
    put_numbers,
    read_count,
    read_header_and_names,
)
from .joint_state_codec import stamp_of

FIELDS = ('positions', 'velocities', 'accelerations', 'effort')
SMALLEST_POINT = 24  # four empty fields and a time [bytes]


class _Point(NamedTuple):
    """The places of one point [bytes]."""

    counts: tuple[int, ...]  # numbers of each field
    count_places: tuple[int, ...]
    offsets: tuple[int, ...]  # of the first number of each field
    time: int
    end: int


def decode_trajectory(data: bytes) -> JointTrajectory:
    """One message; InputError where the bytes are no JointTrajectory with equal fields in all points."""
    try:
        order, names, place = read_header_and_names(data)
        count, place = read_count(data, place, order, item_size=SMALLEST_POINT)
        # Numbers are aligned, so that the first point may be longer than the others, which are alike.
        first = _point(data, place, order) if count else None
        second = _point(data, first.end, order) if first is not None and count > 1 else None
    except (struct.error, ValueError) as error:
        raise _unreadable(str(error)) from None
    if first is None:
        return JointTrajectory(names, np.zeros(0), np.zeros((0, len(names))), start=stamp_of(data))
    groups = [_Group(data, order, first, place, 1)]
    if second is not None:
        if second.counts != first.counts:
            i = next(i for i in range(len(FIELDS)) if first.counts[i] != second.counts[i])
            raise _unequal(i, first.counts[i], second.counts[i])
        groups.append(_Group(data, order, second, first.end, count - 1))
    fields = [np.concatenate([group.field(i) for group in groups]) for i in range(len(FIELDS))]
    velocities, accelerations, efforts = (x if x.shape[1] else None for x in fields[1:])
    times = np.concatenate([group.times() for group in groups])
    return JointTrajectory(names, times, fields[0], velocities, accelerations, efforts, stamp_of(data))


def encode_trajectory(trajectory: JointTrajectory, stamp: tuple[int, int] = (0, 0)) -> bytes:
    """One message in little-endian CDR with its stamp [s, ns]."""
    out = header_and_names(stamp, '', trajectory.joint_names)
    pad(out, 4)
    out += struct.pack('<I', len(trajectory.times))
    given = (trajectory.positions, trajectory.velocities, trajectory.accelerations, trajectory.efforts)
    for i, time in enumerate(trajectory.times):
        for values in given:
            put_numbers(out, EMPTY if values is None else values[i])
        out += struct.pack('<iI', *divmod(round(1e9 * time), 1_000_000_000))
    return bytes(out)


class _Group:
    """Points of one layout that follow each other in a message."""

    def __init__(self, data: bytes, order: str, layout: _Point, begin: int, count: int) -> None:
        size = layout.end - begin
        if begin + count * size > len(data):
            raise _unreadable(f'it has {len(data)} bytes; its points end at byte {begin + count * size}')
        self._bytes = np.frombuffer(data, np.uint8, count * size, begin).reshape(count, size)
        self._order, self._layout, self._begin = order, layout, begin
        for i, expected in enumerate(layout.counts):
            found = self._column(layout.count_places[i], 'u4', 1)[:, 0]
            if (found != expected).any():
                raise _unequal(i, expected, int(found[found != expected][0]))

    def field(self, i: int) -> Array:
        """The numbers of a field (count, n)."""
        numbers = self._column(self._layout.offsets[i], 'f8', self._layout.counts[i])
        return np.asarray(numbers.astype(np.float64, copy=False))

    def times(self) -> Array:
        """time_from_start [s]."""
        whole = self._column(self._layout.time, 'i4', 1)[:, 0]
        rest = self._column(self._layout.time + 4, 'u4', 1)[:, 0]
        return np.asarray(whole + 1e-9 * rest)

    def _column(self, place: int, kind: str, count: int) -> Array:
        """The same numbers of every point (points, count)."""
        begin, size = place - self._begin, count * int(kind[1])
        if not count:
            return np.zeros((len(self._bytes), 0))
        block = np.ascontiguousarray(self._bytes[:, begin : begin + size])
        return np.asarray(block.view(f'{self._order}{kind}'))


def _point(data: bytes, place: int, order: str) -> _Point:
    counts, count_places, offsets, place = find_numbers(data, place, order, len(FIELDS))
    if place + 8 > len(data):
        raise ValueError(f'it has {len(data)} bytes; a point ends at byte {place + 8}')
    return _Point(counts, count_places, offsets, place, place + 8)


def _unequal(i: int, one: int, other: int) -> InputError:
    return InputError(
        f'trajectory: {FIELDS[i]} has {one} numbers in one point and {other} in another; '
        'it must have the same length in all points'
    )


def _unreadable(reason: str) -> InputError:
    return InputError(f'trajectory: the message cannot be read: {reason}')
