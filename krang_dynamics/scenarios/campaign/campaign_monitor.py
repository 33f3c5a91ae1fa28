"""Judges one run by what reaches the drivers and by the true motion. It uses no code of the controller."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
import pinocchio as pin

from ...arrays import Array, Indices, is_finite
from ...robot.model import Robot

HELD, STOPPED, UNSAFE, BEYOND = 'held', 'stopped safely', 'unsafe', 'beyond control'
OUTCOMES = (HELD, STOPPED, UNSAFE, BEYOND)

FASTEST = 0.5  # of any point in a `lower` stop, under the robot's own weight [m/s] (P13)
TOLERANCE = 1.05  # times the speed at which the stop began
BRAKING = 1.0  # time in which a faster robot is slowed down [s]
LAGS = 3.0  # time constants after which the torque of a driver has followed its command, ...
SLOWEST_DRIVER = 0.1  # ... but a slower driver is no excuse [s]
MISSING = 0.025, 3.0  # without a state, after which none shows what moves the robot [s], [periods]
WATCHDOG = 0.012  # between two steps of a controller without states [s]
REACTION = 0.05  # of the guard (P11) [s]
STEP = 0.02  # longest time for which one command of a controller may be rated [s] (P3)
JITTER = 0.031  # the same for the commands of a guard, which arrive with jitter [s]
START = 2e-3  # the same for the first command, which is the measured effort [s]
OVERSPEED = 1.2  # default of limits.velocity, in URDF speeds
ENCODER = 1e-3  # tolerance of position limits [rad, m]
TRAVEL = 0.03  # the same for a guard [rad, m]
JUMP = 0.1  # shift of a sensor that must be noticed [rad, m] (P18)
LATE = 0.1  # in which a torque that must end has ended, besides the time that its rate takes [s]
ROUNDING = 1e-6  # relative to the effort limit


@dataclass(frozen=True)
class PromisedBounds:
    """The promised numbers, over joint_names; `gain` [N m per unit] is that of every driver."""

    effort: Array  # [N m]
    rate: Array  # [N m/s] ...
    stop_rate: Array  # ... and while stopping [N m/s]
    velocity: Array  # [rad/s]
    margin: Array  # of the position limits [rad, m]
    following_error: Array  # [rad, m]
    timeout: float  # of states [s]
    is_carried: bool  # whether P13 applies: a stop lowers the robot, or holds it
    blind_stop: float  # longest stop without states, which then releases the robot [s]
    contact_force: float  # [N]
    rows: Array  # joint of every driver
    gain: Array
    largest: Array  # command of every driver, in its unit
    in_volts: bool

    @classmethod
    def of(
        cls, robot: Robot, drivers: tuple[str, ...], given: Mapping[str, Any], contact_force: float
    ) -> 'PromisedBounds':
        """The parameters that are given, else the defaults of the URDF and the robot file."""
        joints = [robot.config.joints[name] for name in robot.joint_names]

        def value(name: str, default: Any) -> Any:
            return default if given.get(name) is None else given[name]

        def limit(name: str, default: Any) -> Array:
            return np.broadcast_to(np.asarray(value(name, default), dtype=float), (robot.nv,))

        peak = np.array([robot.urdf.joints[name].effort for name in robot.joint_names])
        nominal = np.array([inf if j.nominal_torque is None else j.nominal_torque for j in joints])
        effort = np.minimum(peak, limit('limits.effort', nominal))

        def rate(effort: Array) -> list[float]:
            rates = zip(joints, effort, strict=True)
            return [10 * e if j.effort_rate is None else j.effort_rate for j, e in rates]

        speed = [OVERSPEED * robot.urdf.motion_limits(name)[2] for name in robot.joint_names]
        error = [0.2 if j.following_error is None else j.following_error for j in joints]
        stop = robot.config.stop
        actuators = [next(a for a in robot.config.actuators if a.name == name) for name in drivers]
        unit = value('command_unit', robot.config.command_unit)
        gain, largest, in_volts = [], [], unit == 'voltage'
        for a in actuators:
            motor, most = robot.config.joints[a.joint].motor, effort[robot.joint_names.index(a.joint)]
            per_unit = {
                'torque': a.ratio,
                'current': (motor.torque_constant or 1.0) * motor.gear,
                'voltage': (motor.torque_constant or 1.0) * motor.gear / (motor.resistance or 1.0),
            }[unit]
            gain.append(a.sign * per_unit)
            largest.append((motor.supply or inf) if in_volts else most * a.share / per_unit)
        return cls(
            effort,
            limit('limits.effort_rate', rate(effort)),
            limit('stop.rate', rate(np.minimum(peak, nominal))),
            limit('limits.velocity', speed),
            limit('limits.position_margin', 0.0),
            limit('limits.following_error', error),
            value('state_timeout', 0.1),
            value('stop.policy', stop.policy) != 'zero',
            value('stop.blind_time', stop.blind_time) + value('stop.time', stop.time),
            contact_force,
            np.array([robot.joint_names.index(a.joint) for a in actuators]),
            np.array(gain),
            np.array(largest),
            in_volts,
        )


@dataclass
class Node:
    """What the monitor knows of a controller or guard."""

    name: str
    is_driving: bool = False  # the terms reach the motors; a guard: it relays
    command: Array | None = None  # the last one
    sent: float = -inf  # when [s]
    is_silent: bool = True  # it has made a step without a command since then
    stamp: float = -inf  # of the newest valid state [s]
    arrival: float = -inf  # of the same [s]
    effort: Array | None = None  # measured with it [N m]
    due: dict[str, float] = field(default_factory=dict)  # by when driving must have ended, by reason [s]


class Monitor:
    """Gets everything that happens in a run, and keeps the first promise that is broken."""

    def __init__(
        self,
        robot: Robot,
        true: Robot,
        bounds: PromisedBounds,
        commanded: Array,
        period: float,
        lag: float = 0.0,
    ) -> None:
        self.bounds, self.period = bounds, period
        self._lag = lag  # time constant of the drivers [s]
        self._missing = max(MISSING[0], MISSING[1] * period)  # [s]
        self.controller, self.guard = Node('controller'), Node('guard')
        self.broken = ''  # the first broken promise
        self.broken_at = inf  # [s]
        self.beyond = ''  # the first bound that was exceeded for a cause beyond control
        self.fastest = 0.0  # point in a stop [m/s]
        self.force = 0.0  # largest on a wall [N]
        self.delay = 0.0  # longest way of a command to the drivers [s]
        self.is_enabled = self.is_released = False
        self.is_alive = True  # the controller
        self._low = np.concatenate([robot.lower + bounds.margin, -bounds.velocity])
        self._high = np.concatenate([robot.upper - bounds.margin, bounds.velocity])
        self._model, self._map, self._commanded = true.model, true.joint_map, commanded
        self._data = self._model.createData()
        self._motions = [motion.vector for motion in self._data.v]  # of the links, in their axes
        self._links, places = _points(true)
        # v + w x r, from the motion (v, w) of a link to a point r.
        self._points = np.array([np.hstack([np.eye(3), -pin.skew(r)]) for r in places])
        self._largest = bounds.largest * (1 + ROUNDING)
        self._is_commanded = commanded > 0
        self._stop: float | None = None  # when the present stop began [s]
        self._was_driving = False
        self._first, self._settled = 0.0, inf  # largest speed until then [m/s], and when [s]
        self._energy = 0.0  # largest kinetic energy until then [J]
        self._pushed = -inf  # when something outside acted on the robot last [s]
        self._cause = ''  # why the present stop is not judged
        self._past_cause = ''  # the same, until the robot had time to brake after it
        self._is_over = False  # it has ended without states, and nothing brakes the robot any more
        self._empty_by = inf  # when the last torque must have ended [s]

    def fail(self, now: float, promise: str) -> None:
        """Note a broken promise."""
        if not self.broken:
            self.broken, self.broken_at = promise, now

    def run_away(self, now: float, cause: str) -> None:
        """The robot was so fast that its simulation has ended."""
        if cause:
            self.beyond = self.beyond or cause
        else:
            self.fail(now, 'the robot runs away: its simulation diverged')

    # -- inputs of the nodes ---------------------------------------------------------------------------

    def state(self, node: Node, now: float, clock: float, stamp: float, x: Array, effort: Array) -> None:
        """A joint state x = (q, v) is delivered to a node."""
        if not is_finite(x) or abs(clock - stamp) > self.bounds.timeout:
            return
        if stamp <= node.stamp:
            if node.stamp - clock <= self.bounds.timeout:
                return  # a repeated or late message (P7)
            if node.is_driving:
                self.demand(now, 'P4: the clock was set back', node)
        node.stamp, node.arrival, node.effort = stamp, now, effort
        if not node.is_driving or not np.count_nonzero((x < self._low) | (x > self._high)):
            return
        n = len(x) // 2
        q, v = x[:n], x[n:]
        if (np.abs(v) > self.bounds.velocity).any():
            self.demand(now, 'limits.velocity', node)
        slack = 2 * ENCODER if node is self.controller else TRAVEL
        if (((q > self._high[:n] + slack) & (v > 0)) | ((q < self._low[:n] - slack) & (v < 0))).any():
            self.demand(now, 'position limit', node)

    def release(self, now: float, torque: Array) -> None:
        """The robot is released: its motor torque [N m] ends at the stop rate."""
        self.is_released = True
        rows = self._is_commanded
        wait = float((np.abs(torque)[rows] / self.bounds.stop_rate[rows]).max())
        self._empty_by = now + wait + self.delay + LATE

    def demand(self, now: float, reason: str, *nodes: Node) -> None:
        """Nodes must not drive any more: at once, or with their next step."""
        for node in nodes or (self.controller, self.guard):
            node.due.setdefault(reason, now + self.period + WATCHDOG)

    # -- outputs of the nodes --------------------------------------------------------------------------

    def sends(self, node: Node, now: float, command: Array | None, is_driving: bool) -> None:
        """A step of a node: its command in the drivers' unit, and whether it drives."""
        if not is_driving:
            node.due.clear()
        if is_driving and not node.is_driving:
            self._empty_by = inf  # torque is wanted again
            if not self.is_enabled:
                self.fail(now, f'P5: the {node.name} drives before enable')
        node.is_driving = is_driving
        if command is None:
            node.is_silent = True
            return
        if not is_finite(command):
            self.fail(now, f'P1: the {node.name} sends numbers that are not finite')
        elif np.count_nonzero(np.abs(command) > self._largest):
            self.fail(now, f'P2: the {node.name} exceeds an effort limit')
        else:
            self._check_rate(node, now, command)
        if not self.is_enabled:
            self.fail(now, f'P5: the {node.name} sends before enable')
        node.command, node.sent, node.is_silent = command, now, False

    def _check_rate(self, node: Node, now: float, command: Array) -> None:
        """P3. A voltage also contains the back-EMF, so its rate is no measure of the torque's."""
        bounds = self.bounds
        if bounds.in_volts:
            return
        is_first = node.is_silent and now - node.sent > 1.0
        before = self._measured(node) if is_first else node.command
        if before is None:
            return
        elapsed = START if is_first else min(now - node.sent, STEP)
        if node is self.guard and node.is_driving:
            elapsed = JITTER
        rate = bounds.rate if node.is_driving else bounds.stop_rate
        allowed = rate[bounds.rows] * (elapsed + ROUNDING)
        if np.count_nonzero(np.abs((command - before) * bounds.gain) > allowed):
            self.fail(now, f'P3: the torque of the {node.name} changes too fast')

    def _measured(self, node: Node) -> Array | None:
        """The command that the measured effort stands for, from which the first command begins."""
        bounds = self.bounds
        if node.effort is None:
            return None
        measured = node.effort[bounds.rows] / bounds.gain
        return np.clip(measured, -bounds.largest, bounds.largest)

    # -- every period ----------------------------------------------------------------------------------

    def check(self, now: float, q: Array, v: Array, torque: Array, is_pushed: bool, beyond: str) -> None:
        """The true state and motor torque, whether the robot is pushed, and a cause beyond control."""
        for node in (self.controller, self.guard):
            if node is self.controller and not self.is_alive:
                continue
            if node.is_driving:
                self._check_driving(node, now)
        # The stop of a controller that has died begins with the guard's (P11, see _check_silence).
        is_driving = self.controller.is_driving and self.guard.is_driving
        if is_driving:
            self._stop, self.is_released, self._empty_by = None, False, inf
        elif self._was_driving:
            self._begin_stop(now, q, torque)
        self._check_silence(now)
        self._was_driving = is_driving
        if self._stop is not None:
            self._check_stop(now, q, v, torque, is_pushed, beyond)

    def _check_driving(self, node: Node, now: float) -> None:
        late = now - node.arrival - self.bounds.timeout - WATCHDOG - self.period
        if late > 0 and self.controller.is_driving:
            self.fail(now, f'P4: the {node.name} drives without a valid state')
        for reason, deadline in node.due.items():
            if now > deadline and self.controller.is_driving and self.is_alive:
                self.fail(now, f'{reason}: the {node.name} drives on')

    def _check_silence(self, now: float) -> None:
        """P8, P11: while the motors give torque, commands arrive."""
        guard = self.guard
        if guard.command is None or not np.count_nonzero(guard.command):
            return
        if now - guard.sent > REACTION + self.period + self.delay:
            self.fail(now, 'P11: the drivers hold the last torque')
        if now > self._empty_by:
            self.fail(now, 'the stop is over, but torque remains')

    def _begin_stop(self, now: float, q: Array, torque: Array) -> None:
        """What drove the robot is removed first: the torque, or the command without the drivers' noise."""
        gravity = self._map.force(
            pin.computeGeneralizedGravity(self._model, self._data, self._map.position(q))
        )
        self._stop, self._cause, self._past_cause, self._is_over = now, '', '', False
        change = np.abs(torque - gravity)
        if self.guard.command is not None and not self.bounds.in_volts:
            wanted = np.bincount(self.bounds.rows, self.guard.command * self.bounds.gain, len(q))
            change = np.maximum(change, np.abs(wanted - gravity))
        self._begin_braking(now, change)

    def _begin_braking(self, now: float, change: Array) -> None:
        """From now on the robot is slowed down, as soon as the torque has changed by so much [N m] (P3)."""
        rows = self._is_commanded
        wait = float((change[rows] / self.bounds.stop_rate[rows]).max())
        self._first, self._energy = 0.0, 0.0
        self._settled = now + wait + self.delay + min(LAGS * self._lag, SLOWEST_DRIVER) + self.period

    def _check_stop(
        self, now: float, q: Array, v: Array, torque: Array, is_pushed: bool, beyond: str
    ) -> None:
        """P13, unless the robot is released, is blind, or has no drivers."""
        speed = self.speed(q, v)
        self.fastest = max(self.fastest, speed)
        if not self.bounds.is_carried or self.is_released:
            return
        in_charge = self.controller if self.is_alive and self.guard.is_driving else self.guard
        if is_pushed:
            self._pushed = now
        blind = now - in_charge.arrival - self.bounds.timeout
        if blind > self.bounds.blind_stop and not self._is_over:
            self._is_over, self._empty_by = True, now + LATE
        # What a push did, or the torque that the drivers held until the stop began, is shown by no state.
        is_unseen = max(self._pushed, self._stop or 0.0) > in_charge.arrival + self._missing
        cause = beyond or ('no states' if blind > 0 or is_unseen or self._is_over else '')
        if self._cause and not cause:  # the states are back, and the robot may need all torque
            self._begin_braking(now, np.abs(torque) + self.bounds.effort)
            self._past_cause = self._cause
        self._cause = cause
        if is_pushed:
            self._settled = max(self._settled, now)
        if now <= self._settled:
            self._first = max(self._first, speed)
            self._energy = max(self._energy, self._kinetic_energy(q, v))
        if speed > FASTEST and self._cause:
            self.beyond = self.beyond or self._cause
        elif speed > FASTEST and now > self._settled and not self._is_slowing_down(now, q, v, speed):
            self.fail(now, f'P13: {speed:.3f} m/s in a stop that began with {self._first:.3f} m/s')

    def _is_slowing_down(self, now: float, q: Array, v: Array, speed: float) -> bool:
        """Whether a robot that was too fast may still be so.

        Where a link hits its end stop, the others become faster although the robot loses energy.
        """
        if now >= self._settled + BRAKING:
            return False
        if speed <= TOLERANCE * self._first:
            return True
        return self._first > FASTEST and self._kinetic_energy(q, v) <= self._energy

    def touch(self, now: float, force: float, beyond: str) -> None:
        """The force on a wall [N]; a robot that was released may fall on it."""
        self.force = max(self.force, force)
        if self.is_released:
            return
        is_braking = now < self._settled + BRAKING
        past = self._cause or (self._past_cause if is_braking else '')
        cause = beyond or (past if self._stop is not None else '')
        if force > self.bounds.contact_force:
            if cause:
                self.beyond = self.beyond or cause
            else:
                self.fail(now, f'contact: {force:.0f} N on a wall')

    def _kinetic_energy(self, q: Array, v: Array) -> float:
        """Of the commanded joints [J]."""
        A = self._map.matrix(pin.crba(self._model, self._data, self._map.position(q)))
        return float(0.5 * (self._commanded * v) @ A @ (self._commanded * v))

    def speed(self, q: Array, v: Array) -> float:
        """Of the fastest point, by the commanded joints alone [m/s]."""
        model, data = self._model, self._data
        pin.forwardKinematics(model, data, self._map.position(q), self._map.velocity(self._commanded * v))
        speeds = (self._points @ np.array(self._motions)[self._links, :, None])[:, :, 0]
        return float(np.sqrt(np.square(speeds).sum(axis=1).max()))


def _points(robot: Robot) -> tuple[Indices, Array]:
    """Points whose speed counts, by joint and in its axes [m].

    Origins of all links, corners of their shapes, and their far ends, twice as far as the centres of mass.
    """
    joints, places = [], []
    for frame in robot.model.frames:
        if frame.type == pin.FrameType.BODY:
            link = robot.urdf.links[frame.name]
            points = [np.zeros(3), 2 * link.com, *link.corners]
            joints += [frame.parentJoint] * len(points)
            places += [frame.placement.act(point) for point in points]
    return np.array(joints, dtype=np.intp), np.array(places)
