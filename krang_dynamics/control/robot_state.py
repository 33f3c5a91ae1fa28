"""The robot as a controller or guard measures it: joint states, their checks, and the dynamics."""

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ..arrays import Array, Mask, any_true, short_way
from ..errors import InputError
from ..kernels import consistent, is_near, is_within
from ..robot.model import Robot
from ..safety.joint_buffer import JointBuffer, JointSamples, MissingVelocity
from ..safety.limits import Limits
from ..safety.modes import Fault
from ..safety.stop_policies import StopState
from .builder import gravity_of, loaded
from .drivers import Drivers
from .dynamics import Dynamics
from .gains import SAMPLING, delay_margin
from .sensors import ImuSample, ImuSource, MeasuredGravity, OdomSample, OdomSource

if TYPE_CHECKING:
    from .settings import Settings

RATE_TOLERANCE = 0.1  # of limits.state_rate
ENCODER = 1e-3  # tolerance of position limits [rad, m]
NOISE = 0.025  # error of a position against the integral of the velocity, with encoders [rad, m]
SENSOR_NOISE = 0.05  # the same for joints that an IMU or odometry measures [rad, m]
JITTER = 0.02  # of arrivals, where states have no stamps [s]
SPEED_NOISE = 1.0  # noise of a measured velocity [rad/s, m/s]
DRIFT_TIME = 0.2  # over which the error of positions is summed [s]; it may be twice that of one step
HOLD = 0.05  # drivers may repeat a state for that long [s]
STANDING = 0.05  # largest offset of a velocity at rest [rad/s, m/s]
LONGEST_GAP = 0.5  # time in which a joint may have moved while no state arrived [s]
RESOLUTION = 0.01  # twice that of coarse encoders [rad, m]
SMOOTHING = 0.1  # time constant of the measured age of the states [s]
MOTION = np.array([HOLD, STANDING, RESOLUTION, DRIFT_TIME, NOISE])  # for kernels.consistent()
PATIENCE = 0.5  # states that are too old for the gains for longer than this are a fault [s]
EFFORT_SHARE = 0.1  # of limits.effort by which a measured effort may differ from the range 0 .. Q


class Measured(Protocol):
    """The part of a step's inputs that measures the robot."""

    time: float
    clock: float
    samples: Sequence[JointSamples]
    imu: Sequence[ImuSample]
    odom: Sequence[OdomSample]


class RobotState:
    """Joint states from all sensors, and the dynamics of the newest one."""

    def __init__(
        self,
        robot: Robot,
        drivers: Drivers,
        missing_velocity: MissingVelocity,
        coriolis: bool = False,
        hardware_compensates_gravity: bool = False,
    ) -> None:
        self.buffer = JointBuffer(robot.joint_names, missing_velocity, robot.continuous)
        self.dynamics = Dynamics(robot, coriolis)
        self.jumps = JumpCheck(robot)
        self._coriolis = coriolis
        self._drivers = drivers
        self._imu = None if robot.config.imu is None else ImuSource(robot)
        feeds_gravity = self._imu is not None and self._imu.feeds == 'gravity'
        self._gravity = MeasuredGravity(self._imu) if self._imu is not None and feeds_gravity else None
        self._gravity_problem: str | None = None  # an implausible measurement of gravity in this step
        self._odom = None if robot.config.odom is None else OdomSource(robot)
        self._driven = np.isin(robot.joint_names, drivers.joints).astype(float)
        self._hardware_compensates_gravity = hardware_compensates_gravity
        self.q, v, none = self.buffer.q, self.buffer.v, np.zeros(robot.nv)  # q of the last update [rad]
        self._stop = StopState(
            none,
            self.q,
            v,
            self.dynamics.A,
            self._driven,
            0.0,
            none,
            none,
            robot.continuous,
            0.0,
            self.dynamics,
        )

    @classmethod
    def of(cls, settings: 'Settings', robot: Robot, drivers: Drivers, coriolis: bool = False) -> 'RobotState':
        """With payloads, gravity and timeouts of the settings."""
        state = cls(
            loaded(settings, robot),
            drivers,
            settings.missing_velocity,
            coriolis,
            settings.hardware_compensates_gravity,
        )
        state.adopt(settings, None, gravity_of(settings, robot))
        return state

    def adopt(self, settings: 'Settings', loaded: Robot | None, gravity: Array | None) -> None:
        """Take live settings; None where the payloads or gravity [m/s2] do not change."""
        if loaded is not None:
            self.carry(loaded)
        if gravity is not None:  # otherwise an IMU may have set it
            self.dynamics.set_gravity(gravity)
        self.buffer.ahead = settings.state_timeout

    def take(self, inputs: Measured, refused: list[str]) -> float | None:
        """Merge all samples; returns the increase of the stamps [s], None without a new state."""
        buffer = self.buffer
        buffer.begin_step()
        self._gravity_problem = None
        for sample in inputs.samples:
            if not self._drivers.are_joints:
                sample = self._drivers.joint_samples(sample)
            reason = buffer.take(sample, inputs.time, inputs.clock)
            if reason is not None:
                refused.append(reason)
        if inputs.imu or inputs.odom:
            self._take_sensors(inputs, refused)
        return buffer.increase

    def _take_sensors(self, inputs: Measured, refused: list[str]) -> None:
        """Joints, or the direction of gravity, from an IMU and from odometry."""
        try:
            for sample in self._sensor_samples(inputs):
                reason = self.buffer.take(sample, inputs.time, inputs.clock)
                if reason is not None:
                    refused.append(reason)
        except InputError as error:
            refused.append(str(error))

    def _sensor_samples(self, inputs: Measured) -> Iterator[JointSamples]:
        for unit in inputs.imu:
            if self._imu is None:
                raise InputError('imu: the robot file has no imu')
            if self._gravity is None:
                yield self._imu.samples(unit)
            else:
                self._take_gravity(self._gravity, unit, inputs.clock)
        for pose in inputs.odom:
            if self._odom is None:
                raise InputError('odom: the robot file has no odom')
            yield self._odom.samples(pose, self.buffer.q, self.buffer.v)

    def _take_gravity(self, measured: MeasuredGravity, unit: ImuSample, clock: float) -> None:
        try:
            gravity = measured.take(unit, clock, self.buffer.ahead)
        except InputError as error:
            self._gravity_problem = str(error)
            raise
        if gravity is not None:
            self.dynamics.set_gravity(gravity)

    @property
    def problem(self) -> str | None:
        """Why the measurements of this step cannot be trusted, although they are new."""
        return self.buffer.problem or self._gravity_problem

    def stale(self, now: float, clock: float, timeout: float) -> str | None:
        """The first joint, or the direction of gravity, that is too old."""
        stale = self.buffer.stale(now, clock, timeout)
        if stale is None and self._gravity is not None:
            stale = self._gravity.stale(now, clock, timeout)
        return stale

    def carry(self, robot: Robot) -> None:
        """Use the model of a robot with another payload; gravity stays as it is."""
        gravity = self.dynamics.model_gravity()
        self.dynamics = Dynamics(robot, self._coriolis)
        self.dynamics.set_gravity(gravity)

    def gravity(self) -> Array:
        """Q [N m] as far as the motors have to compensate it."""
        gravity = self.dynamics.gravity
        return np.zeros_like(gravity) if self._hardware_compensates_gravity else gravity

    def update(self) -> None:
        """Compute the dynamics of the newest state, without the shifts of sensors: no robot jumps."""
        buffer, shift = self.buffer, self.jumps.shift
        self.q = buffer.q if shift is None else buffer.q - shift
        self.dynamics.update(self.q, buffer.v)

    def stop_state(self, limits: Limits) -> StopState:
        """What a stop can use of the state of the last update, within these limits.

        The next call overwrites it.
        """
        stop, buffer, dynamics = self._stop, self.buffer, self.dynamics
        stop.gravity = self.gravity()
        stop.q, stop.v, stop.times = self.q, buffer.v, buffer.times()
        stop.A, stop.model = dynamics.A, dynamics
        stop.effort, stop.rate, stop.hertz = limits.effort, limits.stop_rate, buffer.state_rate.hertz
        stop.age = min(max(buffer.age, 0.0), buffer.ahead)  # a clock may have been set
        stop.is_doubted = self.jumps.is_doubted
        return stop

    def jump(self, missing_velocity: MissingVelocity, longest: float, is_sending: bool) -> str | None:
        """A position that contradicts velocity and time (P18), where velocities are measured.

        Over more than `longest` [s] nothing is a jump. Without torque in flight, the pose is as measured.
        To be called once per step.
        """
        problem = None if missing_velocity == 'zero' else self.jumps.check(self.buffer, longest)
        if not is_sending:
            self.jumps.shift = None
        return problem


def rate_problem(buffer: JointBuffer, lowest: float, is_running: bool = False) -> str | None:
    """Why the rate of the states is too low; while running a rate that is not known is no reason."""
    rate = buffer.state_rate
    hertz = rate.hertz
    if hertz >= (1 - RATE_TOLERANCE) * lowest or (is_running and not rate.is_settled):
        return None
    if hertz == 0:
        return f'the rate of the states is not known yet: only {rate.count} states so far'
    return f'states at {hertz:.1f} Hz, limits.state_rate is {lowest:g} Hz'


class JumpCheck:
    """Positions against velocity and time, joint by joint (P18): in one step, and over DRIFT_TIME."""

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        encoders = [robot.config.joints[name].state == 'joint_states' for name in robot.joint_names]
        self._noise = np.where(encoders, NOISE, SENSOR_NOISE)
        self._zero = np.zeros(robot.nv)
        self.trust()
        self.reset()

    def reset(self) -> None:
        """Compare the next state with nothing."""
        # q and v, and the time and the arrival of each joint.
        self._last: tuple[Array, Array | float, Array | float] | None = None
        self._repeated = np.zeros_like(self._zero)  # for how long each joint has repeated its state [s]
        self._forget_drift()

    def trust(self) -> None:
        """Believe the positions as they are now, as at enable."""
        self.is_doubted = False  # whether a position has contradicted velocity and time since then
        self.shift: Array | None = None  # by how far each sensor has jumped since then [rad, m]
        self._froze = np.zeros_like(self._zero, dtype=bool)  # joints whose sensors have repeated a state
        self._forget_drift()

    def _forget_drift(self) -> None:
        self._drift = np.zeros_like(self._zero)  # sum of the errors over DRIFT_TIME [rad, m]
        self._fastest = self._zero  # ... and the speed over it, unless the sum is small

    def check(self, buffer: JointBuffer, longest: float) -> str | None:
        """The first joint that moved farther since the last call, or over time, than its velocities allow."""
        problem = self._compare(buffer, longest)
        self.is_doubted |= problem is not None
        return problem

    def _compare(self, buffer: JointBuffer, longest: float) -> str | None:
        """The same for the last two states.

        Where more than `longest` [s] has passed, or time has gone back, nothing is a jump; a position that
        has moved too far is only doubted. Where only the stamps say so, the clock was set forward: then the
        arrivals count.
        """
        last, state, times, arrivals = self._last, buffer.state, buffer.times(), buffer.arrivals()
        self._last = state, times, arrivals
        if last is None:
            return None
        dt = times - last[1]
        # If the errors of all joints together are small, no joint has jumped or drifted.
        if consistent(state, last[0], self._repeated, self._drift, dt, MOTION):
            self._fastest = self._zero
            return None
        if frozen := self._frozen(buffer):
            return frozen
        q, v, (last_q, last_v) = buffer.q, buffer.v, np.split(last[0], 2)
        dt, by_arrival = np.broadcast_to(dt, q.shape), np.broadcast_to(arrivals - last[2], q.shape)
        is_set = (dt > longest) & (by_arrival <= longest)
        dt = np.where(is_set, by_arrival, dt)
        known = (dt >= 0) & (dt <= longest)
        # What moved too far in a gap is no jump, but it is doubted: drivers may have lost their reference.
        dt = np.where(known, dt, np.minimum(np.maximum(by_arrival, 0.0), LONGEST_GAP))
        moved = short_way(q - last_q, self._robot.continuous)
        expected = 0.5 * (v + last_v) * dt
        error, change = moved - expected, np.abs(v - last_v)
        fastest = np.abs(v) + change
        jitter = np.where(is_set | ~known, JITTER, 0.0 if buffer.is_stamped else JITTER) * fastest
        is_far = ~(np.abs(error) <= self._noise + dt * (change + 0.5 * fastest + SPEED_NOISE) + jitter)
        self.is_doubted |= any_true(is_far)
        self._note_shift(is_far & (known | (by_arrival <= LONGEST_GAP)) & ~self._froze, error)
        kept = np.maximum(1.0 - dt / DRIFT_TIME, 0.0)
        # Over a longer gap the mean of two velocities says little; its error counts as a jump only.
        self._drift = np.where(known & (kept > 0), kept * self._drift + error, 0.0)
        self._fastest = np.maximum(kept * self._fastest, np.abs(v))
        drift = 2 * self._noise + 0.5 * DRIFT_TIME * self._fastest + jitter  # velocities may be filtered
        drifted = known & ~(np.abs(self._drift) <= drift)
        return self._problem(known & is_far, drifted, dt, moved, expected)

    def _note_shift(self, jumped: Mask, error: Array) -> None:
        """A sensor that jumps has shifted; one that was frozen has returned."""
        if any_true(jumped):
            self.shift = np.where(jumped, error, 0.0) + (0.0 if self.shift is None else self.shift)

    def _frozen(self, buffer: JointBuffer) -> str | None:
        """Positions that are repeated bit for bit have no noise: a small velocity contradicts them."""
        speed, repeated = np.abs(buffer.v), self._repeated
        frozen = (repeated > HOLD) & (speed > STANDING) & (speed * repeated > RESOLUTION)
        if not any_true(frozen):
            return None
        self._froze |= frozen
        i = int(np.argmax((repeated > HOLD) * speed * repeated))
        return (
            f'joint {self._robot.joint_names[i]!r} has repeated its position and a velocity of '
            f'{buffer.v[i]:.4g} rad/s for {self._repeated[i]:.3g} s: its sensor has frozen'
        )

    def _problem(self, jumped: Mask, drifted: Mask, dt: Array, moved: Array, expected: Array) -> str | None:
        """The first joint that jumped or drifted."""
        if not any_true(jumped | drifted):
            return None
        i = int(np.argmax(jumped | drifted))
        name = self._robot.joint_names[i]
        if jumped[i]:
            return (
                f'joint {name!r} jumped by {moved[i]:.4g} rad in {dt[i]:.4g} s; '
                f'its velocity gives {expected[i]:.4g} rad'
            )
        return (
            f'joint {name!r} moved {self._drift[i]:.4g} rad farther within {DRIFT_TIME:g} s '
            'than its velocity gives'
        )


class DelayCheck:
    """The measured age of the states against the delay margin of the gains in force."""

    def __init__(self) -> None:
        self.margin = inf  # [s]
        self.age = 0.0  # of stamped states when a step uses them, smoothed [s]
        self._since: float | None = None  # when the states became too old [s]

    def use(self, gains: Iterable[tuple[Array, Array]]) -> None:
        """Take the margin of these kp and kd."""
        self.margin = min((float(delay_margin(kp, kd).min()) for kp, kd in gains), default=inf)

    def reset(self) -> None:
        self.age, self._since = 0.0, None

    def take(self, buffer: JointBuffer, dt: float | None) -> None:
        """A step with a state that is `dt` [s] newer than the last."""
        if dt is not None:
            self.age += min(1.0, dt / SMOOTHING) * (buffer.age - self.age)

    def problem(self, now: float, hertz: float) -> tuple[str, bool]:
        """Why the loop is unstable, and whether this has lasted for PATIENCE."""
        sampling = SAMPLING / hertz if hertz > 0 else 0.0
        if self.age + sampling <= self.margin:
            self._since = None
            return '', False
        self._since = now if self._since is None else self._since
        reason = (
            f'states are {1e3 * self.age:.1f} ms old at {hertz:.4g} Hz, '
            f'the delay margin of the gains is {1e3 * self.margin:.3g} ms; lower gains.bandwidth'
        )
        return reason, now - self._since >= PATIENCE


class BoundsCheck:
    """Velocity limits, and position limits with a tolerance [rad, m]; motion back inwards is allowed."""

    def __init__(self, robot: Robot, limits: Limits, tolerance: float = ENCODER) -> None:
        self._robot, self._limits, self._tolerance = robot, limits, tolerance
        self._used: tuple[Array, ...] = ()  # the limits that _low and _high are computed from

    def fault(self, buffer: JointBuffer) -> Fault | None:
        """The first joint beyond a limit."""
        if is_within(buffer.state, *self._bounds()):
            return None
        robot, limits, q, v = self._robot, self._limits, buffer.q, buffer.v
        above = q - (robot.upper - limits.position_margin)
        below = robot.lower + limits.position_margin - q
        # Compared this way round, a velocity that is not a number counts as outwards.
        outside = np.maximum(np.where(v < 0, -inf, above), np.where(v > 0, -inf, below))
        return first_beyond(robot, 'velocity', np.abs(v), limits.velocity, 'rad/s') or first_beyond(
            robot, 'position', outside, np.full(robot.nv, self._tolerance), 'rad outside'
        )

    def _bounds(self) -> tuple[Array, Array]:
        """Lowest and highest (q, v) without a fault; computed again when a limit changes."""
        margin, speed = self._limits.position_margin, self._limits.velocity
        if not (self._used and self._used[0] is margin and self._used[1] is speed):
            self._low = np.concatenate([self._robot.lower + margin - self._tolerance, -speed])
            self._high = np.concatenate([self._robot.upper - margin + self._tolerance, speed])
            self._used = (margin, speed)
        return self._low, self._high


def following_fault(robot: Robot, limits: Limits, followed: Mask, reference: Array, q: Array) -> Fault | None:
    """The first joint that is too far from its reference; only joints that follow it count."""
    if limits.following_error is None or is_near(reference, q, limits.following_error):
        return None
    error = np.where(followed, np.abs(short_way(reference - q, robot.continuous)), 0.0)
    return first_beyond(robot, 'following_error', error, limits.following_error, 'rad')


def first_beyond(robot: Robot, kind: str, value: Array, limit: Array, unit: str) -> Fault | None:
    """A fault of the first joint whose value is above its limit."""
    beyond = value > limit
    if not any_true(beyond):
        return None
    i = int(np.argmax(beyond))
    name = robot.joint_names[i]
    return Fault(kind, f'joint {name!r}: {value[i]:.4g} {unit}, the limit is {limit[i]:.4g}')


def effort_problem(
    robot: Robot, commanded: Mask, limits: Limits, effort: Array, gravity: Array
) -> str | None:
    """The first joint whose measured effort [N m] contradicts Q(q): outside 0 .. Q, widened.

    The range is widened by Coulomb friction and by EFFORT_SHARE of the effort limit. An effort that is not
    measured is no reason.
    """
    margin = robot.friction.coulomb + EFFORT_SHARE * limits.effort
    low, high = np.minimum(gravity, 0.0) - margin, np.maximum(gravity, 0.0) + margin
    outside = commanded & ((effort < low) | (effort > high))
    if not outside.any():
        return None
    i = int(np.argmax(outside))
    return (
        f'joint {robot.joint_names[i]!r} measures an effort of {effort[i]:.4g} N m; with gravity, friction '
        f'and limits.effort it must be within {low[i]:.4g} .. {high[i]:.4g} N m'
    )
