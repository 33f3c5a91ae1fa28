"""Random and hostile inputs, checked by an independent monitor that knows the promises only."""

import random
from dataclasses import replace
from math import inf, isfinite, nan

import numpy as np
import pytest
from harness import robot_named
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from krang_dynamics.control.controller import Inputs, TorqueController
from krang_dynamics.control.reference.trajectory import JointTrajectory
from krang_dynamics.control.settings import Settings
from krang_dynamics.control.terms.wrench import WrenchSample
from krang_dynamics.safety.joint_buffer import JointBuffer, JointSamples
from krang_dynamics.safety.modes import Mode
from krang_dynamics.safety.output_limiter import OutputLimiter
from krang_dynamics.safety.safety_stage import SafetyStage

ROUNDING = 1e-9  # N m
LONGEST_STEP = 0.02  # s, for which one command may be rated
STATE_TIMEOUT = 0.1  # s
FUTURE = 1.0  # s, by which a stamp may be ahead of the clock
PERIOD = 1e-3  # s
DRIVING = (Mode.RAMPING, Mode.ACTIVE)

INVALID = (nan, inf, -inf, 1e308, -1e308, 5e-324, -5e-324, 0.0, -0.0, 1e9, -1.0, 1.0, 1e-9, 3.0)
SETUPS = {
    'planar_2r': ('gravity damping computed_torque wrench joint_limits observer', 'tip'),
    'pendubot': ('balance wrench observer', 'tip'),
    'otbot': ('rolling_base damping wrench', 'platform'),
    'krang': ('gravity friction computed_torque wrench joint_limits observer', 'left_hand'),
}
SCENES, STEPS = 60, 20  # scenes of an example, steps of a scene
# Robot, policy, examples: all together 100,000 steps, and a sample of them.
CAMPAIGN = [
    ('planar_2r', None, 48),
    ('planar_2r', 'hold', 15),
    ('pendubot', None, 12),
    ('otbot', None, 3),
    ('krang', None, 5),
]
SAMPLE = [('planar_2r', None, 4), ('planar_2r', 'hold', 2), ('pendubot', None, 2), ('krang', None, 1)]


def controller_of(name, policy):
    terms, frame = SETUPS[name]
    return TorqueController(
        robot_named(name),
        Settings(
            terms=terms.split(),
            ramp_time=0.03,
            stop_policy=policy,
            state_timeout=STATE_TIMEOUT,
            reference_timeout=0.2,
            deadman_required=name == 'otbot',
            observer_reaction='stop',
            observer_collision=5000.0,
            **{f'wrench.{frame}.convention': 'applied_by_robot', f'wrench.{frame}.max_force': 50.0},
        ),
    )


# -- the adversary -------------------------------------------------------------------------------------


class Adversary:
    """Makes inputs of a robot that works, with the errors of one scene."""

    def __init__(self, name):
        self.robot = robot_named(name)
        self.frame = SETUPS[name][1]
        self.time, self.offset = 100.0, 1000.0
        self.q, self.v = self.robot.home, np.zeros(self.robot.nv)
        self.weight = self.robot.gravity_torque(self.q)
        self.effort = self.weight
        self.stopping = False

    def play(self, scene, dice):
        """The inputs of one scene."""
        dice = random.Random(dice)
        for k in range(STEPS):
            self.dice, self.k = dice, k
            dt = PERIOD
            if scene in ('calm', 'recover') and dice.random() < 0.1:
                dt = dice.choice([0.0, 1e-9, 0.019, 0.05])
            self.time += dt
            self.v = 0.9 * self.v + dice.gauss(0, 0.05)
            self.q = self.robot.home + 0.9 * (self.q + PERIOD * self.v - self.robot.home)
            inputs = Inputs(self.time, self.time + self.offset, [self.sample()], deadman=True)
            getattr(self, f'do_{scene}')(inputs)
            yield inputs

    def sample(self, **changes):
        message = {
            'names': self.robot.joint_names,
            'position': self.q.copy(),
            'velocity': self.v.copy(),
            'effort': self.effort.copy(),
            'stamp': self.time + self.offset,
            'arrival': self.time,
        }
        return JointSamples(**{**message, **changes})

    def invalid(self, n):
        return np.array([self.dice.choice(INVALID) for _ in range(n)])

    def spoilt(self, good):
        """`good` with one number replaced."""
        x = np.array(good, dtype=float)
        if x.size:
            x.flat[self.dice.randrange(x.size)] = self.dice.choice(INVALID)
        return x

    # One method per scene; most end by giving the controller the chance to go on.

    def do_calm(self, inputs):
        pass

    def do_recover(self, inputs):
        self.effort = self.weight
        inputs.emergency_stop, inputs.clear_fault, inputs.enable = False, self.k == 1, self.k >= 2 or None

    def do_wait(self, inputs):
        """Long enough for a stop to end."""
        self.time += self.dice.uniform(0.15, 0.25) if self.stopping else 0.0
        inputs.time, inputs.clock = self.time, self.time + self.offset
        inputs.samples = [self.sample()]

    def do_storm(self, inputs):
        flip = lambda: self.dice.choice([None, None, True, False])  # noqa: E731
        inputs.enable, inputs.emergency_stop, inputs.deadman = flip(), flip(), flip()
        inputs.clear_fault, inputs.other_publisher = self.dice.random() < 0.5, self.dice.random() < 0.1

    def do_disable(self, inputs):
        inputs.enable = False if self.k == self.dice.randrange(STEPS) else None

    def do_silence(self, inputs):
        inputs.samples = []
        self.time += 0.01 * self.dice.random()
        inputs.time = self.time

    def do_values(self, inputs):
        field = self.dice.choice(['position', 'velocity', 'effort'])
        good = {'position': self.q, 'velocity': self.v, 'effort': self.effort}[field]
        bad = self.dice.choice([self.spoilt(good), self.invalid(self.robot.nv), self.invalid(3), []])
        inputs.samples = [self.sample(**{field: bad})]

    def do_names(self, inputs):
        names = list(self.robot.joint_names)
        self.dice.shuffle(names)
        names = [*names[: self.dice.randrange(len(names) + 1)], *self.dice.choice([[], ['x'], names[:1]])]
        index = [self.robot.joint_names.index(n) if n in self.robot.joint_names else 0 for n in names]
        inputs.samples = [
            self.sample(names=names, position=self.q[index], velocity=self.v[index], effort=[]),
            *self.dice.choice([[], [self.sample()]]),
        ]

    def do_stamps(self, inputs):
        clock = self.time + self.offset
        stamps = (0.0, -1.0, clock, clock - 0.05, clock - 50, clock + 0.5, clock + 50, *INVALID)
        arrivals = (self.time, self.time, self.time - 0.05, self.time + 5, *INVALID)
        inputs.samples = [
            self.sample(stamp=self.dice.choice(stamps), arrival=self.dice.choice(arrivals))
            for _ in range(self.dice.randrange(3))
        ]

    def do_time(self, inputs):
        if self.k == self.dice.randrange(STEPS):
            self.time += self.dice.choice([-1e-3, -0.05, -5.0, 0.05, 0.5, 10.0, 1e6])
            inputs.time = self.time if self.dice.random() < 0.5 else self.dice.choice(INVALID)

    def do_clock(self, inputs):
        if self.k == self.dice.randrange(STEPS):
            self.offset += self.dice.choice([-900.0, -1.0, -0.01, 0.01, 1.0, 900.0, 1e9])
            self.offset = max(self.offset, 0.0)
            inputs.clock = self.time + self.offset if self.dice.random() < 0.5 else self.dice.choice(INVALID)

    def do_wrench(self, inputs):
        frames = (self.frame, self.robot.frames[0], 'nowhere')
        inputs.wrenches = [
            WrenchSample(
                self.dice.choice(frames),
                self.dice.choice(frames),
                self.dice.choice([np.ones(6), 1e3 * np.ones(6), self.invalid(6), self.invalid(3), None]),
                self.dice.choice([self.time, 1e300, -1.0, nan]),
            )
            for _ in range(self.dice.randrange(3))
        ]

    def do_trajectory(self, inputs):
        names = self.dice.choice([self.robot.joint_names, self.robot.joint_names[:1], ('x',), ()])
        count, n = self.dice.choice([0, 1, 1, 2, 3]), len(names)
        near = np.tile(self.q[:n] if n else [], (count, 1)) + 0.01 * self.dice.random()
        spoil = self.dice.random() < 0.5
        inputs.trajectory = JointTrajectory(
            names,
            self.spoilt(np.arange(count)) if spoil else 0.05 * np.arange(count),
            self.spoilt(near) if spoil else near,
            self.dice.choice([None, np.zeros((count, n)), self.invalid(n)]),
            None,
            self.dice.choice([None, 100.0 * np.ones((count, n)), 1e9 * np.ones((count, n)), self.invalid(3)]),
        )

    def do_gravity(self, inputs):
        g = np.array([self.dice.uniform(-12, 12) for _ in range(3)])
        inputs.gravity = self.dice.choice([g, self.spoilt(g), self.invalid(3), self.invalid(2), 'down', 9.81])

    def do_limits(self, inputs):
        if self.dice.random() < 0.7:
            return
        n = self.robot.nv
        field = self.dice.choice(
            ['effort', 'effort', 'effort_rate', 'velocity', 'position_margin', 'following_error', 'nothing']
        )
        size = self.dice.choice([0.0, 0.1, 1.0, 50.0, 1e3, 1e308])
        same = np.full(n, size)
        inputs.limits = {field: self.dice.choice([same, same, self.invalid(n), [1.0]])}

    def do_push(self, inputs):
        """The robot is thrown about, and measures strange efforts."""
        self.effort = self.dice.choice([np.full(self.robot.nv, 1e4), self.invalid(self.robot.nv)])
        inputs.samples = [self.sample(velocity=self.v + self.dice.choice([0.0, 0.5, 100.0]))]


WORDS = [name.removeprefix('do_') for name in vars(Adversary) if name.startswith('do_')]


# -- the monitor ---------------------------------------------------------------------------------------


class Monitor:
    """Checks every step by its inputs and outputs."""

    def __init__(self, controller, policy):
        robot = controller.robot
        self.robot, self.limits = robot, controller.limits
        self.buffer = controller._buffer
        self.policy = policy or robot.config.stop.policy
        self.peak = np.array([robot.urdf.joints[name].effort for name in robot.joint_names])
        self.commanded = np.array([robot.config.joints[n].driven for n in robot.joint_names])
        if 'base_pitch' in robot.joint_names:
            self.commanded[robot.joint_names.index('base_pitch')] = False
        motors = [robot.config.joints[n].motor for n in controller.command_joints]
        self.supply = np.array([m.supply or inf for m in motors])
        self.newest = {}  # by joint: moment, arrival, stamp, position, effort
        self.any_stamp = set()
        self.time = None
        self.torque = None  # of the last step
        self.mode, self.fault = Mode.DISABLED, None
        self.pressed = False

    def check(self, inputs, outputs):
        now = inputs.time if isfinite(inputs.time) else self.time
        stamped = self.follow_samples(inputs, now)
        stale = self.is_stale(now, inputs.clock)
        self.pressed = self.pressed if inputs.emergency_stop is None else inputs.emergency_stop
        self.check_modes(inputs, outputs)
        self.check_state(outputs, stale)
        if outputs.torque is not None:
            self.check_numbers(outputs)
            self.check_change(inputs, outputs, self.elapsed(now, stamped))
        if inputs.clear_fault and not any('clear_fault' in reason for reason in outputs.refused):
            driving = self.mode in DRIVING and isfinite(inputs.time)
            self.any_stamp = self.any_stamp if driving else set(self.robot.joint_names)
        self.time, self.torque, self.mode, self.fault = now, outputs.torque, outputs.mode, outputs.fault

    # P6 and P7: which samples count

    def follow_samples(self, inputs, now):
        """By how much the stamps of any joint went on [s]; None without a new sample."""
        before = dict(self.newest)
        for s in inputs.samples:
            n = len(s.names)
            lengths = len(s.position) == n and len(s.velocity) in (0, n) and len(s.effort) in (0, n)
            stamp = isfinite(s.stamp) and s.stamp >= 0 and not s.stamp > inputs.clock + FUTURE
            if lengths and stamp and len(set(s.names)) == n and len(s.velocity) == n:
                arrival = s.arrival if s.arrival <= now else now
                for row, name in enumerate(s.names):
                    self.follow(s, row, name, arrival)
        gone = [self.newest[k][0] - before[k][0] if k in before else inf for k in self.newest]
        changed = [g for k, g in zip(self.newest, gone, strict=True) if self.newest[k] is not before.get(k)]
        return max(changed) if changed else None

    def follow(self, sample, row, name, arrival):
        moment = sample.stamp if sample.stamp > 0 else arrival
        known = name in self.robot.joint_names
        newer = name in self.any_stamp or moment > self.newest.get(name, (-inf,))[0]
        if known and newer and isfinite(sample.position[row]) and isfinite(sample.velocity[row]):
            effort = sample.effort[row] if len(sample.effort) else nan
            self.newest[name] = (moment, arrival, sample.stamp, sample.position[row], effort)
            self.any_stamp = self.any_stamp - {name}

    # P4

    def is_stale(self, now, clock):
        for name in self.robot.joint_names:
            if name not in self.newest:
                return True
            _, arrival, stamp, *_ = self.newest[name]
            if not abs(now - arrival) <= STATE_TIMEOUT:
                return True
            if stamp > 0 and not clock - stamp <= STATE_TIMEOUT:
                return True
        return False

    def check_state(self, outputs, stale):
        if stale:
            assert outputs.mode not in DRIVING, 'P4: it drives on an old state'
            assert self.torque is None or self.mode not in DRIVING or outputs.fault, 'P4: no fault'
        for i, name in enumerate(self.robot.joint_names):
            if name in self.newest:
                assert self.buffer.q[i] == self.newest[name][3], 'P7: the wrong sample'

    # P5 and the state machine

    def check_modes(self, inputs, outputs):
        assert (outputs.mode is Mode.FAULT) == (outputs.fault is not None)
        if self.fault is not None and outputs.fault != self.fault:
            assert inputs.clear_fault, 'a fault went away by itself'
            assert not self.pressed or outputs.fault, 'cleared while the emergency stop is pressed'
        if self.pressed:
            assert outputs.fault is not None
        sends = outputs.torque is not None
        if outputs.mode in DRIVING:
            assert sends
            assert self.mode in DRIVING or inputs.enable, 'P5: it enabled itself'
            assert not inputs.other_publisher
        if sends and self.torque is None:
            assert inputs.enable, 'P5: a command after silence'
        if outputs.mode is Mode.DISABLED and sends:
            assert not outputs.torque.any(), 'silence before zero torque'
        if self.torque is not None and not sends:
            assert not self.torque.any(), 'silence before zero torque'
            assert self.mode in (Mode.DISABLED, Mode.FAULT)

    # P1, P9, and P2 in the driver's unit

    def check_numbers(self, outputs):
        assert np.isfinite(outputs.torque).all(), 'P1'
        assert np.isfinite(outputs.command).all(), 'P1'
        assert not outputs.torque[~self.commanded].any(), 'P9'
        assert (np.abs(outputs.command) <= self.supply).all(), 'P2'

    # P2 and P3

    def elapsed(self, now, stamped):
        steady = 0.0 if self.time is None else now - self.time
        return max(0.0, min(steady, LONGEST_STEP, inf if stamped is None else stamped))

    def check_change(self, inputs, outputs, dt):
        limits, torque = self.limits, outputs.torque
        allowed = np.minimum(self.peak, limits.effort) * self.commanded
        if self.torque is None:
            measured = np.array([self.newest[name][4] for name in self.robot.joint_names])
            first = np.where(np.isfinite(measured), measured, 0.0)
            assert (torque == np.clip(first, -allowed, allowed)).all(), 'the first command is a jump'
            return
        last = np.abs(self.torque)
        lowered = last > allowed
        bound = np.maximum(allowed, last - limits.stop_rate * dt)
        assert (np.abs(torque) <= bound + ROUNDING).all(), 'P2'
        rate = limits.effort_rate if outputs.mode in DRIVING else limits.stop_rate
        rate = np.where(lowered, np.maximum(rate, limits.stop_rate), rate)
        change = np.abs(torque - self.torque)
        assert (change <= rate * dt + ROUNDING).all(), 'P3'


# -- the campaign --------------------------------------------------------------------------------------


def same(one, other):
    """P10: bit by bit."""
    for a, b in ((one.torque, other.torque), (one.command, other.command)):
        assert (a is None) == (b is None)
        assert a is None or a.tobytes() == b.tobytes()
    assert (one.mode, one.fault, one.refused) == (other.mode, other.fault, other.refused)


def run(name, policy, scenes, with_copy=True):
    """One script; with a second controller that gets the same inputs and must give the same bits."""
    controller = controller_of(name, policy)
    copy = controller_of(name, policy) if with_copy else None
    adversary, monitor = Adversary(name), Monitor(controller, policy)
    steps = driving = 0
    usual, is_changed = controller.settings, False
    for scene, dice in scenes:
        for inputs in adversary.play(scene, dice):
            if is_changed:  # so that the next scene has a robot that can move
                inputs.settings = usual
            is_changed = False
            outputs = controller.step(inputs)
            monitor.check(inputs, outputs)
            if copy is not None:
                same(outputs, copy.step(inputs))
            driving += outputs.mode in DRIVING
            adversary.stopping = outputs.mode in (Mode.STOPPING, Mode.FAULT)
            steps += 1
        is_changed = scene == 'limits'
    return steps, driving


# Between two hostile scenes the controller recovers, so that the next scene has it at work.
SCENE = st.tuples(st.sampled_from(WORDS), st.integers(0, 2**32 - 1))
SCRIPT = st.lists(SCENE, min_size=SCENES // 3, max_size=SCENES // 3)


def campaign(name, policy, examples):
    """Steps, and steps with the terms at work, of a campaign."""
    counted = np.zeros(2, dtype=int)

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        phases=[Phase.generate],  # a script of a thousand steps is not shrunk in reasonable time
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(SCRIPT)
    def play(script):
        scenes = [('recover', 0)]
        for scene, dice in script:
            scenes += [(scene, dice), ('wait', dice), ('recover', dice)]
        counted[:] += run(name, policy, scenes, with_copy=script[0][1] % 3 == 0)

    play()
    return counted


@pytest.mark.parametrize(('name', 'policy', 'examples'), SAMPLE)
def test_no_input_breaks_a_promise(name, policy, examples):
    steps, driving = campaign(name, policy, examples)
    assert steps >= examples * SCENES * STEPS
    assert driving >= 0.4 * steps


@pytest.mark.long
def test_no_input_of_a_hundred_thousand_breaks_a_promise():
    steps, driving = sum(campaign(*entry) for entry in CAMPAIGN)
    assert steps >= 100_000
    assert driving >= 0.5 * steps


def greedy(method):
    """A mutant of a method of TorqueController that always has a request to enable."""
    return lambda self, inputs, *rest: method(self, replace(inputs, enable=True), *rest)


def forgetful(take):
    def mutant(self, *message):
        self.forget_stamps()
        return take(self, *message)

    return mutant


def strong(adopt):
    def mutant(self):
        adopt(self)
        self._limit = 1.1 * self._limit

    return mutant


def broad(start):
    def mutant(self, limits, commanded):
        start(self, limits, np.ones_like(commanded))

    return mutant


@pytest.mark.parametrize(
    ('promise', 'owner', 'method', 'mutant'),
    [
        ('P1', OutputLimiter, '_within', lambda f: lambda *a: f(*a) * nan),
        ('P2', OutputLimiter, '_adopt_limit', strong),
        ('P3', SafetyStage, '_elapsed', lambda f: lambda *a: 1.1 * f(*a)),
        ('P4', JointBuffer, 'stale', lambda f: lambda *a: None),
        ('P5', TorqueController, '_take_requests', greedy),
        ('P7', JointBuffer, 'take', forgetful),
        ('P9', OutputLimiter, '__init__', broad),
        ('', OutputLimiter, '_within', lambda f: lambda *a: f(*a) + random.random()),
        ('', SafetyStage, 'trip', lambda f: lambda *a: None),
        ('', OutputLimiter, 'start', lambda f: lambda self, torque: f(self, torque + 1.0)),
    ],
)
def test_the_monitor_sees_a_controller_that_breaks_a_promise(monkeypatch, promise, owner, method, mutant):
    monkeypatch.setattr(owner, method, mutant(getattr(owner, method)))
    scenes = [(scene, dice) for dice, word in enumerate(3 * WORDS) for scene in (word, 'wait', 'recover')]
    with pytest.raises(AssertionError, match=promise or None):
        run('krang' if promise == 'P9' else 'planar_2r', None, [('recover', 0), *scenes])
