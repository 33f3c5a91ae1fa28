"""Joint samples from any number of publishers, merged per joint, checked per joint."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Literal

import numpy as np

from ..arrays import Array, Indices, is_finite

NO_CLOCK = 'the clock has not begun; does anybody publish /clock?'
FUTURE = 1.0  # a stamp this far ahead of the clock is a jump, not a measurement [s]
MOST_LISTS = 64  # different lists of names that are remembered
Rows = Indices | slice  # of a message
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


class JointBuffer:
    """The newest value of every joint: position, velocity, effort, and when each came."""

    def __init__(self, joint_names: Sequence[str], missing_velocity: MissingVelocity = 'error') -> None:
        n = len(joint_names)
        self.joint_names = tuple(joint_names)
        self.state = np.zeros(2 * n)  # positions, then velocities
        self.q, self.v = self.state[:n], self.state[n:]
        self._effort = np.full(n, np.nan)
        self._effort_source: tuple[Array, Rows] | None = None  # what is not yet read of a message
        self.newest = -np.inf  # the latest moment of any joint [s]; moments are stamps, or else arrivals
        self._times = np.full((3, n), -np.inf)  # stamp, arrival and moment of each joint [s]
        self._times[0] = 0.0
        self._gone = 0.0  # by how much the stamps of whole messages went on in this step [s]
        self._gone_apart: Array | None = None  # and those of others, joint by joint [s]
        self._has_new = False
        self.extra: set[str] = set()  # names that the robot does not have
        self._missing_velocity = missing_velocity
        self._index = {name: i for i, name in enumerate(joint_names)}
        self._maps: dict[tuple[str, ...], tuple[Rows, Indices]] = {}
        self._names: Sequence[str] = ()  # of the last message, and where its joints are
        self._found: tuple[Rows, Indices] | str = self._map(())
        self._whole: JointSamples | None = None  # the last message, where all joints came with it
        self._forgotten = np.zeros(n, dtype=bool)  # whose next stamp may be any

    @property
    def effort(self) -> Array:
        """Measured effort [N m], NaN where there is none; put in order only when asked for."""
        if self._effort_source is not None:
            self._effort, self._effort_source = _part(*self._effort_source, len(self.q)), None
        return self._effort

    def forget_stamps(self) -> None:
        """Accept whatever stamp comes next, as after a cleared fault."""
        self._spread()
        self._forgotten.fill(True)

    def begin_step(self) -> None:
        """Count from here how far the stamps go on."""
        self._has_new, self._gone, self._gone_apart = False, 0.0, None

    @property
    def went_on(self) -> float | None:
        """By how much the stamps of the joint that went on most did in this step [s]; None without news."""
        if not self._has_new:
            return None
        return self._gone if self._gone_apart is None else self._gone + float(self._gone_apart.max())

    def take(self, sample: JointSamples, now: float, clock: float) -> str | None:
        """Merge one message; the reason where some or all of it is refused."""
        if not sample.arrival <= now:  # nothing arrives later than now
            sample = replace(sample, arrival=now)
        if sample.names is not self._names or not isinstance(sample.names, tuple):
            self._names, self._found = sample.names, self._map(sample.names)
        found = self._found
        if isinstance(found, str):
            return f'message refused: {found}'
        trouble = _trouble(sample, clock)
        if trouble is not None:
            return f'message refused: {trouble}'
        rows, joints = found
        if len(joints) == len(self.q) and self._take_whole(sample, rows):
            return None
        return self._take_parts(sample, rows, joints)

    def _map(self, names: Sequence[str]) -> tuple[Rows, Indices] | str:
        """Rows of a message and the joints that they are, in the robot's order, or what is wrong."""
        key = tuple(names)
        if key in self._maps:
            return self._maps[key]
        repeated = sorted({name for name in key if key.count(name) > 1})
        if repeated:
            return f'joint {repeated[0]!r} comes twice'
        if len(self._maps) >= MOST_LISTS:  # nobody has that many publishers: somebody sends rubbish
            self._maps.clear()
            self.extra.clear()
        joints = np.array([self._index[name] for name in self.joint_names if name in key], dtype=np.intp)
        rows = np.array([key.index(name) for name in self.joint_names if name in key], dtype=np.intp)
        # A message in the robot's own order needs no sorting.
        self._maps[key] = (slice(None) if key == self.joint_names else rows, joints)
        self.extra |= {name for name in key if name not in self._index}
        return self._maps[key]

    def _take_whole(self, sample: JointSamples, rows: Rows) -> bool:
        """The common case at little cost: all joints, all newer, all finite. False: go the long way."""
        moment = sample.stamp if sample.stamp > 0 else sample.arrival
        if self._whole is None or not moment > self.newest or len(sample.velocity) == 0:
            return False
        n = len(self.q)
        state = np.empty(2 * n)
        state[:n], state[n:] = _part(sample.position, rows, n), _part(sample.velocity, rows, n)
        if not is_finite(state):
            return False
        self.state, self.q, self.v = state, state[:n], state[n:]
        self._effort_source = (sample.effort, rows)
        self._gone += moment - self.newest
        self._has_new = True
        self.newest, self._whole = moment, sample
        return True

    def _spread(self) -> None:
        """Write down joint by joint when the last whole message came."""
        if self._whole is not None:
            self._times[:] = [[self._whole.stamp], [self._whole.arrival], [self.newest]]
            self._whole = None

    def _take_parts(self, sample: JointSamples, rows: Rows, joints: Indices) -> str | None:
        """Joint by joint: what is newer and finite is taken, the rest is named."""
        self._spread()
        count = len(joints)
        position = _part(sample.position, rows, count)
        moment = sample.stamp if sample.stamp > 0 else sample.arrival
        elapsed = moment - self._times[2, joints]
        velocity, gaps = self._velocity(_part(sample.velocity, rows, count), position, elapsed, joints)
        newer = (elapsed > 0) | self._forgotten[joints]
        good = newer & np.isfinite(position) & np.isfinite(velocity)
        kept = joints[good]
        # What was handed out before stays as it was.
        self.state = self.state.copy()
        self.q, self.v = np.split(self.state, 2)
        self.q[kept], self.v[kept] = position[good], velocity[good]
        self._effort = self.effort.copy()
        self._effort[kept] = _part(sample.effort, rows, count)[good]
        self._times[:, kept] = [[sample.stamp], [sample.arrival], [moment]]
        self._forgotten[kept] = False
        if len(kept):
            self.newest = float(self._times[2].max())
            if self._gone_apart is None:
                self._gone_apart = np.zeros(len(self.q))
            self._gone_apart[kept] += elapsed[good]
            self._has_new = True
        if len(kept) == len(self.q):
            self._whole = sample
        bad = newer & ~good
        if not bad.any():
            return None
        what = 'velocity is missing' if gaps else 'position or velocity is not finite'
        return f'joint {self.joint_names[int(joints[bad][0])]!r}: {what}'

    def _velocity(
        self, velocity: Array, position: Array, elapsed: Array, joints: Indices
    ) -> tuple[Array, bool]:
        """Velocities with the gaps filled as configured, and whether there were gaps."""
        missing = np.isnan(velocity)
        if not missing.any() or self._missing_velocity == 'error':
            return velocity, bool(missing.any())
        filled = np.zeros(len(velocity))
        if self._missing_velocity == 'differentiate':
            known = np.isfinite(elapsed) & (elapsed > 0)
            filled[known] = (position - self.q[joints])[known] / elapsed[known]
        return np.where(missing, filled, velocity), True

    def stale(self, now: float, clock: float, timeout: float) -> str | None:
        """The first joint whose newest sample is too old, by arrival and, where stamped, by stamp.

        What arrived later than now is as bad: the steady clock has gone back. Nothing is fresh by a clock
        that has not begun: simulated time is 0 until it is heard of.
        """
        if self._whole is not None:  # all joints are as old as any
            stamp, arrival = self._whole.stamp, self._whole.arrival
            # Asked this way round, a clock that is not a number counts as old.
            if clock > 0 and abs(now - arrival) <= timeout and (stamp == 0 or clock - stamp <= timeout):
                return None
        if clock == 0:
            return NO_CLOCK
        self._spread()
        stamps, arrivals, _ = self._times
        ages = np.maximum(np.abs(now - arrivals), np.where(stamps > 0, clock - stamps, 0.0))
        oldest = int(np.argmax(ages))
        if ages[oldest] <= timeout:
            return None
        name = self.joint_names[oldest]
        if not isfinite(ages[oldest]):
            return f'joint {name!r} has never been received, or the clock is no number'
        return f'joint {name!r} is {ages[oldest]:.3f} s old, the limit is {timeout:g} s'


def _trouble(sample: JointSamples, clock: float) -> str | None:
    """What is wrong with a message as a whole."""
    count = len(sample.names)
    if len(sample.position) != count:
        return f'{len(sample.position)} positions for {count} names'
    if len(sample.velocity) not in (0, count):
        return f'{len(sample.velocity)} velocities for {count} names'
    if len(sample.effort) not in (0, count):
        return f'{len(sample.effort)} efforts for {count} names'
    if not (isfinite(sample.stamp) and sample.stamp >= 0):
        return f'stamp {sample.stamp} s'
    if sample.stamp > clock + FUTURE:
        return f'stamp {sample.stamp} s is {sample.stamp - clock:.3f} s ahead of the clock'
    return None


def _part(values: Array, rows: Rows, count: int) -> Array:
    """The rows of one field, NaN where the field is empty."""
    return np.full(count, np.nan) if len(values) == 0 else np.asarray(values, dtype=float)[rows]
