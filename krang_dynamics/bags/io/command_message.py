"""std_msgs/Float64MultiArray as a command: its labels name the drivers, the state answered, and the step.

layout.dim[0].label has the drivers' names, [1] the stamp of the state that the command answers (where it
has none, the CRC-32 of its bytes, a point, and the nanoseconds of the wall clock when it was taken), [2] the
time of the step (steady clock), [3] the node's clock at that step. Drivers may ignore all of them.
"""

import struct
from collections.abc import Sequence
from typing import Any
from zlib import crc32

import numpy as np

from ...arrays import Array
from .cdr import ENCAPSULATION, pad, put_numbers, put_string

TYPE = 'std_msgs/msg/Float64MultiArray'
Stamp = tuple[int, int]  # seconds and nanoseconds
UNKNOWN = '0000000000.000000000'  # every label of a time has this length


def time_label(stamp: Stamp) -> str:
    """A time as text of fixed length; UNKNOWN if the numbers are not a time."""
    seconds, nanoseconds = stamp
    is_time = 0 <= seconds < 10**10 and nanoseconds < 10**9
    return f'{seconds:010d}.{nanoseconds:09d}' if is_time else UNKNOWN


def unstamped(data: bytes, taken: int) -> Stamp:
    """What stands for the stamp of a state that has none: its bytes, and when it was taken [ns]."""
    return crc32(data), taken % 1_000_000_000


def state_key(data: bytes, stamp: Stamp) -> int:
    """The stamp of a joint state [ns]; where it has none, its label without the time."""
    seconds, nanoseconds = unstamped(data, 0) if stamp == (0, 0) else stamp
    return seconds * 1_000_000_000 + nanoseconds


def nanoseconds_of(label: str) -> int | None:
    """The time of a label [ns]; None if there is none."""
    seconds, point, rest = label.partition('.')
    if not point or len(rest) != 9 or not (seconds + rest).isdecimal() or label == UNKNOWN:
        return None
    return int(seconds) * 1_000_000_000 + int(rest)


def dimensions(names: Sequence[str], times: Sequence[str] = (UNKNOWN,) * 3) -> list[tuple[str, int, int]]:
    """Label, size and stride of every dimension."""
    n = len(names)
    return [(','.join(names), n, n), *((label, 1, 1) for label in times)]


class CommandCodec:
    """The command of some drivers as CDR, encoded once; after that only times and numbers are replaced."""

    def __init__(self, names: Sequence[str]) -> None:
        out, entries = bytearray(ENCAPSULATION), dimensions(names)
        out += struct.pack('<I', len(entries))
        ends = []
        for label, size, stride in entries:
            put_string(out, label)
            ends.append(len(out) - 1)  # before its terminating zero
            pad(out, 4)
            out += struct.pack('<II', size, stride)
        out += struct.pack('<I', 0)  # data_offset
        put_numbers(out, np.zeros(len(names)))
        self._bytes = out
        self._times = [slice(end - len(UNKNOWN), end) for end in ends[1:]]  # without that of the names
        self._begin = len(out) - 8 * len(names)
        self._numbers = np.frombuffer(out, '<f8', len(names), self._begin)

    def labelled(self, times: tuple[Stamp, Stamp, Stamp], numbers: Array) -> bytes:
        """The command with these numbers; times of the state answered, the step, and the node's clock."""
        for place, time in zip(self._times, times, strict=True):
            self._bytes[place] = time_label(time).encode()
        self._numbers[:] = numbers
        return bytes(self._bytes)

    def numbers_of(self, data: bytes) -> Array | None:
        """The numbers of a command that differs from these only in times and numbers; None of any other."""
        first, second, third = self._times
        own, begin = self._bytes, self._begin
        if (
            len(data) != len(own)
            or data[: first.start] != own[: first.start]
            or data[first.stop : second.start] != own[first.stop : second.start]
            or data[second.stop : third.start] != own[second.stop : third.start]
            or data[third.stop : begin] != own[third.stop : begin]
            or not data[first.start : third.stop].isascii()
        ):
            return None
        return np.frombuffer(data, '<f8', len(self._numbers), begin).copy()


def names_of(command: Any) -> str:
    """The drivers' names in the order of the numbers, separated by commas; empty if there are none."""
    return _label(command, 0)


def answers(command: Any, stamp: Stamp) -> bool:
    """Whether a command answers the state of this stamp, or has no stamp."""
    return _label(command, 1) in ('', time_label(stamp))


def step_of(command: Any) -> tuple[int, int, int] | None:
    """Stamp answered, step time and node's clock of a command [ns]; None if it has no step."""
    stamp, step, clock = (nanoseconds_of(_label(command, i)) for i in (1, 2, 3))
    return None if step is None or clock is None else (stamp or 0, step, clock)


def _label(command: Any, index: int) -> str:
    dimension = command.layout.dim
    return str(dimension[index].label) if len(dimension) > index else ''
