"""The controller: step(inputs) -> outputs, the same for node, simulator, replay and tests."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

import numpy as np

from ..arrays import Array, is_finite
from ..errors import InputError, KrangError
from ..robot.model import Robot
from ..robot.payload import Payload
from ..safety.joint_buffer import JointSamples
from ..safety.modes import Fault, Mode
from ..safety.safety_stage import SafetyStage
from .builder import drivers_of, gravity_of, limits_of, payloads_of, stop_of, with_payloads
from .dynamics import Dynamics
from .reference.trajectory import JointTrajectory, Reference
from .robot_state import RobotState
from .sensors import ImuSample, OdomSample
from .settings import Settings
from .terms.term import ReferencePoint, Term, TermInputs, build_terms
from .terms.wrench import WrenchSample


@dataclass(slots=True)
class Inputs:
    """Everything that a controller gets at one step."""

    time: float  # steady clock [s]
    clock: float  # the node's clock, that of the stamps [s]
    samples: Sequence[JointSamples] = ()
    imu: Sequence[ImuSample] = ()
    odom: Sequence[OdomSample] = ()
    trajectory: JointTrajectory | None = None
    wrenches: Sequence[WrenchSample] = ()
    # These four are one change of the settings, applied as a whole or not at all.
    settings: Settings | None = None  # only live parameters may differ
    limits: Mapping[str, Any] | None = None  # parameters limits.*, by the part after the dot
    payloads: Sequence[Payload] | None = None  # all payloads from now on
    gravity: Array | None = None  # root link's axes [m/s2]
    enable: bool | None = None  # True and False are requests
    clear_fault: bool = False
    deadman: bool | None = None  # a heartbeat
    emergency_stop: bool | None = None  # True: pressed, False: released
    other_publisher: bool = False  # whether another publisher is on the command topic

    def settings_after(self, present: Settings) -> Settings | None:
        """The settings after this change; None without a change."""
        if all(x is None for x in (self.settings, self.limits, self.payloads, self.gravity)):
            return None
        new = present if self.settings is None else self.settings
        if self.limits is not None:
            new = new.replace(**{f'limits.{name}': value for name, value in self.limits.items()})
        if self.payloads is not None:
            new = with_payloads(new, self.payloads)
        return new if self.gravity is None else new.replace(gravity=self.gravity)


@dataclass(slots=True)
class Outputs:
    """The result of a step; without a command nothing is sent."""

    mode: Mode
    fault: Fault | None
    torque: Array | None = None  # the command over joint_names [N m]
    command: Array | None = None  # the same for the drivers, in their order and unit
    terms: dict[str, Array] = field(default_factory=dict)  # each term by itself [N m]
    refused: list[str] = field(default_factory=list)  # why inputs were refused
    limited: bool = False  # whether a limit changed the command
    external: Array | None = None  # external torque [N m]; None: not estimated
    contact: str = 'none'  # none, contact or collision
    reference: tuple[Array, Array] | None = None  # desired q and v of this step, overwritten by the next
    accepted: bool = False  # whether a trajectory was accepted


class TorqueController:
    """A sum of terms behind the safety stage; the time is one of the inputs."""

    def __init__(self, robot: Robot, settings: Settings) -> None:
        self.robot = robot
        self.settings = settings
        self.drivers = drivers_of(settings, robot)
        self.command_joints = self.drivers.joints
        self.limits = limits_of(settings, robot, self.command_joints)
        self.reference = Reference(robot, settings.reference_timeout)
        self.terms: list[Term] = build_terms(robot, settings)
        self._needs_friction = any(term.needs_friction for term in self.terms)
        self._term_of = {kind: term for term in self.terms for kind in term.takes}
        self.state = RobotState(
            robot.carrying(payloads) if (payloads := payloads_of(settings)) else robot,
            self.drivers,
            settings.missing_velocity,
            coriolis=any(term.needs_coriolis for term in self.terms),
            hardware_compensates_gravity=settings.hardware_compensates_gravity,
        )
        self.state.dynamics.set_gravity(gravity_of(settings, robot))
        self._buffer = self.state.buffer
        commanded = np.isin(robot.joint_names, self.command_joints).astype(float)
        self.safety = SafetyStage(robot, self.limits, stop_of(settings, robot), settings.ramp_time, commanded)
        self._applied = np.zeros(robot.nv)
        self._deadman_at = -np.inf
        self._is_emergency = False
        self._bounded_by: tuple[Array, ...] = ()  # the limits that _bounds() last used
        self._time = 0.0  # of the last step, steady [s]
        self._state_time: float | None = None  # of the state that the terms used last
        zero = np.zeros(robot.nv)
        self._reference_point = ReferencePoint(zero, zero, zero, zero)
        self._term_inputs = TermInputs(0.0, 0.0, zero, zero, self._reference_point, zero, zero, self.dynamics)

    @property
    def dynamics(self) -> Dynamics:
        """A, C v + Q and frames of the newest state."""
        return self.state.dynamics

    @property
    def unknown_joints(self) -> set[str]:
        """Names in joint states that the robot does not have."""
        return self._buffer.extra

    # -- the step --------------------------------------------------------------------------------------

    @np.errstate(all='ignore')  # an overflow is not finite, and is treated as such
    def step(self, inputs: Inputs) -> Outputs:
        """One step: state -> one Pinocchio pass -> sum of terms -> safety -> command."""
        if not isfinite(inputs.time):
            self.safety.trip(self._time, Fault('clock', f'the time is {inputs.time} s'))
            inputs = replace(inputs, time=self._time)
        refused: list[str] = []
        terms: dict[str, Array] = {}
        stamped, torque, stop, accepted = None, None, None, False
        try:
            late = self._late(inputs.time)
            stamped = self._take_samples(inputs, refused)
            self._change_settings(inputs, refused)
            accepted = self._take_trajectory(inputs, refused)
            stale = self._buffer.stale(inputs.time, inputs.clock, self.settings.state_timeout)
            self._take_requests(inputs, stale, refused)
            if self.safety.is_sending:
                self._check_faults(inputs, late or stale)
            if stale is None:
                torque = self._evaluate(inputs, stamped is not None, terms)
                stop = self.state.stop_torque()
        except Exception as error:  # never throws into the loop: it ends in the stop policy
            self.safety.trip(inputs.time, Fault('exception', f'{type(error).__name__}: {error}'))
        command = self.safety.step(inputs.time, stamped, torque, stop)
        self._time = inputs.time
        if command is not None:
            self._applied = command
        external, contact = self._external()
        return Outputs(
            self.safety.mode,
            self.safety.fault,
            command,
            None if command is None else self._driver_command(command),
            terms,
            refused,
            self.safety.limited,
            external,
            contact,
            (self._reference_point.q, self._reference_point.v) if terms else None,
            accepted,
        )

    # -- inputs ------------------------------------------------------------------------------------------

    def _take_samples(self, inputs: Inputs, refused: list[str]) -> float | None:
        """Merge all samples; returns the increase of the stamps [s], None without a new state."""
        increase = self.state.take(inputs, refused)
        for sample in inputs.wrenches:
            term = self._term_of.get(type(sample))
            if term is None:
                refused.append('a wrench was received, but wrench is not among the terms')
            else:
                _note(refused, term.take(sample, inputs.time))
        return increase

    def _change_settings(self, inputs: Inputs, refused: list[str]) -> None:
        """Apply a change of the settings as a whole, or refuse it as a whole."""
        try:
            new = inputs.settings_after(self.settings)
            if new is None or new == self.settings:
                return
            self._prepare(new)()
        except KrangError as error:
            refused.append(str(error))

    def _prepare(self, new: Settings) -> Callable[[], None]:
        """Build and check everything for new settings; returns the function that applies it."""
        old, robot = self.settings, self.robot
        old.check_change(new)
        limits = limits_of(new, robot, self.command_joints)
        gravity = gravity_of(new, robot) if new.gravity != old.gravity else None
        is_new_load = new.frames('payload') != old.frames('payload')
        loaded = robot.carrying(payloads_of(new)) if is_new_load else None
        tunable = [term for term in self.terms if any(row.live for row in term.parameters)]
        tuned = [type(term).from_settings(robot, new) for term in tunable]

        def adopt() -> None:
            if loaded is not None:
                self.state.carry(loaded)
                self._term_inputs.dynamics = self.dynamics
            if gravity is not None:  # otherwise an IMU may have set it
                self.dynamics.set_gravity(gravity)
            for term, other in zip(tunable, tuned, strict=True):
                term.adopt(other)
            self.limits.adopt(limits)
            self.settings = new
            self.safety.ramp_time = new.ramp_time
            self.reference.timeout = new.reference_timeout

        return adopt

    def _take_trajectory(self, inputs: Inputs, refused: list[str]) -> bool:
        """Whether a trajectory was accepted."""
        if inputs.trajectory is None:
            return False
        if not self.safety.is_driving:
            refused.append(f'trajectory: the controller is {self.safety.mode.value}; enable it first')
            return False
        try:
            self.reference.accept(inputs.trajectory, inputs.time, self._buffer.q)
        except KrangError as error:
            refused.append(f'trajectory: {error}')
            return False
        return True

    def _take_requests(self, inputs: Inputs, stale: str | None, refused: list[str]) -> None:
        now = inputs.time
        if inputs.deadman is not None:
            self._deadman_at = now if inputs.deadman else -np.inf
        if inputs.emergency_stop is not None:
            self._is_emergency = inputs.emergency_stop
        if self._is_emergency:
            self.safety.trip(now, Fault('emergency_stop', 'the emergency stop is pressed'))
        if inputs.clear_fault:
            reason = 'the emergency stop is still pressed' if self._is_emergency else self.safety.clear()
            _note(refused, reason and f'clear_fault: {reason}')
            if reason is None and not self.safety.is_driving:
                self._buffer.reset_stamps()
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
            reason = 'deadman.required is true and no heartbeat is received'
        if reason is None and (fault := self._out_of_bounds()):
            reason = str(fault)
        reason = reason or self.safety.enable(inputs.time, self._buffer.effort)
        if reason is not None:
            return f'enable: {reason}'
        self.reference.hold(self._buffer.q)
        for term in self.terms:
            term.reset()
        self._state_time = None
        return None

    def _deadman_is_missing(self, now: float) -> bool:
        settings = self.settings
        return settings.deadman_required and not 0 <= now - self._deadman_at <= settings.deadman_timeout

    # -- faults -----------------------------------------------------------------------------------------

    def _late(self, now: float) -> str | None:
        """A fault if the last step was so long ago that its state is too old."""
        gap, timeout = now - self._time, self.settings.state_timeout
        if not self.safety.is_sending or gap <= timeout:
            return None
        return f'no step for {gap:.3f} s, the limit is {timeout:g} s'

    def _check_faults(self, inputs: Inputs, stale: str | None) -> None:
        now, trip = inputs.time, self.safety.trip
        if stale is not None:
            trip(now, Fault('state', stale))
            return
        if inputs.other_publisher:
            trip(now, Fault('publisher', 'another publisher is on the command topic'))
        if not self.safety.is_driving:  # the rest does not matter to a stop
            return
        if self._deadman_is_missing(now):
            trip(now, Fault('deadman', f'no heartbeat for more than {self.settings.deadman_timeout:g} s'))
        if self.reference.expired(now):
            trip(now, Fault('reference', f'no set-point for more than {self.reference.timeout:g} s'))
        fault = self._out_of_bounds() or self._following_error(now)
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
        """Lowest and highest (q, v) without a fault; computed again when a limit changes."""
        margin, speed = self.limits.position_margin, self.limits.velocity
        seen = self._bounded_by
        if not (seen and seen[0] is margin and seen[1] is speed):
            self._low = np.concatenate([self.robot.lower + margin, -speed])
            self._high = np.concatenate([self.robot.upper - margin, speed])
            self._bounded_by = (margin, speed)
        return self._low, self._high

    def _following_error(self, now: float) -> Fault | None:
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

    # -- outputs -----------------------------------------------------------------------------------------

    def _evaluate(self, inputs: Inputs, fresh: bool, terms: dict[str, Array]) -> Array | None:
        """The sum of the terms at the newest state; None, and a fault, if a term fails."""
        self.dynamics.update(self._buffer.q, self._buffer.v)
        if not self.safety.is_driving:
            return None
        state = self._update_term_inputs(inputs, fresh)
        total = np.zeros(self.robot.nv)
        for term in self.terms:
            try:
                terms[term.name] = torque = term.torque(state)
                if torque.shape != total.shape:
                    raise InputError(f'its torque has shape {torque.shape}; it must be {total.shape}')
                total += torque
                fault = term.fault()
            except Exception as error:  # of any kind: the motors still need the command of the stop policy
                fault = Fault('term', f'{term.name}: {type(error).__name__}: {error}')
                terms.pop(term.name, None)
            if fault is not None:
                self.safety.trip(inputs.time, fault)
                if fault.kind == 'term':
                    return None
        if not is_finite(total):
            bad = next((name for name, torque in terms.items() if not is_finite(torque)), 'the sum')
            self.safety.trip(inputs.time, Fault('term', f'{bad}: its torque is not finite'))
            return None
        return total

    def _update_term_inputs(self, inputs: Inputs, fresh: bool) -> TermInputs:
        state, buffer, reference = self._term_inputs, self._buffer, self._reference_point
        newest = buffer.newest
        state.dt = 0.0 if self._state_time is None or not fresh else max(0.0, newest - self._state_time)
        self._state_time = newest
        state.time, state.q, state.v, state.applied = inputs.time, buffer.q, buffer.v, self._applied
        reference.q, reference.v, reference.a, reference.effort = self.reference.sample(inputs.time)
        if self._needs_friction:
            state.friction = self.robot.friction.torque(buffer.v)
        return state

    def _external(self) -> tuple[Array | None, str]:
        """External torque [N m] and contact, of the term that estimates them."""
        for term in self.terms:
            if term.external is not None:
                return term.external, term.contact
        return None, 'none'

    def _driver_command(self, torque: Array) -> Array:
        """The command in the drivers' order and unit.

        The last one is zero: a voltage against the back-EMF of a moving motor would keep it moving.
        """
        if not self.safety.is_sending:
            return np.zeros(len(self.drivers.names))
        return self.drivers.command(torque, self._buffer.v)


def _note(refused: list[str], reason: str | None) -> None:
    if reason:
        refused.append(reason)
