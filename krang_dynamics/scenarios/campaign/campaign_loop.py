"""One run of a campaign: session, guard, drivers and plant in lock step, without ROS."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from ...arrays import Array, is_finite
from ...control.command_check import Command
from ...control.controller import Outputs
from ...control.guard import Guard, GuardInputs
from ...control.guard_link import HEARTBEAT, GuardLink, heartbeat
from ...control.reference.trajectory import JointTrajectory
from ...control.session import Session
from ...errors import KrangError
from ...robot.model import Robot
from ...safety.joint_buffer import JointSamples
from ...safety.modes import Fault, Mode
from ..motions import JointMotion, smooth_step
from .campaign_monitor import BEYOND, FASTEST, HELD, JUMP, STOPPED, UNSAFE, Monitor, Node, PromisedBounds
from .campaign_plan import BACK, HOLD, MOVE, TRAVEL, Conditions, Plan, is_passive, motion_range
from .campaign_robot import DisturbedRobot, Diverged, as_set_up

STEADY, EPOCH = 100.0, 1000.0  # steady clock and wall clock at the begin of a run [s]
ENABLE = 0.6  # time of enable: the rate of the states is known then [s]
WATCHED, END = 10, 80.0  # one run in so many goes on until its stop is over, to this time at most [s]
SWING_UP = 5.0  # time until a robot that balances is upright, when it is enabled again [s]
QUEUE = 10  # states that wait for a controller that is frozen
DRIVING = (Mode.RAMPING, Mode.ACTIVE)
Fields = tuple[tuple[str, ...], Array, Array, Array, float]  # of JointSamples, without the arrival
REQUESTS = (
    'goal stream rest settings enable disable emergency_stop second_publisher lower hand_over clear_fault '
    'payload release'
).split()


@dataclass
class RunResult:
    """One row of the table of a campaign."""

    seed: int
    outcome: str
    reason: str  # the broken promise, the fault, or the cause beyond control
    time: float  # of the fault or of the broken promise [s]; NaN without one
    speed: float  # of the fastest point in a stop [m/s]
    force: float  # largest on a wall [N]
    error: float  # at the end [rad, m]
    values: dict[str, float]  # the disturbances


@dataclass
class Trace:
    """What a run looked like, for a picture and a bag: one row per state."""

    times: list[float] = field(default_factory=list)
    q: list[Array] = field(default_factory=list)
    v: list[Array] = field(default_factory=list)
    torque: list[Array] = field(default_factory=list)
    reference: list[Array] = field(default_factory=list)
    mode: list[str] = field(default_factory=list)
    speed: list[float] = field(default_factory=list)


class Loop:
    """A robot, its controller and its guard, whose messages take their time."""

    def __init__(self, robot: Robot, plan: Plan, conditions: Conditions, trace: Trace | None = None) -> None:
        self.robot, self.plan, self.conditions, self.trace = robot, plan, conditions, trace
        self.period = 1.0 / plan.rate
        self.session = Session(robot, plan.settings)
        self.session.activate()
        self.guard = Guard(robot, plan.guard)
        drivers = self.session.controller.drivers
        true = as_set_up(robot, plan.settings)
        self.body = DisturbedRobot(true, drivers, conditions, plan.duration, plan.home(robot))
        bounds = PromisedBounds.of(robot, drivers.names, plan.settings.values, plan.contact_force)
        self.monitor = Monitor(
            robot, self.body.true, bounds, self.body.commanded, self.period, conditions.get('torque_lag')
        )
        self.fault: Fault | None = None  # the first one, of controller or guard
        self.fault_at = float('nan')
        self._label = ','.join(drivers.names)
        self._link = GuardLink('torque_guard')
        self._beat_at = self._guard_stepped_at = -inf
        self._events: list[tuple[float, int, Callable[[float, Any], None], Any]] = []
        self._count = 0
        self._waiting: list[JointSamples] = []  # states for a frozen controller
        self._guard_states: list[JointSamples] = []
        self._last = {'controller': -inf, 'guard': -inf, 'drivers': -inf}  # last delivery [s]
        self._dice = conditions.dice('network')
        self._is_gone = False  # the controller has handed over
        self._has_jumped = False  # a sensor, in a state that was sent to the controller
        self._reference = self.body.start  # of the controller
        self._goal, self._goal_at = self.body.start, 0.0  # of the last request, and when it is reached [s]
        self._upright_by = 0.0  # a robot that balances [s]
        self._missed = 0.0  # largest distance from a goal that another one followed [rad, m]
        frozen = conditions.get('frozen_controller')
        is_killed = 'killed_controller' in conditions.values
        self._pause = (self.body.begin, inf if is_killed else self.body.begin + frozen)
        terms = self.session.controller.terms
        self._has_goal = any(term.follows_reference or term.name == 'balance' for term in terms)
        self._script = self._timetable()

    # -- time ------------------------------------------------------------------------------------------

    def clock(self, t: float) -> float:
        """The wall clock, which may be set during a run [s]."""
        jump = self.conditions.get('clock_jump') if t >= self.body.begin else 0.0
        return EPOCH + t + jump

    def is_running(self, t: float) -> bool:
        """Whether the controller runs."""
        return not self._is_gone and not self._pause[0] <= t < self._pause[1]

    def run(self) -> RunResult:
        """From held brakes to the end of the duration."""
        monitor, body = self.monitor, self.body
        for k in range(round(max(END, self.plan.duration) * self.plan.rate)):
            t = k * self.period
            if t >= self.plan.duration and not self._is_stop_watched():
                break
            while self._events and self._events[0][0] <= t:
                at, _, action, value = heapq.heappop(self._events)
                body.advance(at)
                action(at, value)
            body.advance(t)
            if not monitor.broken:
                beyond = body.beyond(t)
                monitor.check(t, body.plant.q, body.plant.v, body.torque, body.is_pushed, beyond)
                if body.wall is not None:
                    monitor.touch(t, body.contact, beyond)
            elif self.trace is None:
                break
            self._tick(t)
            if self.trace is not None:
                self._record(self.trace, t)
        return self._result()

    def _is_stop_watched(self) -> bool:
        """Whether the stop goes on, and is watched to its end, as one in WATCHED is."""
        return (
            self.conditions.seed % WATCHED == 0 and self.guard.safety.is_sending and not self.monitor.broken
        )

    def _way(self, t: float, receiver: str) -> float:
        """When a message of time t arrives; messages do not overtake one another."""
        delay, jitter = self.conditions.get('delay') / 2, self.conditions.get('jitter') / 2
        arrival = t + delay + (jitter * self._dice.random() if jitter else 0.0)
        self._last[receiver] = arrival = max(arrival, self._last[receiver])
        return arrival

    def _tick(self, t: float) -> None:
        """One period: requests, a measurement, heartbeat and watchdogs."""
        while self._script and self._script[0][0] <= t:
            self._request(t, self._script.pop(0)[1])
        measured = self.body.measure()
        if measured is not None:
            names, stamp = self.robot.joint_names, self.clock(t)
            fields = (names, measured.q, measured.v, measured.effort, stamp)
            for receiver, take in (('controller', self._to_controller), ('guard', self._to_guard)):
                if self.conditions.get('loss') and self._dice.random() < self.conditions.get('loss'):
                    continue
                arrival = self._way(t, receiver)
                self._send(arrival, t, take, fields)
                if receiver == 'controller' and self._jumps(t, measured.q):
                    self._send(arrival, t, self._note_jump, None)
        self._watch(t)

    def _jumps(self, t: float, q: Array) -> bool:
        """Whether these are the first positions of a sensor that has shifted; later ones show no jump."""
        if self._has_jumped or self.conditions.get('jump') <= JUMP or t < self.body.begin:
            return False
        self._has_jumped = is_finite(q)
        return self._has_jumped

    def _send(self, at: float, t: float, action: Callable[[float, Any], None], value: Any) -> None:
        """Deliver a value now, if it is due, or later."""
        if at <= t:
            action(t, value)
        else:
            self._count += 1
            heapq.heappush(self._events, (at, self._count, action, value))

    def _watch(self, t: float) -> None:
        now = STEADY + t
        if now - self._beat_at >= HEARTBEAT:
            self._beat_at = now
            self._link.take(heartbeat(self.guard.mode.value, self.guard.obstacle(now)), now, now)
        if self.is_running(t):
            for sample in self._drained():
                self._controller_takes(t, sample)
            outputs = self.session.watch(now, self.clock(t))
            if outputs is not None:
                self._controller_sent(t, outputs)
        elif self.monitor.is_alive:
            self.monitor.is_alive = False
        if now - self._guard_stepped_at > self.period * 1.5:
            self._guard_step(t)

    # -- controller ------------------------------------------------------------------------------------

    def _drained(self) -> list[JointSamples]:
        waiting, self._waiting = self._waiting, []
        return waiting

    def _to_controller(self, t: float, fields: Fields) -> None:
        sample = JointSamples(*fields, STEADY + t)
        if self.is_running(t):
            for earlier in self._drained():
                self._controller_takes(t, earlier)
            self._controller_takes(t, sample)
        else:
            self._waiting = [*self._waiting, sample][-QUEUE:]

    def _controller_takes(self, t: float, sample: JointSamples) -> None:
        self.monitor.is_alive = True
        self._note_state(self.monitor.controller, t, sample)
        if self.session.take_states(sample):
            self._controller_step(t)

    def _controller_step(self, t: float, **requests: Any) -> Outputs:
        now, clock = STEADY + t, self.clock(t)
        self.session.guard_problem = self._link.problem(now)
        outputs = self.session.step(now, clock, **requests)
        self._controller_sent(t, outputs)
        return outputs

    def _controller_sent(self, t: float, outputs: Outputs) -> None:
        if outputs.fault is not None:
            self._note_fault(t, outputs.fault)
        if outputs.reference is not None:
            self._reference = outputs.reference[0].copy()
        self.monitor.sends(self.monitor.controller, t, outputs.command, outputs.mode in DRIVING)
        if outputs.command is not None:
            self._guard_step(t, commands=[Command(outputs.command, self._label, STEADY + t)])

    # -- guard -----------------------------------------------------------------------------------------

    def _to_guard(self, t: float, fields: Fields) -> None:
        sample = JointSamples(*fields, STEADY + t)
        self._note_state(self.monitor.guard, t, sample)
        self._guard_states.append(sample)
        if self.guard.safety.is_sending:  # while it relays, commands cause the steps
            self._guard_step(t)

    def _guard_step(self, t: float, **inputs: Any) -> None:
        now = STEADY + t
        states, self._guard_states = self._guard_states, []
        outputs = self.guard.step(GuardInputs(now, self.clock(t), states, **inputs))
        self._guard_stepped_at = now
        if outputs.fault is not None:
            self._note_fault(t, outputs.fault)
        self.monitor.sends(self.monitor.guard, t, outputs.command, outputs.mode is Mode.ACTIVE)
        if outputs.command is not None:
            arrival = self._way(t, 'drivers')
            self.monitor.delay = max(self.monitor.delay, arrival - t)
            self._send(arrival, t, self._to_drivers, outputs.command.copy())

    def _to_drivers(self, t: float, command: Array) -> None:
        self.body.receive(command)

    # -- notes -----------------------------------------------------------------------------------------

    def _note_state(self, node: Node, t: float, sample: JointSamples) -> None:
        state = np.concatenate([sample.position, sample.velocity])
        self.monitor.state(node, t, self.clock(t), sample.stamp, state, sample.effort)

    def _note_jump(self, t: float, _: None) -> None:
        """A shifted position arrives; if its stamp is old, the controller ignores it until a later one."""
        controller = self.monitor.controller
        self._has_jumped = controller.arrival == t
        if self._has_jumped:
            self.monitor.demand(t, 'P18: a sensor has jumped', controller)

    def _note_fault(self, t: float, fault: Fault) -> None:
        if self.fault is None:
            self.fault, self.fault_at = fault, t

    def _record(self, trace: Trace, t: float) -> None:
        body = self.body
        trace.times.append(t)
        trace.q.append(body.plant.q)
        trace.v.append(body.plant.v)
        trace.torque.append(body.torque.copy())
        trace.reference.append(self._reference)
        trace.mode.append(self.session.controller.safety.mode.value if self.is_running(t) else 'not running')
        trace.speed.append(self.monitor.speed(body.plant.q, body.plant.v))

    # -- requests --------------------------------------------------------------------------------------

    def _timetable(self) -> list[tuple[float, str]]:
        """Times and names of all requests."""
        script = [(ENABLE, 'enable')]
        if not self._has_goal:
            pass
        elif isinstance(self.plan.scenario, JointTrajectory):
            script.append((MOVE, 'motion'))
        elif self.plan.scenario == HOLD:
            pass
        elif self.robot.config.rolling:
            script.append((MOVE, 'drive'))
        elif len(self.robot.actuated_joint_names) == self.robot.nv:
            script += [(MOVE, 'goal'), (BACK, 'home')]
        dice = self.conditions.dice('requests')
        self._request_dice = dice
        for _ in range(round(self.conditions.get('requests'))):
            time = float(dice.uniform(ENABLE + 0.1, self.plan.duration - 1.0))
            script.append((time, REQUESTS[int(dice.integers(len(REQUESTS)))]))
        return sorted(script)

    def _request(self, t: float, name: str) -> None:
        if name == 'enable':
            if self.monitor.is_enabled and not self.session.controller.safety.is_driving:
                self._upright_by = t + SWING_UP
            self.monitor.is_enabled = True
        if not self.is_running(t):
            return
        monitor, session, now, clock = self.monitor, self.session, STEADY + t, self.clock(t)
        if name in ('goal', 'home', 'stream', 'rest', 'drive', 'motion'):
            self._reference_request(t, name)
        elif name in ('enable', 'disable'):
            session.guard_problem = self._link.problem(now)
            outputs = session.enable(name == 'enable', now, clock)
            if name == 'disable':
                monitor.demand(t, 'disable', monitor.controller)
            self._controller_sent(t, outputs)
        elif name == 'emergency_stop':
            monitor.demand(t, 'emergency stop')
            self._guard_step(t, emergency_stop=True)
            self._controller_step(t, emergency_stop=True)
        elif name == 'second_publisher':
            monitor.demand(t, 'P12: a second publisher')
            self._guard_step(t, other_publisher=True)
            self.session.other_publisher = True
            self._controller_step(t)
            self.session.other_publisher = False
        elif name == 'lower':
            monitor.demand(t, 'lower', monitor.controller)
            self._controller_step(t, lower=True)
        elif name == 'hand_over':
            self._is_gone = True
            self._guard_step(t, hand_over=True)
        elif name == 'clear_fault':
            self._guard_step(t, emergency_stop=False, clear_fault=True)
            self._controller_step(t, emergency_stop=False)
            self._controller_step(t, clear_fault=True)
        elif name == 'release':
            self._guard_step(t, release=True)
            self._controller_step(t, release=True)
            monitor.release(t, self.body.torque)
        else:
            self._change(t, name)

    def _change(self, t: float, name: str) -> None:
        """A live change of parameters; a refusal changes nothing."""
        dice = self._request_dice
        settings = self.session.controller.settings
        if name == 'payload':
            frame = self.robot.config.end_effectors[0]
            changes: dict[str, Any] = {f'payload.{frame}.mass': float(dice.uniform(0, 0.2))}
        else:
            options = ({'ramp_time': 0.3}, {'gains.bandwidth': 15.0}, {'gains.bandwidth': 200.0})
            changes = options[int(dice.integers(len(options)))]
        try:
            self._controller_sent(
                t, self.session.change(settings.replace(**changes), STEADY + t, self.clock(t))
            )
        except KrangError:
            return

    def _reference_request(self, t: float, name: str) -> None:
        robot, dice = self.robot, self._request_dice
        if name == 'motion' and isinstance(self.plan.scenario, JointTrajectory):
            trajectory = self._goal_of(self.plan.scenario)
        elif name == 'drive':
            trajectory = self._goal_of(_drive())
        elif name == 'rest':
            trajectory = JointTrajectory((), np.zeros(0), np.zeros((0, 0)))
        else:
            q = self.body.start
            if name != 'home':
                q = q + motion_range(robot, q, TRAVEL) * self.body.commanded * dice.uniform(-1, 1, robot.nv)
            times = np.array([0.0 if name == 'stream' else TRAVEL])
            trajectory = self._goal_of(JointTrajectory(robot.joint_names, times, q[None]))
        self.session.take_trajectory(trajectory)

    def _goal_of(self, trajectory: JointTrajectory) -> JointTrajectory:
        """Note where and when a trajectory ends."""
        if not self.body.is_pushed and 'requests' not in self.conditions.values:
            self._missed = max(self._missed, self._error())
        self._goal = self._goal.copy()
        self._goal_at = self.body.time + float(trajectory.times[-1])
        rows = [self.robot.joint_names.index(name) for name in trajectory.joint_names]
        self._goal[rows] = trajectory.positions[-1]
        return trajectory

    # -- the end ---------------------------------------------------------------------------------------

    def _error(self) -> float:
        """Largest distance of a controlled joint from its goal at the end [rad, m].

        The reference is the goal while a motion goes on, and among random requests, of which the controller
        may rightly have refused the last one.
        """
        robot, q = self.robot, self.body.plant.q
        if is_passive(robot):
            if self.body.time < self._upright_by:
                return 0.0
            return float(np.abs(np.remainder(q + np.pi, 2 * np.pi) - np.pi)[1:].max())
        is_known = self.body.time >= self._goal_at and 'requests' not in self.conditions.values
        goal = self._goal if is_known else self._reference
        if robot.config.rolling:
            return float(np.abs(q - goal)[:3].max())
        return float((self.body.commanded * np.abs(q - goal)).max())

    def _runs_away(self) -> bool:
        """Whether the robot moves fast at the end although nothing has pushed it."""
        is_free = not {'push', 'wall', 'requests'} & set(self.conditions.values)
        plant = self.body.plant
        return is_free and self.monitor.speed(plant.q, plant.v) > FASTEST

    def _result(self) -> RunResult:
        monitor, time = self.monitor, self.fault_at
        error = max(self._missed, self._error()) if self._has_goal else 0.0
        cause = self.body.beyond(self.body.time)
        is_off = not self.session.controller.safety.is_driving  # on request; a wall may be in the way as well
        if monitor.broken:
            outcome, reason, time = UNSAFE, monitor.broken, monitor.broken_at
        elif monitor.beyond:
            outcome, reason = BEYOND, monitor.beyond
        elif self.fault is not None:
            outcome, reason = STOPPED, self.fault.kind
        elif self.body.is_held:
            outcome, reason = STOPPED, 'enable refused'
        elif is_off or self._is_gone:
            outcome, reason = HELD, ''
        elif not self.guard.is_sending:  # the controller ended with a torque of exactly 0
            outcome, reason = STOPPED, 'no commands'
        elif not self._has_goal and self._runs_away():
            outcome, reason, time = UNSAFE, 'it neither rests nor stops', self.body.time
        elif self.body.contact or error <= self.plan.accuracy:
            outcome, reason = HELD, ''
        elif cause:
            outcome, reason = BEYOND, cause
        elif error <= monitor.bounds.following_error.max():
            outcome, reason = STOPPED, 'the goal is missed'
        else:
            outcome, reason, time = UNSAFE, 'it neither reaches its goal nor stops', self.body.time
        return RunResult(
            self.conditions.seed,
            outcome,
            reason,
            time,
            monitor.fastest,
            monitor.force,
            error,
            dict(self.conditions.values),
        )


def _drive() -> JointTrajectory:
    """A curve of a mobile base, of 4 s."""
    times = np.arange(0, 4.01, 0.05)
    s = smooth_step(times / 4.0)
    points = np.array([1.2 * s, 0.4 * s**2, 0.8 * s]).T
    return JointMotion(('x', 'y', 'alpha'), times, points).trajectory


def run_once(robot: Robot, plan: Plan, seed: int, trace: Trace | None = None) -> RunResult:
    """The run of one seed; its result depends on robot, plan and seed alone."""
    return run_under(robot, plan, plan.draw(seed), trace)


@np.errstate(over='ignore', invalid='ignore')  # of a robot that runs away
def run_under(robot: Robot, plan: Plan, conditions: Conditions, trace: Trace | None = None) -> RunResult:
    """A run with these disturbances."""
    loop = Loop(robot, plan, conditions, trace)
    try:
        return loop.run()
    except Diverged:
        loop.monitor.run_away(loop.body.time, loop.body.beyond(loop.body.time))
    except Exception as error:  # P14: no input may end the loop
        loop.monitor.fail(loop.body.time, f'P14: {type(error).__name__}: {error}')
    return loop._result()
