"""Joint samples from any number of publishers, merged and checked per joint."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import Literal

import numpy as np

from ..arrays import Array, Indices, Mask, any_true, short_way
from ..kernels import joint_state

NO_CLOCK = 'no time was received on /clock; check that the simulator publishes it'
AHEAD = 0.1  # default time by which a stamp may be ahead of the clock [s]
MOST_LISTS = 64  # lists of joint names that are cached
WINDOW = 0.5  # over which the rate of the states is measured [s]
Rows = Indices | None  # places in a message; None: in the robot's own order
MissingVelocity = Literal['error', 'zero', 'differentiate']


@dataclass(frozen=True)
class JointSamples:
    """One message: values by joint name; velocity and effort may be empty, NaN means missing.

    `stamp` [s] is on the node's clock, 0 means unstamped; `arrival` [s] is on the steady clock.
    """

    names: Sequence[str]
    position: Array
    velocity: Array
    effort: Array
    stamp: float
    arrival: float


class StateRate:
    """Mean rate of the states by their times, over the last WINDOW."""

    def __init__(self) -> None:
        self.hertz = 0.0  # 0 until states span 0.1 s; infinite while simulated time waits for a command
        self._times: deque[float] = deque()
        self._unknown = 0.0  # hertz until the rate is known; infinite where it is assumed to be sufficient

    def add(self, time: float) -> None:
        """A state of this time [s]."""
        times = self._times
        if times and not 0 <= time - times[-1] <= WINDOW:  # time was set, or states were interrupted
            times.clear()
        times.append(time)
        while time - times[0] > WINDOW:
            times.popleft()
        span = time - times[0]
        self.hertz = (len(times) - 1) / span if span > 0.1 else self._unknown

    def repeat(self) -> None:
        """The same state again, without progress of time, as from a simulator in lock step."""
        self.hertz = inf

    def assume(self) -> None:
        """Count the rate as sufficient until it is known."""
        self._unknown = inf
        self.hertz = self.hertz or inf

    def reset(self) -> None:
        """Discard all states; nothing is assumed from now on."""
        self._times.clear()
        self.hertz = self._unknown = 0.0

    @property
    def is_settled(self) -> bool:
        """Whether the states of most of the window are known."""
        return bool(self._times) and self._times[-1] - self._times[0] > 0.8 * WINDOW

    @property
    def count(self) -> int:
        """States within the window."""
        return len(self._times)


class JointBuffer:
    """The newest position, velocity and effort of every joint, and the time of each."""

    def __init__(
        self,
        joint_names: Sequence[str],
        missing_velocity: MissingVelocity = 'error',
        continuous: Mask | None = None,
    ) -> None:
        n = len(joint_names)
        self.ahead = AHEAD  # a stamp that is farther ahead of the clock is refused [s]
        self._continuous = np.zeros(n, dtype=bool) if continuous is None else continuous
        self.joint_names = tuple(joint_names)
        self.state = np.zeros(2 * n)  # positions, then velocities
        self.q, self.v = self.state[:n], self.state[n:]
        self._effort = np.full(n, np.nan)
        self._effort_source: tuple[Array, Rows] | None = (
            None  # of the last message; sorted only when it is read
        )
        self.newest = -np.inf  # newest time of any joint [s]: its stamp, or its arrival without one
        self._times = np.full((4, n), -np.inf)  # stamp, arrival, time and age of each joint [s]
        self._times[[0, 3]] = 0.0
        self._age = 0.0  # of the last message with all joints, when it was taken [s]
        self._increase = 0.0  # of the stamps of complete messages in this step [s]
        self._increase_by_joint: Array | None = None  # of the stamps of other messages [s]
        self._has_new = False
        self.problem: str | None = None  # a clock that was set back in this step
        self.state_rate = StateRate()
        self._renewed = np.zeros(n, dtype=bool)  # joints since the last complete state
        self.extra: set[str] = set()  # unknown joints
        self._missing_velocity = missing_velocity
        self._index = {name: i for i, name in enumerate(joint_names)}
        self._maps: dict[tuple[str, ...], tuple[Rows, Indices]] = {}
        self._names: Sequence[str] = ()  # of the last message, and the places of its joints
        self._found: tuple[Rows, Indices] | str = self._map(())
        self._is_complete = False  # whether these are all joints, in a tuple, which cannot change
        self._rows: Rows = None  # their places, if so
        self._whole: JointSamples | None = None  # the last message, if it had all joints
        self._any_stamp = np.zeros(n, dtype=bool)  # joints whose next stamp may have any value

    @property
    def effort(self) -> Array:
        """Measured effort [N m], NaN where there is none; sorted only when it is read."""
        if self._effort_source is not None:
            self._effort, self._effort_source = _part(*self._effort_source, len(self.q)), None
        return self._effort

    def times(self) -> Array | float:
        """Time of each joint's newest sample [s], its stamp or its arrival; one number if all are equal."""
        return self.newest if self._whole is not None else self._times[2].copy()

    def arrivals(self) -> Array | float:
        """Steady time [s] at which each joint's newest sample arrived; one number if all are equal."""
        return self._whole.arrival if self._whole is not None else self._times[1].copy()

    @property
    def age(self) -> float:
        """Largest age of any joint's newest sample when it was taken [s]; 0 for samples without a stamp."""
        return self._age if self._whole is not None else float(self._times[3].max())

    @property
    def is_stamped(self) -> bool:
        """Whether every joint's newest sample has a stamp."""
        if self._whole is not None:
            return self._whole.stamp > 0
        return bool((self._times[0] > 0).all())

    def reset_stamps(self) -> None:
        """Accept any stamp next, for example after a fault was cleared."""
        self._note_times()
        self._any_stamp.fill(True)

    def begin_step(self) -> None:
        """Start counting the increase of the stamps."""
        self._has_new, self._increase, self._increase_by_joint = False, 0.0, None
        self.problem = None

    @property
    def increase(self) -> float | None:
        """Largest increase of any joint's stamp in this step [s]; None without a new state."""
        if not self._has_new:
            return None
        return (
            self._increase
            if self._increase_by_joint is None
            else self._increase + float(self._increase_by_joint.max())
        )

    def take(self, sample: JointSamples, now: float, clock: float) -> str | None:
        """Merge one message; returns the reason if some or all of it is refused."""
        is_usual = self._is_complete and sample.names is self._names and sample.arrival <= now
        if is_usual and self._take_whole(sample, clock, self._rows):
            return None
        return self._take_any(sample, now, clock)

    def _take_any(self, sample: JointSamples, now: float, clock: float) -> str | None:
        """The same for any message."""
        if not sample.arrival <= now:  # arrivals are never in the future
            sample = replace(sample, arrival=now)
        if sample.names is not self._names or not isinstance(sample.names, tuple):
            self._names, self._found = sample.names, self._map(sample.names)
            self._is_complete = False
        found = self._found
        if isinstance(found, str):
            return f'joint_states: {found}'
        reason = _invalid(sample, clock, self.ahead)
        if reason is not None:
            return f'joint_states: {reason}'
        rows, joints = found
        if len(joints) == len(self.q):
            self._rows, self._is_complete = rows, isinstance(sample.names, tuple)
            if self._take_whole(sample, clock, rows):
                return None
        self._note_times()
        self._begin_again(joints, clock)
        return self._take_parts(sample, clock, rows, joints)

    def _begin_again(self, joints: Indices, clock: float) -> None:
        """Accept any stamp of joints whose last stamp is in the future: the clock was set back."""
        ahead = self._times[0, joints] - clock
        if any_true(ahead > self.ahead):
            self._any_stamp[joints[ahead > self.ahead]] = True
            self.problem = f'the clock was set back by {ahead.max():.3f} s or more'

    def _map(self, names: Sequence[str]) -> tuple[Rows, Indices] | str:
        """Indices in a message and their joints, in the robot's order; or why the names are refused."""
        key = tuple(names)
        if key in self._maps:
            return self._maps[key]
        places = {name: i for i, name in enumerate(key)}
        if len(places) < len(key):
            repeated = min(name for i, name in enumerate(key) if places[name] != i)
            return f'joint {repeated!r} occurs twice'
        if len(self._maps) >= MOST_LISTS:  # more than real publishers have: invalid data
            self._maps.clear()
            self.extra.clear()
        joints = np.array([self._index[name] for name in self.joint_names if name in places], dtype=np.intp)
        rows = np.array([places[name] for name in self.joint_names if name in places], dtype=np.intp)
        self._maps[key] = (None if key == self.joint_names else rows, joints)
        self.extra |= {name for name in key if name not in self._index}
        return self._maps[key]

    def _take_whole(self, sample: JointSamples, clock: float, rows: Rows) -> bool:
        """The fast path: valid, all joints, all newer, all finite. False: use _take_any."""
        stamp, last, count = sample.stamp, self._whole, len(sample.names)
        time = stamp if stamp > 0 else sample.arrival
        if last is None or not time > self.newest or len(sample.velocity) != count:
            return False
        if (last.stamp > 0) is not (stamp > 0):  # times of two clocks
            return False
        if not (0 <= stamp <= clock + self.ahead and stamp < inf) or len(sample.position) != count:
            return False
        if len(sample.effort) not in (0, count):
            return False
        state = joint_state(sample.position, sample.velocity, rows)
        if state is None:
            return False
        n = len(self.q)
        self.state, self.q, self.v = state, state[:n], state[n:]
        self._effort_source = (sample.effort, rows)
        self._increase += time - self.newest
        self._has_new = True
        self.state_rate.add(time)
        self.newest, self._whole = float(time), sample
        self._age = clock - stamp if stamp > 0 else 0.0
        return True

    def _note_times(self) -> None:
        """Store the times of the last complete message for each joint."""
        if self._whole is not None:
            self._times[:] = [[self._whole.stamp], [self._whole.arrival], [self.newest], [self._age]]
            self._whole = None

    def _take_parts(self, sample: JointSamples, clock: float, rows: Rows, joints: Indices) -> str | None:
        """Joint by joint: newer and finite values are accepted; the first invalid one is reported."""
        count = len(joints)
        position = _part(sample.position, rows, count)
        time = sample.stamp if sample.stamp > 0 else sample.arrival
        stamps, arrivals = self._times[:2, joints]
        both_stamped = (stamps > 0) & (sample.stamp > 0)  # else only the arrivals are on one clock
        elapsed = np.where(both_stamped, sample.stamp - stamps, sample.arrival - arrivals)
        velocity, gaps = self._velocity(_part(sample.velocity, rows, count), position, elapsed, joints)
        newer = (elapsed > 0) | self._any_stamp[joints]
        good = newer & np.isfinite(position) & np.isfinite(velocity)
        kept = joints[good]
        # Arrays that were handed out before do not change.
        self.state = self.state.copy()
        self.q, self.v = self.state[: len(self.q)], self.state[len(self.q) :]
        self.q[kept], self.v[kept] = position[good], velocity[good]
        self._effort = self.effort.copy()
        self._effort[kept] = _part(sample.effort, rows, count)[good]
        self._age = clock - sample.stamp if sample.stamp > 0 else 0.0
        self._times[:, kept] = [[sample.stamp], [sample.arrival], [time], [self._age]]
        self._any_stamp[kept] = False
        if len(kept):
            self.newest = float(self._times[2].max())
            if self._increase_by_joint is None:
                self._increase_by_joint = np.zeros(len(self.q))
            self._increase_by_joint[kept] += np.maximum(elapsed[good], 0.0)
            self._has_new = True
            self._renewed[kept] = True
            if not any_true(~self._renewed):  # the slowest publisher determines the rate
                self.state_rate.add(self.newest)
                self._renewed.fill(False)
        if len(kept) == len(self.q):
            self._whole = sample
        elif count and not elapsed.any() and (self._times[1, joints] == sample.arrival).all():
            self.state_rate.repeat()
        bad = newer & ~good
        if not any_true(bad):
            return None
        what = 'velocity is missing' if gaps else 'position or velocity is not finite'
        return f'joint {self.joint_names[int(joints[bad][0])]!r}: {what}'

    def _velocity(
        self, velocity: Array, position: Array, elapsed: Array, joints: Indices
    ) -> tuple[Array, bool]:
        """Velocities with missing values filled as configured, and whether any were missing."""
        missing = np.isnan(velocity)
        is_missing = any_true(missing)
        if not is_missing or self._missing_velocity == 'error':
            return velocity, is_missing
        filled = np.zeros(len(velocity))
        if self._missing_velocity == 'differentiate':
            known = np.isfinite(elapsed) & (elapsed > 0)
            moved = short_way(position - self.q[joints], self._continuous[joints])
            filled[known] = moved[known] / elapsed[known]
        return np.where(missing, filled, velocity), True

    def stale(self, now: float, clock: float, timeout: float) -> str | None:
        """The first joint whose newest sample is too old, by arrival and, where stamped, by stamp.

        A time in the future counts as too old: the clock was set back. A clock of 0 is simulated time that
        was not received yet; no state is fresh by it.
        """
        if self._whole is not None:  # all joints have the same age
            stamp, arrival = self._whole.stamp, self._whole.arrival
            # Written so that a clock that is NaN counts as too old.
            if clock > 0 and abs(now - arrival) <= timeout and (stamp == 0 or abs(clock - stamp) <= timeout):
                return None
        if clock == 0:
            return NO_CLOCK
        self._note_times()
        stamps, arrivals = self._times[:2]
        ages = np.maximum(np.abs(now - arrivals), np.where(stamps > 0, np.abs(clock - stamps), 0.0))
        oldest = int(np.argmax(ages))
        if ages[oldest] <= timeout:
            return None
        name = self.joint_names[oldest]
        if not (isfinite(now) and isfinite(clock)):
            return f'the clock is at {clock if isfinite(now) else now} s, which is not a time'
        if not isfinite(ages[oldest]):
            return f'joint {name!r} was never received'
        if stamps[oldest] > clock + timeout:
            return f'the stamp of joint {name!r} is {ages[oldest]:.3f} s ahead: the clock was set back'
        return f'joint {name!r} is {ages[oldest]:.3f} s old, the limit is {timeout:g} s'


def _invalid(sample: JointSamples, clock: float, ahead: float) -> str | None:
    """The reason why a whole message is refused, if any."""
    count = len(sample.names)
    if len(sample.position) != count:
        return f'{len(sample.position)} positions for {count} names'
    if len(sample.velocity) not in (0, count):
        return f'{len(sample.velocity)} velocities for {count} names'
    if len(sample.effort) not in (0, count):
        return f'{len(sample.effort)} efforts for {count} names'
    if not (isfinite(sample.stamp) and sample.stamp >= 0):
        return f'stamp {sample.stamp} s'
    if sample.stamp > clock + ahead:
        return f'stamp {sample.stamp:.3f} s is {sample.stamp - clock:.3f} s ahead of the clock'
    return None


def _part(values: Array, rows: Rows, count: int) -> Array:
    """The rows of one field, NaN where the field is empty."""
    if len(values) == 0:
        return np.full(count, np.nan)
    x = np.asarray(values, dtype=float)
    return x if rows is None else x[rows]
