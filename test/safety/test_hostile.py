"""Random and hostile inputs, checked by an independent monitor that knows the promises only."""

import random
from collections import Counter
from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest
from adversary import SCENES, SETUPS, SHARES, Run

import krang_dynamics as kd
from krang_dynamics.control import controller as controller_module
from krang_dynamics.control.controller import TorqueController
from krang_dynamics.control.reference.joint_reference import Reference
from krang_dynamics.control.robot_state import BoundsCheck, JumpCheck
from krang_dynamics.control.terms.computed_torque import ComputedTorque
from krang_dynamics.control.terms.term import registered_terms
from krang_dynamics.safety.joint_buffer import JointBuffer
from krang_dynamics.safety.modes import Mode
from krang_dynamics.safety.output_limiter import OutputLimiter
from krang_dynamics.safety.safety_stage import SafetyStage


def campaign(steps, seed, length=1500):
    """Counts of a campaign of at least this many steps, over all set-ups in their shares."""
    counted = Counter()
    for number, (setup, share) in enumerate(zip(SETUPS, SHARES, strict=True)):
        run, left = 0, steps * share // sum(SHARES)
        while left > 0:
            key = f'{seed}/{number}/{run}'
            try:
                found = Run(setup, key, with_copy=run % 3 == 0).attack(min(left, length))
            except AssertionError as error:
                raise AssertionError(f'set-up {number}, run {key}: {error}') from error
            counted += found
            left, run = left - found['steps'], run + 1
    return counted


def test_every_term_of_the_package_occurs():
    own = {name for name, term in registered_terms().items() if term.__module__.startswith('krang_dynamics')}
    assert own == {name for _, terms, *_ in SETUPS for name in terms.split()}


@pytest.mark.slow
def test_no_input_breaks_a_promise():
    counted = campaign(4_000, seed='sample')
    assert counted['steps'] >= 4_000
    assert counted['driving'] >= 0.5 * counted['steps']


@pytest.mark.long
def test_no_input_of_half_a_million_breaks_a_promise():
    counted = campaign(500_000, seed='long', length=5000)
    print(f'{dict(counted)}, driving {counted["driving"] / counted["steps"]:.0%}')
    assert counted['steps'] >= 500_000
    assert counted['driving'] >= 0.5 * counted['steps']


# -- the monitor itself --------------------------------------------------------------------------------


def greedy(method):
    """A mutant of a method of TorqueController that always has a request to enable."""
    return lambda self, inputs, *rest: method(self, replace(inputs, enable=True), *rest)


def forgetful(take):
    def mutant(self, *message):
        self.reset_stamps()
        return take(self, *message)

    return mutant


def first_of_repeated(find):
    """A mutant of JointBuffer that uses messages with repeated names."""

    def mutant(self, names):
        found = find(self, names)
        return found if isinstance(found, tuple) else find(self, tuple(dict.fromkeys(names)))

    return mutant


def strong(adopt):
    def mutant(self):
        adopt(self)
        self._limit = 1.1 * self._limit
        self._lowest = -self._limit

    return mutant


def broad(start):
    def mutant(self, limits, commanded):
        start(self, limits, np.ones_like(commanded))

    return mutant


def without(**inputs):
    """A mutant of a method of TorqueController that does not get some inputs."""
    return lambda method: lambda self, given, *rest: method(self, replace(given, **inputs), *rest)


def dropping(evaluate):
    """A mutant that leaves out a term."""

    def mutant(self, inputs, fresh, terms):
        torque = evaluate(self, inputs, fresh, terms)
        terms.pop('failing', None)
        return torque

    return mutant


def partial_change(prepare):
    """A mutant that applies the damping of a change that is refused."""

    def mutant(self, new):
        try:
            return prepare(self, new)
        except kd.KrangError:
            self.settings = self.settings.replace(damping=new.damping)
            raise

    return mutant


def unapplied_change(prepare):
    """A mutant that shows new settings without applying them."""

    def mutant(self, new):
        prepare(self, new)

        def show():
            self.settings = new

        return show

    return mutant


def everybody(init):
    """A mutant of ComputedTorque that feeds back all joints."""
    return lambda self, robot, kp, kd, with_gravity, commanded=None: init(self, robot, kp, kd, with_gravity)


def first_wins(accept):
    """A mutant of Reference that keeps a set-point until its time is over."""

    def mutant(self, trajectory, now, *rest):
        if not any(track.streamed for track in self._tracks):
            accept(self, trajectory, now, *rest)

    return mutant


def raising(method):
    def mutant(self, inputs, *rest):
        if len(inputs.wrenches) > 1:
            raise ValueError('too many')
        return method(self, inputs, *rest)

    return mutant


def endless(update):
    """A mutant of Reference that never ends a stream, and drifts instead."""

    def mutant(self, now, q):
        self.timeout = inf
        for track in self._tracks:
            if track.streamed:
                track.motion.rest[1] = 1e-3
        return update(self, now, q)

    return mutant


def noisy(blend):
    return lambda self, now, torque: blend(self, now, torque) + 1e-12 * random.random()


def silent(step):
    """A mutant of SafetyStage without commands after a fault."""
    return lambda self, *state: None if self.fault else step(self, *state)


def calmed(check):
    """A mutant whose fault goes away by itself."""

    def mutant(self, *state):
        if self.safety.fault and not self.safety.is_driving:
            self.safety.fault, self.safety.mode = None, Mode.STOPPING
        else:
            check(self, *state)

    return mutant


NOTHING = lambda f: lambda *a, **k: None  # noqa: E731
MUTANTS = {
    'P1:': (OutputLimiter, 'limit', lambda f: lambda *a: (f(*a)[0] * nan, False), 0, SCENES),
    'P2': (OutputLimiter, '_adopt_limit', strong, 0, ['wrench', 'limits']),
    'P3': (SafetyStage, '_elapsed', lambda f: lambda *a: 1.1 * f(*a), 0, SCENES),
    'P3: the first': (OutputLimiter, 'start', lambda f: lambda self, tau: f(self, tau + 1.0), 0, SCENES),
    'P3: it starts': (TorqueController, '_unfit_state', NOTHING, 0, ['first_effort']),
    'P4': (JointBuffer, 'stale', NOTHING, 0, ['mute_joint']),
    'P4: it drives on an': (JointBuffer, 'stale', NOTHING, 0, ['old_stamps']),
    'P4: it drives on states': (controller_module, 'rate_problem', NOTHING, 0, ['slow']),
    'P4: a fault': (TorqueController, '_check_faults', calmed, 0, ['silence']),
    'P5': (TorqueController, '_take_requests', greedy, 0, SCENES),
    'P6': (JointBuffer, '_map', first_of_repeated, 0, ['names']),
    'P7': (JointBuffer, 'take', forgetful, 0, ['stamps']),
    'P8: silence': (SafetyStage, 'step', silent, 0, ['silence']),
    'P8: a term': (TorqueController, '_evaluate', dropping, 0, ['stop']),
    'P9': (OutputLimiter, '__init__', broad, 8, SCENES),
    'P10': (SafetyStage, '_blend', noisy, 0, SCENES),
    'P11': (TorqueController, '_check_faults', without(guard_problem=''), 0, ['others']),
    'P12': (TorqueController, '_check_faults', without(other_publisher=False), 0, ['others']),
    'P14': (TorqueController, '_take_samples', raising, 0, ['wrench']),
    'P15: it rests': (Reference, 'accept', first_wins, 0, ['stream']),
    'P15: a stream': (Reference, 'update', endless, 3, ['stream']),
    'P16': (ComputedTorque, '__init__', everybody, 3, ['stream']),
    'P17: a change was applied': (TorqueController, '_prepare', partial_change, 0, ['settings']),
    'P17: faster': (BoundsCheck, 'fault', NOTHING, 0, ['limits']),
    'P7, P17': (TorqueController, '_prepare', unapplied_change, 0, ['gravity', 'payload']),
    'P18': (JumpCheck, 'check', NOTHING, 5, ['jump']),
}


@pytest.mark.parametrize('promise', MUTANTS)
def test_the_monitor_sees_a_controller_that_breaks_a_promise(monkeypatch, promise):
    owner, method, mutant, setup, scenes = MUTANTS[promise]
    monkeypatch.setattr(owner, method, mutant(getattr(owner, method)))
    run = Run(SETUPS[setup], 1, with_copy=True)
    with pytest.raises(AssertionError, match=promise):
        run.attack(8000, scenes)
