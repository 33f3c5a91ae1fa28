"""Joint trajectories, checked and made into splines, as far as that does not need the present reference."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...arrays import Array, array
from ...errors import InputError, UnknownNameError
from ...robot.model import Robot
from ...safety.limits import Limits
from .spline import (
    SIZE,
    JoinedSpline,
    Spline,
    beyond,
    cubic_accelerations,
    excursion,
    first,
    quintic,
    smooth_velocities,
)

SHORTEST = 1e-9  # between points [s], the resolution of ROS time
LARGEST = 1e9  # of any number in a trajectory: below it no polynomial overflows
REST = 1e-6  # velocity of a joint that has arrived [rad/s, m/s]
# A smooth spline depends on a point that is 64 points away by less than 2**-64.
REACH = 64
CHUNK = 64  # points that are prepared at once
SLOWER = 1.2  # factor between two trials of a feasible time

Pause = Callable[[], None]


@dataclass(frozen=True, eq=False)
class JointTrajectory:
    """K points of n joints, as in trajectory_msgs/JointTrajectory.

    No points: come to rest. One point at time 0: a streamed set-point. One later point: a goal.
    """

    joint_names: tuple[str, ...]
    times: Array  # (K,) from the start [s]
    positions: Array  # (K, n) [rad, m]
    velocities: Array | None = None  # (K, n)
    accelerations: Array | None = None  # (K, n)
    efforts: Array | None = None  # (K, n), feed-forward [N m, N]
    start: float = 0.0  # on the node's clock [s]; 0: when it is accepted


class Bounds:
    """Limits of a reference, lower and upper, over joint_names."""

    def __init__(self, robot: Robot, limits: Limits) -> None:
        self._source = (limits.velocity, limits.position_margin, limits.effort)
        self.speed = np.minimum(robot.velocity_limits, limits.velocity)
        margin = limits.position_margin
        self.limits = {
            'position': (robot.lower + margin, robot.upper - margin),
            'velocity': (-self.speed, self.speed),
            'effort': (-limits.effort, limits.effort),
        }

    def is_of(self, limits: Limits) -> bool:
        """Whether these are still the limits in force."""
        present = (limits.velocity, limits.position_margin, limits.effort)
        return all(a is b for a, b in zip(self._source, present, strict=True))

    def of(self, columns: list[int]) -> dict[str, tuple[Array, Array]]:
        """Those of some joints."""
        return {what: (low[columns], high[columns]) for what, (low, high) in self.limits.items()}


class PreparedTrajectory:
    """A checked trajectory, with splines between all points that the present reference does not influence.

    Preparing may take long, in a thread of its own: `pause` is called between two parts of the work.
    """

    def __init__(
        self, robot: Robot, bounds: Bounds, trajectory: JointTrajectory, pause: Pause = lambda: None
    ) -> None:
        self.bounds, self.start = bounds, _checked_start(trajectory.start)
        self.source = trajectory
        self.is_stop = len(_sequence('times', trajectory.times)) == 0
        if self.is_stop:
            self.columns = list(range(robot.nv))
            return
        self.columns = _columns(trajectory.joint_names, robot.joint_names)
        self.points = _checked(trajectory)
        self.limits = bounds.of(self.columns)
        self._check_points()
        self.is_set_point = len(self.points.times) == 1 and self.points.times[0] < SHORTEST
        if not self.is_set_point:
            self._prepare(pause)

    @property
    def leads_in(self) -> bool:
        """Whether the first point has a time above 0, in which it is approached."""
        return bool(self.points.times[0] >= SHORTEST)

    @property
    def duration(self) -> float:
        """From the start to the last point [s]."""
        return float(self.points.times[-1])

    def joined(self, present: Array, t0: float) -> Spline | JoinedSpline:
        """The motion from the present reference (4, n) at t0 [s]; InputError if it exceeds a limit."""
        knots, control = self._head(present, t0)
        lower, upper = self.limits['position']
        # A robot beyond a limit may return, but not go farther.
        position = (np.minimum(lower, present[0]), np.maximum(upper, present[0]))
        self._check_between(control, {**self.limits, 'position': position}, knots)
        rest = np.zeros_like(present)
        rest[0] = self.points.positions[-1]
        if self._body is None:
            return Spline(knots, control, rest)
        return JoinedSpline(Spline(knots, control, rest), self._body) if len(control) else self._body

    def feasible_time(self, present: Array) -> float | None:
        """A time in which the goal could be reached from the present reference [s]; None if none is found."""
        x = self.points
        way = np.abs(x.positions[0] - present[0])
        speed = np.broadcast_to(self.limits['velocity'][1], way.shape)
        duration = max(self.duration, float(np.max(15 / 8 * way / speed, initial=0.0)))
        for _ in range(30):
            times = np.array([duration])
            points = JointTrajectory(x.joint_names, times, x.positions, x.velocities, x.accelerations)
            _, control = _quintics(points, present, 0.0, 0)
            if excursion(control[:, :, 1], *self.limits['velocity']) is None:
                return duration
            duration *= SLOWER
        return None

    # -- preparation ---------------------------------------------------------------------------------------

    def _prepare(self, pause: Pause) -> None:
        x = self.points
        count = len(x.times)
        # Given velocities, only the way to the first point depends on the present reference.
        self._first = 0 if x.velocities is not None else min(REACH, count - 1)
        self._v, self._a = x.velocities, x.accelerations
        self._body: Spline | None = None
        if self._first == count - 1:
            return
        if self._v is None:
            self._v, self._a = self._smoothed(pause)
        effort = np.zeros_like(x.positions) if x.efforts is None else x.efforts
        control = np.empty((count - 1 - self._first, SIZE, 4, len(self.columns)))
        for begin in range(self._first, count - 1, CHUNK):
            part = slice(begin, min(begin + CHUNK, count - 1) + 1)
            a = None if self._a is None else self._a[part]
            new = _pieces(x.times[part], x.positions[part], self._v[part], a, effort[part])
            self._check_between(new, self.limits, x.times[part], begin)
            control[begin - self._first : begin - self._first + len(new)] = new
            pause()
        rest = np.zeros((4, len(self.columns)))
        rest[0] = x.positions[-1]
        self._body = Spline(x.times[self._first :], control, rest)

    def _smoothed(self, pause: Pause) -> tuple[Array, Array]:
        """Velocities and accelerations from the point on that the present reference does not influence."""
        x, count = self.points, len(self.points.times)
        v, a = np.zeros((2, *x.positions.shape))
        for begin in range(self._first, count, CHUNK):
            end = min(begin + CHUNK, count)
            part = slice(max(begin - REACH, 0), min(end + REACH, count))
            near = _smooth(x.times[part], x.positions[part], None, part.stop == count)
            inner = slice(begin - part.start, end - part.start)
            v[begin:end], a[begin:end] = near[0][inner], near[1][inner]
            pause()
        return v, a

    def _head(self, present: Array, t0: float) -> tuple[Array, Array]:
        """Knots and control points of the part that depends on the present reference."""
        if self.points.velocities is not None and not self.leads_in:
            return self.points.times[:1], np.zeros((0, SIZE, 4, len(self.columns)))
        return _quintics(self.points, present, t0, self._first, self._v, self._a)

    # -- checks --------------------------------------------------------------------------------------------

    def _check_points(self) -> None:
        x = self.points
        given = {'position': x.positions, 'velocity': x.velocities, 'effort': x.efforts}
        for what, values in given.items():
            if values is not None and (found := first(beyond(values, *self.limits[what]))):
                point, joint = found
                raise self._outside(
                    self.limits, what, f'at point {point}', x.times[point], joint, values[found]
                )

    def _check_between(
        self, control: Array, limits: dict[str, tuple[Array, Array]], knots: Array, begin: int | None = None
    ) -> None:
        """Check where polynomials overshoot their points; `begin` is the first point, None: the present."""
        for row, what in enumerate(('position', 'velocity')):
            if found := excursion(control[:, :, row], *limits[what]):
                piece, joint, value, place = found
                point = piece + (1 - self.leads_in if begin is None else begin + 1)
                time = float(knots[piece] + place * (knots[piece + 1] - knots[piece]))
                raise self._outside(limits, what, f'on the way to point {point}', time, joint, value)

    def _outside(
        self,
        limits: dict[str, tuple[Array, Array]],
        what: str,
        where: str,
        time: float,
        joint: int,
        value: float,
    ) -> InputError:
        lower, upper = (limit[joint] for limit in limits[what])
        return InputError(
            f'joint {self.points.joint_names[joint]!r} {where}: '
            f'{what} {value:.9g} is outside its limits {lower:.9g} .. {upper:.9g} at {time:.6g} s'
        )


def _columns(names: Sequence[str], valid: tuple[str, ...]) -> list[int]:
    if not names:
        raise InputError(f'joint_names is empty; name at least one of {", ".join(valid)}')
    for name in names:
        if name not in valid:
            raise UnknownNameError('joint', name, valid)
    if len(set(names)) < len(names):
        raise InputError(f'joint_names is {", ".join(names)}; it must name no joint twice')
    return [valid.index(name) for name in names]


def _checked(trajectory: JointTrajectory) -> JointTrajectory:
    """The same with finite float arrays of matching lengths, or InputError."""
    times = _checked_times(trajectory.times)
    names = trajectory.joint_names
    shape = (len(times), len(names))
    q = _numbers('positions', trajectory.positions, shape)
    v, a, effort = (
        None if getattr(trajectory, what) is None else _numbers(what, getattr(trajectory, what), shape)
        for what in ('velocities', 'accelerations', 'efforts')
    )
    if a is not None and v is None:
        raise InputError('accelerations are given without velocities; give both, or neither')
    moves = len(times) > 1 or times[0] >= SHORTEST
    if moves and v is not None and (found := first(np.abs(v[-1]) > REST)):
        (joint,) = found
        raise InputError(f'joint {names[joint]!r}: the last velocity is {v[-1, joint]:.6g}; it must be 0')
    return JointTrajectory(names, times, q, v, a, effort)


def _checked_start(value: float) -> float:
    start = float(array('start', value, ()))
    if start < 0:
        raise InputError(f'start is {start:g} s; it must be 0 or a time of the clock')
    return start


def _sequence(what: str, value: Array) -> Array:
    try:
        len(value)
    except TypeError:
        raise InputError(f'{what} is {value!r}; it must be a list of seconds') from None
    return value


def _checked_times(value: Array) -> Array:
    times = _numbers('times', value, (len(value),))
    if times[0] < 0:
        raise InputError(f'times[0] is {times[0]:g} s; it must be 0 or positive')
    if found := first(np.diff(times) < SHORTEST):
        (i,) = found
        raise InputError(
            f'times[{i}] is {times[i]} s, times[{i + 1}] is {times[i + 1]} s; they must increase'
        )
    return times


def _numbers(what: str, value: object, shape: tuple[int, ...]) -> Array:
    x = array(what, value, shape)
    if found := first(np.abs(x) > LARGEST):
        raise InputError(f'{what}{list(found)} is {x[found]:g}; it must be at most {LARGEST:g}')
    return x


def _quintics(
    x: JointTrajectory, present: Array, t0: float, last: int, v: Array | None = None, a: Array | None = None
) -> tuple[Array, Array]:
    """Knots and control points from the present reference (4, n) at t0 [s] to point `last`.

    v and a are the derivatives at the points, as far as they do not depend on the present reference.
    """
    leads_in = bool(x.times[0] >= SHORTEST)
    end = min(last + 1 + REACH, len(x.times))
    effort = np.zeros_like(x.positions[:end]) if x.efforts is None else x.efforts[:end]
    knots, q = x.times[:end], x.positions[:end]
    if leads_in:
        knots, q, effort = np.append(t0, knots), np.vstack([present[0], q]), np.vstack([present[3], effort])
    count = last + 1 + leads_in
    bend: Array | None
    if x.velocities is None:
        slope, bend = (y[:count] for y in _smooth(knots, q, present, end == len(x.times)))
        if v is not None and a is not None:
            slope[-1], bend[-1] = v[last], a[last]
    else:
        slope = np.vstack([present[1], x.velocities[: last + 1]])
        bend = None if x.accelerations is None else np.vstack([present[2], x.accelerations[: last + 1]])
    start = present[2] if leads_in else None
    return knots[:count], _pieces(knots[:count], q[:count], slope, bend, effort[:count], start)


def _pieces(
    knots: Array, q: Array, v: Array, a: Array | None, effort: Array, start: Array | None = None
) -> Array:
    """Control points (pieces, 6, 4, n): quintic or, without accelerations, cubic; effort linear.

    `start` is the first acceleration where that piece is no cubic.
    """
    span = np.diff(knots)
    if a is None:
        a_start, a_end = cubic_accelerations(span, q, v)
        if start is not None:
            a_start[0] = start
    else:
        a_start, a_end = a[:-1], a[1:]
    control = quintic(span, np.stack([q[:-1], v[:-1], a_start]), np.stack([q[1:], v[1:], a_end]))
    efforts = np.linspace(effort[:-1], effort[1:], SIZE, axis=1)[:, :, None]
    return np.concatenate([control, efforts], axis=2)


def _smooth(knots: Array, q: Array, present: Array | None, is_end: bool) -> tuple[Array, Array]:
    """Velocities and accelerations at points of which only positions are given, for quintics.

    They are the C2 cubic spline's, from the present ones to rest: lines would need jumps in torque.
    """
    duration = np.diff(knots)
    v = smooth_velocities(
        duration, q, None if present is None else present[1], np.zeros_like(q[0]) if is_end else None
    )
    first_a, last_a = cubic_accelerations(duration, q, v)
    a = np.vstack([first_a[0] if present is None else present[2], last_a])
    if is_end:
        a[-1] = 0.0
    # A long piece after a short one would swing far out; bounds in terms of both let it swing by
    # at most two thirds of the larger step, and leave the points of a smooth motion as they are.
    span, step = duration[:, None], np.abs(np.diff(q, axis=0))
    span, step = np.maximum(span[:-1], span[1:]), np.maximum(step[:-1], step[1:])
    v[1:-1] = np.clip(v[1:-1], -1.5 * step / span, 1.5 * step / span)
    a[1:-1] = np.clip(a[1:-1], -6 * step / span**2, 6 * step / span**2)
    return v, a
