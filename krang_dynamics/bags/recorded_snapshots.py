"""Snapshots of a recording at a steady rate; messages between two of them are not decoded."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from ..control.messages import topic_word
from ..control.node_state import NodeState
from ..errors import BagError
from ..robot.model import Robot
from .io.joint_state_codec import TYPE as JOINT_STATE
from .io.reader import Bag
from .observed_robot import ObservedRobot, Snapshot
from .parallel import Progress
from .replay.recorded_controller import RecordedController

RATE = 30.0  # of the snapshots [Hz]
MOST = 20_000  # snapshots; a longer recording has a lower rate
DRIVERS = 10  # newest messages of joint_states that are decoded: each driver may have its own
VALUES = ('torques', 'reference', 'external_torques')

Take = Callable[[bytes, float], None]


def recorded_snapshots(
    bag: Bag, robot: Robot, controller: RecordedController, topic: str | None, maps: Sequence[str]
) -> list[Snapshot]:
    """The robot over the whole recording; times are seconds since its start."""
    observed = ObservedRobot(robot, maps)
    takes = _takes(bag, robot, controller, observed, topic)
    waiting: dict[str, deque[bytes]] = {name: deque(maxlen=depth) for name, (depth, _) in takes.items()}
    period = max(1 / RATE, bag.duration / MOST)
    progress = Progress(f'reading {bag.path.name}', bag.duration, ' s')
    found: list[Snapshot] = []

    def snapshot(now: float) -> None:
        for name, messages in waiting.items():
            while messages:
                takes[name][1](messages.popleft(), now)
        found.append(observed.snapshot(now))
        progress.show(now)

    for name, arrival, data in bag.in_order(list(takes)):
        now = (arrival - bag.start) * 1e-9
        while now >= period * (len(found) + 1):
            snapshot(period * (len(found) + 1))
        waiting[name].append(data)
    snapshot(bag.duration)
    progress.end()
    return found


def _takes(
    bag: Bag, robot: Robot, controller: RecordedController, observed: ObservedRobot, topic: str | None
) -> dict[str, tuple[int, Take]]:
    """Topic -> how many of its newest messages are decoded, and by what."""

    def decoded(name: str, take: Callable[[Any, float], None]) -> Take:
        def take_decoded(data: bytes, now: float) -> None:
            message = bag.decode(name, data)
            if message is not None:
                take(message, now)

        return take_decoded

    def candidates() -> Iterator[tuple[str, int, Take]]:
        yield topic or _joint_states(bag, controller), DRIVERS, observed.take_joint_states
        for name, take in (('imu', observed.take_imu), ('odom', observed.take_odom)):
            yield controller.topic(name), 1, decoded(controller.topic(name), take)
        for frame in robot.config.end_effectors:
            name = controller.topic(f'wrench/{topic_word(frame)}')
            yield name, 1, decoded(name, partial(observed.take_wrench, frame))
        own = f'{controller.name}/'
        for name in bag.of_type(JOINT_STATE):
            values = name.removeprefix(own)
            if controller.name and (values in VALUES or values.startswith('terms/')):
                yield name, 1, partial(observed.take_values, values)
        for name, attribute in (
            (f'{controller.name}/state', 'controller'),
            (controller.topic('torque_guard/state'), 'guard'),
        ):
            yield name, 1, decoded(name, partial(_take_state, observed, attribute))

    return {name: (depth, take) for name, depth, take in candidates() if name in bag.topics}


def _take_state(observed: ObservedRobot, attribute: str, message: Any, now: float) -> None:
    state = NodeState.from_json(message.data)
    if state is not None:
        setattr(observed, attribute, state)


def _joint_states(bag: Bag, controller: RecordedController) -> str:
    """The topic of the joint states: the usual one, or the only one of its type."""
    usual, found = controller.topic('joint_states'), bag.of_type(JOINT_STATE)
    if usual in found:
        return usual
    if len(found) != 1:
        names = ', '.join(found) or 'none'
        raise BagError(f'{bag.path}: choose the joint states with --topic; it has {names}')
    return found[0]
