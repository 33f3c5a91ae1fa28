"""The controller in a recording: its ~/state messages, its steps, and the topics around it."""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from ...control.builder import robot_of
from ...control.node_state import NodeState
from ...errors import BagError, KrangError
from ...robot.model import Robot
from ..io.command_message import nanoseconds_of, step_of
from ..io.joint_state_codec import TYPE as JOINT_STATE
from ..io.reader import Bag

DRIVING = ('ramping', 'active')


class StateRecord(NamedTuple):
    """One message of ~/state."""

    time: int  # of arrival [ns]
    state: NodeState

    @property
    def step(self) -> int | None:
        """Time of the step at which it took effect [ns]."""
        return nanoseconds_of(self.state.step)


class StepRecord(NamedTuple):
    """One step of the controller, from the labels of its command."""

    stamp: int  # of the joint state that was answered, or its label where it has none [ns]
    time: int  # the controller's time [ns]
    clock: int  # the node's clock [ns]
    arrival: int  # of the command in the recording [ns]


@dataclass(frozen=True)
class RecordedController:
    """A controller and its messages; without a name the recording has none."""

    name: str  # of the node, with its namespace
    namespace: str
    states: tuple[StateRecord, ...]
    steps: tuple[StepRecord, ...] = ()
    was_driving: bool = False  # before its first ~/state

    def topic(self, name: str) -> str:
        """A relative name as the controller resolves it."""
        return f'{self.name}/{name[2:]}' if name.startswith('~/') else f'{self.namespace}/{name}'

    @property
    def robot(self) -> str:
        """Name of its robot; empty if it is not known."""
        return self.states[0].state.robot if self.states else ''

    @property
    def was_active(self) -> bool:
        """Whether the controller made steps when the recording began."""
        return not self.states or self.states[0].state.event not in ('configure', 'activate')

    @property
    def faults(self) -> list[StateRecord]:
        """The messages at which a fault latched."""
        before = [None, *(record.state.fault for record in self.states)]
        return [r for r, old in zip(self.states, before, strict=False) if r.state.fault and not old]

    def steps_of_states(self) -> dict[int, list[StateRecord]]:
        """The messages of ~/state by the index of the step at which they took effect.

        Several steps have the same time where a simulated clock stands still; a command precedes its state.
        """
        by_time: dict[int, list[int]] = {}
        for index, step in enumerate(self.steps):
            by_time.setdefault(step.time, []).append(index)
        found: dict[int, list[StateRecord]] = {}
        for record in self.states:
            same = [i for i in by_time.get(record.step or 0, ()) if self.steps[i].arrival <= record.time]
            if same:
                found.setdefault(same[-1], []).append(record)
        return found

    @property
    def delay(self) -> int:
        """From the controller's time to times of arrival in the recording [ns]."""
        return round(median(step.arrival - step.time for step in self.steps)) if self.steps else 0


def recorded_controller(bag: Bag, node: str | None = None) -> RecordedController:
    """The only controller of a recording, or the one of that name; one without a name if there is none."""
    found = {}
    for topic in bag.of_type('std_msgs/msg/String'):
        if topic.endswith('/state'):
            states = tuple(_states(bag, topic))
            if states:
                found[topic.removesuffix('/state')] = states
    if node is not None and f'/{node.lstrip("/")}' not in found:
        raise BagError(f'{bag.path}: has no controller {node!r}; it has {", ".join(found) or "none"}')
    if node is None and len(found) > 1:
        raise BagError(f'{bag.path}: has the controllers {", ".join(found)}; choose one with --node')
    if not found:
        return RecordedController('', _namespace(bag), ())
    name = f'/{node.lstrip("/")}' if node else next(iter(found))
    namespace, states = name.rpartition('/')[0], found[name]
    steps = tuple(_steps(bag, f'{namespace}/effort_commands'))
    first = states[0]
    was_driving = first.state.event != 'enable' and first.state.mode in DRIVING
    commanded = _first(bag, (f'{name}/torques', f'{namespace}/effort_commands')) < _begin(first, steps)
    return RecordedController(name, namespace, states, steps, was_driving or commanded)


def recorded_robot(bag: Bag, node: str | None = None) -> Robot:
    """The robot of the recorded controller, from the parameters in its ~/state."""
    recorded = recorded_controller(bag, node)
    if not recorded.states:
        raise BagError(f'{bag.path}: has no ~/state that names the robot; give --robot')
    values = recorded.states[0].state.parameters
    description = values.get('robot_description') or ''
    if not values.get('robot') and '<' not in description:  # it was read from a topic
        raise BagError(
            f'{bag.path}: its ~/state does not name the robot, which came from a topic; give --robot'
        )
    try:
        return robot_of(values)
    except KrangError as error:
        raise BagError(
            f'{bag.path}: the robot of its controller cannot be loaded: {error}; give --robot'
        ) from None


def _begin(first: StateRecord, steps: tuple[StepRecord, ...]) -> int:
    """When the step of the first ~/state sent its command [ns]: the command precedes the state."""
    same = (step.arrival for step in steps if step.time == first.step)
    return min(first.time, next(same, first.time))


def _states(bag: Bag, topic: str) -> Iterator[StateRecord]:
    """Messages of a controller's ~/state; a guard has no limits, and other nodes no such JSON."""
    for time, message in bag.read(topic):
        state = NodeState.from_json(message.data)
        if state is not None and state.limits:
            yield StateRecord(time, state)


def _steps(bag: Bag, topic: str) -> Iterator[StepRecord]:
    """The labelled commands, in their order."""
    for _, arrival, data in bag.in_order([topic] if topic in bag.topics else []):
        message = bag.decode(topic, data)
        labels = None if message is None else step_of(message)
        if labels is not None:
            yield StepRecord(*labels, arrival)


def _namespace(bag: Bag) -> str:
    """The namespace of the joint states, if there is only one."""
    places = [topic for topic in bag.of_type(JOINT_STATE) if topic.endswith('/joint_states')]
    if len(places) > 1 and '/joint_states' not in places:
        raise BagError(
            f'{bag.path}: has joint states on {", ".join(places)}; record ~/state of one controller too'
        )
    return '' if '/joint_states' in places or not places else places[0].removesuffix('/joint_states')


def _first(bag: Bag, topics: tuple[str, ...]) -> int:
    """When the first message of these topics arrived [ns]; the end of the recording without any."""
    return next((time for _, time, _ in bag.in_order(topics)), bag.stop)
