"""The guard between controller and drivers: relays valid commands, else stops the robot."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite

import numpy as np

from ..arrays import Array, any_true, array
from ..errors import InputError, KrangError
from ..robot.model import Robot
from ..robot.payload import Payload
from ..safety.joint_buffer import JointSamples
from ..safety.modes import Fault, Mode
from ..safety.safety_stage import SafetyStage
from ..safety.stop_policies import STILL
from .builder import drivers_of, gravity_of, limits_of, model_change, payloads_of, stop_of, with_payloads
from .command_check import Command, CommandCheck
from .node_state import NodeState
from .parameters import Parameter
from .robot_state import BoundsCheck, RobotState
from .sensors import ImuSample, OdomSample
from .settings import Settings

OTHER_PUBLISHER = 'another publisher sends commands to the guard or to the drivers; stop it first'
TRAVEL = 0.02  # allowed beyond a position limit: a soft end stop gives way under a lowered robot [rad, m]
# Parameters that a guard shares with the controller; one parameter file serves both.
SHARED = (
    'robot robot_description command_joints command_unit wheels_locked limits.effort limits.effort_rate '
    'limits.velocity limits.position_margin stop.policy stop.time stop.blind_time stop.rate stop.limit '
    'state_timeout deadman.required deadman.timeout missing_velocity gravity hardware_compensates_gravity '
    'payload.<frame>.mass payload.<frame>.com payload.<frame>.inertia'
).split()


class GuardSettings(Settings):
    """Settings of a guard: the controller's parameters on joints, states and stopping, and its own."""

    own = (
        Parameter(
            'silence', 'number', 0.045, 'longest gap between commands; above it: fault', 's', 0.005, 1.0
        ),
        Parameter(
            'controller', 'text', 'torque_controller', 'controller whose payload and gravity are adopted'
        ),
        Parameter(
            'payload_bound', 'number', 5.0, 'largest total mass of payloads that is adopted', 'kg', 0, 1e4
        ),
        Parameter('gravity_bound', 'number', 1.0, 'largest change of gravity that is adopted', 'm/s2', 0, 30),
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
    deadman: bool | None = None  # a heartbeat
    emergency_stop: bool | None = None  # True: pressed, False: released
    other_publisher: bool = False  # whether another publisher commands the guard or the drivers
    controller: NodeState | None = None  # the newest state of the controller
    hand_over: bool = False  # the controller ends: the guard stops the robot, without a fault
    release: bool = False  # torque to zero at the stop rate
    stop: bool = False  # the guard ends: it stops the robot and relays nothing more
    fade: bool = False  # end a stop that does not come to rest


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
    zero command or has an invalid command, or if the robot violates a limit, the guard latches a fault. It
    then runs the stop policy from the last relayed command, on its own joint states.
    """

    def __init__(self, robot: Robot, settings: GuardSettings) -> None:
        self.robot = robot
        self.settings = settings
        self.drivers = drivers_of(settings, robot)
        self.limits = limits_of(settings, robot, self.drivers.joints)
        self.state = RobotState.of(settings, robot, self.drivers)
        self._buffer = self.state.buffer
        self._commanded = np.isin(robot.joint_names, self.drivers.joints).astype(float)
        self.safety = self._new_safety()
        self._check = CommandCheck(robot, self.drivers, self.limits)
        self._bounds = BoundsCheck(robot, self.limits, TRAVEL)
        self.adoptions = 0  # how often payload or gravity of the controller was adopted
        self._announced: NodeState | None = None  # a state of the controller that is not processed yet
        self._deadman_at = -inf  # arrival of the last heartbeat [s]
        self._is_emergency = False  # whether the emergency stop is pressed
        self._relayed: Array | None = None  # the last command, while relaying
        self._received = -inf  # when the last command arrived, valid or not [s]
        self._barred = ''  # why the present stream is refused to its end
        self._reported = ''  # kind of the last refusal
        self._was_ready = False  # whether there ever was a valid state
        self._unready = 'no joint states yet'  # why a first command would be refused now; empty: it would not
        self._is_ending = False
        self._is_blind = True  # whether the present step has no valid state
        self._time = 0.0  # of the last step [s]

    def _new_safety(self) -> SafetyStage:
        """The stage of the guard's own commands; disabled while it relays."""
        stop = stop_of(self.settings, self.robot)
        return SafetyStage(self.robot, self.limits, stop, 0.0, self._commanded)

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

    def obstacle(self, now: float) -> str:
        """Why commands are not relayed at this time [s]; empty if they are, or would be."""
        if self.safety.fault is not None:
            return str(self.safety.fault)
        if self._is_ending:
            return 'the guard is ending'
        if self._barred and self._is_streaming(now):
            return self._barred
        return '' if self.is_relaying else self._unready

    # -- the step --------------------------------------------------------------------------------------

    @np.errstate(all='ignore')  # an overflow is not finite, and is treated as such
    def step(self, inputs: GuardInputs) -> GuardOutputs:
        """One step: check the robot, then the commands; relay them or stop."""
        if not isfinite(inputs.time):
            self._trip(self._time, Fault('clock', f'the clock is at {inputs.time} s, which is not a time'))
            inputs = replace(inputs, time=self._time)
        now = inputs.time
        refused: list[str] = []
        stamped, stop, command = None, None, None
        self._is_blind = True
        try:
            late = self._late(now)
            stamped = self.state.take(inputs, refused)
            self._change_settings(inputs, refused)
            self._adopt(inputs, refused)
            stale = self.state.stale(now, inputs.clock, self.settings.state_timeout)
            # A jump is the controller's fault; the guard's own stop only has to know that there was one.
            settings = self.settings
            self.state.jump(settings.missing_velocity, settings.state_timeout, self.is_sending)
            self._check_faults(inputs, late or stale or self.state.problem)
            self._check.advance(now, self._buffer.v, self.settings.state_timeout)
            if stale is None:
                self.state.update()
                stop = self.state.stop_state(self.limits)
                self._is_blind = False
            command = self._take_commands(inputs, stale, refused)
            self._check_silence(now)
            if inputs.clear_fault:
                _note(refused, self._clear(now))
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
            # Without a valid state the speed is not known: a voltage for an old one would drive the motor.
            v = np.zeros(self.robot.nv) if self._is_blind else self._buffer.v
            command = self.drivers.command(torque, v)
        self._check.follow(command, torque)
        return command

    # -- values in force -------------------------------------------------------------------------------

    def _change_settings(self, inputs: GuardInputs, refused: list[str]) -> None:
        """Apply a change of the settings as a whole, or refuse it as a whole."""
        new = inputs.settings or self.settings
        try:
            if inputs.payloads is not None:
                new = with_payloads(new, inputs.payloads)
            if inputs.gravity is not None:
                new = new.replace(gravity=inputs.gravity)
            self.change(new)
        except KrangError as error:
            refused.append(str(error))

    def change(self, new: GuardSettings) -> None:
        """Apply other live parameters, all or none; KrangError if they are refused."""
        old = self.settings
        if new == old:
            return
        old.check_change(new)
        limits = limits_of(new, self.robot, self.drivers.joints)
        self.state.adopt(new, *model_change(old, new, self.robot))
        self.limits.adopt(limits)
        self.settings = new

    def _adopt(self, inputs: GuardInputs, refused: list[str]) -> None:
        """Adopt payload and gravity of the controller within the bounds; a stop keeps its own."""
        self._announced = inputs.controller or self._announced
        if self._announced is None or self.safety.is_sending:
            return
        state, self._announced = self._announced, None
        for adopt in (self._adopt_payload, self._adopt_gravity):
            try:
                adopt(state)
            except KrangError as error:
                refused.append(f'state of the controller: {error}')

    def _adopt_payload(self, state: NodeState) -> None:
        payloads, bound = state.payloads(self.robot.name), self.settings.payload_bound
        if same_payloads(payloads, self.state.dynamics.robot.payloads):
            return
        mass = sum(payload.mass for payload in payloads)
        if mass > bound:
            raise InputError(f'payload of {mass:g} kg; payload_bound is {bound:g} kg')
        within_ranges = with_payloads(self.settings, payloads)
        self.state.carry(self.robot.carrying(payloads_of(within_ranges)))
        self.adoptions += 1

    def _adopt_gravity(self, state: NodeState) -> None:
        imu, bound = self.robot.config.imu, self.settings.gravity_bound
        if imu is not None and imu.feeds == 'gravity':  # the guard measures it itself
            return
        gravity = array('gravity', state.gravity, (3,))
        if np.array_equal(gravity, self.state.dynamics.model_gravity()):
            return
        change = float(np.linalg.norm(gravity - gravity_of(self.settings, self.robot)))
        if change > bound:
            raise InputError(
                f"gravity {gravity.tolist()} differs by {change:.3g} m/s2 from the guard's; "
                f'gravity_bound is {bound:g} m/s2'
            )
        self.state.dynamics.set_gravity(gravity)
        self.adoptions += 1

    # -- end of relaying ------------------------------------------------------------------------------

    def _trip(self, now: float, fault: Fault) -> None:
        """Latch a fault; torque in flight ends in the stop policy."""
        self._take_over(now)
        self.safety.trip(now, fault)

    def _take_over(self, now: float) -> None:
        """The safety stage continues from the torque of the last relayed command.

        A robot at rest without torque has been released, and stays so.
        """
        relayed, self._relayed = self._relayed, None
        if relayed is None or not (relayed.any() or self._is_moving()):
            return
        torque, limits = self.drivers.torque(relayed, self._buffer.v), self.safety.limits
        # A limit that is below this torque is reached at the stop rate, not in a jump.
        effort, limits.effort = limits.effort, np.maximum(limits.effort, np.abs(torque))
        self.safety.enable(now, torque)
        limits.effort = effort

    def _is_moving(self) -> bool:
        return bool((self._commanded * np.abs(self._buffer.v) > STILL).any())

    def _late(self, now: float) -> str | None:
        """A fault if the last step was too long ago."""
        gap, timeout = now - self._time, self.settings.state_timeout
        if not self.is_sending or gap <= timeout:
            return None
        return f'no step for {gap:.3f} s, the limit is {timeout:g} s'

    def _check_faults(self, inputs: GuardInputs, unfit: str | None) -> None:
        """Trip on the first violation, then follow requests to stop."""
        now = inputs.time
        if inputs.deadman is not None:
            self._deadman_at = now if inputs.deadman else -inf
        if inputs.emergency_stop is not None:
            self._is_emergency = inputs.emergency_stop
        fault = self._violation(inputs, unfit)
        if fault is not None:
            self._trip(now, fault)
        if inputs.hand_over or inputs.release or inputs.stop:
            self._is_ending |= inputs.stop
            self._stop_without_fault(now, inputs.release)
        if inputs.fade:
            self.safety.fade(now)

    def _violation(self, inputs: GuardInputs, unfit: str | None) -> Fault | None:
        if self._is_emergency:
            return Fault('emergency_stop', 'the emergency stop is pressed')
        if self.is_sending and unfit is not None:
            return Fault('state', unfit)
        if self.is_sending and inputs.other_publisher:
            return Fault('publisher', OTHER_PUBLISHER)
        if not self.is_relaying:
            return None
        return self._deadman(inputs.time) or self._bounds.fault(self._buffer)

    def _deadman(self, now: float) -> Fault | None:
        settings = self.settings
        if not settings.deadman_required or 0 <= now - self._deadman_at <= settings.deadman_timeout:
            return None
        return Fault('deadman', f'no heartbeat for more than {settings.deadman_timeout:g} s')

    def _stop_without_fault(self, now: float, release: bool) -> None:
        """Stop, or release, from the last relayed torque; the rest of the stream is refused."""
        if self._is_streaming(now):
            self._barred = self._barred or (
                'the robot is released' if release else 'the guard stops the robot'
            )
        self._take_over(now)
        if release:
            self.safety.release(now)
        else:
            self.safety.disable(now)
            self.safety.lower(now)

    def _check_silence(self, now: float) -> None:
        """A stream that stops after a zero command has ended; any other is a fault."""
        if self._relayed is None or self._is_streaming(now):
            return
        if any_true(self._relayed != 0):
            self._trip(now, Fault('silence', f'no command for {now - self._received:.3f} s'))
        self._relayed = None  # back to idle

    def _is_streaming(self, now: float) -> bool:
        return abs(now - self._received) <= self.settings.silence

    def _clear(self, now: float) -> str | None:
        """Clear a fault and accept any next stamp; returns the reason if that is refused."""
        if self._is_emergency:
            return 'clear_fault: the emergency stop is still pressed'
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
        self._unready = stale or ''
        for command in inputs.commands:
            arrival = command.arrival if command.arrival <= now else now
            if now - arrival > self.settings.silence:  # too old to be relayed
                self._refuse(Fault('late', f'it arrived {now - arrival:.3f} s ago'), refused)
                continue
            self._note_arrival(arrival)
            wrong = self._closed(inputs, stale) or self._wrong(command)
            last = None if wrong else command.values
            if wrong and self.is_relaying:
                self._trip(now, wrong)
            elif wrong:
                # Relayed later, it would start with a jump; only a guard that has just started may do so.
                if self._was_ready and self.mode is Mode.DISABLED:
                    self._barred = self._barred or wrong.reason
                self._refuse(wrong, refused)
        return None if last is None else self._relay(last)

    def _wrong(self, command: Command) -> Fault | None:
        return self._check.check(command, self._buffer.effort, self.state.gravity())

    def _note_arrival(self, arrival: float) -> None:
        """Note the arrival of a command; the first one after a timeout starts a stream."""
        if not self._is_streaming(arrival):
            self._barred = ''
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
        if self._barred:
            return Fault(self._reported, 'an earlier command was refused')
        if stale is not None:
            return Fault('state', stale)
        if inputs.other_publisher:
            return Fault('publisher', OTHER_PUBLISHER)
        return self._deadman(inputs.time) or self._bounds.fault(self._buffer)

    def _refuse(self, fault: Fault, refused: list[str]) -> None:
        """Report why a command is not relayed, once per stream."""
        if fault.kind != self._reported:
            advice = '; disable the controller, then enable it again' if self._barred else ''
            refused.append(f'command: {fault.reason}{advice}')
            self._reported = fault.kind

    def _relay(self, values: Array) -> Array:
        if self.safety.is_sending:  # the controller continues from the torque that holds the robot
            self.safety = self._new_safety()
        if self._relayed is None:
            self.state.jumps.trust()
        self._relayed, self._reported = values.copy(), ''
        return values


def _note(refused: list[str], reason: str | None) -> None:
    if reason:
        refused.append(reason)


def same_payloads(some: Sequence[Payload], others: Sequence[Payload]) -> bool:
    """Whether both lists have the same bodies."""
    return len(some) == len(others) and all(
        a.frame == b.frame
        and a.mass == b.mass
        and np.array_equal(a.com, b.com)
        and np.array_equal(a.inertia, b.inertia)
        for a, b in zip(some, others, strict=True)
    )
