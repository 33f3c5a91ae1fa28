"""krang replay --live: the recorded inputs on their topics again, with /clock, for a running controller."""

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
TICK = 1_000_000  # of the clock, at least, where the recording has none [ns]
NAP = 0.002  # longest sleep [s]
PATIENCE = 15.0  # until somebody listens to the states [s]
LAST_WORDS = Duration(seconds=0.5)
SETTLE = 1.0  # in which publishers get to know each other [s]


class BagPlayer:
    """Plays a bag's inputs at `rate` times real time; the clock is that of arrival, or the recorded one."""

    def __init__(self, bag: Bag, story: RecordedController, node: Node, rate: float) -> None:
        self._bag, self._node, self._rate = bag, node, rate
        self._states = story.topic('joint_states')
        wrench = story.topic('wrench/')
        topics = [story.topic(name) for name in INPUTS]
        topics += [topic for topic in bag.topics if topic.startswith(wrench)]
        self._has_clock = any(True for _ in bag.messages((CLOCK,)))
        topics += [CLOCK] if self._has_clock else []
        self._publishers = {t: self._publisher(t) for t in topics if t in bag.topics}
        if self._states not in self._publishers:
            raise bag.missing_topic(self._states)
        self._clock = None if self._has_clock else node.create_publisher(Clock, CLOCK, RELIABLE)
        self._ticked = 0  # what the clock showed last [ns]

    def _publisher(self, topic: str) -> Any:
        package, _, name = self._bag.topics[topic].type.replace('/', '.').rpartition('.')
        try:
            return self._node.create_publisher(getattr(import_module(package), name), topic, RELIABLE)
        except (ImportError, AttributeError):
            raise BagError(f'{topic}: its type {package}.{name} is not installed here') from None

    def wait(self, asked: list[int]) -> None:
        """Until somebody listens; nobody else may speak."""
        deadline = monotonic() + PATIENCE
        while self._publishers[self._states].get_subscription_count() == 0 and not asked:
            if monotonic() > deadline:
                raise KrangError(f'nobody listens to {self._states}; start a controller first')
            sleep(0.05)
        settled = monotonic() + SETTLE
        while monotonic() < settled and not asked:
            self._tick(self._bag.start)
            sleep(0.05)
        for topic in (*self._publishers, *(() if self._has_clock else (CLOCK,))):
            if self._node.count_publishers(topic) > 1:
                raise KrangError(
                    f'somebody else publishes {topic}; a replay must not mix with a living robot'
                )

    def play(self, asked: list[int]) -> int:
        """Until the end, or until a signal; how many messages."""
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
        """Let the clock show a time [ns], unless it has just shown nearly that."""
        if self._clock is not None and time >= self._ticked + step:
            self._ticked = time
            self._clock.publish(struct.pack('<4BiI', 0, 1, 0, 0, *divmod(time, 1_000_000_000)))

    def flush(self) -> None:
        """Wait until the last messages have arrived: a process that ends takes them along."""
        for publisher in self._publishers.values():
            publisher.wait_for_all_acked(LAST_WORDS)


def play(path: str, rate: float, node: str | None, ros_args: Sequence[str]) -> int:
    """The whole command."""
    if not 0 < rate < float('inf'):
        raise KrangError(f'--rate is {rate}; it must be more than 0')
    bag = Bag(path)
    story = recorded_controller(bag, node)
    rclpy.init(args=['--ros-args', *ros_args], signal_handler_options=SignalHandlerOptions.NO)
    asked: list[int] = []
    for number in SIGNALS:
        signal.signal(number, lambda number, _: asked.append(number))
    speaker = rclpy.create_node('player')
    try:
        player = BagPlayer(bag, story, speaker, rate)
        player.wait(asked)
        count = player.play(asked)
        player.flush()
    finally:
        speaker.destroy_node()
        rclpy.try_shutdown()
    print(f'{path}: played {count} messages')
    return 0
