"""A monitor that knows the promises only, and checks a controller by inputs, outputs and settings."""

from collections import deque
from functools import lru_cache
from math import inf, isfinite, nan

import numpy as np

import krang_dynamics as kd
from krang_dynamics.safety.modes import Mode

ROUNDING = 1e-9  # N m
LONGEST_STEP = 0.02  # s, for which one command may be rated
ENCODER = 1e-3  # rad, tolerance of position limits
DRIVING = (Mode.RAMPING, Mode.ACTIVE)
LIVE_SPEED = 1.2  # default of limits.velocity, in URDF speeds
WINDOW = 0.5  # s, of the rate of the states
FASTEST = 0.5  # m/s, in a stop that lowers the robot
TOLERANCE = 1.05  # times the first speed, where the robot moves when the stop begins


class Sample:
    """The newest accepted value of one joint."""

    def __init__(self, moment, arrival, stamp, q, v, effort):
        self.moment, self.arrival, self.stamp = moment, arrival, stamp
        self.q, self.v, self.effort = q, v, effort


@lru_cache(maxsize=64)
def loaded_robot(name, gravity, payloads):
    """A robot by its public constructor, with gravity and payloads as hashable values."""
    robot = kd.load_robot(name, gravity=gravity)
    for frame, mass, com, inertia in payloads:
        xx, yy, zz, xy, xz, yz = inertia
        matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        robot = robot.with_payload(frame, mass, np.array(com), matrix)
    return robot


class Settled:
    """The numbers that the settings in force mean, over joint_names."""

    def __init__(self, robot, values):
        joints = [robot.config.joints[name] for name in robot.joint_names]
        self.values = values
        self.peak = np.array([robot.urdf.joints[name].effort for name in robot.joint_names])
        nominal = np.minimum(robot.effort_limits, self.peak)
        given = self.given('limits.effort', robot)
        self.effort = nominal if given is None else np.minimum(given, self.peak)
        file_rate = np.array([nan if joint.effort_rate is None else joint.effort_rate for joint in joints])
        default = np.where(np.isnan(file_rate), 10 * self.effort, file_rate)
        rate = self.given('limits.effort_rate', robot)
        self.effort_rate = default if rate is None else rate
        stop = self.given('stop.rate', robot)
        self.stop_rate = np.where(np.isnan(file_rate), 10 * nominal, file_rate) if stop is None else stop
        speed = self.given('limits.velocity', robot)
        self.velocity = LIVE_SPEED * robot.velocity_limits if speed is None else speed
        margin = self.given('limits.position_margin', robot)
        self.margin = np.zeros(robot.nv) if margin is None else margin
        self.following_error = self.given('limits.following_error', robot)
        self.damping = self.given('damping', robot)
        self.timeout = values['state_timeout']
        self.frames = sorted(
            (frame, mass, tuple(values.get(f'payload.{frame}.com', (0.0,) * 3)),
             tuple(values.get(f'payload.{frame}.inertia', (0.0,) * 6)))
            for key, mass in values.items()
            if key.startswith('payload.') and key.endswith('.mass') and mass
            for frame in [key[len('payload.'):-len('.mass')]]
        )  # fmt: skip
        gravity = values['gravity'] or robot.config.gravity
        self.robot = loaded_robot(robot.name, tuple(map(float, gravity)), tuple(self.frames))

    def given(self, name, robot):
        value = self.values.get(name)
        return None if value is None else np.broadcast_to(np.asarray(value, dtype=float), robot.nv)


class Monitor:
    """Checks every step by its inputs and outputs. Each message of a failure begins with the promise."""

    def __init__(self, controller):
        self.controller = controller
        self.robot = robot = controller.robot
        self.names = robot.joint_names
        self.commanded = np.isin(self.names, controller.command_joints)
        driven = [robot.config.joints[name].driven for name in self.names]
        assert not (self.commanded & ~np.array(driven)).any(), 'P9: it commands a passive joint'
        motors = [robot.config.joints[n].motor for n in controller.command_joints]
        in_volts = robot.config.command_unit == 'voltage'
        self.supply = np.array([(m.supply if in_volts else None) or inf for m in motors])
        self.values = controller.settings.values
        self.settled = Settled(robot, self.values)
        self.term_names = {term.name for term in controller.terms}
        self.newest = {}  # Sample by joint
        self.any_stamp = set()
        self.moments = deque()  # of complete states, for their rate
        self.is_waiting = False
        self.time = None
        self.torque = None  # of the last step
        self.mode, self.fault = Mode.DISABLED, None
        self.pressed, self.heartbeat = None, -inf
        self.released = False
        self.last_state = None  # q, v and moments of the last step
        self.goals, self.goals_known = {}, True  # by joint: goal, since when, of streamed set-points
        self.rested = None  # reference of joints at rest in the last step

    def step(self, inputs, sensed=()):
        """Step the controller and check; `sensed` are the joint states that imu and odom stand for."""
        try:
            outputs = self.controller.step(inputs)
        except Exception as error:
            raise AssertionError(f'P14: {type(error).__name__}: {error}') from error
        self.check(inputs, outputs, sensed)
        return outputs

    @np.errstate(all='ignore')  # states may have numbers that overflow
    def check(self, inputs, outputs, sensed=()):
        now = inputs.time if isfinite(inputs.time) else self.time or 0.0
        reset = self.any_stamp.copy()
        stamped = self.follow_samples([*inputs.samples, *sensed], inputs.clock, now)
        self.follow_settings(inputs, outputs)
        self.follow_requests(inputs, now)
        assert outputs.fault is None or outputs.fault.kind != 'exception', f'P14: {outputs.fault}'
        self.check_modes(inputs, outputs, now)
        self.check_state(inputs, outputs, now, reset)
        self.check_names(inputs, outputs)
        self.check_terms(outputs)
        self.check_stream(inputs, outputs, now)
        if outputs.torque is not None:
            self.check_numbers(outputs)
            self.check_change(outputs, self.elapsed(now, stamped))
            self.check_release(inputs, outputs)
        if inputs.clear_fault and not any('clear_fault' in reason for reason in outputs.refused):
            driving = self.mode in DRIVING and isfinite(inputs.time)
            self.any_stamp = self.any_stamp if driving else set(self.names)
        self.time, self.torque, self.mode, self.fault = now, outputs.torque, outputs.mode, outputs.fault

    # -- P6 and P7: which samples count ------------------------------------------------------------------

    def follow_samples(self, samples, clock, now):
        """By how much the stamps of any joint went on [s]; None without a new sample."""
        self.gone = {}  # by how much the stamp of each joint goes on [s]
        for s in samples:
            n = len(s.names)
            lengths = len(s.position) == n and len(s.velocity) in (0, n) and len(s.effort) in (0, n)
            stamp = isfinite(s.stamp) and s.stamp >= 0 and not s.stamp > clock + self.settled.timeout
            if lengths and stamp and len(set(s.names)) == n:
                arrival = s.arrival if s.arrival <= now else now
                for row, name in enumerate(s.names):
                    self.follow(s, row, name, arrival, clock)
                self.follow_rate()
        return max(self.gone.values(), default=None)

    def follow(self, sample, row, name, arrival, clock):
        moment = sample.stamp if sample.stamp > 0 else arrival
        velocity = sample.velocity[row] if len(sample.velocity) else nan
        if self.values['missing_velocity'] == 'zero' and np.isnan(velocity):
            velocity = 0.0
        old = self.newest.get(name)
        newer, later = name in self.any_stamp or old is None, inf
        if old is not None:
            is_set_back = old.stamp > clock + self.settled.timeout  # the clock itself
            later = sample.stamp - old.stamp if sample.stamp * old.stamp > 0 else arrival - old.arrival
            newer = newer or is_set_back or later > 0
        if name in self.names and newer and isfinite(sample.position[row]) and isfinite(velocity):
            effort = sample.effort[row] if len(sample.effort) else nan
            q = sample.position[row]
            self.newest[name] = Sample(moment, arrival, sample.stamp, q, velocity, effort)
            self.any_stamp = self.any_stamp - {name}
            self.gone[name] = self.gone.get(name, 0.0) + max(0.0, later)
        elif old is not None and moment == old.moment:
            self.is_waiting = True  # repeated: time may wait for the command

    def check_names(self, inputs, outputs):
        reasons = ' '.join(outputs.refused)
        for s in inputs.samples:
            repeated = sorted({name for name in s.names if list(s.names).count(name) > 1})
            assert not repeated or repr(repeated[0]) in reasons, 'P6: a repeated joint is not refused by name'
        missing = [name for name in self.names if name not in self.newest]
        if inputs.enable and missing and outputs.fault is None and not self.pressed:
            assert any(repr(name) in reasons for name in missing), 'P6: a missing joint is not named'

    def follow_rate(self):
        if len(self.newest) < len(self.names):
            return
        complete = min(s.moment for s in self.newest.values())
        last = self.moments[-1] if self.moments else -inf
        if complete == last:
            return
        self.is_waiting = False
        if not 0 < complete - last <= WINDOW:
            self.moments.clear()
        self.moments.append(complete)
        while complete - self.moments[0] > WINDOW:
            self.moments.popleft()

    def state(self):
        """q and v of the newest samples; None before all joints are known."""
        if len(self.newest) < len(self.names):
            return None
        newest = [self.newest[name] for name in self.names]
        return tuple(np.array([getattr(s, field) for s in newest]) for field in ('q', 'v', 'moment'))

    # -- P17 ---------------------------------------------------------------------------------------------

    def follow_settings(self, inputs, outputs):
        before, after = self.values, self.controller.settings.values
        wanted = self.wanted(inputs)
        if after is before or canonical(after) == canonical(before):
            assert wanted is None or canonical(wanted) == canonical(before) or outputs.refused, (
                'P17: a change was neither applied nor refused'
            )
            return
        assert wanted is not None, 'P17: the settings changed without a request'
        assert canonical(after) == canonical(wanted), 'P17: a change was applied in part'
        self.values, self.settled = after, Settled(self.robot, after)
        self.goals = {}  # streams continue with another timeout

    def wanted(self, inputs):
        """The values that a change asks for; None without a change."""
        changes = (inputs.settings, inputs.limits, inputs.payloads, inputs.gravity)
        if all(change is None for change in changes):
            return None
        values = dict(self.values if inputs.settings is None else inputs.settings.values)
        for name, value in (inputs.limits or {}).items():
            values[f'limits.{name}'] = value
        if inputs.payloads is not None:
            values = {k: v for k, v in values.items() if not k.startswith('payload.')}
            for p in inputs.payloads:
                inertia = [*np.diag(p.inertia), p.inertia[0, 1], p.inertia[0, 2], p.inertia[1, 2]]
                part = {'mass': p.mass, 'com': p.com, 'inertia': inertia}
                values |= {f'payload.{p.frame}.{key}': value for key, value in part.items()}
        if inputs.gravity is not None:
            values['gravity'] = inputs.gravity
        if values['limits.effort'] is not None:
            given = np.asarray(values['limits.effort'], dtype=float)
            if (given > self.settled.peak).any() if given.shape in ((), self.settled.peak.shape) else False:
                values['limits.effort'] = np.minimum(given, self.settled.peak)
        return values

    # -- requests, P5, P12 and the modes -----------------------------------------------------------------

    def follow_requests(self, inputs, now):
        if inputs.emergency_stop is not None:
            self.pressed = inputs.emergency_stop
        if inputs.deadman is not None:
            self.heartbeat = now if inputs.deadman else -inf

    def check_modes(self, inputs, outputs, now):
        assert (outputs.mode is Mode.FAULT) == (outputs.fault is not None)
        if self.fault is not None and outputs.fault != self.fault:
            assert inputs.clear_fault, 'P4: a fault went away by itself'
            assert not self.pressed or outputs.fault, 'cleared while the emergency stop is pressed'
        if self.pressed:
            assert outputs.fault is not None, 'the emergency stop is ignored'
        sends = outputs.torque is not None
        if outputs.mode in DRIVING:
            self.check_driving(inputs, sends, now)
        if self.mode in DRIVING and not sends:
            raise AssertionError('P8: silence instead of a stop')
        if sends and self.torque is None:
            assert inputs.enable, 'P5: a command after silence'
        if outputs.mode is Mode.DISABLED and sends:
            assert not outputs.torque.any(), 'P8: silence before zero torque'
        if self.torque is not None and not sends:
            assert not self.torque.any(), 'P8: silence before zero torque'
            assert self.mode in (Mode.DISABLED, Mode.FAULT)

    def check_driving(self, inputs, sends, now):
        values = self.values
        assert sends, 'P8: it drives without a command'
        assert self.mode in DRIVING or inputs.enable, 'P5: it enabled itself'
        assert not inputs.other_publisher, 'P12: it drives beside another publisher'
        assert not inputs.guard_problem, 'P11: it drives although the guard does not relay'
        assert not inputs.lower, 'P8: it drives instead of being lowered'
        assert inputs.enable or not (inputs.release or inputs.fade), 'P8: it drives instead of being released'
        if values['deadman.required']:
            assert 0 <= now - self.heartbeat <= values['deadman.timeout'], 'P5: it drives without a heartbeat'
        if values['emergency_stop.required']:
            assert self.pressed is False, 'P5: it drives without an emergency stop'

    # -- P4, P18 and limits of the state -----------------------------------------------------------------

    def is_stale(self, now, clock):
        for name in self.names:
            s = self.newest.get(name)
            if s is None or not abs(now - s.arrival) <= self.settled.timeout:
                return True
            if s.stamp > 0 and not clock - s.stamp <= self.settled.timeout:
                return True
        return False

    def check_state(self, inputs, outputs, now, reset):
        state, last = self.state(), self.last_state
        self.last_state = state
        was_driving, drives = self.mode in DRIVING, outputs.mode in DRIVING
        if self.is_stale(now, inputs.clock):
            assert not drives, 'P4: it drives on an old state'
            assert not was_driving or outputs.fault, 'P4: no fault'
            return
        if not drives:
            return
        if was_driving and last is not None and self.values['missing_velocity'] != 'zero' and not reset:
            self.check_jump(state, last)
        q, v, _ = state
        limits, robot = self.settled, self.robot
        assert (np.abs(v) <= limits.velocity).all(), 'P17: faster than limits.velocity'
        margin = limits.margin - 1.01 * ENCODER
        assert not ((q > robot.upper - margin) & (v >= 0)).any(), 'P17: outside limits.position_margin'
        assert not ((q < robot.lower + margin) & (v <= 0)).any(), 'P17: outside limits.position_margin'
        times = self.moments
        if not self.is_waiting and len(times) > 1 and times[-1] - times[0] > 0.8 * WINDOW:
            rate = (len(times) - 1) / (times[-1] - times[0])
            assert rate >= 0.85 * self.values['limits.state_rate'], f'P4: it drives on states of {rate} Hz'

    def check_jump(self, state, last):
        (q, v, moments), (q0, v0, moments0) = state, last
        dt = moments - moments0
        moved = q - q0
        turned = np.arctan2(np.sin(moved), np.cos(moved))
        moved = np.where(self.robot.continuous, turned, moved)
        speed = np.abs(v) + np.abs(v0)
        beyond = np.abs(moved) - 0.1 - (np.abs(dt) + 0.03) * (2 * speed + 2)
        jumped = (dt >= 0) & (dt <= 0.5 * self.settled.timeout) & (beyond > 0)
        assert not jumped.any(), 'P18: it believes a jump'

    # -- the terms: P7, P16 by the copy, P17 -------------------------------------------------------------

    def check_terms(self, outputs):
        """Gravity and damping show which state, payload and gravity are in force."""
        if outputs.mode not in DRIVING:
            return
        assert set(outputs.terms) == self.term_names, 'P8: a term was dropped'
        q, v, _ = self.state()
        if 'gravity' in outputs.terms and not self.values['hardware_compensates_gravity']:
            expected = self.settled.robot.gravity_torque(q)
            error = np.abs(outputs.terms['gravity'] - expected).max()
            assert error <= 1e-9 * (1 + np.abs(expected).max()), 'P7, P17: gravity of another state or model'
        if 'damping' in outputs.terms:
            assert np.allclose(outputs.terms['damping'], -self.settled.damping * v, rtol=1e-12), (
                'P7, P17: damping of another state or gain'
            )

    # -- P15 ---------------------------------------------------------------------------------------------

    def check_stream(self, inputs, outputs, now):
        if outputs.mode not in DRIVING or self.mode not in DRIVING:
            self.goals, self.goals_known, self.rested = {}, True, None
            return
        if inputs.targets:  # of hands, which move the joints from now on
            self.goals, self.goals_known = {}, False
        if outputs.accepted:
            self.follow_trajectory(inputs.trajectory, now)
        if outputs.reference is None:
            return
        q_d, v_d = (x.copy() for x in outputs.reference)
        timeout = self.values['reference_timeout']
        speed, acceleration = (
            self.robot.velocity_limits,
            self.settled.given('stream.acceleration', self.robot),
        )
        for i, (goal, since) in self.goals.items() if self.goals_known else ():
            age = now - since
            braking = 0.5 if acceleration is None else speed[i] / acceleration[i]
            if age > timeout + braking + 0.05:
                assert v_d[i] == 0, 'P15: a stream that is not renewed does not come to rest'
            rests = v_d[i] == 0 and self.rested is not None and self.rested[i] == q_d[i] and now > self.time
            if rests and 1e-6 < age <= timeout:
                assert abs(q_d[i] - goal) <= 1e-9, 'P15: it rests at another than the newest set-point'
        self.rested = np.where(v_d == 0, q_d, nan)

    def follow_trajectory(self, trajectory, now):
        if trajectory.start:  # may begin later
            self.goals, self.goals_known = {}, False
            return
        if len(trajectory.times) == 0:
            self.goals = {}
            return
        is_set_point = len(trajectory.times) == 1 and trajectory.times[0] < 1e-9
        for name, goal in zip(trajectory.joint_names, np.asarray(trajectory.positions)[0], strict=True):
            i = self.names.index(name)
            self.goals.pop(i, None)
            if is_set_point:
                self.goals[i] = (goal, now)

    # -- P1, P2, P3, P9 ----------------------------------------------------------------------------------

    def check_numbers(self, outputs):
        assert np.isfinite(outputs.torque).all(), 'P1: not finite'
        assert np.isfinite(outputs.command).all(), 'P1: not finite'
        assert not outputs.torque[~self.commanded].any(), 'P9: a joint without motor gets torque'
        if len(self.supply) == len(outputs.command):
            assert (np.abs(outputs.command) <= self.supply).all(), "P2: beyond the driver's range"

    def elapsed(self, now, stamped):
        steady = 0.0 if self.time is None else now - self.time
        return max(0.0, min(steady, LONGEST_STEP, inf if stamped is None else stamped))

    def check_change(self, outputs, dt):
        limits, torque = self.settled, outputs.torque
        allowed = np.minimum(limits.peak, limits.effort) * self.commanded
        begins = self.mode not in DRIVING and outputs.mode in DRIVING
        if self.torque is None or (begins and not self.torque.any()):
            self.check_first(torque, allowed)
            return
        last = np.abs(self.torque)
        lowered = last > allowed
        bound = np.maximum(allowed, last - limits.stop_rate * dt)
        assert (np.abs(torque) <= bound + ROUNDING).all(), 'P2: more than the limit'
        rate = limits.effort_rate if outputs.mode in DRIVING else limits.stop_rate
        rate = np.where(lowered, np.maximum(rate, limits.stop_rate), rate)
        change = np.abs(torque - self.torque)
        assert (change <= rate * dt + ROUNDING).all(), 'P3: faster than the rate limit'

    def check_first(self, torque, allowed):
        measured = np.array([self.newest[name].effort for name in self.names])
        first = np.where(np.isfinite(measured), measured, 0.0)
        if self.torque is not None and not torque.any():  # it continues a stop that has not ended
            return
        assert (torque == np.clip(first, -allowed, allowed)).all(), 'P3: the first command is a jump'
        weight = self.settled.robot.gravity_torque(self.state()[0])
        if self.values['hardware_compensates_gravity']:
            weight = 0 * weight
        margin = self.robot.friction.coulomb + 0.1 * self.settled.effort + ROUNDING
        contradicts = (measured < np.minimum(weight, 0) - margin) | (
            measured > np.maximum(weight, 0) + margin
        )
        assert not (contradicts & self.commanded).any(), (
            'P3: it starts from an effort that contradicts gravity'
        )

    def check_release(self, inputs, outputs):
        self.released = (self.released or inputs.release) and outputs.mode not in DRIVING
        if self.released and self.torque is not None:
            grown = np.abs(outputs.torque) > np.abs(self.torque) + ROUNDING
            assert not grown.any(), 'P8: torque grows after a release'


def canonical(values):
    """Settings in a form that can be compared: lists for sequences, payloads without mass left out."""
    rows = {}
    for key, value in values.items():
        group, _, _ = key.rpartition('.')
        if key.startswith('payload.') and not values.get(f'{group}.mass'):
            continue
        plain = value.tolist() if isinstance(value, np.ndarray | np.number) else value
        rows[key] = list(plain) if isinstance(plain, tuple | list) else plain
    return rows


class SpeedMonitor:
    """P13 by the plant's own state: speeds in a stop of the policy `lower` with valid states.

    Until the torque of the drive is removed, at stop.rate and with the delay of the drivers, the robot does
    not move under its own weight: the largest speed until then counts as the first.
    """

    def __init__(self, robot, commanded):
        self.robot = robot
        self.commanded = commanded.astype(float)
        self.frames = [f for f in robot.frames if robot.jacobian(robot.home, f)[:, commanded].any()]
        self.first = self.fastest = self.rise = 0.0  # [m/s]

    def speed(self, q, v):
        """Of the fastest origin of a frame, by the commanded joints alone [m/s]."""
        v = self.commanded * v
        return max(float(np.linalg.norm(self.robot.jacobian(q, f)[:3] @ v)) for f in self.frames)

    def begin(self, q, v):
        """The state in which the stop begins."""
        self.first = self.fastest = self.speed(q, v)
        self.bound = max(FASTEST, TOLERANCE * self.first)

    def check(self, q, v, is_driven=False):
        """A state during or after the stop; is_driven: the torque of the drive is not removed yet."""
        speed = self.speed(q, v)
        self.fastest = max(self.fastest, speed)
        if is_driven:
            self.first = max(self.first, speed)
            self.rise = max(self.rise, speed - self.bound)
            return
        bound = max(FASTEST, TOLERANCE * self.first)
        assert speed <= bound, f'P13: {speed:.3f} m/s, {self.first:.3f} m/s when the stop began'
