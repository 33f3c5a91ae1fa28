"""krang replay --live: publishes recorded inputs again, with /clock, for a running controller."""

import signal
import struct
import sys
from collections.abc import Sequence
from importlib import import_module
from time import monotonic, sleep
from typing import Any

import rclpy
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rosgraph_msgs.msg import Clock

from ..bags.io.reader import Bag
from ..bags.replay.recorded_controller import RecordedController, recorded_controller
from ..errors import BagError, KrangError
from .ros.process import SIGNALS
from .ros.qos import RELIABLE

CLOCK = '/clock'
INPUTS = 'joint_states imu odom joint_trajectory deadman emergency_stop'.split()
TICK = 1_000_000  # shortest period of /clock where the recording has none [ns]
NAP = 0.002  # longest sleep [s]
PATIENCE = 15.0  # longest wait for a subscriber of the states [s]
FLUSH_TIME = Duration(seconds=0.5)
SETTLE = 1.0  # time for discovery [s]


class BagPlayer:
    """Plays a bag's inputs at `rate` times real time; /clock is the recorded one, or the time of arrival."""

    def __init__(self, bag: Bag, recorded: RecordedController, node: Node, rate: float) -> None:
        self._bag, self._node, self._rate = bag, node, rate
        self._states = recorded.topic('joint_states')
        wrench = recorded.topic('wrench/')
        topics = [recorded.topic(name) for name in INPUTS]
        topics += [topic for topic in bag.topics if topic.startswith(wrench)]
        self._has_clock = any(True for _ in bag.messages((CLOCK,)))
        topics += [CLOCK] if self._has_clock else []
        self._publishers = {t: self._publisher(t) for t in topics if t in bag.topics}
        if self._states not in self._publishers:
            raise bag.missing_topic(self._states)
        self._clock = None if self._has_clock else node.create_publisher(Clock, CLOCK, RELIABLE)
        self._ticked = 0  # newest time on /clock [ns]

    def _publisher(self, topic: str) -> Any:
        package, _, name = self._bag.topics[topic].type.replace('/', '.').rpartition('.')
        try:
            return self._node.create_publisher(getattr(import_module(package), name), topic, RELIABLE)
        except (ImportError, AttributeError):
            raise BagError(f'{topic}: its type {package}.{name} is not installed here') from None

    def wait(self, asked: list[int]) -> None:
        """Wait for a subscriber; refuse to play where another publisher is present."""
        deadline = monotonic() + PATIENCE
        while self._publishers[self._states].get_subscription_count() == 0 and not asked:
            if monotonic() > deadline:
                raise KrangError(f'{self._states} has no subscriber; start a controller first')
            sleep(0.05)
        settled = monotonic() + SETTLE
        while monotonic() < settled and not asked:
            self._tick(self._bag.start)
            sleep(0.05)
        for topic in (*self._publishers, *(() if self._has_clock else (CLOCK,))):
            if self._node.count_publishers(topic) > 1:
                raise KrangError(
                    f'another node publishes {topic}; stop it: a replay must not mix with a robot'
                )

    def play(self, asked: list[int]) -> int:
        """Play until the end or a signal; the number of messages."""
        begin, start, count, shown = monotonic(), self._bag.start, 0, 0
        for topic, time, data in self._bag.in_order(self._publishers):
            while not asked:
                elapsed = (monotonic() - begin) * self._rate  # of the recording [s]
                left = (time - start) * 1e-9 - elapsed
                self._tick(min(time, start + int(1e9 * elapsed)), TICK if left > 0 else 0)
                if left <= 0:
                    break
                sleep(min(NAP, left / self._rate))
            if asked:
                break
            self._publishers[topic].publish(data)
            count += 1
            if int(elapsed) > shown and sys.stderr.isatty():
                shown = int(elapsed)
                print(f'\rplayed {shown} of {self._bag.duration:.0f} s', end='', file=sys.stderr, flush=True)
        return count

    def _tick(self, time: int, step: int = 0) -> None:
        """Publish a time [ns] on /clock, unless less than `step` has passed."""
        if self._clock is not None and time >= self._ticked + step:
            self._ticked = time
            self._clock.publish(struct.pack('<4BiI', 0, 1, 0, 0, *divmod(time, 1_000_000_000)))

    def flush(self) -> None:
        """Wait until the last messages have arrived: the end of a process discards them."""
        for publisher in self._publishers.values():
            publisher.wait_for_all_acked(FLUSH_TIME)


def play(path: str, rate: float, node: str | None, ros_args: Sequence[str]) -> int:
    """The whole command."""
    if not 0 < rate < float('inf'):
        raise KrangError(f'--rate is {rate}; it must be more than 0')
    bag = Bag(path)
    recorded = recorded_controller(bag, node)
    rclpy.init(args=['--ros-args', *ros_args], signal_handler_options=SignalHandlerOptions.NO)
    asked: list[int] = []
    for number in SIGNALS:
        signal.signal(number, lambda number, _: asked.append(number))
    publisher_node = rclpy.create_node('player')
    try:
        player = BagPlayer(bag, recorded, publisher_node, rate)
        player.wait(asked)
        count = player.play(asked)
        player.flush()
    finally:
        publisher_node.destroy_node()
        rclpy.try_shutdown()
    print(f'{path}: played {count} messages')
    return 0
