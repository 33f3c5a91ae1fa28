"""`krang record`: topics to a bag; topics that appear later are added."""

import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from importlib import import_module
from time import monotonic, time_ns
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from ..bags.io.files import make_way
from ..bags.io.writer import BagWriter
from ..errors import BagError, KrangError
from .ros.executor import drain
from .ros.process import run
from .ros.qos import RELIABLE

SEARCH_PERIOD = 1.0  # of the search for topics [s]
DEPTH = 2000  # of each subscription's queue, for a slow disk
CONTROLLERS = ('torque_controller', 'gravity_compensation', 'computed_torque', 'wrench_to_torque')
INPUTS = (
    'joint_states imu odom wrench/* joint_trajectory target_pose/* target_twist/* deadman emergency_stop'
).split()
OUTPUTS = 'torques state transition_event reference external_torques'.split()
DEFAULT = (  # all that a replay needs or is compared with, in any namespace
    *(f'*/{name}' for name in INPUTS),
    '*/effort_commands',
    *(f'*/{node}/{name}' for node in CONTROLLERS for name in OUTPUTS),
    '*/torque_guard/state',
    '/parameter_events',
    '/clock',
)


EVENTS = {
    'joint_trajectory': 'trajectory_msgs/msg/JointTrajectory',
    'deadman': 'std_msgs/msg/Bool',
    'emergency_stop': 'std_msgs/msg/Bool',
}


class Recorder(Node):
    """Writes the bytes of every message with its time of arrival."""

    def __init__(self, patterns: Sequence[str], path: str) -> None:
        super().__init__('recorder')
        self._patterns = patterns
        self._bag = BagWriter(path)
        self._subscribed: dict[str, tuple[QoSProfile, Any]] = {}  # by topic: QoS and subscription
        self._unknown: set[str] = set()  # topics that cannot be recorded
        self._shown = (monotonic(), 0)  # time and message count of the last progress line
        if patterns is DEFAULT:
            self._expect_events()
        self._search_topics()
        self.create_timer(SEARCH_PERIOD, self._search_topics, clock=Clock(clock_type=ClockType.STEADY_TIME))

    # -- called by the process ---------------------------------------------------------------------------

    def executor_kind(self) -> tuple[str, bool]:
        return 'static', False

    def real_time(self) -> tuple[int, bool, list[int]]:
        return 0, False, []

    def finish(self) -> None:
        """Write what is still in the queues, and close the bag."""
        try:
            drain(self)
            self._bag.close()
        except OSError as error:
            raise self._unwritten(error) from error
        end = '\n' if sys.stdout.isatty() else ''
        print(f'{end}{self._bag.path}: {self._bag.count} messages, {_size(self._bag.size)}', flush=True)

    # -- topics ------------------------------------------------------------------------------------------

    def _expect_events(self) -> None:
        """Subscribe at once to topics on which a short-lived publisher may send a single message."""
        for name, type_name in EVENTS.items():
            topic = self.resolve_topic_name(name)
            self._bag.add_topic(topic, type_name)
            kind = _message_class(topic, [type_name])
            self._subscribed[topic] = RELIABLE, self._subscription(topic, type_name, kind, RELIABLE)

    def _search_topics(self) -> None:
        """Subscribe to new topics, and again to topics whose publishers offer another QoS."""
        for topic, types in self.get_topic_names_and_types():
            if topic not in self._unknown and self._is_wanted(topic):
                self._subscribe(topic, types)
        self._show()

    def _is_wanted(self, topic: str) -> bool:
        return any(fnmatchcase(topic, pattern) for pattern in self._patterns)

    def _subscribe(self, topic: str, types: Sequence[str]) -> None:
        offered = [info.qos_profile for info in self.get_publishers_info_by_topic(topic)]
        if not offered:
            return
        quality = compatible_qos(offered)
        if topic in self._subscribed:
            before, subscription = self._subscribed[topic]
            if (before.reliability, before.durability) == (quality.reliability, quality.durability):
                return
            drain(self)  # keeps what it has received
            self.destroy_subscription(subscription)
        try:
            kind = _message_class(topic, types)
            if topic not in self._subscribed:
                self._bag.add_topic(topic, types[0], _profiles(offered))
        except KrangError as error:
            self._unknown.add(topic)
            self.get_logger().warning(f'not recorded: {error}')
            return
        self._subscribed[topic] = quality, self._subscription(topic, types[0], kind, quality)

    def _subscription(self, topic: str, type_name: str, kind: type, quality: QoSProfile) -> Any:
        bag = self._bag

        def receive(data: bytes, info: dict[str, int]) -> None:
            try:
                bag.write(topic, type_name, data, info['received_timestamp'] or time_ns())
            except OSError as error:
                raise self._unwritten(error) from error

        return self.create_subscription(kind, topic, receive, quality, raw=True)

    def _unwritten(self, error: OSError) -> BagError:
        return BagError(f'{self._bag.path}: cannot be written: {error.strerror}')

    def _show(self) -> None:
        """Print rate and size, on a terminal."""
        since, before = self._shown
        now, count = monotonic(), self._bag.count
        self._shown = now, count
        if sys.stdout.isatty():
            rate = (count - before) / max(now - since, 1e-3)
            what = f'{len(self._subscribed)} topics, {rate:.0f} messages/s, {_size(self._bag.size)}'
            print(f'\r{self._bag.path}: {what}   ', end='', flush=True)


def compatible_qos(offered: Iterable[QoSProfile]) -> QoSProfile:
    """The strictest reliability and durability that is compatible with all of these publishers."""
    profiles = list(offered)
    reliable = all(profile.reliability == ReliabilityPolicy.RELIABLE for profile in profiles)
    latched = all(profile.durability == DurabilityPolicy.TRANSIENT_LOCAL for profile in profiles)
    return QoSProfile(
        depth=DEPTH,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
    )


def record(topics: Sequence[str], out: str | None, force: bool, ros_args: Sequence[str]) -> int:
    """Record until ^C; returns the exit status."""
    try:
        import rosbags  # noqa: F401
    except ImportError:
        raise KrangError('rosbags is not installed; pip install rosbags') from None
    path = out or f'krang_{datetime.now():%Y-%m-%d_%H-%M-%S}'
    make_way(path, force)
    patterns = [f'/{topic.lstrip("/")}' for topic in topics] or DEFAULT
    return run(lambda: Recorder(patterns, path), ['--ros-args', *ros_args])


def _message_class(topic: str, types: Sequence[str]) -> type:
    if len(types) > 1:
        raise BagError(f'{topic} has several types: {", ".join(types)}')
    package, _, name = types[0].replace('/', '.').rpartition('.')
    try:
        found: type = getattr(import_module(package), name)
    except (ImportError, AttributeError):
        raise BagError(f'{topic} has the type {types[0]}, which is not installed') from None
    return found


def _profiles(offered: Iterable[QoSProfile]) -> list[Any]:
    """The QoS profiles of the publishers as rosbags' types; `ros2 bag play` offers the same."""
    from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime

    none = QosTime(0, 0)
    return [
        Qos(
            QosHistory.KEEP_LAST,
            profile.depth or 10,
            QosReliability[profile.reliability.name],
            QosDurability[profile.durability.name],
            none,
            none,
            QosLiveliness.SYSTEM_DEFAULT,
            none,
            False,
        )
        for profile in offered
    ]


def _size(size: int) -> str:
    return f'{1e-6 * size:.1f} MB'
