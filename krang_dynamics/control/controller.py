"""The controller: step(inputs) -> outputs, called alike by node, simulator, replay and tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite

import numpy as np

from ..arrays import Array, is_finite
from ..errors import InputError, KrangError
from ..robot.model import Robot
from ..robot.payload import Payload
from ..safety.joint_buffer import JointSamples
from ..safety.limits import Limits
from ..safety.modes import Fault, Mode
from ..safety.safety_stage import SafetyStage
from .drivers import Drivers
from .reference.trajectory import JointTrajectory, Reference
from .robot_state import RobotState
from .sensors import ImuSample, OdomSample
from .settings import Settings, check_change, commanded_joints, stop_rate
from .sum import build_terms, retune
from .terms.observer import Observer
from .terms.term import Moment, Term
from .terms.wrench import Wrench, WrenchSample


@dataclass(slots=True)
class Inputs:
    """Everything that reaches a controller at one step, and nothing else does."""

    time: float  # steady clock [s]
    clock: float  # the node's clock, which stamps are on [s]
    samples: Sequence[JointSamples] = ()
    imu: Sequence[ImuSample] = ()
    odom: Sequence[OdomSample] = ()
    trajectory: JointTrajectory | None = None
    wrenches: Sequence[WrenchSample] = ()
    # These four together are one change, made whole or not at all.
    gravity: Array | None = None  # direction and size, root link's axes [m/s2]
    payloads: Sequence[Payload] | None = None  # all that is carried from now on
    limits: Mapping[str, object] | None = None
    settings: Settings | None = None  # as before, but for what may change while it runs
    enable: bool | None = None  # True and False are requests
    clear_fault: bool = False
    deadman: bool | None = None  # a heartbeat that has just come
    emergency_stop: bool | None = None
    other_publisher: bool = False  # somebody else commands the same motors

    @property
    def has_change(self) -> bool:
        """Whether load, gravity, limits or settings are to be others."""
        changes = (self.gravity, self.payloads, self.limits, self.settings)
        return any(change is not None for change in changes)


@dataclass(slots=True)
class Outputs:
    """What a step leads to; no command means that nothing is to be sent."""

    mode: Mode
    fault: Fault | None
    torque: Array | None = None  # the command over joint_names [N m]
    command: Array | None = None  # the same for the drivers, in their order and unit
    terms: dict[str, Array] = field(default_factory=dict)  # each term by itself [N m]
    refused: list[str] = field(default_factory=list)  # what was not taken, and why
    limited: bool = False  # whether a limit held the command back
    external: Array | None = None  # torque of the surroundings, where an observer estimates it [N m]
    contact: str = 'none'  # what the observer makes of it: none, contact or collision
    reference: tuple[Array, Array] | None = None  # desired q and v of this step, overwritten by the next


class TorqueController:
    """A sum of terms behind the safety stage; the time comes in with the inputs."""

    def __init__(self, robot: Robot, settings: Settings) -> None:
        self.robot = robot
        self.settings = settings
        self.drivers = Drivers(robot, commanded_joints(robot, settings), settings.command_unit)
        self.command_joints = self.drivers.joints
        self.limits = Limits.of(robot)
        rate = stop_rate(robot, settings, self.drivers.joints)
        self.limits.stop_rate = self.limits.stop_rate if rate is None else rate
        self.reference = Reference(robot, settings.reference_timeout)
        self.terms: list[Term] = build_terms(robot, settings)
        observes = any(isinstance(term, Observer) for term in self.terms)
        self.body = RobotState(robot, settings, self.drivers, coriolis=observes)
        self.dynamics, self._buffer = self.body.dynamics, self.body.buffer
        commanded = np.isin(robot.joint_names, self.command_joints).astype(float)
        self.safety = SafetyStage(robot, self.limits, settings.stop(robot), settings.ramp_time, commanded)
        self._wrench = next((t for t in self.terms if isinstance(t, Wrench)), None)
        self._observer = next((t for t in self.terms if isinstance(t, Observer)), None)
        self._applied = np.zeros(robot.nv)
        self._deadman_at = -np.inf
        self._emergency = False
        self._bounded_by: tuple[Array, ...] = ()  # the limits that _bounds() last saw
        self._time = 0.0  # of the last step, steady [s]
        self._moment: float | None = None  # of the state that the terms saw last
        zero = np.zeros(robot.nv)
        self._now = Moment(0.0, 0.0, zero, zero, zero, zero, zero, zero, zero, zero, self.dynamics)

    @property
    def strangers(self) -> set[str]:
        """Names of joints that came in states and that the robot does not have."""
        return self._buffer.extra

    # -- the one function ------------------------------------------------------------------------------

    @np.errstate(all='ignore')  # what overflows is not finite, and is treated as that
    def step(self, inputs: Inputs) -> Outputs:
        """One turn: take what has come, watch it, evaluate the terms, and let safety make the command."""
        if not isfinite(inputs.time):
            self.safety.trip(self._time, Fault('clock', f'the time is {inputs.time} s'))
            inputs = replace(inputs, time=self._time)
        refused: list[str] = []
        terms: dict[str, Array] = {}
        stamped, torque, stop = None, None, None
        try:
            late = self._late(inputs.time)
            stamped = self._take(inputs, refused)
            stale = self._buffer.stale(inputs.time, inputs.clock, self.settings.state_timeout)
            self._requests(inputs, stale, refused)
            if self.safety.is_sending:
                self._watch(inputs, late or stale)
            if stale is None:
                torque = self._evaluate(inputs, stamped is not None, terms)
                stop = self.body.stop_torque()
        except Exception as error:  # a bad turn never throws into the loop: it ends in the stop policy
            self.safety.trip(inputs.time, Fault('exception', f'{type(error).__name__}: {error}'))
        command = self.safety.step(inputs.time, stamped, torque, stop)
        self._time = inputs.time
        if command is not None:
            self._applied = command
        return Outputs(
            self.safety.mode,
            self.safety.fault,
            command,
            None if command is None else self._driver(command),
            terms,
            refused,
            self.safety.limited,
            *self._felt(),
            (self._now.q_d, self._now.v_d) if terms else None,
        )

    # -- what comes in ---------------------------------------------------------------------------------

    def _take(self, inputs: Inputs, refused: list[str]) -> float | None:
        """Merge all that has come; how far the stamps went on [s], None without a new state."""
        went_on = self.body.take(inputs, refused)
        for wrench in inputs.wrenches:
            if self._wrench is None:
                refused.append('a wrench came, but wrench is not among the terms')
            else:
                _note(refused, self._wrench.take(wrench, inputs.time))
        if inputs.has_change:
            self._change(inputs, refused)
        if inputs.trajectory is not None:
            self._follow(inputs.trajectory, inputs.time, refused)
        return went_on

    def _change(self, inputs: Inputs, refused: list[str]) -> None:
        """Another load, gravity, limits or settings: all of them or, where one cannot be, none."""
        try:
            load = self.body.load(inputs.payloads, inputs.gravity)
            limits = self.limits.checked(self.robot, inputs.limits or {})
            if inputs.settings is not None:
                check_change(self.settings, inputs.settings)
                retune(self.terms, self.robot, inputs.settings)
        except KrangError as error:
            refused.append(str(error))
            return
        self.body.carry(load)
        self.dynamics = self._now.dynamics = self.body.dynamics
        self.limits.adopt(limits)
        if inputs.settings is not None:
            self.settings = inputs.settings
            self.safety.ramp_time = inputs.settings.ramp_time
            self.reference.timeout = inputs.settings.reference_timeout

    def _follow(self, trajectory: JointTrajectory, now: float, refused: list[str]) -> None:
        if not self.safety.is_driving:
            refused.append(f'trajectory: the controller is {self.safety.mode.value}; enable it first')
            return
        try:
            self.reference.accept(trajectory, now, self._buffer.q)
        except KrangError as error:
            refused.append(f'trajectory: {error}')

    def _requests(self, inputs: Inputs, stale: str | None, refused: list[str]) -> None:
        now = inputs.time
        if inputs.deadman is not None:
            self._deadman_at = now if inputs.deadman else -np.inf
        if inputs.emergency_stop is not None:
            self._emergency = inputs.emergency_stop
        if self._emergency:
            self.safety.trip(now, Fault('emergency_stop', 'the emergency stop is pressed'))
        if inputs.clear_fault:
            reason = 'the emergency stop is still pressed' if self._emergency else self.safety.clear()
            _note(refused, reason and f'clear_fault: {reason}')
            if reason is None and not self.safety.is_driving:
                self._buffer.forget_stamps()
        if inputs.enable is False:
            self.safety.disable(now)
        elif inputs.enable:
            _note(refused, self._enable(inputs, stale))

    def _enable(self, inputs: Inputs, stale: str | None) -> str | None:
        if self.safety.is_driving:
            return None
        reason = stale
        if reason is None and inputs.other_publisher:
            reason = 'another publisher is on the command topic; stop it first'
        if reason is None and self._deadman_is_missing(inputs.time):
            reason = 'the deadman is required and silent'
        if reason is None and (fault := self._out_of_bounds()):
            reason = str(fault)
        reason = reason or self.safety.enable(inputs.time, self._buffer.effort)
        if reason is not None:
            return f'enable: {reason}'
        self.reference.hold(self._buffer.q)
        for term in self.terms:
            term.reset()
        self._moment = None
        return None

    def _deadman_is_missing(self, now: float) -> bool:
        settings = self.settings
        return settings.deadman_required and not 0 <= now - self._deadman_at <= settings.deadman_timeout

    # -- what is a fault -------------------------------------------------------------------------------

    def _late(self, now: float) -> str | None:
        """Torque that was not renewed for so long came from a state that is too old."""
        gap, timeout = now - self._time, self.settings.state_timeout
        if not self.safety.is_sending or gap <= timeout:
            return None
        return f'no step for {gap:.3f} s, the limit is {timeout:g} s'

    def _watch(self, inputs: Inputs, stale: str | None) -> None:
        now, trip = inputs.time, self.safety.trip
        if stale is not None:
            trip(now, Fault('state', stale))
            return
        if inputs.other_publisher:
            trip(now, Fault('publisher', 'another publisher is on the command topic'))
        if not self.safety.is_driving:  # a stop takes no heed of the rest
            return
        if self._deadman_is_missing(now):
            trip(now, Fault('deadman', f'silent for more than {self.settings.deadman_timeout:g} s'))
        if self.reference.expired(now):
            trip(now, Fault('reference', f'no set-point for more than {self.reference.timeout:g} s'))
        fault = self._out_of_bounds() or self._off_track(now)
        if fault is not None:
            trip(now, fault)

    def _out_of_bounds(self) -> Fault | None:
        low, high = self._bounds()
        state = self._buffer.state
        if not np.count_nonzero((state < low) | (state > high)):
            return None
        q, v, margin = self._buffer.q, self._buffer.v, self.limits.position_margin
        outside = margin - np.minimum(self.robot.upper - q, q - self.robot.lower)
        return self._compare('velocity', np.abs(v), self.limits.velocity, 'rad/s') or self._compare(
            'position', outside, np.zeros_like(q), 'rad outside'
        )

    def _bounds(self) -> tuple[Array, Array]:
        """Lowest and highest (q, v) without a fault, made anew when a limit changes."""
        margin, speed = self.limits.position_margin, self.limits.velocity
        seen = self._bounded_by
        if not (seen and seen[0] is margin and seen[1] is speed):
            self._low = np.concatenate([self.robot.lower + margin, -speed])
            self._high = np.concatenate([self.robot.upper - margin, speed])
            self._bounded_by = (margin, speed)
        return self._low, self._high

    def _off_track(self, now: float) -> Fault | None:
        limit = self.limits.following_error
        if limit is None:
            return None
        error = np.abs(self.reference.sample(now)[0] - self._buffer.q)
        return self._compare('following_error', error, limit, 'rad')

    def _compare(self, kind: str, value: Array, limit: Array, unit: str) -> Fault | None:
        beyond = value > limit
        if not beyond.any():
            return None
        i = int(np.argmax(beyond))
        name = self.robot.joint_names[i]
        return Fault(kind, f'joint {name!r}: {value[i]:.4g} {unit}, the limit is {limit[i]:.4g}')

    # -- what goes out ---------------------------------------------------------------------------------

    def _evaluate(self, inputs: Inputs, fresh: bool, terms: dict[str, Array]) -> Array | None:
        """The sum of the terms at the newest state; None, and a fault, where one of them fails."""
        self.dynamics.update(self._buffer.q, self._buffer.v)
        if not self.safety.is_driving:
            return None
        moment = self._moment_of(inputs, fresh)
        total = np.zeros(self.robot.nv)
        for term in self.terms:
            try:
                terms[term.name] = torque = term.torque(moment)
                if torque.shape != total.shape:
                    raise InputError(f'its torque has shape {torque.shape}; it must be {total.shape}')
                total += torque
            except Exception as error:  # whatever it is, the motors need an answer: the stop policy
                self.safety.trip(inputs.time, Fault('term', f'{term.name}: {type(error).__name__}: {error}'))
                return None
        if not is_finite(total):
            bad = next((name for name, torque in terms.items() if not is_finite(torque)), 'the sum')
            self.safety.trip(inputs.time, Fault('term', f'{bad}: its torque is not finite'))
            return None
        self._react(inputs.time)
        return total

    def _moment_of(self, inputs: Inputs, fresh: bool) -> Moment:
        moment, buffer = self._now, self._buffer
        newest = buffer.newest
        moment.dt = 0.0 if self._moment is None or not fresh else max(0.0, newest - self._moment)
        self._moment = newest
        moment.time, moment.q, moment.v, moment.applied = inputs.time, buffer.q, buffer.v, self._applied
        moment.q_d, moment.v_d, moment.a_d, moment.effort_d = self.reference.sample(inputs.time)
        moment.friction = self.robot.friction.torque(buffer.v)
        return moment

    def _react(self, now: float) -> None:
        observer = self._observer
        if observer is not None and observer.settings.reaction == 'stop' and observer.event() == 'collision':
            self.safety.trip(now, Fault('collision', f'external torque {observer.largest():.1f} N m'))

    def _felt(self) -> tuple[Array | None, str]:
        observer = self._observer
        return (None, 'none') if observer is None else (observer.external, observer.event())

    def _driver(self, torque: Array) -> Array:
        """The command in the drivers' order and unit.

        The last one is zero: volts against the speed of a moving motor would keep it moving.
        """
        if not self.safety.is_sending:
            return np.zeros(len(self.drivers.names))
        return self.drivers.command(torque, self._buffer.v)


def _note(refused: list[str], reason: str | None) -> None:
    if reason:
        refused.append(reason)
