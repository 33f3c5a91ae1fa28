"""A recording lived through again: its inputs go through the very step of the controller, offline."""

import struct
from collections import deque
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

import numpy as np

from ...arrays import Array
from ...control import messages
from ...control.controller import Inputs, Outputs
from ...control.making import controller_of, new_values
from ...control.parameters import PARAMETERS, frame_parameters
from ...control.request_queue import RequestQueue
from ...control.state_collector import StateCollector
from ...errors import BagError, InputError, KrangError, suggestion
from ...robot.model import Robot
from ...safety.joint_buffer import JointSamples
from ...safety.modes import Fault, Mode
from ..io.joint_state_codec import parse
from ..io.reader import Bag
from .recorded_controller import DRIVING, RecordedController, StateRecord, recorded_controller
from .replay_result import Comparison, Replayed, Tape

WATCH = 10_000_000  # longest time between two steps [ns], as in the node
LONGEST_GAP = 60_000_000_000  # that is stepped through though nothing is sent [ns]
AHEAD = 1_000_000_000  # by which a state may be ahead of a simulated clock [ns]
SETTLING = 1_000_000_000  # after taking over from a controller in flight nothing is compared [ns]
CLOCK = '/clock'


def replay(
    bag: Bag,
    robot: Robot,
    overrides: Mapping[str, Any] | None = None,
    enable_at: float | None = None,
    node: str | None = None,
    out: str | None = None,
) -> Replayed:
    """Replay a recording, and write a bag where `out` names one.

    Parameters are the recorded ones but for `overrides`. `enable_at` [s] is in place of the recorded
    requests, and 0 where there are none.
    """
    story = recorded_controller(bag, node)
    if story.topic('joint_states') not in bag.topics:
        raise bag.missing_topic(story.topic('joint_states'))
    player = Replay(bag, robot, story, overrides or {}, enable_at)
    if out is None:
        return player.run()
    player.tape = Tape(out, bag, story)
    try:
        return player.run()
    finally:
        player.tape.close()


def values_of(recorded: Mapping[str, Any], robot: Robot, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Every parameter: as overridden, as recorded, or its default."""
    known = {p.name: p for p in chain(PARAMETERS, frame_parameters(robot, [*recorded, *overrides]))}
    for name in overrides:
        if name not in known:
            raise InputError(f'there is no parameter {name!r}{suggestion(name, known)}')
    values = {name: parameter.default for name, parameter in known.items()}
    values |= {name: value for name, value in recorded.items() if name in known}
    return values | {name: known[name].checked(value) for name, value in overrides.items()}


class Replay:
    """One controller in the time of a recording: that of arrival, or that of its /clock.

    States, watch and requests lead to steps as they do in the node. Nothing else has a part in it, so that
    the same recording gives the same output to the last bit.
    """

    def __init__(
        self, bag: Bag, robot: Robot, story: RecordedController, overrides: Mapping[str, Any], enable_at: float | None
    ) -> None:
        self.tape: Tape | None = None
        self._bag, self._robot, self._story, self._overrides = bag, robot, story, overrides
        self._is_simulated = any(True for _ in bag.messages((CLOCK,)))
        self._arrival = bag.start  # of the newest message [ns]
        self._clock = 0  # simulated time [ns]
        self._stepped_at = 0 if self._is_simulated else bag.start
        self._follows = bool(story.said) and enable_at is None  # the recorded requests
        self._enable_from = None if self._follows else bag.start + round(1e9 * (enable_at or 0.0))
        self._takes_over = self._follows and story.was_driving
        self._is_active = not self._follows or story.was_active
        self._said = deque(story.said)
        self._names: dict[tuple[str, ...], tuple[str, ...]] = {}  # one object for each list of names
        self._configure(story.said[0].parameters if story.said else {})
        self._seen: tuple[Mode, Fault | None] = (Mode.DISABLED, None)
        self._takers = self._inputs() | self._recorded_outputs()
        controller = self._controller
        self.result = Replayed(str(bag.path), bag.duration, bag.start, story, controller.settings.terms)
        self.result.comparison = Comparison(controller)

    def _configure(self, recorded: Mapping[str, Any]) -> None:
        """A new controller, and nothing that has come for it yet."""
        self._values = values_of(recorded, self._robot, self._overrides)
        self._controller = controller_of(self._values, self._robot)
        self._gathering = StateCollector(self._robot)
        self._wants_enable = self._takes_over
        self._requests = RequestQueue()
        self._newest = self._stamp = 0  # stamps of the newest state, and of the last that was answered [ns]

    def _inputs(self) -> dict[str, Callable[[bytes], None]]:
        """What to do with a message of each topic that is heeded."""
        topic, config = self._story.topic, self._robot.config
        takers = {
            topic('joint_states'): self._on_states,
            topic('joint_trajectory'): self._decoded('joint_trajectory', self._on_trajectory),
            topic('deadman'): self._decoded('deadman', self._on_deadman),
            topic('emergency_stop'): self._decoded('emergency_stop', self._on_emergency_stop),
        }
        if config.imu is not None:
            takers[topic('imu')] = self._decoded('imu', self._on_imu)
        if config.odom is not None:
            takers[topic('odom')] = self._decoded('odom', self._on_odom)
        for frame in self._controller.settings.wrenches:
            takers[topic(f'wrench/{frame}')] = self._decoded(f'wrench/{frame}', self._wrench_taker(frame))
        if self._is_simulated:
            takers[CLOCK] = self._on_clock
        return takers

    def _recorded_outputs(self) -> dict[str, Callable[[bytes], None]]:
        """What the controller said and commanded when it was recorded."""
        topic = self._story.topic
        takers: dict[str, Callable[[bytes], None]] = {}
        if self._story.name:
            takers[topic('~/state')] = self._on_said
        if self._story.name and topic('~/torques') in self._bag.topics:
            takers[topic('~/torques')] = self._on_torques
        else:
            takers[topic('effort_commands')] = self._decoded('effort_commands', self._on_command)
        return takers

    def _decoded(self, name: str, take: Callable[[Any], None]) -> Callable[[bytes], None]:
        topic = self._story.topic(name)

        def taker(data: bytes) -> None:
            message = self._bag.decode(topic, data)
            if message is not None:
                try:
                    take(message)
                except KrangError as error:  # of a message that is no message
                    self.result.refuse(str(error))

        return taker

    # -- the pass through the recording ------------------------------------------------------------------

    def run(self) -> Replayed:
        """From the first message to the last."""
        topics = (
            self._bag.topics if self.tape is not None else [t for t in self._takers if t in self._bag.topics]
        )
        for topic, arrival, data in self._bag.in_order(topics):
            self._arrival = max(self._arrival, arrival)
            if self.tape is not None:
                self.tape.copy(topic, arrival, data)
            if topic in self._takers:
                if not self._is_simulated:
                    self._watch()
                self._takers[topic](data)
        self._arrival = max(self._arrival, self._bag.stop - 1)
        self._watch()
        if self._is_active:
            self._step()
        return self._finished()

    def _finished(self) -> Replayed:
        result, story = self.result, self._story
        if not result.states:
            needed = ', '.join(
                sorted(n for n, j in self._robot.config.joints.items() if j.state == 'joint_states')
            )
            raise BagError(
                f'{self._bag.path}: {story.topic("joint_states")} never has all joints of '
                f'{self._robot.name} while its controller is active; they are {needed}'
            )
        if story.robot and story.robot != self._robot.name:
            result.notes.append(f'the recording is of {story.robot}, not of {self._robot.name}')
        if self.tape is not None and self.tape.left_out:
            result.notes.append(f'not copied: {", ".join(self.tape.left_out)}')
        result.notes += self._bag.damage
        return result

    @property
    def _now(self) -> int:
        """The controller's time [ns]."""
        return self._clock if self._is_simulated else self._arrival

    def _watch(self) -> None:
        """The steps that the watch made before now, where no state brought any."""
        is_idle = self._now - self._stepped_at > LONGEST_GAP and not self._controller.safety.is_sending
        if is_idle or not self._is_active:
            self._stepped_at = self._now - WATCH
        while self._is_active and self._stepped_at + WATCH < self._now:
            self._step(self._stepped_at + WATCH)

    # -- what comes in -----------------------------------------------------------------------------------

    def _on_clock(self, data: bytes) -> None:
        message = self._bag.decode(CLOCK, data)
        if message is not None:
            self._clock = message.clock.sec * 1_000_000_000 + message.clock.nanosec
            self._watch()

    def _on_states(self, data: bytes) -> None:
        try:
            sample, stamp = self._sample(data)
        except ValueError as error:
            self.result.refuse(f'joint_states: the message {error}')
            return
        if self._is_simulated and self._clock < stamp <= self._clock + AHEAD:
            self._clock = stamp
            sample, _ = self._sample(data)
        if not self._is_active:
            self._gathering.forget_states()
        self._newest = stamp
        if self._gathering.take_sample(sample):
            self._answer()

    def _answer(self) -> None:
        """A step for states that are complete."""
        if not self._is_active:
            return
        self._stamp = self._newest
        self.result.states += 1
        self._step()
        if self._enable_from is not None and self._arrival >= self._enable_from:
            self._wants_enable, self._enable_from = True, None
        if self._wants_enable:
            self._enable_by_itself()

    def _enable_by_itself(self) -> None:
        """As asked for; or without a ramp where the recording began with torque in flight."""
        safety = self._controller.safety
        ramp_time = safety.ramp_time
        safety.ramp_time = 0.0 if self._takes_over else ramp_time
        self._step(enable=True)
        safety.ramp_time = ramp_time
        self._wants_enable = not safety.is_driving

    def _on_imu(self, message: Any) -> None:
        if self._gathering.take_other('imu', messages.imu_sample(message, _seconds(self._now))):
            self._answer()

    def _on_odom(self, message: Any) -> None:
        if self._gathering.take_other('odom', messages.odom_sample(message, _seconds(self._now))):
            self._answer()

    def _wrench_taker(self, frame: str) -> Callable[[Any], None]:
        def on_wrench(message: Any) -> None:
            sample = messages.wrench_sample(frame, message, _seconds(self._now))
            self._requests.take_wrench(frame, sample)

        return on_wrench

    def _on_trajectory(self, message: Any) -> None:
        if self._is_active:
            self._requests.take_trajectory(message)

    def _on_deadman(self, message: Any) -> None:
        self._requests.take_deadman(message)

    def _on_emergency_stop(self, message: Any) -> None:
        self._requests.take_emergency_stop(message)

    # -- what the recorded controller did ----------------------------------------------------------------

    def _on_said(self, data: bytes) -> None:
        while self._said and self._said[0].time <= self._arrival:
            self._heed(self._said.popleft())

    def _heed(self, said: StateRecord) -> None:
        """Its requests are made again, and where it tells of a change, a step was made just before."""
        if said.event == 'configure' and said is not self._story.said[0]:
            self._takes_over = False
            self._configure(said.parameters)
            self._wants_enable = not self._follows
        if self._follows:
            self._is_active = said.mode != 'inactive'
            self._wants_enable &= said.mode in DRIVING
        changes = self._request(said)
        safety = self._controller.safety
        recorded = (said.mode, said.fault and said.fault[0])
        if changes or (
            self._is_active and recorded != (safety.mode.value, safety.fault and safety.fault.kind)
        ):
            self._step(**changes)

    def _request(self, said: StateRecord) -> dict[str, Any]:
        """What was asked of the controller, and granted, when it said so."""
        safety = self._controller.safety
        if said.event == 'parameters':
            before, self._values = self._values, values_of(said.parameters, self._robot, self._overrides)
            return new_values(self._values, before, self._robot)
        if not self._follows:
            return {}
        if said.event == 'enable' and said.mode in DRIVING:
            return {'enable': True}
        if said.event == 'clear_fault' and said.fault is None:
            return {'clear_fault': True}
        if said.mode == Mode.STOPPING.value and said.fault is None and safety.is_driving:
            return {'enable': False}
        if said.fault is not None and said.fault[0] == 'publisher' and safety.fault is None:
            return {'other_publisher': True}
        return {}

    def _on_torques(self, data: bytes) -> None:
        try:
            sample, stamp = self._sample(data)
        except ValueError:
            return
        if self._is_compared:
            self._comparison.recorded(self._arrival, stamp, sample)

    def _on_command(self, message: Any) -> None:
        if self._is_compared:
            self._comparison.recorded_command(self._arrival, np.asarray(message.data, dtype=float))

    @property
    def _is_compared(self) -> bool:
        return not self._takes_over or self._arrival > self._bag.start + SETTLING

    @property
    def _comparison(self) -> Comparison:
        assert self.result.comparison is not None
        return self.result.comparison

    # -- the step ----------------------------------------------------------------------------------------

    def _step(self, time: int | None = None, **changes: Any) -> Outputs:
        """One step now, or at a time of the watch [ns], with all that has come."""
        time = self._now if time is None else time
        inputs = Inputs(_seconds(time), _seconds(time), **changes)
        self._gathering.empty_into(inputs)
        self._requests.empty_into(inputs)
        outputs = self._controller.step(inputs)
        self._stepped_at = time
        self._tell(self._arrival if self._is_simulated else time, outputs)
        return outputs

    def _tell(self, time: int, outputs: Outputs) -> None:
        result = self.result
        result.steps += 1
        for reason in outputs.refused:
            result.refuse(reason)
        if outputs.command is not None:
            result.commands += 1
            self._comparison.replayed(self._stamp, outputs)
            if self.tape is not None:
                self.tape.command(time, self._stamp, self._controller, outputs)
        if (outputs.mode, outputs.fault) != self._seen:
            self._seen = (outputs.mode, outputs.fault)
            result.changes.append((result.since_start(time), outputs.mode, outputs.fault))
            if self.tape is not None:
                self.tape.change(time, outputs.mode, outputs.fault)

    def _sample(self, data: bytes) -> tuple[JointSamples, int]:
        """A joint state, and its stamp [ns]; ValueError where it is none."""
        layout = parse(data)
        seconds, nanoseconds = struct.unpack_from(f'{layout.order}iI', data, 4)

        def doubles(i: int) -> Array:
            return np.frombuffer(data, f'{layout.order}f8', layout.counts[i], layout.offsets[i])

        sample = JointSamples(
            self._names.setdefault(layout.names, layout.names),
            doubles(0),
            doubles(1),
            doubles(2),
            seconds + 1e-9 * nanoseconds,
            _seconds(self._now),
        )
        return sample, seconds * 1_000_000_000 + nanoseconds


def _seconds(time: int) -> float:
    """A time [ns] in s, rounded as stamps are: a state of now is neither before nor after it."""
    seconds, nanoseconds = divmod(time, 1_000_000_000)
    return seconds + 1e-9 * nanoseconds
