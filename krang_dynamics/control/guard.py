"""The guard between controller and drivers: relays what is right, and takes over when nothing right comes."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite

import numpy as np

from ..arrays import Array
from ..errors import InputError, KrangError
from ..robot.model import Robot
from ..robot.payload import Payload
from ..safety.joint_buffer import JointSamples
from ..safety.limits import Limits
from ..safety.modes import Fault, Mode
from ..safety.safety_stage import SafetyStage
from .command_check import Command, CommandCheck
from .drivers import Drivers
from .robot_state import RobotState
from .sensors import ImuSample, OdomSample
from .settings import Settings, commanded_joints, stop_rate

OTHER_PUBLISHER = 'another publisher commands the drivers; stop it first'


@dataclass
class GuardSettings(Settings):
    """A controller's settings, of which a guard heeds those on joints, states and stopping."""

    terms: tuple[str, ...] = ()
    silence: float = 0.05  # after which it takes over [s]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.silence < inf:
            raise InputError(f'silence is {self.silence}; it must be more than 0 s')


@dataclass(slots=True)
class GuardInputs:
    """Everything that reaches a guard at one step."""

    time: float  # steady clock [s]
    clock: float  # the node's clock, which stamps are on [s]
    samples: Sequence[JointSamples] = ()
    imu: Sequence[ImuSample] = ()
    odom: Sequence[OdomSample] = ()
    commands: Sequence[Command] = ()
    gravity: Array | None = None  # direction and size, root link's axes [m/s2]
    payloads: Sequence[Payload] | None = None  # all that is carried from now on
    clear_fault: bool = False
    other_publisher: bool = False  # somebody else commands the drivers
    stop: bool = False  # the guard is to end: torque in flight is stopped, and nothing relayed any more


@dataclass(slots=True)
class GuardOutputs:
    """What a step leads to; no command means that nothing is to be sent."""

    command: Array | None  # for the drivers, in their order and unit
    mode: Mode  # DISABLED: idle; ACTIVE: relaying
    fault: Fault | None
    relayed: bool  # whether the command is the controller's, untouched
    refused: list[str] = field(default_factory=list)  # what was not taken, and why


class Guard:
    """Relays the controller's commands as they are, and runs the robot's stop policy when it must.

    Commands that follow each other are a stream, which is relayed or refused from its beginning to the
    silence at its end. One that breaks off, or goes wrong, is followed by the stop policy, from the last
    command relayed, on the guard's own joint states, and by a latched fault.
    """

    def __init__(self, robot: Robot, settings: GuardSettings) -> None:
        self.robot = robot
        self.settings = settings
        self.drivers = Drivers(robot, commanded_joints(robot, settings), settings.command_unit)
        self.limits = Limits.of(robot)
        rate = stop_rate(robot, settings, self.drivers.joints)
        self.limits.stop_rate = self.limits.stop_rate if rate is None else rate
        self.body = RobotState(robot, settings, self.drivers)
        self._buffer = self.body.buffer
        self.safety = self._new_safety()
        self._inspection = CommandCheck(robot, self.drivers, self.limits)
        self._relayed: Array | None = None  # the last command, while relaying
        self._heard = -inf  # when the last command came, good or not [s]
        self._is_barred = False  # whether the present stream is refused to its end
        self._told = ''  # kind of the last refusal
        self._was_ready = False  # whether there ever was a valid state
        self._ends = False
        self._time = 0.0  # of the last step [s]

    def _new_safety(self) -> SafetyStage:
        """The stage that makes the guard's own commands; disabled as long as it relays."""
        commanded = np.isin(self.robot.joint_names, self.drivers.joints).astype(float)
        return SafetyStage(self.robot, self.limits, self.settings.stop(self.robot), 0.0, commanded)

    @property
    def mode(self) -> Mode:
        return Mode.ACTIVE if self.is_relaying else self.safety.mode

    @property
    def is_relaying(self) -> bool:
        return self._relayed is not None

    @property
    def is_sending(self) -> bool:
        """Whether torque is in flight, the controller's or the guard's own."""
        return self.is_relaying or self.safety.is_sending

    # -- the one function ------------------------------------------------------------------------------

    @np.errstate(all='ignore')  # what overflows is not finite, and is treated as that
    def step(self, inputs: GuardInputs) -> GuardOutputs:
        """One turn: look at the robot, then at what the controller sends; pass that on, or stop."""
        if not isfinite(inputs.time):
            self._trip(self._time, Fault('clock', f'the time is {inputs.time} s'))
            inputs = replace(inputs, time=self._time)
        now = inputs.time
        refused: list[str] = []
        stamped, stop, command = None, None, None
        try:
            late = self._late(now)
            stamped = self.body.take(inputs, refused)
            if inputs.payloads is not None or inputs.gravity is not None:
                self._carry(inputs, refused)
            stale = self._buffer.stale(now, inputs.clock, self.settings.state_timeout)
            self._watch(inputs, late or stale)
            self._inspection.go_on(now, self._buffer.v, self.settings.state_timeout)
            command = self._hear(inputs, stale, refused)
            self._notice_silence(now)
            if inputs.clear_fault:
                _note(refused, self._clear(now))
            if stale is None:
                self.body.dynamics.update(self._buffer.q, self._buffer.v)
                stop = self.body.stop_torque()
        except Exception as error:  # a bad turn never throws into the loop: it ends in the stop policy
            self._trip(now, Fault('exception', f'{type(error).__name__}: {error}'))
        own = self.safety.step(now, stamped, None, stop)
        self._time = now
        if not self.is_relaying:
            command = self._own_command(own)
        relayed = self.is_relaying and command is not None
        return GuardOutputs(command, self.mode, self.safety.fault, relayed, refused)

    def _own_command(self, torque: Array | None) -> Array | None:
        """The guard's own torque for the drivers; as at every stop, the last command is zero."""
        if torque is None:
            self._inspection.forget()
            return None
        command = np.zeros(len(self.drivers.names))
        if self.safety.is_sending:
            command = self.drivers.command(torque, self._buffer.v)
        self._inspection.follow(command, torque)
        return command

    def _carry(self, inputs: GuardInputs, refused: list[str]) -> None:
        """Another load or gravity: both or, where one of them cannot be, neither."""
        try:
            self.body.carry(self.body.load(inputs.payloads, inputs.gravity))
        except KrangError as error:
            refused.append(str(error))

    # -- what ends the relaying ------------------------------------------------------------------------

    def _trip(self, now: float, fault: Fault) -> None:
        """Latch a fault; torque in flight ends in the stop policy."""
        self._take_over(now)
        self.safety.trip(now, fault)

    def _take_over(self, now: float) -> None:
        """The safety stage drives on from the torque of the last command relayed, if that was any."""
        relayed, self._relayed = self._relayed, None
        if relayed is None or not relayed.any():  # what has been let go is not taken up again
            return
        torque, limits = self.drivers.torque(relayed, self._buffer.v), self.safety.limits
        # A limit that is below this torque is reached at the stop rate, not in a jump.
        effort, limits.effort = limits.effort, np.maximum(limits.effort, np.abs(torque))
        self.safety.enable(now, torque)
        limits.effort = effort

    def _late(self, now: float) -> str | None:
        """A guard that was away for so long has watched nobody."""
        gap, timeout = now - self._time, self.settings.state_timeout
        if not self.is_sending or gap <= timeout:
            return None
        return f'no step for {gap:.3f} s, the limit is {timeout:g} s'

    def _watch(self, inputs: GuardInputs, unfit: str | None) -> None:
        now = inputs.time
        if self.is_sending and unfit is not None:
            self._trip(now, Fault('state', unfit))
        elif self.is_sending and inputs.other_publisher:
            self._trip(now, Fault('publisher', OTHER_PUBLISHER))
        if inputs.stop:
            self._ends = True
            self._take_over(now)
            self.safety.disable(now)

    def _notice_silence(self, now: float) -> None:
        """Silence after zero is a controller that has stopped; any other is one that has gone."""
        if self._relayed is None or self._is_heard(now):
            return
        if self._relayed.any():
            self._trip(now, Fault('silence', f'no command for {now - self._heard:.3f} s'))
        self._relayed = None  # back to idle

    def _is_heard(self, now: float) -> bool:
        return abs(now - self._heard) <= self.settings.silence

    def _clear(self, now: float) -> str | None:
        """Forget a fault, and the stamps' past; a reason where that is refused."""
        if self.safety.fault is not None and self._is_heard(now):
            return 'clear_fault: commands are still coming; disable the controller first'
        reason = self.safety.clear()
        if reason is not None:
            return f'clear_fault: {reason}'
        self._told = ''
        if not self.is_relaying:
            self._buffer.forget_stamps()
        return None

    # -- what the controller says ----------------------------------------------------------------------

    def _hear(self, inputs: GuardInputs, stale: str | None, refused: list[str]) -> Array | None:
        """Look at all commands that have come; the last is relayed if all are good."""
        now, last = inputs.time, None
        self._was_ready |= stale is None
        for command in inputs.commands:
            arrival = command.arrival if command.arrival <= now else now
            if now - arrival > self.settings.silence:  # as good as never sent
                self._refuse(Fault('late', f'it came {now - arrival:.3f} s ago'), refused)
                continue
            self._listen(arrival)
            wrong = self._closed(inputs, stale) or self._inspection.wrong(command, self._buffer.effort)
            last = None if wrong else command.values
            if wrong and self.is_relaying:
                self._trip(now, wrong)
            elif wrong:
                # Let through later, it would begin with a jump. Only a guard that has just started may do it.
                self._is_barred = self._was_ready and self.mode is Mode.DISABLED
                self._refuse(wrong, refused)
        return None if last is None else self._relay(last)

    def _listen(self, arrival: float) -> None:
        """Note that a command has come; the first after silence begins a stream."""
        if not self._is_heard(arrival):
            self._is_barred = False
            self._told = self._told if self.safety.fault else ''
        self._heard = arrival

    def _closed(self, inputs: GuardInputs, stale: str | None) -> Fault | None:
        """Why no command at all would be relayed."""
        if self.is_relaying:
            return None
        if self.safety.fault is not None:
            return Fault('fault', f'a fault is latched ({self.safety.fault}); clear it first')
        if self._ends:
            return Fault('stop', 'the guard has been told to stop')
        if self._is_barred:
            return Fault(self._told, 'an earlier command was refused')
        if stale is not None:
            return Fault('state', stale)
        return Fault('publisher', OTHER_PUBLISHER) if inputs.other_publisher else None

    def _refuse(self, fault: Fault, refused: list[str]) -> None:
        """Say why a command is not relayed; once, not for every one that follows."""
        if fault.kind != self._told:
            advice = '; disable the controller, then enable it again' if self._is_barred else ''
            refused.append(f'command refused: {fault.reason}{advice}')
            self._told = fault.kind

    def _relay(self, values: Array) -> Array:
        if self.safety.is_sending:  # the controller goes on from where the robot is held
            self.safety = self._new_safety()
        self._relayed, self._told = values.copy(), ''
        return values


def _note(refused: list[str], reason: str | None) -> None:
    if reason:
        refused.append(reason)
