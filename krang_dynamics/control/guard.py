"""The guard between controller and drivers: relays valid commands, else stops the robot."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite

import numpy as np

from ..arrays import Array
from ..errors import KrangError
from ..robot.model import Robot
from ..robot.payload import Payload
from ..safety.joint_buffer import JointSamples
from ..safety.modes import Fault, Mode
from ..safety.safety_stage import SafetyStage
from .builder import drivers_of, gravity_of, limits_of, payloads_of, stop_of, with_payloads
from .command_check import Command, CommandCheck
from .parameters import Parameter
from .robot_state import RobotState
from .sensors import ImuSample, OdomSample
from .settings import Settings

OTHER_PUBLISHER = 'another publisher commands the drivers; stop it first'
# Parameters that a guard shares with the controller; one parameter file serves both.
SHARED = (
    'robot robot_description command_joints command_unit wheels_locked limits.effort limits.effort_rate '
    'stop.policy stop.time stop.blind_time stop.rate state_timeout missing_velocity gravity '
    'hardware_compensates_gravity payload.<frame>.mass payload.<frame>.com payload.<frame>.inertia'
).split()


class GuardSettings(Settings):
    """Settings of a guard: the controller's parameters on joints, states and stopping, and its own."""

    own = (
        Parameter(
            'silence', 'number', 0.045, 'longest gap between commands; above it: fault', 's', 0.005, 1.0
        ),
    )

    @classmethod
    def parameters(cls) -> dict[str, Parameter]:
        rows = super().parameters()
        return {name: rows[name] for name in (*SHARED, *(row.name for row in cls.own))}


@dataclass(slots=True)
class GuardInputs:
    """Everything that a guard gets at one step."""

    time: float  # steady clock [s]
    clock: float  # the node's clock, that of the stamps [s]
    samples: Sequence[JointSamples] = ()
    imu: Sequence[ImuSample] = ()
    odom: Sequence[OdomSample] = ()
    commands: Sequence[Command] = ()
    # These three are one change of the settings, applied as a whole or not at all.
    settings: GuardSettings | None = None  # only live parameters may differ
    payloads: Sequence[Payload] | None = None  # all payloads from now on
    gravity: Array | None = None  # root link's axes [m/s2]
    clear_fault: bool = False
    other_publisher: bool = False  # whether another publisher commands the drivers
    stop: bool = False  # the guard ends: it stops the robot and relays nothing more


@dataclass(slots=True)
class GuardOutputs:
    """The result of a step; without a command nothing is sent."""

    command: Array | None  # for the drivers, in their order and unit
    mode: Mode  # DISABLED: idle; ACTIVE: relaying
    fault: Fault | None
    relayed: bool  # whether the command is the controller's, unchanged
    refused: list[str] = field(default_factory=list)  # why inputs were refused


class Guard:
    """Relays the controller's commands unchanged, and runs the robot's stop policy after a violation.

    Consecutive commands are a stream, which is relayed or refused as a whole. If a stream ends without a
    zero command or has an invalid command, the guard latches a fault. It then runs the stop policy from the
    last relayed command, on its own joint states.
    """

    def __init__(self, robot: Robot, settings: GuardSettings) -> None:
        self.robot = robot
        self.settings = settings
        self.drivers = drivers_of(settings, robot)
        self.limits = limits_of(settings, robot, self.drivers.joints)
        self.state = RobotState(
            robot.carrying(payloads) if (payloads := payloads_of(settings)) else robot,
            self.drivers,
            settings.missing_velocity,
            hardware_compensates_gravity=settings.hardware_compensates_gravity,
        )
        self.state.dynamics.set_gravity(gravity_of(settings, robot))
        self._buffer = self.state.buffer
        self.safety = self._new_safety()
        self._check = CommandCheck(robot, self.drivers, self.limits)
        self._relayed: Array | None = None  # the last command, while relaying
        self._received = -inf  # when the last command arrived, valid or not [s]
        self._is_barred = False  # whether the present stream is refused to its end
        self._reported = ''  # kind of the last refusal
        self._was_ready = False  # whether there ever was a valid state
        self._is_ending = False
        self._time = 0.0  # of the last step [s]

    def _new_safety(self) -> SafetyStage:
        """The stage of the guard's own commands; disabled while it relays."""
        commanded = np.isin(self.robot.joint_names, self.drivers.joints).astype(float)
        return SafetyStage(self.robot, self.limits, stop_of(self.settings, self.robot), 0.0, commanded)

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

    # -- the step --------------------------------------------------------------------------------------

    @np.errstate(all='ignore')  # an overflow is not finite, and is treated as such
    def step(self, inputs: GuardInputs) -> GuardOutputs:
        """One step: check the robot, then the commands; relay them or stop."""
        if not isfinite(inputs.time):
            self._trip(self._time, Fault('clock', f'the time is {inputs.time} s'))
            inputs = replace(inputs, time=self._time)
        now = inputs.time
        refused: list[str] = []
        stamped, stop, command = None, None, None
        try:
            late = self._late(now)
            stamped = self.state.take(inputs, refused)
            self._change_settings(inputs, refused)
            stale = self._buffer.stale(now, inputs.clock, self.settings.state_timeout)
            self._check_faults(inputs, late or stale)
            self._check.advance(now, self._buffer.v, self.settings.state_timeout)
            command = self._take_commands(inputs, stale, refused)
            self._check_silence(now)
            if inputs.clear_fault:
                _note(refused, self._clear(now))
            if stale is None:
                self.state.dynamics.update(self._buffer.q, self._buffer.v)
                stop = self.state.stop_torque()
        except Exception as error:  # never throws into the loop: it ends in the stop policy
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
            self._check.forget()
            return None
        command = np.zeros(len(self.drivers.names))
        if self.safety.is_sending:
            command = self.drivers.command(torque, self._buffer.v)
        self._check.follow(command, torque)
        return command

    def _change_settings(self, inputs: GuardInputs, refused: list[str]) -> None:
        """Apply a change of the settings as a whole, or refuse it as a whole."""
        old, new = self.settings, inputs.settings or self.settings
        try:
            if inputs.payloads is not None:
                new = with_payloads(new, inputs.payloads)
            if inputs.gravity is not None:
                new = new.replace(gravity=inputs.gravity)
            if new == old:
                return
            old.check_change(new)
            limits = limits_of(new, self.robot, self.drivers.joints)
            gravity = gravity_of(new, self.robot) if new.gravity != old.gravity else None
            is_new_load = new.frames('payload') != old.frames('payload')
            loaded = self.robot.carrying(payloads_of(new)) if is_new_load else None
        except KrangError as error:
            refused.append(str(error))
            return
        if loaded is not None:
            self.state.carry(loaded)
        if gravity is not None:  # otherwise an IMU may have set it
            self.state.dynamics.set_gravity(gravity)
        self.limits.adopt(limits)
        self.settings = new

    # -- end of relaying ------------------------------------------------------------------------------

    def _trip(self, now: float, fault: Fault) -> None:
        """Latch a fault; torque in flight ends in the stop policy."""
        self._take_over(now)
        self.safety.trip(now, fault)

    def _take_over(self, now: float) -> None:
        """The safety stage continues from the torque of the last relayed command, unless that was zero."""
        relayed, self._relayed = self._relayed, None
        if relayed is None or not relayed.any():  # a robot that was released stays released
            return
        torque, limits = self.drivers.torque(relayed, self._buffer.v), self.safety.limits
        # A limit that is below this torque is reached at the stop rate, not in a jump.
        effort, limits.effort = limits.effort, np.maximum(limits.effort, np.abs(torque))
        self.safety.enable(now, torque)
        limits.effort = effort

    def _late(self, now: float) -> str | None:
        """A fault if the last step was too long ago."""
        gap, timeout = now - self._time, self.settings.state_timeout
        if not self.is_sending or gap <= timeout:
            return None
        return f'no step for {gap:.3f} s, the limit is {timeout:g} s'

    def _check_faults(self, inputs: GuardInputs, unfit: str | None) -> None:
        now = inputs.time
        if self.is_sending and unfit is not None:
            self._trip(now, Fault('state', unfit))
        elif self.is_sending and inputs.other_publisher:
            self._trip(now, Fault('publisher', OTHER_PUBLISHER))
        if inputs.stop:
            self._is_ending = True
            self._take_over(now)
            self.safety.disable(now)

    def _check_silence(self, now: float) -> None:
        """A stream that stops after a zero command has ended; any other is a fault."""
        if self._relayed is None or self._is_streaming(now):
            return
        if self._relayed.any():
            self._trip(now, Fault('silence', f'no command for {now - self._received:.3f} s'))
        self._relayed = None  # back to idle

    def _is_streaming(self, now: float) -> bool:
        return abs(now - self._received) <= self.settings.silence

    def _clear(self, now: float) -> str | None:
        """Clear a fault and accept any next stamp; returns the reason if that is refused."""
        if self.safety.fault is not None and self._is_streaming(now):
            return 'clear_fault: commands still arrive; disable the controller first'
        reason = self.safety.clear()
        if reason is not None:
            return f'clear_fault: {reason}'
        self._reported = ''
        if not self.is_relaying:
            self._buffer.reset_stamps()
        return None

    # -- commands --------------------------------------------------------------------------------------

    def _take_commands(self, inputs: GuardInputs, stale: str | None, refused: list[str]) -> Array | None:
        """Check all new commands; the last is relayed if all are valid."""
        now, last = inputs.time, None
        self._was_ready |= stale is None
        for command in inputs.commands:
            arrival = command.arrival if command.arrival <= now else now
            if now - arrival > self.settings.silence:  # too old to be relayed
                self._refuse(Fault('late', f'it arrived {now - arrival:.3f} s ago'), refused)
                continue
            self._note_arrival(arrival)
            wrong = self._closed(inputs, stale) or self._check.check(command, self._buffer.effort)
            last = None if wrong else command.values
            if wrong and self.is_relaying:
                self._trip(now, wrong)
            elif wrong:
                # Relayed later, it would start with a jump; only a guard that has just started may do so.
                self._is_barred = self._was_ready and self.mode is Mode.DISABLED
                self._refuse(wrong, refused)
        return None if last is None else self._relay(last)

    def _note_arrival(self, arrival: float) -> None:
        """Note the arrival of a command; the first one after a timeout starts a stream."""
        if not self._is_streaming(arrival):
            self._is_barred = False
            self._reported = self._reported if self.safety.fault else ''
        self._received = arrival

    def _closed(self, inputs: GuardInputs, stale: str | None) -> Fault | None:
        """The reason why no command is relayed, if any."""
        if self.is_relaying:
            return None
        if self.safety.fault is not None:
            return Fault('fault', f'a fault is latched ({self.safety.fault}); clear it first')
        if self._is_ending:
            return Fault('stop', 'the guard is ending')
        if self._is_barred:
            return Fault(self._reported, 'an earlier command was refused')
        if stale is not None:
            return Fault('state', stale)
        return Fault('publisher', OTHER_PUBLISHER) if inputs.other_publisher else None

    def _refuse(self, fault: Fault, refused: list[str]) -> None:
        """Report why a command is not relayed, once per stream."""
        if fault.kind != self._reported:
            advice = '; disable the controller, then enable it again' if self._is_barred else ''
            refused.append(f'command refused: {fault.reason}{advice}')
            self._reported = fault.kind

    def _relay(self, values: Array) -> Array:
        if self.safety.is_sending:  # the controller continues from the torque that holds the robot
            self.safety = self._new_safety()
        self._relayed, self._reported = values.copy(), ''
        return values


def _note(refused: list[str], reason: str | None) -> None:
    if reason:
        refused.append(reason)
