"""Writes rosbag2 folders that `ros2 bag info` and `ros2 bag play` accept."""

from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from ...errors import BagError

METADATA_VERSION: Literal[9] = 9  # Jazzy's


@cache
def prepare() -> Any:
    """Load rosbags and its message types; only the first call takes time."""
    import rosbags.rosbag2  # noqa: F401
    from rosbags.typesys import Stores, get_typestore

    return get_typestore(Stores.ROS2_JAZZY)


class BagWriter:
    """Writes CDR messages into a new folder; a context manager that also closes the bag after an exception.

    rosbags' own context manager discards unwritten messages in that case, for example after ^C.
    """

    def __init__(self, path: str | Path, storage: Literal['mcap', 'sqlite3'] = 'mcap') -> None:
        from rosbags.rosbag2 import StoragePlugin, Writer

        self.path = Path(path)
        self.count = 0  # messages written
        self.size = 0  # bytes of these messages
        if self.path.exists():
            raise BagError(f'{path}: exists already; choose another name')
        plugins = {'mcap': StoragePlugin.MCAP, 'sqlite3': StoragePlugin.SQLITE3}
        self._types = prepare()
        self._connections: dict[str, Any] = {}
        try:
            self._writer = Writer(self.path, version=METADATA_VERSION, storage_plugin=plugins[storage])
            self._writer.open()
        except OSError as error:
            raise BagError(f'{path}: cannot be written: {error.strerror}') from error

    def add_topic(self, topic: str, type_name: str, qos: Any = ()) -> None:
        """Add a topic, with the QoS profiles (rosbags' Qos) that its publishers offer."""
        if type_name not in self._types.types:
            raise BagError(f'{self.path}: {topic} has the type {type_name!r}, which rosbags does not support')
        self._connections[topic] = self._writer.add_connection(
            topic, type_name, typestore=self._types, offered_qos_profiles=qos
        )

    def write(self, topic: str, type_name: str, data: bytes, stamp: int) -> None:
        """Add one serialized (CDR) message that arrived at `stamp` [ns]."""
        if topic not in self._connections:
            self.add_topic(topic, type_name)
        self._writer.write(self._connections[topic], stamp, data)
        self.count += 1
        self.size += len(data)

    def write_message(self, topic: str, message: Any, stamp: int) -> None:
        """Add one message object of rosbags' types."""
        type_name = message.__msgtype__
        self.write(topic, type_name, bytes(self._types.serialize_cdr(message, type_name)), stamp)

    def close(self) -> None:
        """Finish the file and write metadata.yaml."""
        self._writer.close()

    def __enter__(self) -> 'BagWriter':
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
