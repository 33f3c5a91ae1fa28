"""The two file formats of rosbag2, MCAP and sqlite3, also of files that are truncated or damaged.

rosbags refuses such a file. Here every chunk (MCAP) or row (sqlite3) is read independently of the others.
"""

import sqlite3
import struct
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ...arrays import Bytes, Integers
from ...errors import BagError

Message = tuple[str, int, bytes]  # topic, time of arrival [ns], CDR
Batch = tuple[Integers, Bytes]  # times of arrival [ns] (K,), and messages of one length (K, bytes)

MAGIC = b'\x89MCAP0\r\n'
SCHEMA, CHANNEL, MESSAGE, CHUNK = 0x03, 0x04, 0x05, 0x06
MESSAGE_INDEX, CHUNK_INDEX, STATISTICS = 0x07, 0x08, 0x0B
RECORD = struct.Struct('<BQ')  # opcode, length
MESSAGE_HEAD = struct.Struct('<HIQQ')  # channel, sequence, log time, publish time
CHUNK_HEAD = struct.Struct('<QQQI')  # first and last log time, size, checksum
CHUNK_PLACE = struct.Struct('<QQQ')  # of an index: first and last log time, place of the chunk's record
CUT = 'its end is missing'
TIMELESS = 'the time of a message is wrong'
FOREVER = 2**63 - 1  # [ns], after every time
LOOSE_RUN = 1 << 20  # bytes of messages outside chunks that are read at once


@dataclass(frozen=True)
class Topic:
    """A topic of a recording; `definition` is the .msg text of its type, empty if the file has none."""

    name: str
    type: str
    definition: str = ''


class Storage(ABC):
    """One file: its topics, its time span start <= t < stop [ns], its messages, and its faults."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.topics: dict[str, Topic] = {}
        self.start, self.stop = 0, 0
        self.count: int | None = None  # messages of all topics, where the file tells it
        self.damage: list[str] = []

    @abstractmethod
    def messages(self, topics: Collection[str], start: int, stop: int) -> Iterator[Message]:
        """Messages that arrived in start <= t < stop [ns], nearly in order; damaged parts are skipped."""

    def batches(self, topic: str, start: int, stop: int) -> Iterator[Batch]:
        """Messages of one topic, many at once."""
        yield from batched((time, data) for _, time, data in self.messages((topic,), start, stop))

    def _note(self, what: str) -> None:
        if what not in self.damage:
            self.damage.append(what)


def batched(messages: Iterable[tuple[int, bytes]]) -> Iterator[Batch]:
    """Messages with their times of arrival [ns], grouped by length."""
    groups: dict[int, tuple[list[int], list[bytes]]] = {}
    for time, data in messages:
        times, bodies = groups.setdefault(len(data), ([], []))
        times.append(time)
        bodies.append(data)
    for times, bodies in groups.values():
        yield np.array(times, np.int64), np.frombuffer(b''.join(bodies), np.uint8).reshape(len(bodies), -1)


class Chunk(NamedTuple):
    """Part of an MCAP file: its time span [ns] and its place; `loose`: plain records outside a chunk."""

    first: int
    last: int
    offset: int
    length: int
    loose: bool
    size: int | None = None  # number of messages, where the file tells it


class Mcap(Storage):
    """MCAP: chunks of messages, found by reading the records in sequence, without the summary at the end."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._channels: dict[int, str] = {}
        self._schemas: dict[int, tuple[str, str]] = {}
        self._chunks: list[Chunk] = []
        with path.open('rb') as file:
            if file.read(8) != MAGIC:
                raise BagError(f'{path}: is not an MCAP file')
            self._scan(file)
        if not self.topics and self._chunks:  # without a summary, the channels are only in the chunks
            for _ in self.messages((), 0, 0):
                pass
        if self._chunks:
            self.start = min(chunk.first for chunk in self._chunks)
            self.stop = max(chunk.last for chunk in self._chunks) + 1

    def messages(self, topics: Collection[str], start: int, stop: int) -> Iterator[Message]:
        for chunk, records in self._records(start, stop):
            yield from self._of_records(chunk, records, topics, start, stop)

    def batches(self, topic: str, start: int, stop: int) -> Iterator[Batch]:
        for chunk, records in self._records(start, stop):
            batch = self._uniform(chunk, records, topic)
            if batch is None or chunk.size not in (None, len(batch[0])):
                messages = self._of_records(chunk, records, (topic,), start, stop)
                yield from batched((time, data) for _, time, data in messages)
                continue
            times, bodies = batch
            inside = (times >= start) & (times < stop)
            yield (times, bodies) if inside.all() else (times[inside], bodies[inside])

    def _records(self, start: int, stop: int) -> Iterator[tuple[Chunk, bytes]]:
        """The chunks that overlap start <= t < stop [ns], and their records."""
        read_all = not self.topics
        with self.path.open('rb') as file:
            for chunk in sorted(self._chunks):
                if read_all or (chunk.first < stop and chunk.last >= start):
                    file.seek(chunk.offset)
                    data = file.read(chunk.length)
                    yield chunk, data if chunk.loose else self._uncompressed(data, chunk.offset)

    def _uniform(self, chunk: Chunk, data: bytes, topic: str) -> Batch | None:
        """All messages of a chunk at once; None unless they are whole, of one topic and one length."""
        position, opcode, length = 0, 0, 0
        while position + RECORD.size <= len(data):
            opcode, length = RECORD.unpack_from(data, position)
            if opcode == MESSAGE:
                break
            position += RECORD.size + length
        step = RECORD.size + length
        count, rest = divmod(len(data) - position, step)
        head = RECORD.size + MESSAGE_HEAD.size
        if opcode != MESSAGE or rest or step < head:
            return None
        (channel,) = struct.unpack_from('<H', data, position + RECORD.size)
        records = np.frombuffer(data, np.uint8, offset=position).reshape(count, step)
        if self._channels.get(channel) != topic or (records[:, :11] != records[0, :11]).any():
            return None
        times = np.ascontiguousarray(records[:, 15:23]).view('<u8')[:, 0].astype(np.int64)
        if times.min() < chunk.first or times.max() > chunk.last:
            return None
        return times, records[:, head:]

    def _scan(self, file: BinaryIO) -> None:
        """Find chunks and channels, and compare them with the indexes."""
        spans: dict[int, tuple[int, ...]] = {}  # first and last time of each chunk, by its place
        index: dict[int, tuple[int, ...]] = {}  # the same in the summary
        for opcode, begin, length in self._file_records(file):
            if opcode == CHUNK and length >= 40:
                first, last, _, _ = CHUNK_HEAD.unpack(file.read(CHUNK_HEAD.size))
                spans[begin - RECORD.size] = first, last
                if first <= last < FOREVER:
                    self._chunks.append(Chunk(first, last, begin, length, False))
                else:
                    self._note(TIMELESS)
            elif opcode in (SCHEMA, CHANNEL):
                self._describe(opcode, file.read(length))
            elif opcode == MESSAGE and length >= MESSAGE_HEAD.size:
                _, _, time, _ = MESSAGE_HEAD.unpack(file.read(MESSAGE_HEAD.size))
                if time < FOREVER:
                    self._add_loose(time, begin - RECORD.size, RECORD.size + length)
                else:
                    self._note(TIMELESS)
            elif opcode == MESSAGE_INDEX and self._chunks:  # of one channel, after its chunk
                chunk = self._chunks[-1]
                self._chunks[-1] = chunk._replace(size=(chunk.size or 0) + (length - 6) // 16)
            elif opcode == CHUNK_INDEX and length >= CHUNK_PLACE.size:
                first, last, place = CHUNK_PLACE.unpack(file.read(CHUNK_PLACE.size))
                index[place] = first, last
            elif opcode == STATISTICS and length >= 8:
                (self.count,) = struct.unpack('<Q', file.read(8))
        for place, span in index.items():
            if spans.get(place) != span:
                self._note(f'the chunk at byte {place} is missing, or its times are wrong')
        found = sum(chunk.size or 0 for chunk in self._chunks)
        if self.count not in (None, found) and all(chunk.size for chunk in self._chunks):
            self._note(f'it has {found} of {self.count} messages')

    def _file_records(self, file: BinaryIO) -> Iterator[tuple[int, int, int]]:
        """Opcode, place and length of the records, up to the end of the file, or to where it is truncated."""
        size = file.seek(0, 2)
        position = 8
        while position < size:
            file.seek(position)
            head = file.read(RECORD.size)
            if len(head) < RECORD.size:
                if head != MAGIC:
                    self._note(CUT)
                return
            opcode, length = RECORD.unpack(head)
            begin, position = position + RECORD.size, position + RECORD.size + length
            if not 0 < opcode < 0x10:
                self._note(f'no valid record at byte {begin}')
                return
            if position > size:
                self._note(CUT)
                length = size - begin
            yield opcode, begin, length
        self._note(CUT)

    def _add_loose(self, time: int, offset: int, length: int) -> None:
        """Append a message outside chunks to the run of such messages before it."""
        last = self._chunks[-1] if self._chunks else None
        if last and last.loose and last.offset + last.length == offset and last.length < LOOSE_RUN:
            first, latest = min(last.first, time), max(last.last, time)
            size = (last.size or 0) + 1
            self._chunks[-1] = Chunk(first, latest, last.offset, last.length + length, True, size)
        else:
            self._chunks.append(Chunk(time, time, offset, length, True, 1))

    def _uncompressed(self, data: bytes, offset: int) -> bytes:
        """The records of a chunk; if it is truncated, those before the cut."""
        _, _, size, checksum = CHUNK_HEAD.unpack_from(data)
        begin = CHUNK_HEAD.size + 4 + struct.unpack_from('<I', data, CHUNK_HEAD.size)[0] + 8
        compression = data[CHUNK_HEAD.size + 4 : begin - 8].decode('ascii', 'replace')
        try:
            (compressed,) = struct.unpack_from('<Q', data, begin - 8)
            if CUT in self.damage and len(data) - begin < compressed:
                return _decompress_part(data[begin:], compression)
            return _decompress(data[begin : begin + compressed], compression, size, checksum)
        except Exception as error:  # each decompressor has its own errors
            self._note(f'the chunk at byte {offset} is damaged ({error}) and was skipped')
            return b''

    def _of_records(
        self, chunk: Chunk, data: bytes, topics: Collection[str], start: int, stop: int
    ) -> Iterator[Message]:
        wanted = {number: name for number, name in self._channels.items() if name in topics}
        position, end, count = 0, len(data), 0
        record, head = RECORD.unpack_from, MESSAGE_HEAD.unpack_from
        skip = RECORD.size + MESSAGE_HEAD.size
        while position + RECORD.size <= end:
            opcode, length = record(data, position)
            following = position + RECORD.size + length
            if following > end:
                break
            if opcode == MESSAGE and length >= MESSAGE_HEAD.size:
                channel, _, time, _ = head(data, position + RECORD.size)
                count += 1
                if not chunk.first <= time <= chunk.last:
                    self._note(TIMELESS)
                if channel in wanted:
                    if start <= time < stop:
                        yield wanted[channel], time, data[position + skip : following]
                elif channel not in self._channels:
                    self._note(f'the chunk at byte {chunk.offset} has messages of an unknown topic')
            elif opcode in (SCHEMA, CHANNEL):
                self._describe(opcode, data[position + RECORD.size : following])
                wanted = {number: name for number, name in self._channels.items() if name in topics}
            position = following
        if data and chunk.size not in (None, count):
            self._note(f'the chunk at byte {chunk.offset} has {count} of {chunk.size} messages')
        elif position < end and CUT not in self.damage:
            self._note(f'the chunk at byte {chunk.offset} is damaged and was read in part')

    def _describe(self, opcode: int, data: bytes) -> None:
        """Store a schema or a channel."""
        try:
            (number,) = struct.unpack_from('<H', data)
            if opcode == SCHEMA:
                name, _, definition = _strings(data, 2, 3)
                self._schemas[number] = name, definition
            else:
                schema, definition = self._schemas.get(struct.unpack_from('<H', data, 2)[0], ('', ''))
                topic, _ = _strings(data, 4, 2)
                self._channels[number] = topic
                self.topics[topic] = Topic(topic, schema, definition)
        except (struct.error, UnicodeDecodeError):
            self._note('the description of a topic is damaged')


def _decompress(data: bytes, compression: str, size: int, checksum: int) -> bytes:
    from rosbags.rosbag2.storage_mcap import decompress

    return bytes(decompress(data, compression, size, checksum))


def _decompress_part(data: bytes, compression: str) -> bytes:
    """Decompress the beginning of a truncated chunk as far as possible."""
    if compression == '':
        return data
    try:
        if compression == 'lz4':
            from lz4.frame import LZ4FrameDecompressor

            return bytes(LZ4FrameDecompressor().decompress(data))
        return bytes(_zstd().ZstdDecompressor().decompress(data))
    except Exception:  # nothing can be decompressed
        return b''


def _zstd() -> Any:
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        from backports import zstd
    return zstd


def _strings(data: bytes, position: int, count: int) -> list[str]:
    found = []
    for _ in range(count):
        (length,) = struct.unpack_from('<I', data, position)
        found.append(data[position + 4 : position + 4 + length].decode())
        position += 4 + length
    return found


def _is_time(value: object) -> bool:
    """Whether a cell of the database is a time [ns]."""
    return isinstance(value, int) and 0 <= value < FOREVER


class Sqlite(Storage):
    """sqlite3: a table of topics and a table of messages."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with closing(self._connect()) as connection:
            try:
                rows = connection.execute('SELECT id, name, type FROM topics ORDER BY id').fetchall()
            except sqlite3.DatabaseError as error:
                raise BagError(f'{path}: is not a rosbag2 database: {error}') from None
            whole = [row for row in rows if [type(x) for x in row] == [int, str, str]]
            if len(whole) < len(rows):
                self._note('the description of a topic is damaged')
            self._numbers = {name: number for number, name, _ in whole}
            definitions = self._definitions(connection)
            self.topics = {name: Topic(name, type_, definitions.get(type_, '')) for _, name, type_ in whole}
            self._check_size()
            span: Sequence[int | None] = (None, None)
            try:
                query = 'SELECT count(*), min(timestamp), max(timestamp) FROM messages'
                self.count, *span = connection.execute(query).fetchone()
            except sqlite3.DatabaseError as error:
                self._note(CUT if CUT in self.damage else str(error))
            if self.count and not all(map(_is_time, span)):
                self._note(TIMELESS)
            if self.damage:
                span = self._span(connection)
        first, last = span
        if first is not None and last is not None:
            self.start, self.stop = first, last + 1

    def _check_size(self) -> None:
        """The head of the file has the size of a page and their number."""
        with self.path.open('rb') as file:
            page, pages = struct.unpack('>16xH10xI', file.read(32))
            if file.seek(0, 2) < (65536 if page == 1 else page) * pages:
                self._note(CUT)

    def messages(self, topics: Collection[str], start: int, stop: int) -> Iterator[Message]:
        names = {self._numbers[topic]: topic for topic in topics if topic in self._numbers}
        marks = ','.join('?' * len(names))
        query = (
            'SELECT topic_id, timestamp, data FROM messages '
            f'WHERE timestamp >= ? AND timestamp < ? AND topic_id IN ({marks})'
        )
        # A damaged index hides rows: the table itself is read, which excludes ORDER BY.
        query += '' if self.damage else ' ORDER BY timestamp'
        with closing(self._connect()) as connection:
            if self.damage:
                query = query.replace('messages', 'messages NOT INDEXED')
            try:
                for number, time, data in connection.execute(query, (start, stop, *names)):
                    if isinstance(data, bytes) and _is_time(time):  # a missing page reads as NULL
                        yield names[number], time, data
                    else:
                        self._note('the data of a message are missing')
            except sqlite3.DatabaseError as error:
                self._note(CUT if CUT in self.damage else str(error))

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(f'{self.path.absolute().as_uri()}?immutable=1', uri=True)
        # Otherwise sqlite refuses a truncated file. Nothing is written.
        with suppress(sqlite3.DatabaseError):  # a file that is not a database fails at the first query
            connection.execute('PRAGMA writable_schema = ON')
        return connection

    @staticmethod
    def _definitions(connection: sqlite3.Connection) -> dict[str, str]:
        try:
            query = 'SELECT topic_type, encoded_message_definition FROM message_definitions'
            return dict(connection.execute(query).fetchall())
        except sqlite3.DatabaseError:  # the table exists since Iron
            return {}

    @staticmethod
    def _span(connection: sqlite3.Connection) -> tuple[int | None, int | None]:
        """First and last time of the readable rows [ns]."""
        low: int | None = None
        high: int | None = None
        try:
            query = "SELECT timestamp FROM messages NOT INDEXED WHERE typeof(data) = 'blob'"
            for (time,) in connection.execute(query):
                if _is_time(time):
                    low = time if low is None else min(low, time)
                    high = time if high is None else max(high, time)
        except sqlite3.DatabaseError:
            pass
        return low, high
