"""What a replay leads to: a bag of its commands, their difference from the recorded ones, and a table."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...arrays import Array
from ...control.controller import Outputs, TorqueController
from ...errors import BagError
from ...safety.joint_buffer import JointSamples
from ...safety.modes import Fault, Mode
from ...text import number, table
from ..io.joint_state_codec import TYPE as JOINT_STATE
from ..io.joint_state_codec import encode
from ..io.reader import Bag
from ..io.writer import BagWriter, prepare
from .recorded_controller import RecordedController, StateRecord

COMMAND = 'std_msgs/msg/Float64MultiArray'
MOST_WAITING = 1000  # torques that wait for their counterpart: topics overtake each other
SAME_TIME = 0.5  # by which a reproduced fault may be earlier or later [s]
EMPTY = np.zeros(0)


class Tape:
    """A new bag with everything that was recorded, and beside it, under replay/, what is made of it now."""

    def __init__(self, path: str, bag: Bag, story: RecordedController) -> None:
        self._bag = bag
        self._prefix = story.topic('replay')
        self._writer = BagWriter(path)
        self._left_out: set[str] = {name for name in bag.topics if name.startswith(f'{self._prefix}/')}

    @property
    def left_out(self) -> list[str]:
        return sorted(self._left_out)

    def copy(self, topic: str, time: int, data: bytes) -> None:
        """A recorded message, as it is."""
        if topic in self._left_out:
            return
        try:
            self._writer.write(topic, self._bag.topics[topic].type, data, time)
        except BagError:  # a type that rosbags does not know
            self._left_out.add(topic)

    def command(self, time: int, stamp: int, controller: TorqueController, outputs: Outputs) -> None:
        """effort_commands and torques of one step."""
        assert outputs.torque is not None
        names = controller.command_joints
        rows = [controller.robot.joint_names.index(name) for name in names]
        self._message('effort_commands', _labelled(controller.drivers.names, outputs.command), time)
        torques = encode(names, stamp, EMPTY, EMPTY, outputs.torque[rows])
        self._writer.write(f'{self._prefix}/torques', JOINT_STATE, torques, time)

    def change(self, time: int, mode: Mode, fault: Fault | None) -> None:
        """Another mode or fault."""
        told = None if fault is None else {'kind': fault.kind, 'reason': fault.reason}
        text = json.dumps({'mode': mode.value, 'fault': told})
        self._message('state', prepare().types['std_msgs/msg/String'](data=text), time)

    def close(self) -> None:
        self._writer.close()

    def _message(self, name: str, message: object, time: int) -> None:
        self._writer.write_message(f'{self._prefix}/{name}', message, time)


class Comparison:
    """Replayed against recorded torque, matched by the stamp of the state that caused it.

    Where there are no stamps, or no torques but commands, a recorded one meets the last replayed one.
    """

    def __init__(self, controller: TorqueController) -> None:
        self.count = 0
        self.largest = 0.0
        self._squares = 0.0  # of the largest difference of each, summed
        self.what = ''  # joint or driver with the largest difference
        self.time = 0  # and when [ns]
        self.unit = 'N m'
        self._joints = controller.robot.joint_names
        self._drivers = controller.drivers
        self._replayed: dict[int, Array] = {}  # by stamp [ns], the first of each
        self._recorded: dict[int, tuple[int, JointSamples]] = {}
        self._torque: Array | None = None  # of the last step that made one
        self._command: Array | None = None

    def replayed(self, stamp: int, outputs: Outputs) -> None:
        """A step with a command."""
        self._torque, self._command = outputs.torque, outputs.command
        assert outputs.torque is not None
        if stamp and stamp not in self._replayed:
            _keep(self._replayed, stamp, outputs.torque)
            if stamp in self._recorded:
                self._compare(*self._recorded[stamp], outputs.torque)

    def recorded(self, time: int, stamp: int, sample: JointSamples) -> None:
        """A message of ~/torques."""
        if not stamp:
            self._compare(time, sample, self._torque)
        elif stamp not in self._recorded:
            _keep(self._recorded, stamp, (time, sample))
            self._compare(time, sample, self._replayed.get(stamp))

    def recorded_command(self, time: int, values: Array) -> None:
        """A message of effort_commands, in the drivers' unit."""
        self.unit = self._drivers.unit.symbol
        if self._command is not None and len(values) == len(self._drivers.names):
            self._note(time, self._drivers.names, np.abs(values - self._command))

    @property
    def rms(self) -> float:
        """Of the joint that differs most, over all that were compared."""
        return float(np.sqrt(self._squares / max(self.count, 1)))

    def _compare(self, time: int, sample: JointSamples, torque: Array | None) -> None:
        if torque is None or len(sample.effort) != len(sample.names):
            return
        if set(sample.names) <= set(self._joints):
            rows = [self._joints.index(name) for name in sample.names]
            self._note(time, sample.names, np.abs(sample.effort - torque[rows]))

    def _note(self, time: int, names: Sequence[str], difference: Array) -> None:
        self.count += 1
        worst = int(np.argmax(difference))
        self._squares += float(difference[worst]) ** 2
        if difference[worst] > self.largest or self.count == 1:
            self.largest, self.what, self.time = float(difference[worst]), names[worst], time


@dataclass
class Replayed:
    """The whole of a replay; times are since the beginning of the recording [s]."""

    source: str
    duration: float
    start: int  # [ns]
    story: RecordedController
    terms: tuple[str, ...]
    steps: int = 0
    states: int = 0  # of them those that complete joint states led to
    commands: int = 0
    changes: list[tuple[float, Mode, Fault | None]] = field(default_factory=list)
    comparison: Comparison | None = None
    refused: dict[str, int] = field(default_factory=dict)  # by reason, the first of each kind
    notes: list[str] = field(default_factory=list)

    def refuse(self, reason: str) -> None:
        """Count it; what comes before the colon is its kind."""
        kind = reason.partition(':')[0]
        known = next((text for text in self.refused if text.partition(':')[0] == kind), reason)
        self.refused[known] = self.refused.get(known, 0) + 1

    @property
    def faults(self) -> list[tuple[float, Fault]]:
        """The moments at which a fault latched."""
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
        same = [said for said in self.story.faults if said.fault and said.fault[0] == fault.kind]
        near = [said for said in same if abs(self.since_start(said.time) - time) <= SAME_TIME]
        return min(near, key=lambda said: abs(self.since_start(said.time) - time), default=None)

    def text(self) -> str:
        """What the command prints."""
        who = self.story.name or 'no ~/state: defaults'
        lines = [
            f'{self.source}: {self.duration:.3f} s, {who}, {" + ".join(self.terms)}',
            f'{self.steps} steps, {self.states} of them on joint states; {self.commands} commands',
            self._difference(),
        ]
        if self.changes:
            lines += ['', *table(('time [s]', 'mode', 'fault', 'recorded'), self._rows())]
        lines += [f'recorded but not reproduced: {entry}' for entry in self._missed()]
        lines += [f'refused: {what} ({count} times)' for what, count in list(self.refused.items())[:5]]
        return '\n'.join([*lines, *self.notes])

    def _difference(self) -> str:
        found = self.comparison
        if found is None or not found.count:
            return 'nothing recorded to compare the commands with'
        return (
            f'largest difference from what was recorded: {number(found.largest)} {found.unit} '
            f'({found.what} at {self.since_start(found.time):.3f} s), rms {number(found.rms)}, '
            f'{found.count} compared'
        )

    def _rows(self) -> list[tuple[str, ...]]:
        latched = dict(self.faults)
        return [
            (f'{time:.3f}', mode.value, str(fault or ''), self._verdict(time, fault, latched))
            for time, mode, fault in self.changes
        ]

    def _verdict(self, time: float, fault: Fault | None, latched: dict[float, Fault]) -> str:
        if fault is None or latched.get(time) != fault or not self.story.said:
            return ''
        said = self.recorded_as(time, fault)
        if said is None:
            return 'not in the recording'
        return f'reproduced, {self.since_start(said.time):.3f} s'

    def _missed(self) -> list[str]:
        found = [self.recorded_as(*entry) for entry in self.faults]
        return [
            f'{": ".join(said.fault)} at {self.since_start(said.time):.3f} s'
            for said in self.story.faults
            if said.fault and said not in found
        ]


def _labelled(names: Sequence[str], values: Array | None) -> object:
    """A command that says in which order its numbers are, as the node's does."""
    types = prepare().types
    dimension = types['std_msgs/msg/MultiArrayDimension'](
        label=','.join(names), size=len(names), stride=len(names)
    )
    layout = types['std_msgs/msg/MultiArrayLayout'](dim=[dimension], data_offset=0)
    return types[COMMAND](layout=layout, data=values)


def _keep(store: dict[int, Any], key: int, value: Any) -> None:
    store[key] = value
    if len(store) > MOST_WAITING:
        del store[next(iter(store))]
