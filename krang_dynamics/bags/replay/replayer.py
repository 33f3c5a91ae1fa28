"""A recording through the controller again, offline: the same Session, the same steps, the same bits."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
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
from ..io.command_message import state_key, step_of
from ..io.joint_state_codec import JointStateReader
from ..io.reader import Bag
from ..parallel import Progress
from .recorded_controller import DRIVING, RecordedController, StateRecord, StepRecord, recorded_controller
from .replay_result import Comparison, Replayed, ReplayWriter

WATCHDOG = round(1e9 * PERIOD)  # longest time between two steps [ns]
LONGEST_GAP = 60_000_000_000  # longest gap through which the watchdog steps while nothing is sent [ns]
STOP_REQUESTS = ('release', 'lower', 'fade')  # events of ~/state
SETTLING = 1_000_000_000  # after taking over from an active controller nothing is compared [ns]
MOST_WAITING = 1000  # messages that wait for the step that used them
SAME_TRAJECTORY = 1_000_000_000  # largest difference of its reception at controller and recorder [ns]
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
    if enable_at is not None and not 0 <= enable_at <= bag.duration:
        raise InputError(
            f'--enable-at is {enable_at:g} s; it must be within the recording, 0 .. {bag.duration:.3f} s'
        )
    recorded = recorded_controller(bag, node)
    if recorded.topic('joint_states') not in bag.topics:
        raise bag.missing_topic(recorded.topic('joint_states'))
    try:
        replayer = Replayer(bag, robot, recorded, overrides or {}, enable_at)
    except KrangError as error:
        if recorded.robot in ('', robot.name):
            raise
        raise BagError(
            f'{bag.path}: is a recording of {recorded.robot!r}, and the robot is {robot.name!r}: {error}'
        ) from None
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
    key: int | None  # of a joint state; None: another message


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
        self._labels = recorded.steps if self._follows else ()
        self._must_enable = False  # the recorded controller is enabled, and the replay is not yet
        self._enable_refusal = ''  # why the replay could not be enabled when the controller was
        self._is_recorded_idle = True  # since activation nothing was recorded that enables the controller
        self._last_state: Input | None = None  # the newest joint state that the session was given
        self._state_at: int | None = None  # when the newest joint state was recorded [ns]
        self._progress = Progress('replaying', bag.duration, ' s')
        self._made = 0  # labelled steps
        self._is_simulated = self._has_simulated_time()
        self._arrival = bag.start  # of the newest message [ns]
        # Simulated time [ns]; a flight recording has no /clock before its states.
        self._clock = max(0, self._labels[0].time - round(1e9 * AHEAD)) if self._labels else 0
        self._stepped_at = self._now  # [ns]
        self._states = deque(recorded.states)
        self._unstamped: set[int] = set()  # keys of joint states without a stamp
        self._order = self._order_of_states() if self._labels else {}
        self._states_at = recorded.steps_of_states() if self._follows else {}
        self._labelled_states = {id(record) for group in self._states_at.values() for record in group}
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

    def _has_simulated_time(self) -> bool:
        if self._labels:  # simulated: the controller's time is the node's clock, or a state ahead of it
            return abs(self._labels[0].time - self._labels[0].clock) <= 1e9 * AHEAD
        return any(True for _ in self._bag.messages((CLOCK,)))

    def _configure(self, state: NodeState | None) -> None:
        """A new controller, which has received nothing yet."""
        self._session = Session(self._robot, self._settings({} if state is None else state.parameters))
        if self._enable_at is not None or self._takes_over:  # it is enabled with its first state
            self._session.controller.state.buffer.state_rate.assume()
        self._reader = JointStateReader()
        self._answered = 0  # key of the newest joint state that the session has
        self._label = 0  # of the joint state that the last labelled step answered

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
            self._progress.show(self.result.since_start(self._arrival))
        self._progress.end()
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
            other = f'; the recording is of {recorded.robot}' if recorded.robot != self._robot.name else ''
            raise BagError(
                f'{self._bag.path}: {recorded.topic("joint_states")} never has all joints of '
                f'{self._robot.name} while its controller is active; they are {needed}'
                f'{other if recorded.robot else ""}'
            )
        if self._must_enable:
            result.refuse(self._enable_refusal)
        if self._takes_over:
            result.notes.append(
                'the controller was active before the recording: its reference is not known, so the replay '
                'holds the first position until the next trajectory'
            )
        if recorded.robot and recorded.robot != self._robot.name:
            result.notes.append(f'the recording is of {recorded.robot}, not of {self._robot.name}')
        lost = {key for step in self._labels if (key := self._key(step)) not in self._order}
        if lost:
            result.notes.append(f'{len(lost)} joint states that the controller answered are not recorded')
        if self.writer is not None and self.writer.left_out:
            result.notes.append(f'not copied: {", ".join(self.writer.left_out)}')
        result.notes += [f'! {fault}' for fault in self._bag.damage]
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
            'emergency_stop': self._take_emergency_stop,
        }
        if config.imu is not None:
            takers['imu'] = self._sampled('take_imu', messages.imu_sample)
        if config.odom is not None:
            takers['odom'] = self._sampled('take_odom', messages.odom_sample)
        if not self._labels:  # otherwise ~/state gives the step at which a trajectory took effect
            takers['joint_trajectory'] = lambda message, now: self._session.take_trajectory(message)
        for term in self._session.controller.terms:
            for frame in term.settings if isinstance(term, Wrench) else ():
                sample_of = partial(messages.wrench_sample, frame)
                takers[f'wrench/{messages.topic_word(frame)}'] = self._sampled('take_wrench', sample_of)
        targets = self._session.controller.targets
        for frame in targets.frames if targets is not None else ():
            for kind, sample in (('pose', messages.pose_sample), ('twist', messages.twist_sample)):
                take = self._sampled('take_target', partial(sample, frame))
                takers[f'target_{kind}/{messages.topic_word(frame)}'] = take
        callbacks = {topic(name): self._queued(topic(name), take) for name, take in takers.items()}
        callbacks[topic('joint_states')] = self._on_states
        callbacks[topic('effort_commands')] = self._decoded(topic('effort_commands'), self._on_command)
        if self._recorded.name:
            callbacks[topic('~/state')] = self._on_state
        if self._is_simulated:
            callbacks[CLOCK] = self._decoded(CLOCK, self._on_clock)
        return callbacks

    def _order_of_states(self) -> dict[int, int]:
        """Joint states in their order, by key: a recorder may have lost some that the controller answered."""
        reader, order = JointStateReader(), dict[int, int]()
        for index, (_, _, data) in enumerate(self._bag.messages((self._recorded.topic('joint_states'),))):
            try:
                reader.read(data, 0.0)
            except InputError:
                continue
            key = state_key(data, reader.stamp)
            order.setdefault(key, index)
            if reader.stamp == (0, 0):
                self._unstamped.add(key)
        return order

    def _key(self, step: StepRecord) -> int:
        """The key of the joint state that a labelled step answers."""
        without_time = step.stamp - step.stamp % 1_000_000_000
        return without_time if without_time in self._unstamped else step.stamp

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

    def _sampled(self, take: str, sample_of: Callable[[Any, float], Any]) -> Callable[[Any, int], bool]:
        """Hands the sample of a message to a method of the session, which _configure() may have replaced."""
        return lambda message, now: getattr(self._session, take)(sample_of(message, seconds(now)))

    def _on_clock(self, message: Any) -> None:
        self._clock = message.clock.sec * 1_000_000_000 + message.clock.nanosec
        self._watch()

    def _on_states(self, data: bytes) -> None:
        try:
            self._reader.read(data, 0.0)
        except InputError as error:
            self.result.refuse(str(error))
            return
        key = state_key(data, self._reader.stamp)
        self._note_gap(key if self._is_simulated else self._arrival)
        if self._is_simulated and self._clock < key <= self._clock + 1e9 * AHEAD:
            self._clock = key
        self._queue(Input(self._arrival, self._take_states, data, key))

    def _note_gap(self, now: int) -> None:
        """Note a gap of the joint states that is longer than state_timeout."""
        before, self._state_at = self._state_at, now
        if before is not None and now - before > 1e9 * self._session.controller.settings.state_timeout:
            self.result.gaps.append((self.result.since_start(self._arrival), seconds(now - before)))

    def _take_states(self, data: bytes, now: int) -> bool:
        sample = self._reader.read(data, seconds(now))
        is_complete = self._session.take_states(sample, self._reader.stamp)
        self.result.states += is_complete
        return is_complete

    def _take_emergency_stop(self, message: Any, now: int) -> bool:
        """With labels, ~/state tells at which step a press took effect."""
        if self._labels and message.data and self._session.controller.safety.fault is None:
            return False
        return self._session.take_emergency_stop(message)

    def _on_command(self, message: Any) -> None:
        index = None
        if self._labels and step_of(message) is not None:
            index = self._made + len(self._steps)
            self._steps.append(self._labels[index])
        values = np.asarray(message.data, dtype=float)
        self._expect_enabled()
        if not self._takes_over or self._arrival > self._bag.start + SETTLING:
            self._comparison.take_recorded(self._arrival, index, values)
        self._make_steps()

    def _expect_enabled(self) -> None:
        """A command without a recorded request: auto_enable has enabled the controller."""
        controller = self._session.controller
        if self._follows and self._is_recorded_idle and controller.settings.auto_enable:
            self._must_enable |= not controller.safety.is_driving
            controller.state.buffer.state_rate.assume()
            self._is_recorded_idle = False

    # -- steps -------------------------------------------------------------------------------------------

    def _queue(self, entry: Input) -> None:
        self._inputs.append(entry)
        is_full = len(self._inputs) >= MOST_WAITING
        if self._labels and (self._session.is_sending or self._steps) and not is_full:
            self._make_steps()
            return
        self._watch()
        while self._inputs and (is_full or not self._is_after_next_step(self._inputs[0])):
            self._use_inputs(deque([self._inputs.popleft()]))

    def _is_after_next_step(self, entry: Input) -> bool:
        """Whether a joint state is newer than the one that the next labelled step answers."""
        if entry.key is None or self._made >= len(self._labels):
            return False
        answered = self._order.get(self._key(self._labels[self._made]))
        return answered is not None and self._order.get(entry.key, 0) > answered

    def _make_steps(self) -> None:
        """Labelled steps whose joint state has been read; topics may overtake each other."""
        while self._steps and (self._take_inputs_of(self._steps[0]) or len(self._inputs) >= MOST_WAITING):
            step = self._steps.popleft()
            self._label = step.stamp
            self._clock = max(self._clock, step.clock)
            index, self._made = self._made, self._made + 1
            self._step(step.time, step.clock, index, **self._requests_at(index))

    def _take_inputs_of(self, step: StepRecord) -> bool:
        """Hand over the messages that a labelled step used; False where its joint state is not read yet."""
        key, is_due = self._key(step), False
        keys = [entry.key for entry in self._inputs]
        has_state = step.stamp != self._label and (self._session.is_sending or key != self._answered)
        if has_state and key in keys:
            self._use_inputs(deque(self._inputs.popleft() for _ in range(keys.index(key))))
            is_due = self._hand_over(self._inputs.popleft(), step.time)
        elif has_state and self._last_state is not None and key == self._last_state.key:
            is_due = self._hand_over(self._last_state, step.time)  # from before activation
        elif has_state and key in self._order:
            return False
        # Other messages: those that complete this joint state, or that were there when the step began.
        while not is_due and self._inputs and self._inputs[0].key is None:
            entry = self._inputs[0]
            if entry.arrival > step.arrival or not (has_state or self._was_there(entry, step)):
                break
            is_due = self._hand_over(self._inputs.popleft(), step.time)
        return True

    def _was_there(self, entry: Input, step: StepRecord) -> bool:
        """Whether a message had arrived when a step began; simulated time stands still meanwhile."""
        if not self._is_simulated:
            return entry.arrival <= step.clock
        header = getattr(entry.content, 'header', None)
        return header is None or messages.seconds(header.stamp) <= seconds(step.clock)

    def _use_inputs(self, entries: deque[Input]) -> None:
        """Hand over messages whose step is not labelled; complete joint states cause steps."""
        while entries:
            entry = entries.popleft()
            now = self._now if self._is_simulated else entry.arrival - self._recorded.delay
            is_complete = self._hand_over(entry, now)
            if is_complete:
                self._step(now, now if self._is_simulated else entry.arrival)
                self._enable_when_due(now)

    def _hand_over(self, entry: Input, now: int) -> bool:
        if entry.key is not None:
            self._answered, self._last_state = entry.key, entry
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
        end = min(self._now, self._stepped_at + 2 * LONGEST_GAP)  # a stop has ended by then
        while self._stepped_at + WATCHDOG < end:
            self._step(self._stepped_at + WATCHDOG, self._stepped_at + WATCHDOG)
        if end < self._now:
            self._stepped_at = self._now - WATCHDOG

    def _enable_when_due(self, now: int) -> None:
        """Enable if no labelled step does: at `enable_at`, or to take over from an active controller."""
        is_due = self._enable_at is not None and self._arrival >= self._enable_at
        if is_due or ((self._must_take_over or self._must_enable) and not self._labels):
            self._step(now, now, enable=True)
            if self._session.controller.safety.is_driving:
                self._enable_at = None

    def _step(self, now: int, clock: int, index: int | None = None, **requests: Any) -> Outputs:
        """One step at a time [ns], and what follows from it; `index` is that of a labelled step."""
        safety, ramp_time = self._session.controller.safety, self._session.controller.safety.ramp_time
        if self._must_take_over:
            safety.ramp_time = 0.0  # the recorded controller had ended its ramp
        outputs = self._session.step(seconds(now), seconds(clock), **requests)
        safety.ramp_time = ramp_time
        self._must_take_over &= not safety.is_driving
        self._must_enable &= not safety.is_driving
        self._stepped_at = now
        self.result.steps += 1
        for reason in outputs.refused:
            if self._must_enable and reason.startswith('enable: '):  # it is tried again
                self._enable_refusal = reason
            else:
                self.result.refuse(reason)
        if outputs.torque is not None:
            self.result.commands += 1
            self._comparison.take_replayed(index, outputs)
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
                self._follow_mode(state.mode)
            if id(record) not in self._labelled_states:
                requests = self._requests_of([record])
                if requests or (self._session.is_active and self._differs(state)):
                    self._use_inputs(self._inputs)
                    self._step(self._now, self._now, **requests)

    def _follow_mode(self, mode: str) -> None:
        """Follow activation of the recorded controller; a session that becomes active has no state yet."""
        is_active = mode != 'inactive'
        if is_active and not self._session.is_active:
            self._answered, self._is_recorded_idle = 0, True
        self._session.is_active = is_active
        self._must_enable &= mode in DRIVING

    def _differs(self, state: NodeState) -> bool:
        safety = self._session.controller.safety
        kinds = [fault and fault.kind for fault in (state.fault, safety.fault)]
        return (state.mode, kinds[0]) != (safety.mode.value, kinds[1])

    def _requests_at(self, index: int) -> dict[str, Any]:
        """What was requested of the controller at a labelled step."""
        requests = self._requests_of(self._states_at.get(index, ()))
        return {'enable': True, **requests} if self._must_take_over or self._must_enable else requests

    def _requests_of(self, records: Iterable[StateRecord]) -> dict[str, Any]:
        requests: dict[str, Any] = {}
        safety = self._session.controller.safety
        self._session.other_publisher, self._session.self_problem = False, ''
        for record in records:
            state = record.state
            if state.event == 'parameters':
                requests['settings'] = self._settings(state.parameters)
            if not self._follows:
                continue
            if state.event == 'trajectory' and self._labels:
                self._take_trajectory(state)
            if state.event in STOP_REQUESTS:
                requests[state.event] = True
            elif state.event == 'clear_fault' and state.fault is None:
                requests['clear_fault'] = True
            elif state.mode in DRIVING and not safety.is_driving:
                requests['enable'] = self._must_enable = True
                self._session.controller.state.buffer.state_rate.assume()  # the recorded controller knew it
                self._is_recorded_idle = False
            elif state.mode == Mode.STOPPING.value and state.fault is None and safety.is_driving:
                requests['enable'] = False
            if state.fault is not None and safety.fault is None:
                self._session.other_publisher = state.fault.kind == 'publisher'
                if state.fault.kind == 'self_distance':  # the monitor is not part of the replay
                    self._session.self_problem = state.fault.reason
                if state.fault.kind == 'emergency_stop' and self._labels:
                    requests['emergency_stop'] = True
        return requests

    def _take_trajectory(self, state: NodeState) -> None:
        """The recorded trajectory that the controller accepted, by the time at which it received it."""
        near = [(abs(time - state.trajectory), k) for k, (time, _) in enumerate(self._trajectories)]
        distance, k = min(near, default=(SAME_TRAJECTORY, 0))
        if distance >= SAME_TRAJECTORY:
            if state.trajectory < self._bag.start:  # of the time before the recording
                return
            time = self.result.since_start(self._arrival)
            self.result.notes.append(f'the trajectory that was accepted at {time:.3f} s is not recorded')
            return
        try:
            self._session.take_trajectory(self._trajectories[k][1])
        except KrangError as error:
            self.result.refuse(str(error))
