"""`krang replay --live`: publishes the recorded inputs and /clock for a running controller."""

import signal
import struct
from collections.abc import Sequence
from importlib import import_module
from time import monotonic, sleep
from typing import Any

import rclpy
from rclpy.duration import Duration
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from std_msgs.msg import Float64MultiArray

from ..bags.io.reader import Bag
from ..bags.parallel import Progress
from ..bags.replay.recorded_controller import RecordedController, recorded_controller
from ..errors import BagError, KrangError
from .ros.process import SIGNALS, init
from .ros.qos import NEWEST, RELIABLE

CLOCK = '/clock'
INPUTS = 'joint_states imu odom joint_trajectory deadman emergency_stop'.split()
TICK = 1_000_000  # shortest period of /clock if the recording has none [ns]
LONGEST_SLEEP = 0.002  # [s]
SUBSCRIBER_TIMEOUT = 15.0  # wait for a subscriber to the joint states [s]
FLUSH = Duration(seconds=0.5)  # longest wait for subscribers that do not acknowledge
SETTLE = 1.0  # time for discovery to find other publishers [s]


class BagPlayer:
    """Plays the inputs of a bag at `rate` times real time; /clock is recorded, or the time of arrival."""

    def __init__(self, bag: Bag, recorded: RecordedController, node: Node, rate: float) -> None:
        self._bag, self._node, self._rate = bag, node, rate
        self._states = recorded.topic('joint_states')
        topics = [recorded.topic(name) for name in INPUTS]
        families = tuple(recorded.topic(f'{name}/') for name in ('wrench', 'target_pose', 'target_twist'))
        topics += [topic for topic in bag.topics if topic.startswith(families)]
        self._has_clock = any(True for _ in bag.messages((CLOCK,)))
        topics += [CLOCK] if self._has_clock else []
        self._publishers = {t: self._publisher(t) for t in topics if t in bag.topics}
        if self._states not in self._publishers:
            raise bag.missing_topic(self._states)
        # A controller enables itself only if a node subscribes to its commands.
        commands = recorded.topic('replay/effort_commands')
        node.create_subscription(Float64MultiArray, commands, lambda _: None, NEWEST)
        self._clock = None if self._has_clock else node.create_publisher(Clock, CLOCK, RELIABLE)
        self._ticked = 0  # last published time [ns]

    def _publisher(self, topic: str) -> Any:
        package, _, name = self._bag.topics[topic].type.replace('/', '.').rpartition('.')
        try:
            return self._node.create_publisher(getattr(import_module(package), name), topic, RELIABLE)
        except (ImportError, AttributeError):
            raise BagError(f'{topic}: its type {package}.{name} is not installed') from None

    def wait(self, signals: list[int]) -> None:
        """Wait for a subscriber; refuse to play if another node publishes on the same topics."""
        deadline = monotonic() + SUBSCRIBER_TIMEOUT
        while self._publishers[self._states].get_subscription_count() == 0 and not signals:
            if monotonic() > deadline:
                raise KrangError(f'no node subscribes to {self._states}; start a controller first')
            sleep(0.05)
        settled = monotonic() + SETTLE
        while monotonic() < settled and not signals:
            self._tick(self._bag.start)
            sleep(0.05)
        for topic in (*self._publishers, *(() if self._has_clock else (CLOCK,))):
            if self._node.count_publishers(topic) > 1:
                raise KrangError(
                    f'another node publishes {topic}; stop it first, a replay must not mix with a real robot'
                )

    def play(self, signals: list[int]) -> int:
        """Play to the end, or until a signal; returns the number of messages."""
        begin, start, count = monotonic(), self._bag.start, 0
        progress = Progress('playing', self._bag.duration, ' s')
        for topic, time, data in self._bag.in_order(self._publishers):
            while not signals:
                elapsed = (monotonic() - begin) * self._rate  # of the recording [s]
                left = (time - start) * 1e-9 - elapsed
                self._tick(min(time, start + int(1e9 * elapsed)), TICK if left > 0 else 0)
                if left <= 0:
                    break
                sleep(min(LONGEST_SLEEP, left / self._rate))
            if signals:
                break
            self._publishers[topic].publish(data)
            count += 1
            progress.show((time - start) * 1e-9)
        progress.end()
        return count

    def _tick(self, time: int, step: int = 0) -> None:
        """Publish a time [ns] on /clock, unless less than `step` [ns] has passed since the last one."""
        if self._clock is not None and time >= self._ticked + step:
            self._ticked = time
            self._clock.publish(struct.pack('<4BiI', 0, 1, 0, 0, *divmod(time, 1_000_000_000)))

    def flush(self) -> None:
        """Wait until the last messages have arrived: the end of a process discards its messages."""
        for publisher in self._publishers.values():
            publisher.wait_for_all_acked(FLUSH)


def play(path: str, rate: float, node: str | None, ros_args: Sequence[str]) -> int:
    """Run the command; returns the exit status."""
    if not 0 < rate < float('inf'):
        raise KrangError(f'--rate is {rate}; it must be positive')
    bag = Bag(path)
    recorded = recorded_controller(bag, node)
    init(['--ros-args', *ros_args])
    signals: list[int] = []
    for number in SIGNALS:
        signal.signal(number, lambda number, _: signals.append(number))
    ros_node = rclpy.create_node('player')
    try:
        player = BagPlayer(bag, recorded, ros_node, rate)
        player.wait(signals)
        count = player.play(signals)
        player.flush()
    finally:
        ros_node.destroy_node()
        rclpy.try_shutdown()
    print(f'{path}: played {count} messages')
    return 0
