"""The result of a replay: a bag of its commands, their difference from the recorded ones, and a table."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...arrays import Array
from ...control.controller import Outputs
from ...control.drivers import Drivers
from ...control.session import Session
from ...errors import BagError
from ...safety.modes import Fault, Mode
from ...text import number, table
from ..io.cdr import EMPTY
from ..io.command_message import TYPE, dimensions, time_label
from ..io.joint_state_codec import TYPE as JOINT_STATE
from ..io.joint_state_codec import encode
from ..io.reader import Bag
from ..io.writer import BagWriter, prepare
from .recorded_controller import RecordedController, StateRecord

MOST_WAITING = 1000  # commands that wait for their counterpart: topics overtake each other
SAME_TIME = 0.5  # largest difference in time between a fault and its replay [s]
MOST_GAPS = 5  # that are listed


class ReplayWriter:
    """A new bag with all recorded messages, and with the replayed ones under replay/."""

    def __init__(self, path: str, bag: Bag, recorded: RecordedController) -> None:
        self._bag = bag
        self._prefix = recorded.topic('replay')
        self._writer = BagWriter(path)
        self._left_out: set[str] = {name for name in bag.topics if name.startswith(f'{self._prefix}/')}

    @property
    def left_out(self) -> list[str]:
        return sorted(self._left_out)

    def copy(self, topic: str, time: int, data: bytes) -> None:
        """A recorded message, unchanged."""
        if topic in self._left_out:
            return
        try:
            self._writer.write(topic, self._bag.topics[topic].type, data, time)
        except BagError:  # rosbags does not support the type
            self._left_out.add(topic)

    def command(self, time: int, session: Session, step: int, clock: int, outputs: Outputs) -> None:
        """effort_commands and torques of one step, labelled as the node labels them."""
        assert outputs.torque is not None
        controller = session.controller
        rows = [controller.robot.joint_names.index(name) for name in controller.command_joints]
        labels = (session.answered, divmod(step, 10**9), divmod(clock, 10**9))
        message = _command([*map(time_label, labels)], controller.drivers.names, outputs.command)
        self._message('effort_commands', message, time)
        seconds, nanoseconds = session.answered
        stamp = seconds * 1_000_000_000 + nanoseconds
        torques = encode(controller.command_joints, stamp, EMPTY, EMPTY, outputs.torque[rows])
        self._writer.write(f'{self._prefix}/torques', JOINT_STATE, torques, time)

    def change(self, time: int, mode: Mode, fault: Fault | None) -> None:
        """Another mode or fault."""
        entry = None if fault is None else {'kind': fault.kind, 'reason': fault.reason}
        text = json.dumps({'mode': mode.value, 'fault': entry})
        self._message('state', prepare().types['std_msgs/msg/String'](data=text), time)

    def close(self) -> None:
        self._writer.close()

    def _message(self, name: str, message: object, time: int) -> None:
        self._writer.write_message(f'{self._prefix}/{name}', message, time)


class Comparison:
    """Replayed against recorded commands in the drivers' unit, matched by their step.

    A recorded command without a step is compared with the newest replayed one.
    """

    def __init__(self, drivers: Drivers) -> None:
        self.count = 0
        self.largest = 0.0
        self.driver = ''  # with the largest difference
        self.time = 0  # and when [ns]
        self.unit = drivers.unit.symbol
        self._squares = 0.0  # of the largest difference of each command, summed
        self._names = drivers.names
        self._replayed: dict[int, Array] = {}  # by index of the labelled step
        self._recorded: dict[int, tuple[int, Array]] = {}
        self._newest: Array | None = None  # replayed

    def take_replayed(self, step: int | None, outputs: Outputs) -> None:
        """A command, and the index of its step where it is labelled."""
        assert outputs.command is not None
        self._newest = outputs.command
        if step is None:
            return
        if step in self._recorded:
            self._compare(*self._recorded.pop(step), outputs.command)
        else:
            _keep(self._replayed, step, outputs.command)

    def take_recorded(self, time: int, step: int | None, values: Array) -> None:
        """A recorded command at its arrival [ns], and the index of its step where it is labelled."""
        if step is None:
            self._compare(time, values, self._newest)
        elif step in self._replayed:
            self._compare(time, values, self._replayed.pop(step))
        else:
            _keep(self._recorded, step, (time, values))

    @property
    def rms(self) -> float:
        """Of the driver that differs most, over all commands that were compared."""
        return float(np.sqrt(self._squares / max(self.count, 1)))

    def _compare(self, time: int, recorded: Array, replayed: Array | None) -> None:
        if replayed is None or len(recorded) != len(self._names):
            return
        difference = np.abs(recorded - replayed)
        worst = int(np.argmax(difference))
        self.count += 1
        self._squares += float(difference[worst]) ** 2
        if difference[worst] > self.largest or self.count == 1:
            self.largest, self.driver, self.time = float(difference[worst]), self._names[worst], time


@dataclass
class Replayed:
    """Steps, modes, faults and differences of a replay; times count from the start of the recording [s]."""

    source: str
    duration: float
    start: int  # [ns]
    recorded: RecordedController
    terms: tuple[str, ...]
    steps: int = 0
    states: int = 0  # complete joint states
    commands: int = 0
    changes: list[tuple[float, Mode, Fault | None]] = field(default_factory=list)
    comparison: Comparison | None = None
    refused: dict[str, int] = field(default_factory=dict)  # by reason, the first of each kind
    gaps: list[tuple[float, float]] = field(default_factory=list)  # of the joint states: end and length [s]
    notes: list[str] = field(default_factory=list)

    def refuse(self, reason: str) -> None:
        """Count a refusal; the text before the colon is its kind."""
        kind = reason.partition(':')[0]
        known = next((text for text in self.refused if text.partition(':')[0] == kind), reason)
        self.refused[known] = self.refused.get(known, 0) + 1

    @property
    def faults(self) -> list[tuple[float, Fault]]:
        """Time and reason of every fault that latched."""
        before = [None, *(fault for _, _, fault in self.changes)]
        return [
            (time, fault)
            for (time, _, fault), old in zip(self.changes, before, strict=False)
            if fault is not None and old is None
        ]

    def since_start(self, time: int) -> float:
        return (time - self.start) * 1e-9

    def recorded_as(self, time: float, fault: Fault) -> StateRecord | None:
        """The same fault in the recording."""
        near = [
            record
            for record in self.recorded.faults
            if record.state.fault
            and record.state.fault.kind == fault.kind
            and abs(self.since_start(record.time) - time) <= SAME_TIME
        ]
        return min(near, key=lambda record: abs(self.since_start(record.time) - time), default=None)

    def text(self) -> str:
        """What the command prints."""
        name = self.recorded.name or 'no ~/state: default parameters'
        lines = [
            f'{self.source}: {self.duration:.3f} s, {name}, {" + ".join(self.terms)}',
            f'{self.steps} steps, {self.states} complete joint states, {self.commands} commands',
            self._difference(),
        ]
        if self.changes:
            lines += ['', *table(('time [s]', 'mode', 'fault', 'recorded'), self._rows())]
        lines += self._gap_lines()
        lines += [f'recorded but not reproduced: {entry}' for entry in self._missed()]
        lines += [f'refused: {what} ({count} times)' for what, count in list(self.refused.items())[:5]]
        return '\n'.join([*lines, *self.notes])

    def _difference(self) -> str:
        found = self.comparison
        if found is None or not found.count:
            return 'the recording has no commands to compare with'
        if found.largest == 0:
            return f'{found.count} commands compared: all are identical to the recorded ones'
        return (
            f'{found.count} commands compared: largest difference {number(found.largest)} {found.unit} '
            f'({found.driver} at {self.since_start(found.time):.3f} s), rms {number(found.rms)}'
        )

    def _rows(self) -> list[tuple[str, ...]]:
        latched = dict(self.faults)
        return [
            (f'{time:.3f}', mode.value, str(fault or ''), self._verdict(time, fault, latched))
            for time, mode, fault in self.changes
        ]

    def _gap_lines(self) -> list[str]:
        """The gaps of the joint states, the first ones by time."""
        lines = [
            f'gap in the recorded joint states: {length:.3f} s, until {time:.3f} s'
            for time, length in self.gaps[:MOST_GAPS]
        ]
        more = len(self.gaps) - len(lines)
        return [*lines, f'and {more} more gaps'] if more else lines

    def _verdict(self, time: float, fault: Fault | None, latched: dict[float, Fault]) -> str:
        if fault is None or latched.get(time) != fault:
            return ''
        record = self.recorded_as(time, fault)
        if record is None:
            gap = next((g for g in self.gaps if g[0] - g[1] <= time <= g[0] + SAME_TIME), None)
            return f'not in the recording; it has a gap of {gap[1]:.3f} s' if gap else 'not in the recording'
        return f'reproduced, {self.since_start(record.time):.3f} s'

    def _missed(self) -> list[str]:
        found = [self.recorded_as(*entry) for entry in self.faults]
        return [
            f'{record.state.fault} at {self.since_start(record.time):.3f} s'
            for record in self.recorded.faults
            if record not in found
        ]


def _command(times: Sequence[str], names: Sequence[str], values: Array | None) -> object:
    """A labelled command of rosbags' own types."""
    types = prepare().types
    dimension = types['std_msgs/msg/MultiArrayDimension']
    dim = [dimension(label=label, size=n, stride=m) for label, n, m in dimensions(names, times)]
    return types[TYPE](layout=types['std_msgs/msg/MultiArrayLayout'](dim=dim, data_offset=0), data=values)


def _keep(store: dict[int, Any], key: int, value: Any) -> None:
    store[key] = value
    if len(store) > MOST_WAITING:
        del store[next(iter(store))]
