"""Gains, judged at the rate of the states."""

import numpy as np
import pytest
from harness import PERIOD, Harness, closed_loop, robot_named

from krang_dynamics.control.controller import TorqueController
from krang_dynamics.control.gains import delay_margin, gains_problem
from krang_dynamics.control.settings import Settings
from krang_dynamics.errors import InputError
from krang_dynamics.safety.modes import Mode

PLANAR = robot_named('planar_2r')


def steps(loop, count, dt):
    for _ in range(count):
        loop.step(dt=dt)


def test_the_delay_margin_of_the_default_gains_is_as_known():
    w = np.array([10 * np.pi])
    assert delay_margin(w**2, 2 * w)[0] == pytest.approx(0.0206, abs=1e-4)
    assert delay_margin(np.zeros(1), np.zeros(1))[0] == np.inf


@pytest.mark.parametrize(
    'gains', [{'gains_kp': 1e6, 'gains_kd': 0.0}, {'gains_kp': [1.0, 1.0], 'gains_kd': [1.0, 0.0]}]
)
def test_gains_without_damping_are_refused_when_configured(gains):
    with pytest.raises(InputError, match='unstable'):
        TorqueController(PLANAR, Settings(terms=('computed_torque',), **gains))


@pytest.mark.parametrize(('hertz', 'kp', 'kd', 'is_stable'), [
    (1000, 1e6, 2e3, False), (1000, 1e4, 200, True), (50, 1e4, 200, False), (50, 987.0, 62.8, True),
    (50, 0.0, 5.0, True), (50, 0.0, 0.0, True),
])  # fmt: skip
def test_gains_are_judged_at_the_measured_rate(hertz, kp, kd, is_stable):
    loop = Harness(terms=('computed_torque',))
    steps(loop, hertz, 1 / hertz)
    before = loop.controller.settings
    outputs = loop.step(dt=1 / hertz, settings=before.replace(gains_kp=kp, gains_kd=kd))
    assert (outputs.refused == []) == is_stable
    assert (loop.controller.settings == before) == (not is_stable)


def test_enable_is_refused_with_gains_that_the_rate_makes_unstable():
    loop = Harness(terms=('computed_torque',), gains_bandwidth=200.0)
    steps(loop, 50, 0.02)
    outputs = loop.step(dt=0.02, enable=True)
    assert outputs.mode is Mode.DISABLED
    assert 'unstable with states at 50 Hz' in outputs.refused[0]


def test_slow_states_do_not_refuse_a_change_of_other_parameters():
    loop = Harness(terms=('computed_torque', 'damping'), gains_bandwidth=200.0)
    steps(loop, 50, 0.02)
    before = loop.controller.settings
    outputs = loop.step(dt=0.02, settings=before.replace(damping=2.0))
    assert outputs.refused == []
    assert loop.controller.settings.damping == 2.0
    outputs = loop.step(dt=0.02, settings=before.replace(gains_bandwidth=190.0))
    assert 'unstable with states at 50 Hz' in outputs.refused[0]


@pytest.mark.parametrize('share', [0.5, 2.0])
def test_the_boundary_of_stable_gains_is_that_of_a_sampled_loop(share):
    w = share * 0.647 / (0.75 * 0.02)  # the bandwidth with a margin of 0.75 periods at 50 Hz
    kp, kd_ = np.full(2, w**2), np.full(2, 2 * w)
    is_stable = gains_problem(PLANAR, kp, kd_, 50.0) is None
    assert is_stable == (share < 1)
    loop = closed_loop('pinocchio', 'planar_2r', friction=False, terms=('computed_torque',))
    loop.controller.terms[0].kp, loop.controller.terms[0].kd = kp, kd_
    loop.plant.reset(loop.q, np.array([0.02, -0.02]))
    steps(loop, 100, 0.02)
    assert (np.abs(loop.v).max() < 1e-3) == is_stable


def late_loop(delay, **settings):
    """A planar_2r that is enabled with states of this age [s]."""
    loop = Harness(terms=('computed_torque',), **settings)
    loop.step(enable=True)
    for _ in range(1000):
        loop.step([loop.sample(stamp=loop.clock + PERIOD - delay)])
    return loop


@pytest.mark.parametrize(('delay', 'fault'), [(0.0, None), (0.015, None), (0.025, 'delay'), (0.09, 'delay')])
def test_states_that_are_too_old_for_the_gains_are_a_fault(delay, fault):
    loop = late_loop(delay)
    assert loop.fault == fault
    if fault:
        assert 'the delay margin of the gains is 20.6 ms' in loop.outputs.fault.reason


def test_lower_gains_bear_older_states():
    assert late_loop(0.04, gains_bandwidth=5.0).fault is None


def test_a_warning_comes_before_the_fault():
    loop = Harness(terms=('computed_torque',))
    loop.step(enable=True)
    warned = []
    while loop.fault is None:
        loop.step([loop.sample(stamp=loop.clock + PERIOD - 0.03)])
        warned.append(loop.outputs.warning)
    assert sum(map(bool, warned)) == pytest.approx(0.5 / PERIOD, abs=2)
    assert 'lower gains.bandwidth' in warned[-1]
