"""CDR, the encoding of ROS 2 messages: headers, names and lists of numbers, without ROS."""

import struct
from collections.abc import Sequence

import numpy as np

from ...arrays import Array

ENCAPSULATION = b'\0\1\0\0'  # plain CDR, little endian
HEADER = len(ENCAPSULATION)  # alignment counts from its end
FRAME = HEADER + 8  # place of frame_id, after the stamp
ORDERS = {b'\0\0': '>', b'\0\1': '<'}  # plain CDR, big and little endian
COUNT = {order: struct.Struct(f'{order}I').unpack_from for order in '<>'}
STAMP = {order: struct.Struct(f'{order}iI').unpack_from for order in '<>'}
EMPTY = np.zeros(0)
LONGEST_NAMES = 16_384  # of all names of a message together, so that they do not delay a control loop [bytes]


def read_header_and_names(data: bytes) -> tuple[str, tuple[str, ...], int]:
    """Byte order, joint names, and where these end, of a message that begins with a header and names."""
    order = ORDERS.get(data[:2])
    if order is None:
        raise ValueError(f'its encapsulation is 0x{data[:2].hex()}; plain CDR has 0x0000 or 0x0001')
    length, place = read_count(data, FRAME, order, item_size=1)
    names, place = read_names(data, place + length, order)
    return order, names, place


def find_numbers(
    data: bytes, place: int, order: str, fields: int
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], int]:
    """Of lists of numbers that begin at `place`: counts, places of counts and of numbers, and the end."""
    counts, count_places, offsets = [], [], []
    for _ in range(fields):
        count, place = read_count(data, place, order, item_size=8)
        counts.append(count)
        count_places.append(place - 4)
        place += (HEADER - place) % 8 if count else 0
        offsets.append(place)
        place += 8 * count
    return tuple(counts), tuple(count_places), tuple(offsets), place


def read_names(data: bytes, place: int, order: str) -> tuple[tuple[str, ...], int]:
    """Strings without their terminating zeros, and the place after them."""
    count, place = read_count(data, place, order, item_size=4)
    unpack, names, end = COUNT[order], [], place + LONGEST_NAMES
    for _ in range(count):
        place += -place % 4
        begin = place + 4
        place = begin + unpack(data, place)[0]
        if place > end:
            raise ValueError(f'its names have more than {LONGEST_NAMES} bytes')
        names.append(data[begin : place - 1].decode('utf-8', 'replace'))
    return tuple(names), place


def read_count(data: bytes, place: int, order: str, item_size: int) -> tuple[int, int]:
    """A count, and the place after it; ValueError if the message is too short for it."""
    place += -place % 4
    count, place = COUNT[order](data, place)[0], place + 4
    if count * item_size > len(data) - place:
        raise ValueError(f'a count of {count} at byte {place - 4} exceeds its {len(data)} bytes')
    return count, place


def header_and_names(stamp: tuple[int, int], frame: str, names: Sequence[str]) -> bytearray:
    """The beginning of a message in CDR: encapsulation, stamp [s, ns], frame and joint names."""
    out = bytearray(ENCAPSULATION)
    out += struct.pack('<iI', *stamp)
    put_string(out, frame)
    pad(out, 4)
    out += struct.pack('<I', len(names))
    for name in names:
        put_string(out, name)
    return out


def put_numbers(out: bytearray, values: Array) -> None:
    """Append a list of numbers."""
    pad(out, 4)
    out += struct.pack('<I', len(values))
    if len(values):
        pad(out, 8)
        out += np.asarray(values, dtype='<f8').tobytes()


def put_string(out: bytearray, text: str) -> None:
    """Append a string."""
    pad(out, 4)
    encoded = text.encode() + b'\0'
    out += struct.pack('<I', len(encoded)) + encoded


def pad(out: bytearray, size: int) -> None:
    """Append zeros until the next item is aligned to `size` bytes."""
    out += b'\0' * (-(len(out) - HEADER) % size)
