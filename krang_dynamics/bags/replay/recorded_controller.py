"""What a recording says of the controller that was there: its ~/state, and the topics around it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...errors import BagError
from ..io.joint_state_codec import TYPE as JOINT_STATE
from ..io.reader import Bag

DRIVING = ('ramping', 'active')


@dataclass(frozen=True)
class StateRecord:
    """One message of ~/state."""

    time: int  # of arrival [ns]
    event: str
    mode: str
    fault: tuple[str, str] | None  # kind and reason
    parameters: dict[str, Any]


@dataclass(frozen=True)
class RecordedController:
    """A controller, and all that it said of itself; without a name there was none."""

    name: str  # of the node, with its namespace
    namespace: str
    said: tuple[StateRecord, ...]
    robot: str = ''
    was_driving: bool = False  # before it said anything

    def topic(self, name: str) -> str:
        """A relative name as the controller understood it."""
        return f'{self.name}/{name[2:]}' if name.startswith('~/') else f'{self.namespace}/{name}'

    @property
    def was_active(self) -> bool:
        """Whether it turned states into steps when the recording began."""
        return not self.said or self.said[0].event not in ('configure', 'activate')

    @property
    def faults(self) -> list[StateRecord]:
        """The moments at which a fault latched."""
        before = [None, *(said.fault for said in self.said)]
        return [said for said, old in zip(self.said, before, strict=False) if said.fault and not old]


def recorded_controller(bag: Bag, node: str | None = None) -> RecordedController:
    """The only controller of a recording, or the one of that name; a nameless one where there is none."""
    found = {}
    for topic in bag.of_type('std_msgs/msg/String'):
        if topic.endswith('/state'):
            states = list(_states(bag, topic))
            if states:
                found[topic.removesuffix('/state')] = states
    if node is not None and f'/{node.lstrip("/")}' not in found:
        raise BagError(f'{bag.path}: has no controller {node!r}; it has {", ".join(found) or "none"}')
    if node is None and len(found) > 1:
        raise BagError(f'{bag.path}: has the controllers {", ".join(found)}; choose one with --node')
    if not found:
        return RecordedController('', _namespace(bag), ())
    name = f'/{node.lstrip("/")}' if node else next(iter(found))
    namespace = name.rpartition('/')[0]
    said = tuple(_said(time, state) for time, state in found[name])
    driving = said[0].event != 'enable' and said[0].mode in DRIVING
    commanded = _first(bag, (f'{name}/torques', f'{namespace}/effort_commands')) < said[0].time
    return RecordedController(name, namespace, said, str(found[name][0][1].get('robot', '')), driving or commanded)


def _states(bag: Bag, topic: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Messages of a controller's ~/state; other nodes have other entries, or no JSON at all."""
    for time, message in bag.read(topic):
        try:
            state = json.loads(message.data)
        except ValueError:
            continue
        if isinstance(state, dict) and {'event', 'mode', 'fault', 'limits', 'parameters'} <= set(state):
            yield time, state


def _said(time: int, state: dict[str, Any]) -> StateRecord:
    fault = state['fault']
    told = None if fault is None else (str(fault['kind']), str(fault['reason']))
    return StateRecord(time, state['event'], state['mode'], told, state['parameters'])


def _namespace(bag: Bag) -> str:
    """Where the joint states are, if there is but one place."""
    places = [topic for topic in bag.of_type(JOINT_STATE) if topic.endswith('/joint_states')]
    if len(places) > 1 and '/joint_states' not in places:
        raise BagError(f'{bag.path}: has joint states on {", ".join(places)} and no controller to choose by')
    return '' if '/joint_states' in places or not places else places[0].removesuffix('/joint_states')


def _first(bag: Bag, topics: tuple[str, ...]) -> int:
    """When the first message of these topics came [ns]; never, without any."""
    return next((time for _, time, _ in bag.in_order(topics)), bag.stop)
