"""A recording through the controller again, offline: the same Session, the same steps, the same bits."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ...control import messages
from ...control.controller import Outputs
from ...control.node_state import NodeState
from ...control.session import AHEAD, PERIOD, Session, seconds
from ...control.settings import Settings
from ...control.terms.wrench import Wrench
from ...errors import BagError, InputError, KrangError
from ...robot.model import Robot
from ...safety.modes import Fault, Mode
from ..io.command_message import step_of
from ..io.joint_state_codec import JointStateReader
from ..io.reader import Bag
from .recorded_controller import DRIVING, RecordedController, StateRecord, StepRecord, recorded_controller
from .replay_result import Comparison, Replayed, ReplayWriter

WATCHDOG = round(1e9 * PERIOD)  # longest time between two steps [ns]
LONGEST_GAP = 60_000_000_000  # longest gap through which the watchdog steps while nothing is sent [ns]
SETTLING = 1_000_000_000  # after taking over from a controller in flight nothing is compared [ns]
MOST_WAITING = 1000  # messages that wait for the step that used them
CLOCK = '/clock'


def replay(
    bag: Bag,
    robot: Robot,
    overrides: Mapping[str, Any] | None = None,
    enable_at: float | None = None,
    node: str | None = None,
    out: str | None = None,
) -> Replayed:
    """Replay a recording, and write a bag if `out` names one.

    Parameters are the recorded ones except for `overrides`. `enable_at` [s] replaces the recorded requests;
    it is 0 if the recording has none.
    """
    recorded = recorded_controller(bag, node)
    if recorded.topic('joint_states') not in bag.topics:
        raise bag.missing_topic(recorded.topic('joint_states'))
    replayer = Replayer(bag, robot, recorded, overrides or {}, enable_at)
    if out is None:
        return replayer.run()
    replayer.writer = ReplayWriter(out, bag, recorded)
    try:
        return replayer.run()
    finally:
        replayer.writer.close()


class Input(NamedTuple):
    """A message that waits for its step."""

    arrival: int  # [ns]
    take: Callable[[Any, int], bool]  # hands it to the session at a time [ns]; whether a step is due
    content: Any
    stamp: int | None  # of a joint state [ns]; None: another message


class Replayer:
    """One Session in the time of a recording.

    Where commands are labelled, each step is made at the time of its label, with the states and requests
    that it had. Otherwise states and watchdog cause the steps, in the time of arrival or of /clock.
    """

    def __init__(
        self,
        bag: Bag,
        robot: Robot,
        recorded: RecordedController,
        overrides: Mapping[str, Any],
        enable_at: float | None,
    ) -> None:
        self.writer: ReplayWriter | None = None
        self._bag, self._robot, self._recorded, self._overrides = bag, robot, recorded, overrides
        self._follows = bool(recorded.states) and enable_at is None  # the recorded requests
        self._enable_at = None if self._follows else bag.start + round(1e9 * (enable_at or 0.0))
        self._takes_over = self._must_take_over = self._follows and recorded.was_driving
        self._labels = {step.time: step for step in recorded.steps} if self._follows else {}
        self._is_simulated = not self._labels and any(True for _ in bag.messages((CLOCK,)))
        self._arrival = bag.start  # of the newest message [ns]
        self._clock = 0  # simulated time [ns]
        self._stepped_at = self._now  # [ns]
        self._states = deque(recorded.states)
        self._states_at: dict[int | None, list[StateRecord]] = {}
        for record in recorded.states:
            self._states_at.setdefault(record.step, []).append(record)
        self._trajectories = self._read_trajectories() if self._labels else []
        self._inputs: deque[Input] = deque()
        self._steps: deque[StepRecord] = deque()
        self._configure(recorded.states[0].state if recorded.states else None)
        self._session.is_active = not self._follows or recorded.was_active
        self._seen: tuple[Mode, Fault | None] = (Mode.DISABLED, None)
        self._callbacks = self._topic_callbacks()
        controller = self._session.controller
        self.result = Replayed(str(bag.path), bag.duration, bag.start, recorded, controller.settings.terms)
        self.result.comparison = self._comparison = Comparison(controller.drivers)

    def _configure(self, state: NodeState | None) -> None:
        """A new controller, which has received nothing yet."""
        self._session = Session(self._robot, self._settings({} if state is None else state.parameters))
        self._reader = JointStateReader()
        self._answered = 0  # stamp of the newest joint state that a step has used [ns]

    def _settings(self, recorded: Mapping[str, Any]) -> Settings:
        """Settings as overridden, as recorded, or with their defaults."""
        return Settings.of(recorded).replace(**self._overrides)

    # -- the pass through the recording ------------------------------------------------------------------

    def run(self) -> Replayed:
        """From the first message to the last."""
        wanted = self._bag.topics if self.writer is not None else self._callbacks
        for topic, arrival, data in self._bag.in_order([t for t in wanted if t in self._bag.topics]):
            self._arrival = max(self._arrival, arrival)
            if self.writer is not None:
                self.writer.copy(topic, arrival, data)
            if topic in self._callbacks:
                self._callbacks[topic](data)
        self._arrival = max(self._arrival, self._bag.stop - 1)
        self._use_inputs(self._inputs)
        self._watch()
        if self._session.is_active and not self._labels:
            self._step(self._now, self._now)
        return self._finished()

    def _finished(self) -> Replayed:
        result, recorded = self.result, self._recorded
        if not result.states:
            joints = self._robot.config.joints.items()
            needed = ', '.join(sorted(name for name, joint in joints if joint.state == 'joint_states'))
            raise BagError(
                f'{self._bag.path}: {recorded.topic("joint_states")} never has all joints of '
                f'{self._robot.name} while its controller is active; they are {needed}'
            )
        if recorded.robot and recorded.robot != self._robot.name:
            result.notes.append(f'the recording is of {recorded.robot}, not of {self._robot.name}')
        if self.writer is not None and self.writer.left_out:
            result.notes.append(f'not copied: {", ".join(self.writer.left_out)}')
        result.notes += self._bag.damage
        return result

    @property
    def _now(self) -> int:
        """The controller's time without a label [ns]."""
        return self._clock if self._is_simulated else self._arrival - self._recorded.delay

    # -- messages ----------------------------------------------------------------------------------------

    def _topic_callbacks(self) -> dict[str, Callable[[bytes], None]]:
        """What to do with the bytes of each topic."""
        topic, config = self._recorded.topic, self._robot.config
        takers: dict[str, Callable[[Any, int], bool]] = {
            'deadman': lambda message, now: self._session.take_deadman(message),
            'emergency_stop': lambda message, now: self._session.take_emergency_stop(message),
        }
        if config.imu is not None:
            takers['imu'] = lambda message, now: self._session.take_imu(
                messages.imu_sample(message, seconds(now))
            )
        if config.odom is not None:
            takers['odom'] = lambda message, now: self._session.take_odom(
                messages.odom_sample(message, seconds(now))
            )
        if not self._labels:  # otherwise ~/state gives the step at which a trajectory took effect
            takers['joint_trajectory'] = lambda message, now: self._session.take_trajectory(message)
        for term in self._session.controller.terms:
            for frame in term.settings if isinstance(term, Wrench) else ():
                takers[f'wrench/{frame}'] = self._wrench_taker(frame)
        callbacks = {topic(name): self._queued(topic(name), take) for name, take in takers.items()}
        callbacks[topic('joint_states')] = self._on_states
        callbacks[topic('effort_commands')] = self._decoded(topic('effort_commands'), self._on_command)
        if self._recorded.name:
            callbacks[topic('~/state')] = self._on_state
        if self._is_simulated:
            callbacks[CLOCK] = self._decoded(CLOCK, self._on_clock)
        return callbacks

    def _read_trajectories(self) -> list[tuple[int, Any]]:
        topic = self._recorded.topic('joint_trajectory')
        return list(self._bag.read(topic)) if topic in self._bag.topics else []

    def _decoded(self, topic: str, take: Callable[[Any], None]) -> Callable[[bytes], None]:
        def callback(data: bytes) -> None:
            message = self._bag.decode(topic, data)
            if message is not None:
                take(message)

        return callback

    def _queued(self, topic: str, take: Callable[[Any, int], bool]) -> Callable[[bytes], None]:
        return self._decoded(topic, lambda message: self._queue(Input(self._arrival, take, message, None)))

    def _wrench_taker(self, frame: str) -> Callable[[Any, int], bool]:
        def take(message: Any, now: int) -> bool:
            return self._session.take_wrench(messages.wrench_sample(frame, message, seconds(now)))

        return take

    def _on_clock(self, message: Any) -> None:
        self._clock = message.clock.sec * 1_000_000_000 + message.clock.nanosec
        self._watch()

    def _on_states(self, data: bytes) -> None:
        try:
            self._reader.read(data, 0.0)
        except InputError as error:
            self.result.refuse(str(error))
            return
        whole, rest = self._reader.stamp
        stamp = whole * 1_000_000_000 + rest
        if self._is_simulated and self._clock < stamp <= self._clock + 1e9 * AHEAD:
            self._clock = stamp
        self._queue(Input(self._arrival, self._take_states, data, stamp))

    def _take_states(self, data: bytes, now: int) -> bool:
        sample = self._reader.read(data, seconds(now))
        is_complete = self._session.take_states(sample, self._reader.stamp)
        self.result.states += is_complete
        return is_complete

    def _on_command(self, message: Any) -> None:
        labels = step_of(message)
        if labels is not None and labels[1] in self._labels:
            self._steps.append(StepRecord(*labels, self._arrival))
            self._make_steps()
        values = np.asarray(message.data, dtype=float)
        if not self._takes_over or self._arrival > self._bag.start + SETTLING:
            self._comparison.take_recorded(self._arrival, labels and labels[1], values)

    # -- steps -------------------------------------------------------------------------------------------

    def _queue(self, entry: Input) -> None:
        self._inputs.append(entry)
        if self._labels and (self._session.is_sending or self._steps) and len(self._inputs) < MOST_WAITING:
            self._make_steps()
        else:
            self._watch()
            self._use_inputs(self._inputs)

    def _make_steps(self) -> None:
        """Labelled steps whose joint state has been read; topics may overtake each other."""
        while self._steps:
            step = self._steps[0]
            stamps = [entry.stamp for entry in self._inputs]
            is_new = step.stamp > self._answered
            if is_new and step.stamp not in stamps and len(self._inputs) < MOST_WAITING:
                return
            self._steps.popleft()
            count = self._inputs_of(step, stamps)
            used = [self._inputs.popleft() for _ in range(count)]
            self._use_inputs(deque(used[:-1]))
            for entry in used[-1:]:
                self._hand_over(entry, step.time)
            self._answered = max(self._answered, step.stamp)
            self._step(step.time, step.clock, **self._requests_at(step.time))

    def _inputs_of(self, step: StepRecord, stamps: list[int | None]) -> int:
        """How many of the waiting messages a labelled step used."""
        if step.stamp and step.stamp in stamps:
            return stamps.index(step.stamp) + 1
        before = [entry.arrival <= step.arrival for entry in self._inputs]
        if step.stamp:  # a step without a new state: what waits behind a state was not used
            before = [old and stamp is None for old, stamp in zip(before, stamps, strict=True)]
        return before.index(False) if False in before else len(before)

    def _use_inputs(self, entries: deque[Input]) -> None:
        """Hand over messages whose step is not labelled; complete joint states cause steps."""
        while entries:
            entry = entries.popleft()
            now = self._now if self._is_simulated else entry.arrival - self._recorded.delay
            if self._hand_over(entry, now):
                self._answered = max(self._answered, entry.stamp or 0)
                self._step(now, now if self._is_simulated else entry.arrival)
                self._enable_when_due(now)

    def _hand_over(self, entry: Input, now: int) -> bool:
        try:
            return entry.take(entry.content, now)
        except KrangError as error:
            self.result.refuse(str(error))
            return False

    def _watch(self) -> None:
        """Steps of the watchdog until now, if no message caused any and none is labelled."""
        if self._labels or not self._session.is_active:
            self._stepped_at = self._now
            return
        if self._now - self._stepped_at > LONGEST_GAP and not self._session.is_sending:
            self._stepped_at = self._now - WATCHDOG
        while self._stepped_at + WATCHDOG < self._now:
            self._step(self._stepped_at + WATCHDOG, self._stepped_at + WATCHDOG)

    def _enable_when_due(self, now: int) -> None:
        """Enable if no labelled step does: at `enable_at`, or to take over from a controller in flight."""
        is_due = self._enable_at is not None and self._arrival >= self._enable_at
        if is_due or (self._must_take_over and not self._labels):
            self._step(now, now, enable=True)
            if self._session.controller.safety.is_driving:
                self._enable_at = None

    def _step(self, now: int, clock: int, **requests: Any) -> Outputs:
        """One step at a time [ns], and what follows from it."""
        safety, ramp_time = self._session.controller.safety, self._session.controller.safety.ramp_time
        if self._must_take_over:
            safety.ramp_time = 0.0  # the recorded controller had ended its ramp
        outputs = self._session.step(seconds(now), seconds(clock), **requests)
        safety.ramp_time = ramp_time
        self._must_take_over &= not safety.is_driving
        self._stepped_at = now
        self.result.steps += 1
        for reason in outputs.refused:
            self.result.refuse(reason)
        if outputs.torque is not None:
            self.result.commands += 1
            self._comparison.take_replayed(self._arrival, now, outputs)
            if self.writer is not None:
                self.writer.command(self._arrival, self._session, now, clock, outputs)
        if (outputs.mode, outputs.fault) != self._seen:
            self._seen = (outputs.mode, outputs.fault)
            self.result.changes.append((self.result.since_start(self._arrival), *self._seen))
            if self.writer is not None:
                self.writer.change(self._arrival, outputs.mode, outputs.fault)
        return outputs

    # -- recorded requests -------------------------------------------------------------------------------

    def _on_state(self, data: bytes) -> None:
        """Messages of ~/state that no labelled step belongs to."""
        while self._states and self._states[0].time <= self._arrival:
            record = self._states.popleft()
            state = record.state
            if state.event == 'configure' and record is not self._recorded.states[0]:
                self._takes_over = self._must_take_over = False
                self._configure(state)
            if self._follows:
                self._session.is_active = state.mode != 'inactive'
            if record.step not in self._labels:
                requests = self._requests_of([record])
                if requests or (self._session.is_active and self._differs(state)):
                    self._use_inputs(self._inputs)
                    self._step(self._now, self._now, **requests)

    def _differs(self, state: NodeState) -> bool:
        safety = self._session.controller.safety
        kinds = [fault and fault.kind for fault in (state.fault, safety.fault)]
        return (state.mode, kinds[0]) != (safety.mode.value, kinds[1])

    def _requests_at(self, time: int) -> dict[str, Any]:
        """What was requested of the controller at a labelled step."""
        requests = self._requests_of(self._states_at.get(time, ()))
        return {'enable': True, **requests} if self._must_take_over else requests

    def _requests_of(self, records: Iterable[StateRecord]) -> dict[str, Any]:
        requests: dict[str, Any] = {}
        safety = self._session.controller.safety
        self._session.other_publisher = False
        for record in records:
            state = record.state
            if state.event == 'parameters':
                requests['settings'] = self._settings(state.parameters)
            if not self._follows:
                continue
            if state.event == 'trajectory' and self._labels:
                self._take_trajectory(state)
            if state.event == 'clear_fault' and state.fault is None:
                requests['clear_fault'] = True
            elif state.mode in DRIVING and not safety.is_driving:
                requests['enable'] = True
            elif state.mode == Mode.STOPPING.value and state.fault is None and safety.is_driving:
                requests['enable'] = False
            if state.fault is not None and state.fault.kind == 'publisher' and safety.fault is None:
                self._session.other_publisher = True
        return requests

    def _take_trajectory(self, state: NodeState) -> None:
        """The recorded trajectory that the controller accepted, by the time at which it received it."""
        if self._trajectories:
            _, message = min(self._trajectories, key=lambda entry: abs(entry[0] - state.trajectory))
            try:
                self._session.take_trajectory(message)
            except KrangError as error:
                self.result.refuse(str(error))
