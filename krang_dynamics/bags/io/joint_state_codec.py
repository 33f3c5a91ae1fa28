"""sensor_msgs/JointState between CDR bytes and arrays, without ROS and without message objects.

A message object of 17 joints costs more time than the control step that uses it.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ...arrays import Array, Bytes, Integers, Mask
from ...errors import InputError
from ...safety.joint_buffer import JointSamples
from .cdr import (
    EMPTY,
    FRAME,
    HEADER,
    ORDERS,
    STAMP,
    find_numbers,
    header_and_names,
    put_numbers,
    read_header_and_names,
)
from .storage import Batch

TYPE = 'sensor_msgs/msg/JointState'
FIELDS = ('position', 'velocity', 'effort')


@dataclass(frozen=True)
class Layout:
    """Joint names, and the places of the numbers of a message [bytes]."""

    names: tuple[str, ...]
    order: str  # byte order, '<' or '>'
    counts: tuple[int, ...]  # numbers of each field
    count_places: tuple[int, ...]
    offsets: tuple[int, ...]  # of the first number of each field
    names_end: int
    end: int  # padding may follow

    @property
    def is_regular(self) -> bool:
        """Whether every field is empty or has one number per name."""
        return all(count in (0, len(self.names)) for count in self.counts)


def parse(data: bytes) -> Layout:
    """The layout of one message; InputError if the bytes are not a JointState."""
    try:
        order, names, names_end = read_header_and_names(data)
        counts, count_places, offsets, end = find_numbers(data, names_end, order, len(FIELDS))
        if end > len(data):
            raise ValueError(f'it has {len(data)} bytes; its numbers end at byte {end}')
    except (struct.error, ValueError) as error:
        raise InputError(f'joint_states: the message cannot be read: {error}') from None
    return Layout(names, order, counts, count_places, offsets, names_end, end)


def stamp_of(data: bytes) -> float:
    """Stamp of any message that begins with a std_msgs/Header [s]; 0 if it cannot be read."""
    order = ORDERS.get(data[:2])
    if order is None or len(data) < FRAME:
        return 0.0
    seconds, nanoseconds = STAMP[order](data, HEADER)
    return float(seconds + 1e-9 * nanoseconds)


class JointStateReader:
    """Reads one message at a time; frame, names and counts that repeat are compared, not parsed again."""

    def __init__(self) -> None:
        self.stamp = (0, 0)  # of the last message [s, ns]
        self._names: tuple[str, ...] = ()
        self._learn(encode((), 0, EMPTY, EMPTY, EMPTY))

    def read(self, data: bytes, arrival: float) -> JointSamples:
        """One message that arrived at `arrival` [s]; InputError if the bytes are not a JointState."""
        if (
            len(data) < self._end
            or not data.startswith(self._encoding)
            or not data.startswith(self._frame_and_names, FRAME)
            or self._unpack_counts(data) != self._counts
        ):
            self._learn(data)
        self.stamp = seconds, nanoseconds = self._unpack_stamp(data, HEADER)
        numbers = np.frombuffer(data, self._dtype, self._length, self._begin)
        if not self._is_native:
            numbers = numbers.astype(float)
        position, velocity, effort = self._fields
        return JointSamples(
            self._names,
            numbers[position],
            numbers[velocity],
            numbers[effort],
            seconds + 1e-9 * nanoseconds,
            arrival,
        )

    def _learn(self, data: bytes) -> None:
        """Keep the layout of a message for those that follow."""
        layout = parse(data)
        self._end, self._counts = layout.end, layout.counts
        if layout.names != self._names:  # equal names stay the same object, which is quick to compare
            self._names = layout.names
        self._encoding, self._frame_and_names = data[:2], data[FRAME : layout.names_end]
        first, second, third = layout.count_places
        counts = f'{layout.order}{first}xI{second - first - 4}xI{third - second - 4}xI'
        self._unpack_counts = struct.Struct(counts).unpack_from
        self._unpack_stamp = STAMP[layout.order]
        self._dtype = np.dtype(f'{layout.order}f8')
        self._is_native = self._dtype.isnative
        # All numbers are aligned to 8 bytes, so one array spans the fields and the counts between them.
        used = [offset for offset, count in zip(layout.offsets, layout.counts, strict=True) if count]
        self._begin = min(used, default=layout.end)
        self._length = (layout.end - self._begin) // 8
        self._fields = [
            slice((offset - self._begin) // 8, (offset - self._begin) // 8 + count) if count else slice(0, 0)
            for offset, count in zip(layout.offsets, layout.counts, strict=True)
        ]


class JointStateWriter:
    """A message of which only the stamp and the numbers of `fields` change; the other fields are empty."""

    def __init__(self, names: Sequence[str], fields: Sequence[str] = FIELDS) -> None:
        numbers = np.zeros(len(names))
        position, velocity, effort = (numbers if field in fields else EMPTY for field in FIELDS)
        self._bytes = bytearray(encode(names, 0, position, velocity, effort))
        layout = parse(bytes(self._bytes))
        offsets = dict(zip(FIELDS, layout.offsets, strict=True))
        self._fields = [np.frombuffer(self._bytes, '<f8', len(names), offsets[field]) for field in fields]
        self._pack_stamp = struct.Struct('<iI').pack_into

    def stamped(self, stamp: tuple[int, int], *values: Array) -> bytes:
        """The message with this stamp [s, ns] and one array for each field."""
        self._pack_stamp(self._bytes, HEADER, *stamp)
        for field, numbers in zip(self._fields, values, strict=True):
            field[:] = numbers
        return bytes(self._bytes)


@dataclass(frozen=True)
class JointStates:
    """Messages of the same joints: times [ns] and values (K, n), columns of NaN where a field is empty."""

    names: tuple[str, ...]
    arrival: Integers
    stamp: Integers  # of the header, 0 if it was not set
    position: Array
    velocity: Array
    effort: Array

    def __len__(self) -> int:
        return len(self.arrival)


def decode(batches: Iterable[Batch]) -> tuple[list[JointStates], Integers]:
    """Batches of messages as arrays, one entry per list of joints; arrival times of unreadable ones [ns]."""
    parts: list[JointStates] = []
    unreadable: list[int] = []
    for arrival, raw in batches:
        found, lost = _decode_batch(arrival, raw)
        parts += found
        unreadable += lost
    return _merged(parts), np.array(unreadable, dtype=np.int64)


def encode(
    names: Sequence[str], stamp: int, position: Array, velocity: Array, effort: Array, frame: str = ''
) -> bytes:
    """One message in CDR with its stamp [ns]; an empty array leaves its field empty."""
    out = header_and_names(divmod(stamp, 1_000_000_000), frame, names)
    for values in (position, velocity, effort):
        put_numbers(out, values)
    return bytes(out)


def _decode_batch(arrival: Integers, raw: Bytes) -> tuple[list[JointStates], list[int]]:
    """Messages of one length: all that share the layout of the first at once, then the rest."""
    parts: list[JointStates] = []
    lost: list[int] = []
    while len(raw):
        layout = _regular_layout(raw[0].tobytes())
        if layout is None:
            lost.append(int(arrival[0]))
            raw, arrival = raw[1:], arrival[1:]
            continue
        same = _same_layout(raw, layout)
        if same.all():
            return [*parts, _values(raw, arrival, layout)], lost
        parts.append(_values(raw[same], arrival[same], layout))
        raw, arrival = raw[~same], arrival[~same]
    return parts, lost


def _regular_layout(data: bytes) -> Layout | None:
    """The layout of a message whose fields fit its names; None for any other message."""
    try:
        layout = parse(data)
    except InputError:
        return None
    return layout if layout.is_regular else None


def _same_layout(raw: Bytes, layout: Layout) -> Mask:
    """Which messages agree with the first in every byte up to `end` that is neither stamp nor number."""
    same = np.asarray((raw[:, :2] == raw[0, :2]).all(axis=1))
    begin = FRAME
    for count, offset in zip((*layout.counts, 0), (*layout.offsets, layout.end), strict=True):
        same &= (raw[:, begin:offset] == raw[0, begin:offset]).all(axis=1)
        begin = offset + 8 * count
    return same


def _values(raw: Bytes, arrival: Integers, layout: Layout) -> JointStates:
    """Numbers and stamps of messages that share a layout."""
    n = len(layout.names)

    def field(i: int) -> Array:
        if not layout.counts[i]:
            return np.full((len(raw), n), np.nan)
        begin = layout.offsets[i]
        block = np.ascontiguousarray(raw[:, begin : begin + 8 * n])
        # One joint after the other: the sums, medians and filters that follow are several times faster.
        return block.view(f'{layout.order}f8').astype(np.float64, order='F')

    seconds, nanoseconds = (
        np.ascontiguousarray(raw[:, begin : begin + 4]).view(f'{layout.order}{kind}')[:, 0].astype(np.int64)
        for begin, kind in ((HEADER, 'i4'), (HEADER + 4, 'u4'))
    )
    stamp = seconds * 1_000_000_000 + nanoseconds
    return JointStates(layout.names, arrival, stamp, field(0), field(1), field(2))


def _merged(parts: list[JointStates]) -> list[JointStates]:
    """One entry per list of joints, in the order of arrival."""
    by_names: dict[tuple[str, ...], list[JointStates]] = {}
    for part in parts:
        by_names.setdefault(part.names, []).append(part)
    return [_joined(names, group) for names, group in by_names.items()]


def _joined(names: tuple[str, ...], group: list[JointStates]) -> JointStates:
    columns = ('arrival', 'stamp', *FIELDS)
    if len(group) == 1:
        values = [getattr(group[0], column) for column in columns]
    else:
        values = [np.concatenate([getattr(part, column) for part in group]) for column in columns]
    if (np.diff(values[0]) < 0).any():
        order = np.argsort(values[0], kind='stable')
        values = [value[order] for value in values]
    return JointStates(names, *values)
