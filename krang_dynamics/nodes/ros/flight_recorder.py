"""The last seconds before a fault, kept in memory and written as a bag when it latches."""

from collections import deque
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from ...bags.io.writer import BagWriter, prepare

WINDOW = 10_000_000_000  # what is kept [ns]
LARGEST = 64_000_000  # bytes kept at most
MOST_BAGS = 50  # in one folder, so that repeated faults do not fill the disk
AT_ONCE = 40  # messages written per call while torque is on


class FlightRecorder:
    """Keeps (topic, time, serialised message) of inputs and outputs.

    Without a folder it keeps nothing.
    """

    def __init__(self, folder: Path | None, name: str) -> None:
        self.problem: str | None = None  # the reason where no bag can be written
        try:
            prepare()  # slow, so not during a stop
        except ImportError as error:
            folder, self.problem = None, f'{error.name} is not installed; pip install rosbags'
        self._folder = folder
        self._name = name
        self._types: dict[str, str] = {}  # by topic
        self._kept: deque[tuple[str, int, bytes]] = deque()
        self._size = 0
        self._writing: Iterator[None] | None = None
        self.path: Path | None = None  # of the last bag

    def add_topic(self, topic: str, message_type: type) -> None:
        """Register a topic with its ROS message class."""
        package = message_type.__module__.split('.')[0]
        self._types[topic] = f'{package}/msg/{message_type.__name__}'

    def keep(self, topic: str, time: int, message: bytes) -> None:
        """Keep a message at `time` [ns], and drop messages that are too old."""
        if self._folder is None:
            return
        kept = self._kept
        kept.append((topic, time, message))
        self._size += len(message)
        while kept and (kept[0][1] < time - WINDOW or self._size > LARGEST):
            self._size -= len(kept.popleft()[2])

    @property
    def is_writing(self) -> bool:
        return self._writing is not None

    def begin(self) -> str | None:
        """Start a bag of the kept messages; the reason where there will be none."""
        if self._folder is None or self._writing is not None:
            return None
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if sum(1 for path in self._folder.iterdir() if path.is_dir()) >= MOST_BAGS:
                return f'{self._folder} holds {MOST_BAGS} bags; move them away to get new ones'
        except OSError as error:
            return f'{self._folder}: {error}'
        self.path = self._folder / f'{self._name}_{datetime.now():%Y-%m-%d_%H-%M-%S-%f}'
        self._writing = self._write(self.path, sorted(self._kept, key=lambda entry: entry[1]))
        return None

    def write_some(self, whole: bool) -> None:
        """Write the next few messages, or all that remain; a few at a time while torque is in flight."""
        writing = self._writing
        if writing is None:
            return
        self._writing = None  # also where writing fails
        for count, _ in enumerate(writing, 1):
            if count == AT_ONCE and not whole:
                self._writing = writing
                return

    def _write(self, path: Path, messages: list[tuple[str, int, bytes]]) -> Iterator[None]:
        with BagWriter(path) as bag:
            for topic, time, message in messages:
                bag.write(topic, self._types[topic], message, time)
                yield
