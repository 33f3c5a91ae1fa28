"""The last seconds before a fault, kept in memory and written as a bag when the fault latches."""

from collections import deque
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from ...bags.io.writer import BagWriter, prepare

WINDOW = 10_000_000_000  # time that is kept [ns]
LARGEST = 64_000_000  # bytes kept at most, even if a topic is flooded
MOST_BAGS = 50  # in one folder, so that repeated faults do not fill the disk
LARGEST_FOLDER = 500_000_000  # bytes of all bags, above which none is added
AT_ONCE = 40  # messages written per call while torque is on


class FlightRecorder:
    """Keeps (topic, time, serialised message) of inputs and outputs.

    Without a folder it keeps nothing.
    """

    def __init__(self, folder: Path | None, name: str) -> None:
        self.problem: str | None = None  # why no bags are written
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
        """Register a topic; the type is a ROS message class."""
        package = message_type.__module__.split('.')[0]
        self._types[topic] = f'{package}/msg/{message_type.__name__}'

    def keep(self, topic: str, time: int, message: bytes) -> None:
        """Keep a message of `time` [ns], and drop those that are too old."""
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
        """Start a bag of the kept messages; returns the reason if that is impossible."""
        if self._folder is None or self._writing is not None:
            return None
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            bags = [path for path in self._folder.iterdir() if path.is_dir()]
            if len(bags) >= MOST_BAGS:
                return f'{self._folder} has {MOST_BAGS} bags; move them away to get new ones'
            size = sum(file.stat().st_size for bag in bags for file in bag.iterdir())
            if size > LARGEST_FOLDER:
                return f'{self._folder} has {1e-6 * size:.0f} MB of bags; move them away to get new ones'
        except OSError as error:
            return f'{self._folder}: {error}'
        self.path = self._folder / f'{self._name}_{datetime.now():%Y-%m-%d_%H-%M-%S-%f}'
        self._writing = self._write(self.path, sorted(self._kept, key=lambda entry: entry[1]))
        return None

    def write_some(self, whole: bool) -> None:
        """Write the next messages, a few at a time while torque is in flight, or all that remain."""
        writing = self._writing
        if writing is None:
            return
        self._writing = None  # also if writing fails
        for count, _ in enumerate(writing, 1):
            if count == AT_ONCE and not whole:
                self._writing = writing
                return

    def _write(self, path: Path, messages: list[tuple[str, int, bytes]]) -> Iterator[None]:
        with BagWriter(path) as bag:
            for topic, time, message in messages:
                bag.write(topic, self._types[topic], message, time)
                yield
