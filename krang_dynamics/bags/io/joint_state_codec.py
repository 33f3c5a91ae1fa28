"""sensor_msgs/JointState between CDR and arrays: thousands of messages at once where their layout repeats."""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ...arrays import Array, Bytes, Integers, Mask
from .storage import Batch

TYPE = 'sensor_msgs/msg/JointState'
FIELDS = ('position', 'velocity', 'effort')


@dataclass(frozen=True)
class Layout:
    """Where the numbers of a message are; all messages with the same fixed bytes share it."""

    names: tuple[str, ...]
    order: str  # of bytes, '<' or '>'
    counts: tuple[int, int, int]
    offsets: tuple[int, int, int]
    length: int


@dataclass(frozen=True)
class JointStates:
    """Messages of the same joints: times [ns] and values (K, n), columns of NaN where a field is empty."""

    names: tuple[str, ...]
    arrival: Integers
    stamp: Integers  # of the header, 0 where it was not set
    position: Array
    velocity: Array
    effort: Array

    def __len__(self) -> int:
        return len(self.arrival)


def parse(data: bytes) -> Layout:
    """The layout of one message; ValueError where it is none."""
    try:
        order = {0: '>', 1: '<'}[data[1]]
        position = 12  # after encapsulation and stamp
        _, position = _string(data, position, order)
        count, position = _count(data, position, order)
        names = []
        for _ in range(count):
            name, position = _string(data, position, order)
            names.append(name)
        counts, offsets = [], []
        for _ in FIELDS:
            count, position = _count(data, position, order)
            if count:
                position += -(position - 4) % 8  # doubles are aligned, counted from after the encapsulation
            counts.append(count)
            offsets.append(position)
            position += 8 * count
    except (KeyError, IndexError, struct.error, UnicodeDecodeError) as error:
        raise ValueError('is no JointState') from error
    if position > len(data) or any(count not in (0, len(names)) for count in counts):
        raise ValueError('is no JointState, or its fields differ in length')
    (n0, n1, n2), (o0, o1, o2) = counts, offsets
    return Layout(tuple(names), order, (n0, n1, n2), (o0, o1, o2), len(data))


def decode(batches: Iterable[Batch]) -> tuple[list[JointStates], Integers]:
    """Batches of messages as arrays, one entry per set of joints; and when unreadable ones came [ns]."""
    parts: list[JointStates] = []
    unreadable: list[int] = []
    for arrival, raw in batches:
        found, lost = _of_batch(arrival, raw)
        parts += found
        unreadable += lost
    return _merged(parts), np.array(unreadable, dtype=np.int64)


def encode(
    names: Sequence[str], stamp: int, position: Array, velocity: Array, effort: Array, frame: str = ''
) -> bytes:
    """One message in CDR; an empty array leaves its field empty."""
    out = bytearray(b'\0\1\0\0')
    out += struct.pack('<iI', *divmod(stamp, 1_000_000_000))
    _put_string(out, frame)
    _pad(out, 4)
    out += struct.pack('<I', len(names))
    for name in names:
        _put_string(out, name)
    for values in (position, velocity, effort):
        _pad(out, 4)
        out += struct.pack('<I', len(values))
        if len(values):
            _pad(out, 8)
            out += np.asarray(values, dtype='<f8').tobytes()
    return bytes(out)


def _of_batch(arrival: Integers, raw: Bytes) -> tuple[list[JointStates], list[int]]:
    """Messages of one length: those with the fixed bytes of the first at once, then the rest."""
    parts: list[JointStates] = []
    lost: list[int] = []
    while len(raw):
        try:
            layout = parse(raw[0].tobytes())
        except ValueError:
            lost.append(int(arrival[0]))
            raw, arrival = raw[1:], arrival[1:]
            continue
        same = _same_layout(raw, layout)
        if same.all():
            return [*parts, _values(raw, arrival, layout)], lost
        parts.append(_values(raw[same], arrival[same], layout))
        raw, arrival = raw[~same], arrival[~same]
    return parts, lost


def _same_layout(raw: Bytes, layout: Layout) -> Mask:
    """Which messages agree with the first in every byte that is neither time nor number."""
    same = np.ones(len(raw), dtype=bool)
    begin = 12
    for count, offset in zip((*layout.counts, 0), (*layout.offsets, layout.length), strict=True):
        same &= (raw[:, begin:offset] == raw[0, begin:offset]).all(axis=1)
        begin = offset + 8 * count
    return same & (raw[:, 1] == raw[0, 1])


def _values(raw: Bytes, arrival: Integers, layout: Layout) -> JointStates:
    n = len(layout.names)

    def field(i: int) -> Array:
        if not layout.counts[i]:
            return np.full((len(raw), n), np.nan)
        begin = layout.offsets[i]
        block = np.ascontiguousarray(raw[:, begin : begin + 8 * n])
        return block.view(f'{layout.order}f8').astype(np.float64, copy=False)

    stamps = np.ascontiguousarray(raw[:, 4:12])
    seconds = stamps[:, :4].copy().view(f'{layout.order}i4')[:, 0].astype(np.int64)
    nanoseconds = stamps[:, 4:].copy().view(f'{layout.order}u4')[:, 0].astype(np.int64)
    stamp = seconds * 1_000_000_000 + nanoseconds
    return JointStates(layout.names, arrival, stamp, field(0), field(1), field(2))


def _merged(parts: list[JointStates]) -> list[JointStates]:
    """One entry per set of joints, in the order of arrival."""
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


def _string(data: bytes, position: int, order: str) -> tuple[str, int]:
    length, position = _count(data, position, order)
    if length > len(data):
        raise IndexError
    return data[position : position + max(length - 1, 0)].decode(), position + length


def _count(data: bytes, position: int, order: str) -> tuple[int, int]:
    position += -position % 4
    return struct.unpack_from(f'{order}I', data, position)[0], position + 4


def _put_string(out: bytearray, text: str) -> None:
    _pad(out, 4)
    encoded = text.encode() + b'\0'
    out += struct.pack('<I', len(encoded)) + encoded


def _pad(out: bytearray, size: int) -> None:
    out += b'\0' * (-(len(out) - 4) % size)
