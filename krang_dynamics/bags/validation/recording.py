"""A recording as joint positions, velocities and torques of one robot, read window by window."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice, pairwise
from pathlib import Path

import numpy as np

from ...arrays import Array, Integers, Mask
from ...errors import BagError, UnknownNameError
from ...robot.config import Unit
from ...robot.model import Robot
from ...robot.motor import Motors
from ..io.joint_state_codec import TYPE, JointStates, decode
from ..io.reader import Bag
from ..io.storage import batched
from .joint_names import hint, renamed
from .outliers import replace_outliers

WINDOW = 30_000  # samples in memory at once
UNEVEN = 10  # windows per WINDOW messages in a recording with gaps; more only by a time that is damaged
LARGEST = 1e6  # no joint has a larger position, speed or effort
PEEK = 500  # messages that are read first, to find the joints
FIRST = 5  # samples of each publisher whose stamps set the time of the start
PARTS, PART = 8, 0.2  # and later: number of looks for effort, and length of each [s]

Window = tuple[int, int]  # time of arrival, start <= t < stop [ns]


def no_times() -> Integers:
    """An empty list of times [ns]."""
    return np.zeros(0, np.int64)


@dataclass(frozen=True)
class Reading:
    """How to read a recording: topic, name rules, locked joints, and unit and gains of effort."""

    topic: str | None = None
    maps: tuple[str, ...] = ()
    locked: Mapping[str, float] = field(default_factory=dict)  # [rad, m]
    unit: Unit = 'torque'
    lock_rest: bool = False  # lock the joints that were not recorded at home
    gains: Mapping[str, float] = field(default_factory=dict)  # by joint, factors on the recorded effort
    differentiated: tuple[str, ...] = ()  # joints whose recorded velocity is not used


@dataclass(frozen=True)
class RecordedSamples:
    """Raw samples over joint_names; t [s] increases strictly; NaN where a velocity was not measured."""

    t: Array
    arrival: Integers  # [ns]
    q: Array
    v: Array
    effort: Array  # [N m]
    # Times of arrival of the messages that were dropped [ns].
    repeated: Integers = field(default_factory=no_times)  # the stamp had occurred before
    backward: Integers = field(default_factory=no_times)  # the stamp was earlier than the one before
    lost: Integers = field(default_factory=no_times)  # not decodable
    incomplete: Integers = field(default_factory=no_times)  # without position or effort of some joint
    outlier: Mask | None = None  # (K, n), samples that were replaced by interpolation

    def part(self, begin: int, end: int) -> 'RecordedSamples':
        """Rows begin <= k < end."""
        rows = slice(begin, end)
        return RecordedSamples(
            self.t[rows], self.arrival[rows], self.q[rows], self.v[rows], self.effort[rows]
        )


class Recording:
    """Joint states of a bag over joint_names.

    `moving` are the joints that are not locked, `measured` those whose torque was recorded, and `known` also
    those that have no motor, whose torque is zero. `silent` names driven joints without effort.
    """

    def __init__(self, bag: Bag, robot: Robot, reading: Reading) -> None:
        self.bag, self.robot, self.reading = bag, robot, reading
        self.locked: dict[str, float] = dict(reading.locked)  # [rad, m]
        self.topic = self._find_topic()
        peeked = [(time, data) for _, time, data in islice(bag.messages([self.topic]), PEEK)]
        states, _ = decode(batched(peeked))
        if not states:
            raise BagError(f'{bag.path}: {self.topic} has no readable joint state')
        self._names = self._match([name for group in states for name in group.names])
        # Of the first samples: simulated time may be faster or slower than the time of arrival.
        offsets = np.concatenate([(_stamps(group) - group.arrival)[:FIRST] for group in states])
        self._origin = int(np.median(offsets)) + bag.start
        duration = (peeked[-1][0] - peeked[0][0]) * 1e-9
        self.rate = (max(len(group) for group in states) - 1) / duration if duration > 0 else 0.0  # [Hz]
        self._motors = Motors(robot.config.joints, reading.unit)
        moves = np.array([name not in self.locked for name in robot.joint_names])
        driven = np.array([robot.config.joints[name].driven for name in robot.joint_names])
        self.silent = self._without_effort(states, moves & driven)
        has_effort = np.array([name not in self.silent for name in robot.joint_names])
        self.moving, self.measured = moves, moves & driven & has_effort
        self.known = moves & (has_effort | ~driven)

    def windows(self, start: float = 0.0, stop: float = 1.0) -> list[Window]:
        """The recording split into windows; `start` and `stop` are shares of its samples."""
        first, last = map(self._arrival, (start, stop))
        count = max(1, round((last - first) * 1e-9 * self.rate / WINDOW))
        count = min(count, 1 + UNEVEN * self.bag.most_messages // WINDOW)
        return list(pairwise(first + (last - first) * k // count for k in range(count + 1)))

    def _arrival(self, share: float) -> int:
        """When this share of the samples had arrived [ns]."""
        if share in (0, 1):
            return self.bag.stop if share else self.bag.start
        return _arrival_of_share(self.bag.path, self.topic, tuple(self.windows()), share)

    def samples(self, start: int, stop: int) -> RecordedSamples:
        """Samples that arrived in start <= t < stop [ns].

        The publisher of most joints sets the times; the joints of others are interpolated.
        """
        states, lost = decode(self.bag.batches(self.topic, start, stop))
        states = [group for group in states if set(group.names) & set(self._names.values())]
        n = self.robot.nv
        if not states:
            empty = np.zeros((0, n))
            return RecordedSamples(np.zeros(0), no_times(), empty, empty, empty, lost=lost)
        states.sort(key=lambda group: (-len(set(group.names) & set(self._names.values())), -len(group)))
        t = [np.float64(1e-9) * (_stamps(group) - self._origin) for group in states]
        rising = [_rising(times) for times in t]
        K = int(rising[0].sum())
        values = np.full((3, n, K), np.nan).swapaxes(1, 2)  # one joint after the other in memory
        for group, times, keep in reversed(list(zip(states, t, rising, strict=True))):
            self._fill(values, group, times, keep, t[0][rising[0]])
        arrival, keep = states[0].arrival, rising[0]
        again = np.isin(t[0], t[0][keep]) & ~keep
        samples = self._completed(t[0][keep], arrival[keep], values)
        return replace(samples, repeated=arrival[again], backward=arrival[~keep & ~again], lost=lost)

    def _fill(self, values: Array, group: JointStates, times: Array, keep: Mask, t: Array) -> None:
        """Write the joints of one publisher into `values`, at the times t of the first publisher."""
        joints = [i for i, name in enumerate(self.robot.joint_names) if self._names.get(name) in group.names]
        columns = [group.names.index(self._names[self.robot.joint_names[i]]) for i in joints]
        own = len(t) == int(keep.sum()) and np.array_equal(times[keep], t)
        rows = slice(None) if keep.all() else keep
        for value, source in zip(values, (group.position, group.velocity, group.effort), strict=True):
            for i, column in zip(joints, columns, strict=True):
                x = source[rows, column]
                value[:, i] = x if own else np.interp(t, times[keep], x, left=np.nan, right=np.nan)

    def _completed(self, t: Array, arrival: Integers, values: Array) -> RecordedSamples:
        """Fill in locked and passive joints, convert effort to N m, drop incomplete rows and outliers."""
        with np.errstate(invalid='ignore'):
            values[np.abs(values) > LARGEST] = np.nan
        q, v, effort = values
        for i, name in enumerate(self.robot.joint_names):
            if name in self.locked:
                q[:, i], v[:, i], effort[:, i] = self.locked[name], 0.0, 0.0
                continue
            if not self.measured[i]:
                effort[:, i] = 0.0  # passive
            if name in self.reading.differentiated:
                v[:, i] = np.nan
        effort = self._motors.torque(effort, np.nan_to_num(v))
        if self.reading.gains:
            effort = effort * [self.reading.gains.get(name, 1.0) for name in self.robot.joint_names]
        complete = np.isfinite(q).all(axis=1) & np.isfinite(effort).all(axis=1)
        incomplete = arrival[~complete]
        if len(incomplete):
            t, arrival = t[complete], arrival[complete]
            q, v, effort = q[complete], v[complete], effort[complete]
        spins = self.robot.continuous
        if spins.any():
            q[:, spins] = np.unwrap(q[:, spins], axis=0)
        outlier = replace_outliers(self.robot, t, q, v, effort)
        return RecordedSamples(t, arrival, q, v, effort, incomplete=incomplete, outlier=outlier)

    def _find_topic(self) -> str:
        found = self.bag.of_type(TYPE)
        topic = self.reading.topic
        if topic is not None:
            if topic not in self.bag.topics:
                raise self.bag.missing_topic(topic)
            if topic not in found:
                raise BagError(f'{self.bag.path}: {topic} is {self.bag.topics[topic].type}, not {TYPE}')
            return topic
        if not found:
            raise BagError(
                f'{self.bag.path}: has no topic of type {TYPE}; it has {", ".join(self.bag.topics)}'
            )
        if len(found) == 1:
            return found[0]
        usual = [name for name in found if name.rstrip('/').endswith('joint_states')]
        truth = [name for name in found if name.endswith('/truth')]
        if len(truth) == 1 and self._needs_other_sensors():
            return truth[0]  # of a simulated robot, with the joints that an IMU or odometry measures
        if len(usual) == 1:
            return usual[0]
        raise BagError(
            f'{self.bag.path}: it has several topics of joint states; choose one with --topic: '
            f'{", ".join(found)}'
        )

    def _needs_other_sensors(self) -> bool:
        """Whether a joint is not on joint_states, because another sensor measures it."""
        joints, locked = self.robot.config.joints, self.locked
        return any(joint.state != 'joint_states' for name, joint in joints.items() if name not in locked)

    def _match(self, names: list[str]) -> dict[str, str]:
        """Joint of the robot -> its name in the recording."""
        for name in self.reading.locked:
            if name not in self.robot.joint_names:
                raise UnknownNameError('joint to lock', name, self.robot.joint_names)
        theirs = {ours: name for name, ours in renamed(dict.fromkeys(names), self.reading.maps).items()}
        wanted = [name for name in self.robot.joint_names if name not in self.reading.locked]
        missing = [name for name in wanted if name not in theirs]
        if missing and self.reading.lock_rest and len(missing) < len(wanted):
            home = dict(zip(self.robot.joint_names, self.robot.home.tolist(), strict=True))
            self.locked |= {name: home[name] for name in missing}
        elif missing:
            unused = [name for ours, name in theirs.items() if ours not in self.robot.joint_names]
            raise BagError(
                f'{self.bag.path}: {self.topic} lacks {", ".join(map(repr, missing))}; it has '
                f'{", ".join(dict.fromkeys(names))}{hint(missing, unused)}; or use --lock JOINT=VALUE, '
                '--lock-rest, or --remove-subtree LINK'
            )
        return {name: theirs[name] for name in wanted if name in theirs}

    def _without_effort(self, states: list[JointStates], wanted: Mask) -> tuple[str, ...]:
        """Driven joints whose effort is missing or zero, in the first messages and in looks at later ones."""
        span = self.bag.stop - self.bag.start
        for k in range(1, PARTS):
            start = self.bag.start + k * span // PARTS
            later, _ = decode(self.bag.batches(self.topic, start, start + round(1e9 * PART)))
            states = states + later
        silent = []
        for name in np.array(self.robot.joint_names)[wanted].tolist():
            theirs = self._names[name]
            efforts = [
                group.effort[:, group.names.index(theirs)] for group in states if theirs in group.names
            ]
            if not any((np.nan_to_num(effort) != 0).any() for effort in efforts):
                silent.append(name)
        if len(silent) == wanted.sum():
            raise BagError(
                f'{self.bag.path}: {self.topic} has no effort of '
                f'{", ".join(self._names[name] for name in silent)}; record joint states with effort'
            )
        return tuple(silent)


@lru_cache(maxsize=16)  # it reads all messages, and an identification divides its recordings several times
def _arrival_of_share(path: Path, topic: str, windows: tuple[Window, ...], share: float) -> int:
    """When a share of the samples had arrived [ns]; a simulator that waits for its start repeats a sample."""
    bag = Bag(path)
    groups = (group for window in windows for group in decode(bag.batches(topic, *window))[0])
    parts = [group.arrival[_rising(_stamps(group))] for group in groups]
    if not parts:
        raise BagError(f'{path}: {topic} has no readable joint state')
    arrivals = np.sort(np.concatenate(parts))
    return int(arrivals[int(share * len(arrivals))])


def _stamps(states: JointStates) -> Integers:
    """Times of measurement [ns]; a stamp of 0 is replaced by the time of arrival."""
    unset = states.stamp == 0
    if not unset.any():
        return states.stamp
    offset = 0 if unset.all() else int(np.median((states.stamp - states.arrival)[~unset]))
    return np.where(unset, states.arrival + offset, states.stamp)


def _rising(t: Array | Integers) -> Mask:
    """Which samples are later than all samples before them."""
    latest = np.maximum.accumulate(t)
    return np.asarray(np.concatenate([[True], t[1:] > latest[:-1]]))
