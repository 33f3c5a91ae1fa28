"""A guard behind a controller under attack, with hostile commands, checked by a monitor of its own."""

from collections import Counter
from math import nan

import numpy as np
import pytest
from adversary import SETUPS, Run

from krang_dynamics.control.command_check import Command, CommandCheck
from krang_dynamics.control.guard import Guard, GuardInputs, GuardSettings
from krang_dynamics.safety.modes import Mode
from krang_dynamics.safety.safety_stage import SafetyStage

REACTION = 0.05  # s, until a guard stops the robot, and one period
LONGEST_STEP = 0.02  # s, for which one command may be rated
ROUNDING = 1e-9
SCENES = 'storm stop others silence mute_joint values names stamps time clock slow jump push term'.split()
# These are commanded in N m, so that a command is a torque.
ARMS = [SETUPS[0], SETUPS[4]]


class GuardMonitor:
    """Checks every step of a guard: what it relays, and when and how it stops."""

    def __init__(self, guard):
        robot = guard.robot
        self.guard = guard
        rows = [robot.joint_names.index(name) for name in guard.drivers.joints]
        self.peak = np.array([robot.urdf.joints[name].effort for name in guard.drivers.joints])
        self.stop_rate = 10 * np.minimum(robot.effort_limits[rows], self.peak)
        self.command = np.zeros(len(rows))  # that the drivers have
        self.arrival, self.time = -np.inf, None
        self.fault, self.mode = None, Mode.DISABLED
        self.is_own = False  # whether the last command was the guard's
        self.pressed = False

    def step(self, inputs):
        try:
            out = self.guard.step(inputs)
        except Exception as error:
            raise AssertionError(f'P14: {type(error).__name__}: {error}') from error
        now = inputs.time if np.isfinite(inputs.time) else self.time
        self.check(inputs, out, now)
        self.time, self.fault, self.mode = now, out.fault, out.mode
        return out

    def check(self, inputs, out, now):
        assert out.fault is None or out.fault.kind != 'exception', f'P14: {out.fault}'
        assert out.command is None or out.command.shape == self.command.shape, 'P2: a number per driver'
        self.pressed = self.pressed if inputs.emergency_stop is None else inputs.emergency_stop
        assert self.fault is None or inputs.clear_fault or out.fault == self.fault, 'P4: a fault went away'
        if self.pressed:
            assert out.fault is not None, 'P11: the emergency stop is ignored'
        period = 0.0 if self.time is None else max(0.0, now - self.time)
        self.arrival = now if inputs.commands else self.arrival
        if out.mode is Mode.ACTIVE:
            assert not inputs.other_publisher, 'P12: it relays beside another publisher'
            assert out.fault is None, 'P11: it relays in a fault'
            assert now - self.arrival <= REACTION + period, 'P11: it waits for a controller that is silent'
        if self.mode is Mode.ACTIVE and out.mode is not Mode.ACTIVE and self.command.any():
            assert out.command is not None, 'P8, P11: no stop after relaying'
        if out.command is None:
            assert not (self.is_own and self.command.any()), 'P8: silence before zero torque'
            return
        self.check_command(inputs, out, min(period, LONGEST_STEP))
        self.command, self.is_own = out.command.copy(), not out.relayed

    def check_command(self, inputs, out, dt):
        command = out.command
        assert np.isfinite(command).all(), 'P1: not finite'
        assert (np.abs(command) <= self.peak + ROUNDING).all(), 'P2: more than the limit'
        if out.relayed:
            assert any(np.array_equal(command, c.values) for c in inputs.commands), (
                'P11: it changes a command'
            )
            assert not any(c.error for c in inputs.commands), 'P11: it relays what could not be read'
        else:
            change = np.abs(command - self.command)
            assert (change <= self.stop_rate * dt + ROUNDING).all(), 'P3: faster than the stop rate'


class GuardedRun(Run):
    """A controller under attack, whose commands reach a guard late, spoilt or not at all."""

    def __init__(self, setup, seed):
        super().__init__(setup, seed)
        controller = self.monitor.controller
        settings = GuardSettings(stop_time=0.3, stop_blind_time=0.2)
        self.guard = GuardMonitor(Guard(controller.robot, settings))
        self.is_silent = False  # whether the controller is frozen

    def step(self, inputs):
        problem = self.guard.guard.obstacle(inputs.time)  # which a controller gets from the guard's state
        inputs.guard_problem = inputs.guard_problem or problem
        super().step(inputs)
        values = self.adversary.outputs.command
        commands = [] if values is None else [Command(values.copy(), '', inputs.time)]
        if self.scene == 'recover':
            self.is_silent = False
        elif self.dice.random() < 0.02:
            self.is_silent = True
        elif commands and self.dice.random() < 0.02:
            commands.append(self.hostile(values, inputs.time))
        fault = self.guard.fault
        out = self.guard.step(
            GuardInputs(
                inputs.time, inputs.clock, inputs.samples,
                commands=[] if self.is_silent else commands,
                clear_fault=fault is not None and self.dice.random() < 0.5,
                deadman=inputs.deadman,
                emergency_stop=inputs.emergency_stop,
                other_publisher=inputs.other_publisher,
                release=inputs.release,
                fade=inputs.fade,
                hand_over=self.scene != 'recover' and self.dice.random() < 0.005,
            )
        )  # fmt: skip
        self.counted['relayed'] += out.relayed
        self.counted['guard stops'] += fault is None and out.fault is not None

    def hostile(self, values, now):
        dice, n = self.dice, len(values)
        return dice.choice(
            [
                Command(np.full(n, nan), '', now),
                Command(values[:-1], '', now),
                Command(values + 1e3, '', now),
                Command(values + dice.choice([-40.0, 40.0]), '', now),
                Command(values.copy(), 'a,b', now),
                Command(np.zeros(0), '', now, error='3 bytes'),
                Command(values.astype(np.float32), '', now),
                Command(values.copy(), '', nan),
            ]
        )


def campaign(steps, seed, length=3000):
    counted, number = Counter(), 0
    while counted['steps'] < steps:
        key, number = f'{seed}/{number}', number + 1
        try:
            counted += GuardedRun(ARMS[number % len(ARMS)], key).attack(min(length, steps), SCENES)
        except AssertionError as error:
            raise AssertionError(f'run {key}: {error}') from error
    return counted


@pytest.mark.slow
def test_no_command_breaks_a_promise_of_the_guard():
    counted = campaign(2_000, seed='sample', length=1000)
    assert counted['relayed'] >= 0.3 * counted['steps']
    assert counted['guard stops'] >= 5


@pytest.mark.long
def test_no_command_of_a_hundred_thousand_breaks_a_promise_of_the_guard():
    counted = campaign(100_000, seed='long')
    print(dict(counted))
    assert counted['relayed'] >= 0.3 * counted['steps']


def only_in_length(malformed):
    """A mutant that looks at the length of a command alone."""
    return lambda self, command: None if np.shape(command.values) == (2,) else malformed(self, command)


NOTHING = lambda f: lambda *a: None  # noqa: E731
MUTANTS = [
    ('P1:', CommandCheck, '_malformed', only_in_length),
    ('P[12]:', CommandCheck, 'check', NOTHING),
    ('P3', SafetyStage, '_elapsed', lambda f: lambda *a: 1.1 * f(*a)),
    ('P8', Guard, '_own_command', NOTHING),
    ('P11: it waits', Guard, '_check_silence', NOTHING),
    ('P11: it changes', Guard, '_relay', lambda f: lambda self, values: f(self, 0.99 * values)),
    ('P1[12]', Guard, '_violation', NOTHING),
    (
        'P14',
        Guard,
        '_take_commands',
        lambda f: lambda self, inputs, *rest: f(self, inputs.commands[2], *rest),
    ),
]


def attack(seeds):
    """Attack guards whose controllers are not checked."""
    for seed in seeds:
        run = GuardedRun(ARMS[0], seed)
        run.monitor.check = lambda *step, m=run.monitor: setattr(m, 'mode', m.controller.safety.mode)
        run.attack(5000, SCENES)


@pytest.mark.slow
@pytest.mark.parametrize(('promise', 'owner', 'method', 'mutant'), MUTANTS)
def test_the_monitor_sees_a_guard_that_breaks_a_promise(monkeypatch, promise, owner, method, mutant):
    monkeypatch.setattr(owner, method, mutant(getattr(owner, method)))
    with pytest.raises(AssertionError, match=promise):
        attack(range(8))  # some defects need a rare command
