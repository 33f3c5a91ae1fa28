"""The reference of computed torque: joint trajectories, checked before they are followed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline

from ...arrays import Array, Mask, array, joint_vector
from ...errors import InputError, UnknownNameError
from ...robot.model import Robot
from .spline import SIZE, Spline, beyond, cubic_accelerations, excursion, first, quintic

SHORTEST = 1e-9  # between points [s], the resolution of ROS time
LARGEST = 1e9  # of any number in a trajectory: below it no polynomial overflows
REST = 1e-6  # velocity of a joint that has arrived [rad/s, m/s]

Bounds = dict[str, tuple[Array, Array]]  # lower and upper, of 'position' and of 'velocity'


@dataclass(frozen=True, eq=False)
class JointTrajectory:
    """K points of n joints, as in trajectory_msgs/JointTrajectory; one point is a streamed set-point."""

    joint_names: tuple[str, ...]
    times: Array  # (K,) from the start [s]
    positions: Array  # (K, n) [rad, m]
    velocities: Array | None = None  # (K, n)
    accelerations: Array | None = None  # (K, n)
    efforts: Array | None = None  # (K, n), feed-forward [N m, N]


@dataclass(eq=False)
class _Track:
    """A spline that the joints of a mask follow since `start` [s]."""

    start: float
    spline: Spline
    joints: Mask
    streamed: bool = False

    @property
    def end(self) -> float:
        """When its motion ends [s]; -inf without motion."""
        return self.start + self.spline.end


class Reference:
    """Desired position, velocity, acceleration and feed-forward effort of every joint over time [s].

    A joint that a trajectory does not name keeps its reference: it holds, or it completes its
    own motion. A joint that has arrived holds. Before the first hold() the reference is the robot's home.
    """

    def __init__(self, robot: Robot, timeout: float | None = None, start_tolerance: float = 0.1) -> None:
        self.robot = robot
        self.timeout = timeout  # of a streamed set-point [s]; None: never
        self.start_tolerance = start_tolerance  # between robot and start of a trajectory [rad, m]
        self._values, self._part = np.zeros((2, 4 * robot.nv))
        rows = self._values.reshape(4, -1).view()
        rows.flags.writeable = False
        self._rows = (rows[0], rows[1], rows[2], rows[3])
        self.hold(robot.home)

    def hold(self, q: Array) -> None:
        """Hold positions [rad, m] of all joints at rest."""
        rest = np.zeros((4, self.robot.nv))
        rest[0] = self._vector(q)
        everyone = np.ones(self.robot.nv, dtype=bool)
        self._tracks = [_Track(0.0, Spline.resting(rest), everyone)]

    def accept(self, trajectory: JointTrajectory, now: float, q: Array) -> None:
        """Follow a trajectory from now [s] on, or raise InputError and change nothing; q is measured.

        If the first time is positive, the motion from the present reference to the first point takes that
        time, without a jump in acceleration. A single point applies at once, whatever its time.
        """
        start, q = float(array('now', now, ())), self._vector(q)
        columns = self._columns(trajectory.joint_names)
        points, limits = _checked(trajectory), self._limits(columns)
        _check_points(points, limits)
        present = np.zeros(4 * self.robot.nv)
        self._evaluate(start, present)
        present = present.reshape(4, -1)[:, columns]
        streamed = len(points.times) == 1
        leads_in = bool(not streamed and points.times[0] >= SHORTEST)
        q_start = present[0] if leads_in else points.positions[0]
        self._check_start(points, q_start, q[columns])
        knots, control, rest = _set_point(points) if streamed else _motion(points, present, leads_in)
        _check_between(points, control, q_start, limits)

        spline = Spline(knots, self._widened(control, columns), self._widened(rest, columns))
        joints = np.zeros(self.robot.nv, dtype=bool)
        joints[columns] = True
        self._follow(_Track(start, spline, joints, streamed))

    def sample(self, now: float) -> tuple[Array, Array, Array, Array]:
        """Position, velocity, acceleration, effort over robot.joint_names; the next call overwrites them."""
        self._evaluate(now, self._values)
        return self._rows

    def expired(self, now: float) -> bool:
        """Whether a joint follows a set-point older than `timeout`; trajectories do not expire."""
        if self.timeout is None:
            return False
        # Written so that a clock or timeout that is NaN counts as expired.
        return any(t.streamed and not now - t.start <= self.timeout for t in self._tracks)

    @property
    def end_time(self) -> float:
        """When the last trajectory ends [s]; -inf if all joints hold or follow set-points."""
        return max(track.end for track in self._tracks)

    # -- internals --------------------------------------------------------------------------

    def _evaluate(self, now: float, out: Array) -> None:
        """The sum of all tracks: each is zero in the joints of the others."""
        first, *others = self._tracks
        first.spline.sample(now - first.start, out)
        for track in others:
            track.spline.sample(now - track.start, self._part)
            np.add(out, self._part, out=out)

    def _follow(self, track: _Track) -> None:
        for other in self._tracks:
            other.spline.release(track.joints)
            other.joints &= ~track.joints
        # Motions that have ended are merged into one that holds, so that the cost of a step does not grow.
        ended = [t for t in self._tracks if track.start >= t.end and not t.streamed]
        others = [t for t in self._tracks if t.joints.any() and t not in ended]
        rest = sum((t.spline.rest for t in ended), np.zeros((4, self.robot.nv)))
        held = sum((t.joints for t in ended), np.zeros(self.robot.nv, dtype=bool))
        holding = [_Track(track.start, Spline.resting(rest), held)] if held.any() else []
        self._tracks = [*holding, *others, track]

    def _vector(self, q: Array) -> Array:
        return joint_vector('q', q, self.robot.joint_names, (self.robot.nv,))

    def _widened(self, values: Array, columns: list[int]) -> Array:
        """Values of the named joints in the columns of all joints, zeros elsewhere."""
        wide = np.zeros((*values.shape[:-1], self.robot.nv))
        wide[..., columns] = values
        return wide

    def _columns(self, names: Sequence[str]) -> list[int]:
        valid = self.robot.joint_names
        if not names:
            raise InputError(f'joint_names is empty; name at least one of {", ".join(valid)}')
        for name in names:
            if name not in valid:
                raise UnknownNameError('joint', name, valid)
        if len(set(names)) < len(names):
            raise InputError(f'joint_names is {", ".join(names)}; it must name no joint twice')
        return [valid.index(name) for name in names]

    def _limits(self, columns: list[int]) -> Bounds:
        robot, speed = self.robot, self.robot.velocity_limits[columns]
        return {'position': (robot.lower[columns], robot.upper[columns]), 'velocity': (-speed, speed)}

    def _check_start(self, points: JointTrajectory, start: Array, q: Array) -> None:
        if found := first(~(np.abs(start - q) <= self.start_tolerance)):
            (joint,) = found
            advice = 'send two points to go there' if len(points.times) == 1 else 'start at the robot'
            raise InputError(
                f'joint {points.joint_names[joint]!r}: the reference would start at {start[joint]:.6g}, but '
                f'the robot is at {q[joint]:.6g}, farther than {self.start_tolerance:g}; {advice}'
            )


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
    if len(times) > 1 and v is not None and (found := first(np.abs(v[-1]) > REST)):
        (joint,) = found
        raise InputError(f'joint {names[joint]!r}: the last velocity is {v[-1, joint]:.6g}; it must be 0')
    return JointTrajectory(names, times, q, v, a, effort)


def _checked_times(value: Array) -> Array:
    try:
        count = len(value)
    except TypeError:
        raise InputError(f'times is {value!r}; it must be a list of seconds') from None
    if not count:
        raise InputError('times is empty; a trajectory needs at least one point')
    times = _numbers('times', value, (count,))
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


def _check_points(points: JointTrajectory, limits: Bounds) -> None:
    for what, values in (('position', points.positions), ('velocity', points.velocities)):
        if values is not None and (found := first(beyond(values, *limits[what]))):
            point, joint = found
            raise _outside(points, limits, what, f'at point {point}', joint, values[found])


def _check_between(points: JointTrajectory, control: Array, q_start: Array, limits: Bounds) -> None:
    """Bounds where polynomials overshoot their points."""
    # A robot beyond a limit may return, but not move farther out.
    lower, upper = limits['position']
    limits = {**limits, 'position': (np.minimum(lower, q_start), np.maximum(upper, q_start))}
    for row, what in enumerate(limits):
        if found := excursion(control[:, :, row], *limits[what]):
            piece, joint, value = found
            where = f'on the way to point {piece + len(points.times) - len(control)}'
            raise _outside(points, limits, what, where, joint, value)


def _outside(
    points: JointTrajectory, limits: Bounds, what: str, where: str, joint: int, value: float
) -> InputError:
    lower, upper = (limit[joint] for limit in limits[what])
    return InputError(
        f'joint {points.joint_names[joint]!r} {where}: '
        f'{what} {value:.9g} is outside its limits {lower:.9g} .. {upper:.9g}'
    )


def _set_point(points: JointTrajectory) -> tuple[Array, Array, Array]:
    """The point and its effort, until the next one."""
    given = (points.positions, points.velocities, points.accelerations, points.efforts)
    rest = np.array([np.zeros_like(points.positions[0]) if x is None else x[0] for x in given])
    return np.zeros(0), np.zeros((0, SIZE, *rest.shape)), rest


def _motion(points: JointTrajectory, present: Array, leads_in: bool) -> tuple[Array, Array, Array]:
    """Knots, control points and rest: quintic or, without accelerations, cubic; effort linear.

    The last position is held at rest without effort, because effort belongs to the motion.
    """
    knots, q, v, a = points.times, points.positions, points.velocities, points.accelerations
    effort = np.zeros_like(q) if points.efforts is None else points.efforts
    if leads_in:
        knots, q, effort = np.append(0.0, knots), np.vstack([present[0], q]), np.vstack([present[3], effort])
        v = None if v is None else np.vstack([present[1], v])
        a = None if a is None else np.vstack([present[2], a])
    if v is None:
        v, a = _smooth(knots, q, present)
    if a is None:
        a_start, a_end = cubic_accelerations(np.diff(knots), q, v)
        if leads_in:  # only the motion to the first point is not a cubic
            a_start[0] = present[2]
    else:
        a_start, a_end = a[:-1], a[1:]
    control = quintic(np.diff(knots), np.stack([q[:-1], v[:-1], a_start]), np.stack([q[1:], v[1:], a_end]))
    efforts = np.linspace(effort[:-1], effort[1:], SIZE, axis=1)[:, :, None]
    rest = np.zeros_like(present)
    rest[0] = q[-1]
    return knots, np.concatenate([control, efforts], axis=2), rest


def _smooth(knots: Array, q: Array, present: Array) -> tuple[Array, Array]:
    """Velocities and accelerations at points of which only positions are given, for quintics.

    They are the C2 cubic spline's, from the present ones to rest: lines would need jumps in torque.
    """
    spline = CubicSpline(knots, q, bc_type=((1, present[1]), (1, np.zeros_like(present[1]))))
    v, a = spline(knots, 1), spline(knots, 2)
    v[0], a[0], v[-1], a[-1] = present[1], present[2], 0.0, 0.0
    # A long piece after a short one would swing far out; bounds in terms of both let it swing by
    # at most two thirds of the larger step, and leave the points of a smooth motion as they are.
    span, step = np.diff(knots)[:, None], np.abs(np.diff(q, axis=0))
    span, step = np.maximum(span[:-1], span[1:]), np.maximum(step[:-1], step[1:])
    v[1:-1] = np.clip(v[1:-1], -1.5 * step / span, 1.5 * step / span)
    a[1:-1] = np.clip(a[1:-1], -6 * step / span**2, 6 * step / span**2)
    return v, a
