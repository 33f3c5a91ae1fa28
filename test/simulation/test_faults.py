"""Faults of sensors: each has its effect and no other."""

import numpy as np
import pytest

import krang_dynamics as kd
from krang_dynamics.errors import InputError
from krang_dynamics.simulation.faults import Faults, Measurement, SensorModel

ROBOT = kd.load_robot('planar_2r')
PERIOD = 1e-3  # [s]


def at(time):
    """A true state that is different at every time."""
    x = np.array([time, -2 * time])
    return Measurement(time, 0.1 + x, 0.2 + x, 0.3 + x)


def measured(count=1000, sensors=None, begin=0, **faults):
    sensors = sensors or SensorModel(ROBOT)
    sensors.faults = Faults(**faults)
    return [sensors.measure(at(k * PERIOD)) for k in range(begin, begin + count)]


def errors(measurements, name):
    return np.array([getattr(m, name) - getattr(at(m.time), name) for m in measurements])


def assert_true(measurements):
    for name in ('q', 'v', 'effort'):
        assert not errors(measurements, name).any()


def test_without_faults_every_state_arrives_as_it_is():
    assert_true(measured())


@pytest.mark.parametrize(
    ('fault', 'name'), [('position_noise', 'q'), ('velocity_noise', 'v'), ('effort_noise', 'effort')]
)
def test_noise_has_its_deviation_no_mean_and_no_memory(fault, name):
    noise = errors(measured(20000, **{fault: 0.01}), name)
    assert noise.std(axis=0) == pytest.approx([0.01, 0.01], rel=0.03)
    assert np.abs(noise.mean(axis=0)).max() < 4 * 0.01 / np.sqrt(20000)
    x, y = noise.T
    for a, b in ((x, y), (x[1:], x[:-1]), (y[1:], y[:-1])):
        assert abs(np.corrcoef(a, b)[0, 1]) < 4 / np.sqrt(20000)
    assert np.mean(np.abs(noise) < 0.01) == pytest.approx(0.683, abs=0.02)  # normal, not uniform
    others = {'q', 'v', 'effort'} - {name}
    assert not any(errors(measured(50, **{fault: 0.01}), other).any() for other in others)


def test_randomness_is_the_same_at_every_run_and_after_a_restart():
    faults = {'position_noise': 0.1, 'velocity_noise': 0.1, 'lost': 0.3}
    sensors = SensorModel(ROBOT)
    first, other = measured(sensors=sensors, **faults), measured(**faults)
    again = measured(sensors=sensors, **faults)
    sensors.restart()
    restarted = measured(sensors=sensors, **faults)

    def numbers(run):
        return [None if m is None else (m.time, *m.q, *m.v) for m in run]

    assert numbers(first) == numbers(other) == numbers(restarted)
    assert numbers(first) != numbers(again)


def test_positions_come_in_steps():
    run = measured(quantisation=0.01)
    steps = np.array([m.q for m in run]) / 0.01
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-9)
    assert np.abs(errors(run, 'q')).max() == pytest.approx(0.005, rel=0.1)
    assert not errors(run, 'v').any()


def test_a_delay_shifts_states_with_their_stamps():
    run = measured(delay=0.02)
    assert run[:20] == [None] * 20
    assert [m.time for m in run[20:]] == pytest.approx([k * PERIOD for k in range(980)])
    assert_true(run[20:])


def test_a_delay_that_ends_brings_the_newest_and_nothing_old_after_it():
    sensors = SensorModel(ROBOT)
    measured(100, sensors, delay=0.02)
    run = measured(100, sensors, begin=100)
    assert [m.time for m in run] == pytest.approx([k * PERIOD for k in range(100, 200)])


def test_states_are_lost_at_random_and_the_rest_is_true():
    run = measured(10000, lost=0.3)
    came = np.array([m is not None for m in run])
    assert came.mean() == pytest.approx(0.7, abs=0.02)
    assert np.mean(came[1:] & came[:-1]) == pytest.approx(0.49, abs=0.03)
    assert_true([m for m in run if m])
    assert not any(measured(100, lost=1.0))


def test_a_frozen_sensor_repeats_its_last_value():
    sensors = SensorModel(ROBOT)
    measured(10, sensors)
    run = measured(10, sensors, begin=10, frozen=('joint_1',))
    assert {(m.q[0], m.v[0]) for m in run} == {(at(0.01).q[0], at(0.01).v[0])}
    assert not errors(run, 'q')[:, 1].any()
    assert not errors(run, 'effort').any()
    assert_true(measured(10, sensors, begin=20))
    run = measured(10, sensors, begin=30, frozen=('joint_1',))
    assert run[-1].q[0] == at(0.03).q[0]


def test_a_broken_sensor_gives_nan():
    for m in measured(10, nan=('joint_2',)):
        assert np.isnan(m.q).tolist() == np.isnan(m.v).tolist() == [False, True]
        assert np.isfinite(m.effort).all()


def test_the_true_state_is_left_alone():
    true = at(1.0)
    sensors = SensorModel(ROBOT, Faults(position_noise=1, velocity_noise=1, effort_noise=1, nan=('joint_1',)))
    sensors.measure(true)
    assert_true([true])


@pytest.mark.parametrize(
    ('faults', 'words'),
    [
        ({'frozen': ('joint_3',)}, "unknown joint 'joint_3'; did you mean"),
        ({'nan': ('tip',)}, "unknown joint 'tip'"),
        ({'dead_drivers': ('joint_9',)}, "unknown driver 'joint_9'"),
        ({'lost': 1.5}, 'lost is 1.5'),
    ],
)
def test_what_cannot_be_meant_is_refused(faults, words):
    with pytest.raises(InputError, match=words):
        Faults(**faults).check(ROBOT, ('joint_1', 'joint_2'))
