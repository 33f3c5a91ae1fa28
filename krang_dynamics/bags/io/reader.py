"""A recording: a rosbag2 folder or a single file, in MCAP or sqlite3."""

import re
from collections.abc import Collection, Iterator
from functools import cached_property
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import yaml

from ...errors import BagError, suggestion
from ...reading import regular_file
from .storage import FOREVER, Batch, Mcap, Message, Sqlite, Storage, Topic

SMALLEST = 30  # of a message, with the head of its record [bytes]
LATE = 1_000_000_000  # largest delay that `in_order` corrects [ns]
FORMATS: dict[str, type[Storage]] = {'.mcap': Mcap, '.db3': Sqlite}


class Bag:
    """Topics and messages of a recording; `damage` lists the faults of its files."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._damage: list[str] = []
        self._count: int | None = None  # messages of the recording by its metadata.yaml
        self._files = self._open()
        self.topics: dict[str, Topic] = {}
        for file in self._files:
            self.topics |= file.topics
        covered = [file for file in self._files if file.stop > file.start]
        if not self.topics or not covered:
            raise self._error(['it contains no messages; was anything published while it was recorded?'])
        self._check_count()
        self.start = min(file.start for file in covered)  # [ns]
        self.stop = max(file.stop for file in covered)  # [ns], after the last message

    @property
    def damage(self) -> list[str]:
        """Faults of the files, as far as they have been read."""
        return [*self._damage, *(f'{file.path.name}: {what}' for file in self._files for what in file.damage)]

    @property
    def most_messages(self) -> int:
        """Number of messages, or an upper bound of it."""
        return sum(file.count or file.path.stat().st_size // SMALLEST for file in self._files)

    @property
    def duration(self) -> float:
        """Duration of the recording [s]."""
        return (self.stop - self.start) * 1e-9

    def messages(self, topics: Collection[str], start: int = 0, stop: int = FOREVER) -> Iterator[Message]:
        """(topic, time of arrival [ns], CDR) in start <= t < stop, file by file, nearly in order."""
        for file in self._files:
            if file.start < stop and file.stop > start:
                yield from file.messages(topics, start, stop)

    def batches(self, topic: str, start: int = 0, stop: int = FOREVER) -> Iterator[Batch]:
        """Messages of one topic in start <= t < stop, many at once."""
        for file in self._files:
            if file.start < stop and file.stop > start:
                yield from file.batches(topic, start, stop)

    def read(self, topic: str, start: int = 0, stop: int = FOREVER) -> Iterator[tuple[int, Any]]:
        """(time of arrival [ns], message) of one topic; messages that cannot be decoded are skipped."""
        if topic not in self.topics:
            raise self.missing_topic(topic)
        for _, time, data in self.messages((topic,), start, stop):
            message = self.decode(topic, data)
            if message is not None:
                yield time, message

    def decode(self, topic: str, data: bytes) -> Any | None:
        """A message from its CDR; None, and a note, if it cannot be decoded."""
        try:
            return self._types.deserialize_cdr(data, self.topics[topic].type)
        except Exception as error:  # rosbags raises any type of error on damaged bytes
            self._note(f'{topic}: a message cannot be decoded ({type(error).__name__}) and was skipped')
            return None

    def in_order(self, topics: Collection[str]) -> Iterator[Message]:
        """`messages` sorted by arrival; messages that are late by more than LATE keep their place."""
        waiting: list[tuple[int, int, str, bytes]] = []
        for count, (topic, time, data) in enumerate(self.messages(topics)):
            heappush(waiting, (time, count, topic, data))
            while waiting[0][0] < time - LATE:
                yield _entry(heappop(waiting))
        yield from map(_entry, sorted(waiting))

    def of_type(self, type_: str) -> list[str]:
        """Names of the topics of a message type."""
        return [topic.name for topic in self.topics.values() if topic.type == type_]

    def missing_topic(self, topic: str) -> BagError:
        return BagError(f'{self.path}: has no topic {topic!r}{suggestion(topic, self.topics)}')

    @cached_property
    def _types(self) -> Any:
        """The message types of ROS 2, and those whose definition is in the recording."""
        from rosbags.typesys import Stores, get_types_from_msg, get_typestore

        types = get_typestore(Stores.ROS2_JAZZY)
        for topic in self.topics.values():
            if topic.definition and topic.type not in types.types:
                try:
                    types.register(get_types_from_msg(topic.definition, topic.type))
                except Exception as error:  # a definition that cannot be parsed
                    self._note(f'the type {topic.type} cannot be used: {type(error).__name__}')
        return types

    # -- opening ---------------------------------------------------------------------------------------

    def _open(self) -> list[Storage]:
        if not self.path.exists():
            raise BagError(f'{self.path}: does not exist; give the folder of a rosbag2 recording')
        paths = self._paths() if self.path.is_dir() else [self.path]
        problems, files = [], []
        for path in paths:
            try:
                files.append(_open_file(path))
            except (BagError, OSError) as error:
                problems.append(_reason(error, path))
        if not files:
            raise self._error(problems)
        for problem in problems:
            self._note(problem)
        return files

    def _paths(self) -> list[Path]:
        """The files of the folder, in the order of metadata.yaml, or sorted by name without it."""
        present = [path for path in self.path.iterdir() if path.suffix in FORMATS]
        present.sort(key=lambda path: [int(part) if part.isdigit() else part for part in _parts(path.name)])
        try:
            metadata = regular_file(self.path / 'metadata.yaml')
            data = yaml.safe_load(metadata.read_text(encoding='utf-8'))
            information = data['rosbag2_bagfile_information']
            named = [self.path / Path(name).name for name in information['relative_file_paths']]
            self._count = information.get('message_count')
        except (OSError, ValueError, yaml.YAMLError, RecursionError, KeyError, TypeError):
            if present:
                self._note('metadata.yaml is missing or damaged; the files were read without it')
            named = present
        if any(path.suffix == '.zstd' for path in named):
            raise BagError(
                f'{self.path}: its files are compressed; decompress them first: zstd -d {named[0]}'
            )
        for path in named:
            if not path.exists():
                self._note(f'{path.name} is missing')
        found = [path for path in named if path.exists()] or present
        if not found:
            raise BagError(
                f'{self.path}: contains no .mcap or .db3 file; give the folder of a rosbag2 recording'
            )
        return found

    def _check_count(self) -> None:
        """Note if the files, which are whole by themselves, lack messages of the recording."""
        counts = [file.count for file in self._files if file.count is not None]
        if len(counts) == len(self._files) and self._count not in (None, sum(counts)) and not self.damage:
            self._note(f'metadata.yaml counts {self._count} messages, the files have {sum(counts)}')

    def _error(self, problems: list[str]) -> BagError:
        return BagError(f'{self.path}: it cannot be read: {"; ".join([*self._damage, *problems])}')

    def _note(self, what: str) -> None:
        if what not in self._damage:
            self._damage.append(what)


def _open_file(path: Path) -> Storage:
    with regular_file(path).open('rb') as file:
        head = file.read(16)
    if not head:
        raise BagError('it is empty')
    if head.startswith(b'#ROSBAG V'):
        raise BagError('it is a ROS 1 bag; convert it first: rosbags-convert')
    for suffix, magic in (('.mcap', b'\x89MCAP0\r\n'), ('.db3', b'SQLite format 3\0')):
        if head.startswith(magic):
            return FORMATS[suffix](path)
    raise BagError('it is neither MCAP nor sqlite3, the formats of rosbag2')


def _entry(waiting: tuple[int, int, str, bytes]) -> Message:
    time, _, topic, data = waiting
    return topic, time, data


def _reason(error: Exception, path: Path) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f'{path.name}: {text.removeprefix(f"{path}: ")}'


def _parts(name: str) -> list[str]:
    return re.split(r'(\d+)', name)
