"""The controller: step(inputs) -> outputs, the same for node, simulator, replay and tests."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

import numpy as np

from ..arrays import Array, is_finite
from ..errors import InputError, KrangError, UnknownNameError
from ..kernels import add
from ..robot.model import Robot
from ..robot.payload import Payload
from ..safety.joint_buffer import JointSamples
from ..safety.modes import Fault, Mode
from ..safety.safety_stage import SafetyStage
from .builder import limits_of, model_change, stop_of, stream_of, with_payloads, within_urdf
from .drivers import drivers_of
from .dynamics import Dynamics
from .gains import gains_problem
from .reference.cartesian_target import CartesianTargets, PoseSample, TwistSample
from .reference.joint_reference import TIMEOUT, Reference
from .reference.trajectory import JointTrajectory, PreparedTrajectory
from .robot_state import (
    BoundsCheck,
    DelayCheck,
    RobotState,
    effort_problem,
    following_fault,
    rate_problem,
)
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
    trajectory: JointTrajectory | PreparedTrajectory | None = None
    wrenches: Sequence[WrenchSample] = ()
    targets: Sequence[PoseSample | TwistSample] = ()  # of hands
    # These four are one change of the settings, applied as a whole or not at all.
    settings: Settings | None = None  # only live parameters may differ
    limits: Mapping[str, Any] | None = None  # parameters limits.*, by the part after the dot
    payloads: Sequence[Payload] | None = None  # all payloads from now on
    gravity: Array | None = None  # root link's axes [m/s2]
    enable: bool | None = None  # True and False are requests
    clear_fault: bool = False
    release: bool = False  # bring the torque to zero at the stop rate
    lower: bool = False  # disable, and lower a robot that would be held
    fade: bool = False  # end a stop that does not come to rest
    deadman: bool | None = None  # a heartbeat
    emergency_stop: bool | None = None  # True: pressed, False: released
    other_publisher: bool = False  # whether another publisher is on the command topic
    guard_problem: str = ''  # why the guard would not relay commands; empty without a problem or guard
    self_problem: str = ''  # which links are too near to each other; empty if none are

    def settings_after(self, present: Settings) -> Settings | None:
        """The settings after this change; None without a change."""
        is_same = self.settings is None and self.limits is None
        if is_same and self.payloads is None and self.gravity is None:
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
    warning: str = ''  # what will be a fault if it lasts


class TorqueController:
    """A sum of terms behind the safety stage; the time is one of the inputs."""

    def __init__(self, robot: Robot, settings: Settings) -> None:
        self.robot = robot
        self.settings = settings = within_urdf(settings, robot)
        self.drivers = drivers_of(settings, robot)
        self.command_joints = self.drivers.joints
        self.limits = limits_of(settings, robot, self.command_joints)
        self.reference = Reference(
            robot,
            settings.reference_timeout or TIMEOUT,
            limits=self.limits,
            stream=stream_of(settings, robot),
        )
        self.terms: list[Term] = build_terms(robot, settings)
        self._needs_friction = any(term.needs_friction for term in self.terms)
        self._term_of = {kind: term for term in self.terms for kind in term.takes}
        coriolis = any(term.needs_coriolis for term in self.terms)
        self.state = RobotState.of(settings, robot, self.drivers, coriolis)
        self._buffer = self.state.buffer
        self._buffer.state_rate.assume()  # a session measures it first
        self._commanded = np.isin(robot.joint_names, self.command_joints)
        leader = next((term for term in self.terms if term.arms), None)
        self.targets = None if leader is None else CartesianTargets(robot, leader, self._commanded)
        self.safety = SafetyStage(
            robot, self.limits, stop_of(settings, robot), settings.ramp_time, self._commanded.astype(float)
        )
        followed = [term.followed for term in self.terms if term.followed is not None]
        self._followed = np.any(followed, axis=0) if followed else np.zeros(robot.nv, dtype=bool)
        self._bounds = BoundsCheck(robot, self.limits)
        self._delay = DelayCheck()
        self._delay.use(self._gains(self.terms))
        self._check_gains(self.terms)
        self._applied = np.zeros(robot.nv)
        self._deadman_at = -np.inf
        self._is_emergency: bool | None = None  # None: no message of the switch was received
        self._time = 0.0  # of the last step, steady [s]
        self._state_time: float | None = None  # of the state that the terms used last
        self._is_blind = True  # whether the present step has no valid state
        self._warning = ''
        self._total = np.zeros(robot.nv)  # of the terms, overwritten by the next step with a new state
        self._terms: dict[str, Array] = {}  # each of them
        self._zero = zero = np.zeros(robot.nv)
        self._reference_point = ReferencePoint(*self.reference.point)
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
            self.safety.trip(
                self._time, Fault('clock', f'the clock is at {inputs.time} s, which is not a time')
            )
            inputs = replace(inputs, time=self._time)
        refused: list[str] = []
        terms: dict[str, Array] = {}
        stamped, torque, stop, accepted = None, None, None, False
        self._is_blind, self._warning = True, ''
        try:
            late = self._late(inputs.time)
            stamped = self._take_samples(inputs, refused)
            self._change_settings(inputs, refused)
            accepted = self._take_trajectory(inputs, refused)
            if inputs.targets or self.targets is not None:
                self._take_targets(inputs, refused)
            stale = self.state.stale(inputs.time, inputs.clock, self.settings.state_timeout)
            jump = self._jump()
            self._take_requests(inputs, stale, refused)
            if self.safety.is_driving:
                self._sample_reference(inputs.time)
            if self.safety.is_sending:
                self._check_faults(inputs, late or stale or self.state.problem or jump)
            if stale is None:
                torque = self._evaluate(inputs, stamped is not None, terms)
                stop = self.state.stop_state(self.limits)
                self._is_blind = False
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
            self._warning,
        )

    # -- inputs ------------------------------------------------------------------------------------------

    def _take_samples(self, inputs: Inputs, refused: list[str]) -> float | None:
        """Merge all samples; returns the increase of the stamps [s], None without a new state."""
        increase = self.state.take(inputs, refused)
        self._delay.take(self._buffer, increase)
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
        new = within_urdf(new, robot)
        old.check_change(new)
        if (frame := new.estimate_payload_frame) and frame not in robot.frames:
            raise UnknownNameError('estimate_payload.frame', frame, robot.frames)
        limits = limits_of(new, robot, self.command_joints)
        model = model_change(old, new, robot)
        stream = stream_of(new, robot)
        tunable = [term for term in self.terms if any(row.live for row in term.parameters)]
        tuned = [type(term).from_settings(robot, new) for term in tunable]
        for term, other in zip(tunable, tuned, strict=True):
            term.check_change(other)
            # Gains that stay are no reason against another change while states are slow.
            if term.gains is not None and not np.array_equal(term.gains, other.gains or ()):
                self._check_gains([other])

        def adopt() -> None:
            self.state.adopt(new, *model)
            self._term_inputs.dynamics = self.dynamics
            for term, other in zip(tunable, tuned, strict=True):
                term.adopt(other)
            self._delay.use(self._gains(self.terms))
            self.limits.adopt(limits)
            self.settings = new
            self.safety.ramp_time = new.ramp_time
            self.reference.timeout, self.reference.stream = new.reference_timeout or TIMEOUT, stream

        return adopt

    def _take_trajectory(self, inputs: Inputs, refused: list[str]) -> bool:
        """Whether a trajectory was accepted; also starts and ends motions that are due."""
        refused += self.reference.update(inputs.time, self._buffer.q)
        if inputs.trajectory is None:
            return False
        if not self.safety.is_driving:
            refused.append(f'trajectory: {self.safety.idle_reason}')
            return False
        try:
            joints = self.reference.accept(inputs.trajectory, inputs.time, self._buffer.q, inputs.clock)
        except KrangError as error:
            refused.append(f'trajectory: {error}')
            return False
        if self.targets is not None:
            self.targets.forget(joints)
        return True

    def _take_targets(self, inputs: Inputs, refused: list[str]) -> None:
        """Move the reference of hands to their targets."""
        for sample in inputs.targets:
            try:
                if self.targets is None:
                    raise InputError('a target was received, but cartesian_impedance is not among the terms')
                if not self.safety.is_driving:
                    raise InputError(f'target of {sample.frame}: {self.safety.idle_reason}')
                self.targets.take(sample, inputs.time, self._buffer.q, self.reference)
            except KrangError as error:
                refused.append(str(error))
        if self.targets is not None and self.targets.is_searching and self.safety.is_driving:
            try:
                refused += self.targets.advance(inputs.time, self.reference)
            except KrangError as error:
                refused.append(str(error))

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
                self.state.jumps.reset()
        if inputs.release:
            self.safety.release(now)
        if inputs.fade:
            self.safety.fade(now)
        if inputs.enable is False or inputs.lower:
            self.safety.disable(now)
        if inputs.lower:
            self.safety.lower(now)
        elif inputs.enable:
            _note(refused, self._enable(inputs, stale))

    def _enable(self, inputs: Inputs, stale: str | None) -> str | None:
        if self.safety.is_driving:
            return None
        reason = stale
        if reason is None and inputs.other_publisher:
            reason = 'another publisher is on the command topic; stop it first'
        if reason is None and inputs.guard_problem:
            reason = f'guard: {inputs.guard_problem}'
        if reason is None and inputs.self_problem:
            reason = inputs.self_problem
        if reason is None and self._deadman_is_missing(inputs.time):
            reason = 'deadman.required is true and no heartbeat is received'
        if reason is None and self.settings.emergency_stop_required and self._is_emergency is None:
            reason = 'emergency_stop.required is true and no message of emergency_stop was received'
        if reason is None and (fault := self._bounds.fault(self._buffer)):
            reason = str(fault)
        reason = reason or self._unfit_state() or self.safety.enable(inputs.time, self._buffer.effort)
        if reason is not None:
            return f'enable: {reason}'
        self.reference.hold(self._buffer.q)
        if self.targets is not None:
            self.targets.reset(self._buffer.q)
        for term in self.terms:
            term.reset()
        self._delay.reset()
        self.state.jumps.trust()
        self._state_time = None
        return None

    def _unfit_state(self) -> str | None:
        """Why the controller cannot begin with the present state: rate, gains at that rate, effort."""
        buffer = self._buffer
        problem = rate_problem(buffer, self.settings.limits_state_rate) or self._unstable_gains(self.terms)
        if problem is not None or self.safety.is_sending:  # a stop continues from its own torque
            return problem
        self.dynamics.update(buffer.q, buffer.v)
        return effort_problem(self.robot, self._commanded, self.limits, buffer.effort, self.dynamics.gravity)

    def _check_gains(self, terms: Sequence[Term]) -> None:
        """InputError where gains are unstable at the measured rate, or at any rate."""
        problem = self._unstable_gains(terms)
        if problem is not None:
            raise InputError(problem)

    def _unstable_gains(self, terms: Sequence[Term]) -> str | None:
        hertz = self._buffer.state_rate.hertz
        for term in terms:
            gains = term.gains
            problem = None if gains is None else gains_problem(self.robot, *gains, hertz)
            if problem is not None:
                return f'{term.name}: {problem}'
        return None

    def _gains(self, terms: Sequence[Term]) -> list[tuple[Array, Array]]:
        """kp and kd of the terms that have them."""
        return [term.gains for term in terms if term.gains is not None]

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
        if inputs.guard_problem:
            trip(now, Fault('guard', inputs.guard_problem))
        if inputs.self_problem:
            trip(now, Fault('self_distance', inputs.self_problem))
        if slow := rate_problem(self._buffer, self.settings.limits_state_rate, is_running=True):
            trip(now, Fault('state', slow))
        self._warning, is_lasting = self._delay.problem(now, self._buffer.state_rate.hertz)
        if is_lasting:
            trip(now, Fault('delay', self._warning))
        if self._deadman_is_missing(now):
            trip(now, Fault('deadman', f'no heartbeat for more than {self.settings.deadman_timeout:g} s'))
        fault = self._bounds.fault(self._buffer) or following_fault(
            self.robot, self.limits, self._followed, self._reference_point.q, self._buffer.q
        )
        if fault is not None:
            trip(now, fault)

    def _jump(self) -> str | None:
        """A position that contradicts velocity and time; it is a fault while the terms drive."""
        settings, is_sending = self.settings, self.safety.is_sending
        jump = self.state.jump(settings.missing_velocity, settings.state_timeout, is_sending)
        return jump if self.safety.is_driving else None

    # -- outputs -----------------------------------------------------------------------------------------

    def _evaluate(self, inputs: Inputs, fresh: bool, terms: dict[str, Array]) -> Array | None:
        """The sum of the terms at the newest state; None, and a fault, if a term fails.

        Without a new state it stays as it is: a reference that moves on would drive the robot away from a
        position that is no longer measured.
        """
        self.state.update()
        if not self.safety.is_driving:
            return None
        if not fresh and self._state_time is not None:
            terms.update(self._terms)
            return self._total
        state = self._update_term_inputs(inputs, fresh)
        total = self._total
        total.fill(0.0)
        for term in self.terms:
            try:
                terms[term.name] = torque = term.torque(state)
                if not add(total, torque):  # an array of another kind
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
        self._terms = terms
        return total

    def _sample_reference(self, now: float) -> None:
        """The reference of this step, for the terms and for the following error."""
        self.reference.sample(now)  # its arrays are those of the reference point

    def _update_term_inputs(self, inputs: Inputs, fresh: bool) -> TermInputs:
        state, buffer = self._term_inputs, self._buffer
        newest = buffer.newest
        dt = 0.0 if self._state_time is None or not fresh else newest - self._state_time
        self._state_time = newest
        state.dt = dt if dt > 0.0 else 0.0
        state.time, state.q, state.v, state.applied = inputs.time, buffer.q, buffer.v, self._applied
        state.reference = self._reference_point
        if isinstance(arrivals := buffer.arrivals(), np.ndarray):  # each joint has a time of its own
            state.reference = self._reference_point.before(arrivals.max() - arrivals)
        if self._needs_friction:
            state.friction = self.robot.friction.torque(buffer.v, state.dynamics.gravity)
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
        # Without a valid state the speed is not known: a voltage for an old speed would drive the motor.
        v = self._zero if self._is_blind else self._buffer.v
        return self.drivers.command(torque, v)


def _note(refused: list[str], reason: str | None) -> None:
    if reason:
        refused.append(reason)
