"""The reference of computed torque: which motion each joint follows."""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ...arrays import Array, Integers, array, joint_vector, short_way
from ...errors import InputError
from ...robot.model import Robot
from ...safety.limits import Limits
from .spline import Spline, first
from .stream import StreamedMotion, StreamLimits
from .trajectory import Bounds, JointTrajectory, Pause, PreparedTrajectory

TIMEOUT = 0.5  # default of a streamed set-point [s]
MARGIN = 0.02  # between hands' targets and the position limits of joints [rad, m], at most ...
SHARE = 0.05  # ... and as a share of their range
STREAM_SPEED = 0.98  # of streamed motion, as a share of the speed limits
SPEED_TOLERANCE = 1.0  # of a trajectory that is joined after its start [rad/s, m/s]


class Motion(Protocol):
    """Position, velocity, acceleration and effort (4, n) over time [s]; `rest` from `end` on."""

    end: float
    rest: Array

    def sample(self, t: float) -> Array: ...

    def write(self, t: float, out: Array) -> None: ...


@dataclass(eq=False)
class _Track:
    """A motion that joints follow since `start` [s]."""

    start: float
    motion: Motion
    columns: Integers  # joints of the robot that follow it ...
    rows: Integers  # ... and their places in the motion
    streamed: bool = False
    is_in_order: bool = field(init=False)  # whether all joints of the motion follow it, in their order

    def __post_init__(self) -> None:
        self._compare()

    @property
    def end(self) -> float:
        """When its motion ends [s]; -inf without motion."""
        return self.start + self.motion.end

    def release(self, columns: Integers) -> None:
        """Leave joints to another track."""
        kept = ~np.isin(self.columns, columns)
        self.columns, self.rows = self.columns[kept], self.rows[kept]
        self._compare()

    def _compare(self) -> None:
        everything = np.arange(self.motion.rest.shape[1])
        self.is_in_order = all(np.array_equal(x, everything) for x in (self.columns, self.rows))


class Reference:
    """Desired position, velocity, acceleration and feed-forward effort of every joint over time [s].

    A joint that a trajectory does not name keeps the reference that it has: it holds, or it completes
    its own motion. A joint that has arrived holds. Before the first hold() it is the robot's home.
    """

    def __init__(
        self,
        robot: Robot,
        timeout: float = TIMEOUT,
        start_tolerance: float = 0.1,
        limits: Limits | None = None,
        stream: StreamLimits | None = None,
    ) -> None:
        self.robot = robot
        self.timeout = timeout  # of a streamed set-point [s]
        self.start_tolerance = start_tolerance  # between robot and start of a trajectory [rad, m]
        self.limits = Limits.of(robot) if limits is None else limits
        self.stream = StreamLimits.of(robot) if stream is None else stream
        self._bounds = Bounds(robot, self.limits)
        self._values = np.zeros((4, robot.nv))
        rows = self._values.view()
        rows.flags.writeable = False
        # Position, velocity, acceleration and effort of the last sample, overwritten by the next.
        self.point = (rows[0], rows[1], rows[2], rows[3])
        self.hold(robot.home)

    def hold(self, q: Array) -> None:
        """Hold positions [rad, m] of all joints at rest."""
        rest = np.zeros((4, self.robot.nv))
        rest[0] = self._vector(q)
        everyone = np.arange(self.robot.nv)
        self._tracks = [_Track(0.0, Spline.resting(rest), everyone, everyone)]
        self._waiting: list[tuple[float, PreparedTrajectory]] = []  # trajectories and their starts [s]

    def prepare(self, trajectory: JointTrajectory, pause: Pause = lambda: None) -> PreparedTrajectory:
        """Check a trajectory, and do all work that does not need the present reference; for any thread."""
        return PreparedTrajectory(self.robot, self.bounds, trajectory, pause)

    @property
    def bounds(self) -> Bounds:
        """The limits in force."""
        if not self._bounds.is_of(self.limits):
            self._bounds = Bounds(self.robot, self.limits)
        return self._bounds

    def accept(
        self,
        trajectory: JointTrajectory | PreparedTrajectory,
        now: float,
        q: Array,
        clock: float | None = None,
    ) -> Integers:
        """Follow a trajectory; q is measured. Or raise InputError and change nothing. Returns its joints.

        Its start is on the node's `clock` [s], which is the same as `now` where it is not given. If the first
        point has a positive time, the reference moves there from its present state, without a jump in
        acceleration.
        """
        now, q = float(array('now', now, ())), self._vector(q)
        prepared = self._prepared(trajectory)
        start = now
        if prepared.start:
            start += prepared.start - (now if clock is None else float(array('clock', clock, ())))
        track = self._track(prepared, start, now, q if start <= now else None)
        columns = prepared.columns
        self._waiting = [w for w in self._waiting if not np.isin(w[1].columns, columns).any()]
        if start > now:
            self._waiting.append((start, prepared))
        else:
            self._follow(track, now)
        return track.columns

    def move_to(self, now: float, columns: Integers, goal: Array, streamed: bool) -> None:
        """Move some joints together to a goal within the stream's limits; a streamed one must be renewed."""
        self._stream(now, self._streamed(now, columns, goal=goal, together=True), streamed)

    def move_at(self, now: float, columns: Integers, velocity: Array) -> None:
        """Move some joints at a velocity, which must be renewed."""
        self._stream(now, self._streamed(now, columns, velocity=velocity), True)

    def _stream(self, now: float, track: _Track, streamed: bool) -> None:
        track.streamed = streamed
        self._waiting = [w for w in self._waiting if not np.isin(w[1].columns, track.columns).any()]
        self._follow(track, now)

    def room(self, columns: Integers, q: Array) -> tuple[Array, Array]:
        """Where joints at q [rad] may go: MARGIN inside their position limits, but no farther in than q.

        A compliant joint at its very limit would pass it, which is a fault.
        """
        lower, upper = self.bounds.of(columns.tolist())['position']
        margin = np.minimum(MARGIN, SHARE * (upper - lower))
        q = np.clip(q, lower, upper)
        return np.minimum(lower + margin, q), np.maximum(upper - margin, q)

    def slowed(self, columns: Integers, q: Array, v: Array) -> Array:
        """Velocities v [rad/s] in the same ratio, slow enough to stop before the position limits."""
        lower, upper = self.room(columns, q)
        a, jerk = self.stream.acceleration[columns], self.stream.jerk[columns]
        room = np.maximum(np.where(v > 0, upper - q, q - lower), 0.0)
        delay = a / jerk  # until the deceleration is reached: v^2 / 2 a + v delay = room
        possible = a * (np.sqrt(delay**2 + 2 * room / a) - delay)
        speed = self._speed()[columns]
        ratio = np.divide(np.minimum(possible, speed), np.abs(v), out=np.ones_like(v), where=v != 0)
        return v * min(1.0, float(ratio.min(initial=1.0)))

    def update(self, now: float, q: Array) -> list[str]:
        """Begin trajectories that have waited, and end streams without a new set-point; refusals."""
        refused = []
        due = [entry for entry in self._waiting if now >= entry[0]] if self._waiting else ()
        for entry in due:
            self._waiting.remove(entry)
            start, prepared = entry
            try:
                self._follow(self._track(self._prepared(prepared), start, start, q), now)
            except InputError as error:
                refused.append(f'trajectory: {error}')
        for track in self._tracks:
            # Compared this way round, a clock or timeout that is not a number ends the stream.
            if track.streamed and not now - track.start <= self.timeout:
                self._follow(self._stop(now, track.columns), now)
        return refused

    def sample(self, now: float) -> tuple[Array, Array, Array, Array]:
        """Position, velocity, acceleration, effort over robot.joint_names; the next call overwrites them."""
        self._evaluate(now, self._values)
        return self.point

    @property
    def end_time(self) -> float:
        """When the last motion ends [s]; -inf where all joints hold."""
        return max(track.end for track in self._tracks)

    # -- internals --------------------------------------------------------------------------

    def _prepared(self, trajectory: JointTrajectory | PreparedTrajectory) -> PreparedTrajectory:
        """The trajectory, prepared with the limits in force."""
        if isinstance(trajectory, JointTrajectory):
            return self.prepare(trajectory)
        return trajectory if trajectory.bounds is self.bounds else self.prepare(trajectory.source)

    def _track(self, x: PreparedTrajectory, start: float, now: float, q: Array | None) -> _Track:
        """The track of a trajectory whose time 0 is `start`; it joins the reference then or, if later, now.

        q is measured; None: the robot is where the reference is. InputError if the trajectory does not fit
        the robot or a limit.
        """
        if x.is_stop:
            return self._stop(max(start, now), np.arange(self.robot.nv))
        late = max(now - start, 0.0)
        present = self._at(start + late, x.columns)
        if x.is_set_point:
            return self._set_point(x, start + late, late, present)
        if late >= x.duration:
            raise InputError(
                f'start is {late:.6g} s ago and the trajectory lasts {x.duration:.6g} s: it is over; '
                'set start to 0 or to a later time'
            )
        # A continuous joint takes the reference to the turn at which the trajectory begins.
        first_q, continuous = x.points.positions[0], self.robot.continuous[x.columns]
        present[0] = first_q + short_way(present[0] - first_q, continuous)
        joins = late > 0 and late >= x.points.times[0]  # after its first point
        q_start = present[0] if x.leads_in else x.points.positions[0]
        try:
            if joins:
                motion = x.joined(np.array([q_start, *np.zeros((3, len(q_start)))]), 0.0)
                q_start = self._check_speed(x, motion.sample(late), present, late)
            else:
                motion = x.joined(present, late)
        except InputError as error:
            raise self._with_advice(x, present, error) from None
        self._check_start(x, q_start, present[0] if q is None else q[x.columns])
        columns = np.array(x.columns)
        return _Track(start, motion, columns, np.arange(len(columns)))

    def _set_point(self, x: PreparedTrajectory, now: float, late: float, present: Array) -> _Track:
        if late > self.timeout:
            raise InputError(f'the set-point is {late:.6g} s old; reference_timeout is {self.timeout:g} s')
        effort = None if x.points.efforts is None else x.points.efforts[0]
        return self._streamed(now, np.array(x.columns), goal=x.points.positions[0], effort=effort)

    def _stop(self, now: float, columns: Integers) -> _Track:
        """Come to rest from the reference at a time, without effort."""
        track = self._streamed(now, columns)
        track.streamed = False
        return track

    def _streamed(
        self,
        now: float,
        columns: Integers,
        goal: Array | None = None,
        velocity: Array | None = None,
        effort: Array | None = None,
        together: bool = False,
    ) -> _Track:
        """A motion within the stream's limits to a goal, to a velocity, or to rest."""
        present = self._at(now, columns.tolist())
        limits = (self._speed(), self.stream.acceleration, self.stream.jerk)
        if goal is not None:
            goal = present[0] + short_way(goal - present[0], self.robot.continuous[columns])
        motion = StreamedMotion(
            present[:3],
            StreamLimits(*(limit[columns] for limit in limits)),
            self.bounds.of(columns.tolist())['position'],
            np.zeros(len(columns)) if effort is None else effort,
            goal,
            velocity,
            together,
        )
        return _Track(now, motion, columns, np.arange(len(columns)), streamed=True)

    def _speed(self) -> Array:
        """The largest speed of streamed motion [rad/s]; a robot that follows it stays below its limits."""
        return np.asarray(np.minimum(self.stream.velocity, STREAM_SPEED * self.bounds.speed))

    def _at(self, time: float, columns: list[int]) -> Array:
        """The reference (4, n) of some joints at a time [s]."""
        values = np.zeros((4, self.robot.nv))
        self._evaluate(time, values)
        return values[:, columns]

    def _evaluate(self, now: float, out: Array) -> None:
        for track in self._tracks:
            if track.is_in_order and track.motion.rest.shape == out.shape:
                track.motion.write(now - track.start, out)
            else:
                out[:, track.columns] = track.motion.sample(now - track.start)[:, track.rows]

    def _follow(self, track: _Track, now: float) -> None:
        for other in self._tracks:
            other.release(track.columns)
        # Motions that have ended become one that holds, so that the cost of a step does not grow.
        ended = [t for t in self._tracks if now >= t.end and not t.streamed and len(t.columns)]
        others = [t for t in self._tracks if len(t.columns) and t not in ended]
        if ended:
            columns = np.concatenate([t.columns for t in ended])
            rest = np.concatenate([t.motion.rest[:, t.rows] for t in ended], axis=1)
            others.insert(0, _Track(now, Spline.resting(rest), columns, np.arange(len(columns))))
        self._tracks = [*others, track]

    def _vector(self, q: Array) -> Array:
        return joint_vector('q', q, self.robot.joint_names, (self.robot.nv,))

    def _with_advice(self, x: PreparedTrajectory, present: Array, error: InputError) -> InputError:
        """A refusal of a goal, with a time in which it could be reached."""
        if len(x.points.times) > 1 or 'velocity' not in str(error):
            return error
        time = x.feasible_time(present)
        return (
            error
            if time is None
            else InputError(f'{error}; {np.ceil(1e3 * time) / 1e3:g} s would be feasible')
        )

    def _check_start(self, x: PreparedTrajectory, start: Array, q: Array) -> None:
        away = np.abs(short_way(start - q, self.robot.continuous[x.columns]))
        if found := first(~(away <= self.start_tolerance)):
            (joint,) = found
            raise InputError(
                f'joint {x.points.joint_names[joint]!r}: the reference would start at {start[joint]:.6g}, '
                f'but the robot is at {q[joint]:.6g}, farther than {self.start_tolerance:g}; '
                'start at the robot'
            )

    def _check_speed(self, x: PreparedTrajectory, there: Array, present: Array, late: float) -> Array:
        """Where a trajectory is that began earlier; InputError if the present speed differs too much."""
        if found := first(np.abs(there[1] - present[1]) > SPEED_TOLERANCE):
            (joint,) = found
            raise InputError(
                f'joint {x.points.joint_names[joint]!r}: {late:.6g} s after its start the trajectory has '
                f'velocity {there[1, joint]:.6g}, but the reference has {present[1, joint]:.6g}; '
                'set start to 0 or to a later time'
            )
        return np.asarray(there[0])
