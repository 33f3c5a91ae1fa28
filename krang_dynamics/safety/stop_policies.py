"""Stop policies: the torque that brings a robot to rest. One class is one policy."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeVar

import numpy as np

from .. import kernels
from ..arrays import Array, Mask, any_true
from ..errors import UnknownNameError
from ..robot.config import StopConfig
from .limits import HIGHEST_SPEED

RATE = 40.0  # largest rate at which motion decays [1/s]
SLOWEST = 3.0  # smallest rate while the robot is lowered [1/s]
PERIOD = 0.02  # time between two states until it is measured: that of the lowest default rate [s]
MEMORY = 2.0  # time over which a gap between two steps, or an old state, is forgotten [s]
DELAY = 0.01  # delay with which a stop is stable, besides the measured age of the states [s]
MARGIN = 0.5  # product of decay rate and delay; oscillation begins at pi / 2
SINK = 0.22  # speed at which the fastest point sinks while gravity support is lowered [m/s]
STANDING = 0.05  # below this speed the robot may be carried by end stops, friction or a support, ...
MOVING = 0.15  # ... and above this speed it is not [m/s]
FAST = 0.32  # above this speed support rises again [m/s]
NOISE = 0.1  # of a single measured speed [m/s]
RISE = 0.25  # time in which support rises from 0 to 1 [s]
DELIVERED = 0.05  # share of the effort limit by which a command may differ from the torque of the stop
LEARNING = 10.0  # rate at which support takes over the damping torque of a robot that is too fast [1/s]
STILL = 0.01  # below this speed a joint is at rest [rad/s]
REST = 1.0  # time for which all joints must be at rest before the robot is released [s]
FILTER = 0.01  # time constants of the measured velocities: for damping, ... [s]
SLACK = 0.01  # error of a position against the integral of the velocity that is noise [rad]
JUMP = 0.1  # a larger error is no motion [rad]
GAP = 0.1  # longest time over which a velocity is integrated [s]
SMOOTHING = 0.1  # ... to find joints that are carried, ... [s]
RESTING = 1.0  # ... and to find rest, in spite of the noise of encoders [s]
CARRIED = 3.0  # a joint is carried if it sinks this many times slower than damping alone would allow
RESOLUTION = 1e-3  # smallest speed that is distinguished from 0 [rad/s]
UNSTABLE = -0.05  # stiffness per inertia below which gravity drives a joint away [1/s2]
ROUNDING = 1e-9  # of an effort limit


class GravityModel(Protocol):
    """What a stop needs from the robot's model in the present pose."""

    def point_speed(self, v: Array) -> float:
        """Largest speed [m/s] of any point if the joints moved at v [rad/s]."""

    def point_speed_in_any_pose(self, v: Array) -> float:
        """A bound of that speed for every pose."""

    def gravity_stiffness(self) -> Array:
        """dQ/dq [N m/rad]."""


@dataclass(slots=True)
class StopState:
    """What a stop can use of the present state."""

    gravity: Array  # Q [N m]
    q: Array  # [rad]
    v: Array  # [rad/s]
    A: Array  # mass matrix [kg m2]
    driven: Array  # 1 for joints that get torque, 0 for others
    hertz: float  # measured rate of the states, 0 until it is known [Hz]
    effort: Array  # largest torque [N m]
    rate: Array  # largest rate of torque [N m/s]
    continuous: Mask  # joints whose position may jump by a turn
    times: Array | float  # of the samples: of each joint, or of all [s]
    model: GravityModel
    applied: Array | None = None  # last command [N m]
    age: float = 0.0  # of the state when it was used first, 0 if it has no stamp [s]
    is_doubted: bool = False  # whether the positions have contradicted the velocities

    def fastest_decay(self, gap: float) -> float:
        """Largest decay rate [1/s] that is stable with old states and this gap between steps [s].

        DELAY is for what no stamp shows: the way of the commands and the drivers. The stop rate delays the
        damping torque further.
        """
        period = max(1.0 / self.hertz if self.hertz else PERIOD, gap)
        delay = 0.5 * period + DELAY + self.age
        decay = min(RATE, MARGIN / delay)
        in_time = kernels.decay_in_time(self.momentum(), self.driven, self.effort, self.rate, decay, delay)
        return min(decay, max(SLOWEST, in_time))

    def momentum(self) -> Array:
        """A v of the driven joints [N m s].

        Joints without torque are left out: braking a driven joint for their motion would move it.
        """
        return np.asarray(self.A.dot(self.driven * self.v))

    def damping(self, decay: float) -> Array:
        """-D v [N m], D = decay A, decay [1/s]: proportional to the inertia of each motion."""
        return -decay * self.momentum()

    def within_effort(self, torque: Array) -> Array:
        """The torque [N m] within the effort limits whose accelerations are nearest to the intended ones."""
        return self.nearest_within(torque, self.effort)

    def nearest_within(self, torque: Array, limit: Array) -> Array:
        """The torque [N m] within -limit .. limit whose accelerations are nearest to those of `torque`.

        In the metric A, so that braking that exceeds the limits never accelerates the robot.
        """
        return kernels.nearest_within(torque, limit, self.A, self.driven, ROUNDING)

    def fall(self, carried: Mask) -> Array:
        """Joint accelerations [rad/s2] of the driven joints without support, reversed: A^-1 Q.

        Joints that are carried do not move.
        """
        return kernels.solved_part(self.A, self.gravity, (self.driven > 0) & ~carried)

    def point_speed(self, v: Array) -> float:
        """Speed [m/s] of the fastest point at these velocities; of any pose if the positions may be wrong."""
        return self.model.point_speed_in_any_pose(v) if self.is_doubted else self.model.point_speed(v)

    def carried(self, decay: float, v: Array) -> Mask:
        """Joints that are carried by an end stop, by friction or by a support.

        They sink much slower than damping at `decay` [1/s] alone would allow; v [rad/s] is measured. An arm
        on a lift that falls does not sink relative to it: joints are added until no further one is carried.
        """
        slow = CARRIED * decay * np.maximum(np.abs(v), RESOLUTION)
        carried = np.zeros(len(v), dtype=bool)
        for _ in carried:
            more = carried | (np.abs(self.fall(carried)) > slow)
            if not any_true(more ^ carried):
                break
            carried = more
        return carried

    def is_stable(self, carried: Mask) -> bool:
        """Whether a robot at rest stays there without torque; a robot that is balanced upright does not.

        Joints that are not carried must be in a stable equilibrium.
        """
        free = np.flatnonzero((self.driven > 0) & ~carried)
        if not free.size or not self.gravity.any():
            return True
        block = np.ix_(free, free)
        stiffness = np.linalg.solve(self.A[block], self.model.gravity_stiffness()[block])
        return bool(np.linalg.eigvals(stiffness).real.min() > UNSTABLE)


class StopPolicy(ABC):
    """One stop, from time `begin` [s] to its last command; it starts from the given `torque` [N m]."""

    name: ClassVar[str]  # in the parameter stop.policy and in robot files
    is_lasting: ClassVar[bool] = False  # continues until another request
    is_braking: ClassVar[bool] = False  # acts against the motion, where a state shows it

    def __init__(self, config: StopConfig, begin: float, torque: Array) -> None:
        self.config = config
        self.begin = begin
        self.finished = False  # whether nothing more needs to be sent

    @abstractmethod
    def torque(self, now: float, state: StopState | None) -> Array:
        """Torque [N m] at time `now`, with or without a valid state; sets `finished` at the end."""


class SupportingStop(StopPolicy):
    """A stop that supports a share of gravity.

    Without a valid state the torque that carried the robot decays over `blind_time`. If states return within
    `time` after that, a robot that falls is braked again.
    """

    is_braking = True

    def __init__(self, config: StopConfig, begin: float, torque: Array) -> None:
        super().__init__(config, begin, torque)
        self._support = 1.0  # share of gravity that is compensated
        self._carrying = torque  # what the last command had of gravity, by support and by damping [N m]
        self._blind = 0.0  # time without a valid state [s]
        self._gap = 0.0  # largest time between the steps with two samples of a joint recently [s] ...
        self._age = 0.0  # ... and largest age of a state [s]
        # Per joint: time of the newest sample [s], when it was first used [s], and the filtered velocity
        # [rad/s] with its integral, near the measured position [rad].
        self._motion = np.zeros((4, len(torque)))
        self._motion[:2] = [[np.nan], [begin]]
        self._now = begin

    def torque(self, now: float, state: StopState | None) -> Array:
        elapsed, self._now = max(0.0, now - self._now), now
        kept = 1.0 - min(1.0, elapsed / MEMORY)
        self._gap, self._age = kept * self._gap, kept * self._age
        if state is None:
            self._blind += elapsed
            self._support = max(0.0, self._support - elapsed / self.config.blind_time)
            self.finished = self._blind >= self.config.blind_time + self.config.time and self._support == 0.0
            return max(0.0, 1.0 - self._blind / self.config.blind_time) * self._carrying
        if self._blind == 0.0:  # a time without a state had no damping that could be late
            self._gap = max(now - float(self._motion[1].min()), self._gap)
        self._blind = 0.0
        state.age = self._age = max(state.age, self._age)
        state.v = self._filtered(now, state)
        torque = self._with_state(elapsed, state)
        self._carrying = kernels.between(torque, self._support * state.gravity, state.gravity)
        return torque

    def _filtered(self, now: float, state: StopState) -> Array:
        """Filtered velocities [rad/s] with what the positions show besides: one that reads 0 cannot brake."""
        kernels.follow(
            self._motion,
            state.q,
            state.v,
            state.times,
            now,
            state.continuous,
            HIGHEST_SPEED,
            FILTER,
            SLACK,
            JUMP,
            GAP,
        )
        return self._motion[2]

    @abstractmethod
    def _with_state(self, elapsed: float, state: StopState) -> Array:
        """Torque [N m] with a valid state, `elapsed` [s] after the last one."""


PolicyType = TypeVar('PolicyType', bound=type[StopPolicy])
STOP_POLICIES: dict[str, type[StopPolicy]] = {}


def register(policy: PolicyType) -> PolicyType:
    """Class decorator: make a policy available by its name."""
    STOP_POLICIES[policy.name] = policy
    return policy


def stop_policy(name: str) -> type[StopPolicy]:
    """The policy of a name."""
    if name not in STOP_POLICIES:
        raise UnknownNameError('stop policy', name, STOP_POLICIES)
    return STOP_POLICIES[name]


@register
class Hold(SupportingStop):
    """Q - D v until another request."""

    name = 'hold'
    is_lasting = True

    def _with_state(self, elapsed: float, state: StopState) -> Array:
        self._support = min(1.0, self._support + elapsed / RISE)  # after a time without states
        decay = state.fastest_decay(self._gap)
        return state.within_effort(self._support * state.gravity + state.damping(decay))


@register
class Lower(SupportingStop):
    """s Q - D v; s falls from 1 to 0 over `time`, but no point sinks faster than about SINK.

    D normally lets the fastest point sink at SINK without support, so that robots with large rotors come down
    too. If a point is faster, D rises up to the largest stable value. If that is not enough, s stays above
    1 - SINK decay / fall. Above FAST, s rises, and Q takes over what damping carries: a load that the model
    does not know. At the end, damping continues until the robot is at rest in a stable pose.
    """

    name = 'lower'

    def __init__(self, config: StopConfig, begin: float, torque: Array) -> None:
        super().__init__(config, begin, torque)
        self._load = np.zeros_like(torque)  # torque of an unknown load [N m]
        self._wanted: Array | None = None  # torque of the last step, before the effort limits [N m]
        self._smooth_v: Array | None = None  # mean velocities over SMOOTHING [rad/s]
        self._rest_v = np.zeros_like(torque)  # ... and over RESTING
        self._carried = self._none = np.zeros(len(torque), dtype=bool)
        self._resting = 0.0  # time at rest [s]

    def _with_state(self, elapsed: float, state: StopState) -> Array:
        v = state.driven * state.v
        if self._smooth_v is None:
            self._smooth_v = v
        self._smooth_v = kernels.moved(self._smooth_v, v - self._smooth_v, min(1.0, elapsed / SMOOTHING))
        self._rest_v = kernels.moved(self._rest_v, v - self._rest_v, min(1.0, elapsed / RESTING))
        fall, speed = self._fall(state), state.point_speed(v)
        mean_speed = state.point_speed(self._smooth_v)
        decay = self._decay(fall, speed, state.fastest_decay(self._gap))
        damping = state.damping(decay)
        self._change_support(elapsed, speed, self._floor(fall, max(mean_speed, speed - NOISE), decay))
        self._change_load(elapsed, damping, speed > max(FAST, mean_speed) and self._is_delivered(state))
        self._load = kernels.between(self._load, -state.effort, state.effort)
        self._carried = state.carried(decay, self._smooth_v) if self._support == 0.0 else self._none
        self.finished = self._support == 0.0 and self._is_at_rest(elapsed, decay, state)
        if self.finished:
            return np.zeros_like(state.gravity)
        self._wanted = self._support * (state.gravity + self._load) + damping
        return state.within_effort(self._wanted)

    def _is_delivered(self, state: StopState) -> bool:
        """Whether the motors had the torque that the stop wanted, within their limits of effort and rate."""
        if self._wanted is None or state.applied is None:
            return False
        missing = state.driven * np.abs(self._wanted - state.applied)
        return not any_true(~(missing <= DELIVERED * state.effort))

    def _floor(self, fall: float, sinking: float, decay: float) -> float:
        """Smallest support with which the fastest point sinks at SINK; 0 for a robot that is carried."""
        if fall == 0:
            return 0.0
        share = min(1.0, max(0.0, (sinking - STANDING) / (MOVING - STANDING)))
        return share * max(0.0, 1.0 - SINK * decay / fall)

    def _change_support(self, elapsed: float, speed: float, floor: float) -> None:
        """Lower support, or raise it if the robot is too fast."""
        self._support += elapsed / RISE if speed > FAST else -elapsed / self.config.time
        self._support = min(1.0, max(self._support, floor))

    def _change_load(self, elapsed: float, damping: Array, is_falling: bool) -> None:
        """The load is what damping does not slow down; a robot that was fast when the stop began has none."""
        if is_falling:
            self._load = self._load + LEARNING * elapsed * damping
        else:
            self._load = self._load * (1.0 - min(1.0, elapsed / self.config.time))

    def _fall(self, state: StopState) -> float:
        """Acceleration [m/s2] of the fastest point without support.

        Damping for joints that are carried would only make the others creep.
        """
        return state.point_speed(state.fall(self._carried))

    def _decay(self, fall: float, speed: float, fastest: float) -> float:
        """Decay rate [1/s]: just enough to limit the sinking speed, up to `fastest` at higher speed."""
        slowest = min(fastest, max(SLOWEST, fall / SINK))
        share = min(1.0, max(0.0, (speed - SINK) / (FAST - SINK)))
        return slowest + share * (fastest - slowest)

    def _is_at_rest(self, elapsed: float, decay: float, state: StopState) -> bool:
        is_still = not any_true(~(np.abs(self._rest_v) < STILL))
        self._resting = self._resting + elapsed if is_still else 0.0
        return self._resting >= REST and state.is_stable(state.carried(decay, self._rest_v))


@register
class Zero(StopPolicy):
    """Zero torque, as fast as the stop rate allows: for robots that zero torque does not drop."""

    name = 'zero'

    def __init__(self, config: StopConfig, begin: float, torque: Array) -> None:
        super().__init__(config, begin, torque)
        self._zero = np.zeros_like(torque)

    def torque(self, now: float, state: StopState | None) -> Array:
        self.finished = True
        return self._zero


class Fade(StopPolicy):
    """The last torque, faded to zero over `time`: the end of a stop that does not come to rest."""

    def __init__(self, config: StopConfig, begin: float, torque: Array) -> None:
        super().__init__(config, begin, torque)
        self._torque = torque

    def torque(self, now: float, state: StopState | None) -> Array:
        share = min(1.0, max(0.0, 1.0 - (now - self.begin) / self.config.time))
        self.finished = share == 0.0
        return share * self._torque
