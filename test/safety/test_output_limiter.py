"""The single exit: P1 before P2 before P3."""

from dataclasses import replace

import numpy as np
import pytest
from harness import robot_named

from krang_dynamics.safety.limits import Limits
from krang_dynamics.safety.output_limiter import OutputLimiter

DT = 0.01  # s
ROBOT = robot_named('planar_2r')


@pytest.fixture
def limits():
    return Limits.of(ROBOT)


@pytest.fixture
def limiter(limits):
    return OutputLimiter(limits, np.ones(2))


def adopt(limits, **changes):
    limits.adopt(replace(limits, **{name: np.array(value) for name, value in changes.items()}))


def send(limiter, limits, torque, times=1):
    for _ in range(times):
        command, limited = limiter.limit(np.array(torque), DT, limits.effort_rate)
    return command.tolist(), limited


def test_the_first_command_is_the_given_torque_within_the_limit(limiter):
    assert limiter.start(np.array([30.0, -80.0])).tolist() == [30.0, -50.0]


@pytest.mark.parametrize('invalid', [np.nan, np.inf, -np.inf])
def test_the_first_command_is_zero_where_nothing_is_measured(limiter, invalid):
    assert limiter.start(np.array([invalid, 5.0])).tolist() == [0.0, 5.0]


def test_torque_follows_at_the_rate_and_is_reported_as_limited(limiter, limits):
    assert send(limiter, limits, [100.0, 0.0]) == ([10.0, 0.0], True)
    assert send(limiter, limits, [15.0, 0.0]) == ([15.0, 0.0], False)


def test_torque_stays_within_the_limit(limiter, limits):
    assert send(limiter, limits, [1e100, -1e100], times=50) == ([100.0, -50.0], True)


@pytest.mark.parametrize('invalid', [np.nan, np.inf, -np.inf])
def test_a_torque_that_is_not_finite_leaves_the_last_command(limiter, limits, invalid):
    limiter.start(np.array([30.0, 10.0]))
    assert send(limiter, limits, [invalid, 12.0])[0] == [30.0, 12.0]


def test_in_no_time_nothing_changes(limiter, limits):
    limiter.start(np.array([30.0, 10.0]))
    assert limiter.limit(np.zeros(2), 0.0, limits.effort_rate)[0].tolist() == [30.0, 10.0]


def test_a_joint_that_is_not_commanded_gets_nothing(limits):
    limiter = OutputLimiter(limits, np.array([1.0, 0.0]))
    assert limiter.start(np.array([30.0, 30.0])).tolist() == [30.0, 0.0]
    assert send(limiter, limits, [30.0, 30.0])[0] == [30.0, 0.0]


def test_a_lowered_limit_is_reached_at_the_stop_rate(limiter, limits):
    limiter.start(np.array([90.0, -40.0]))
    adopt(limits, effort=[50.0, 50.0])
    path = [send(limiter, limits, [90.0, -40.0])[0] for _ in range(6)]
    assert path == [[80.0, -40.0], [70.0, -40.0], [60.0, -40.0], *3 * [[50.0, -40.0]]]


def test_a_lowered_limit_applies_at_once_to_a_torque_below_it(limiter, limits):
    limiter.start(np.array([49.0, 0.0]))
    adopt(limits, effort=[50.0, 50.0])
    assert send(limiter, limits, [90.0, 0.0])[0] == [50.0, 0.0]


def test_a_torque_may_fall_to_a_lowered_limit_faster_than_the_stop_rate(limiter, limits):
    limiter.start(np.array([90.0, 0.0]))
    adopt(limits, effort=[50.0, 50.0], effort_rate=[5000.0, 500.0])
    assert send(limiter, limits, [30.0, 0.0])[0] == [40.0, 0.0]


def test_a_raised_limit_applies_at_once(limiter, limits):
    adopt(limits, effort=[5.0, 5.0])
    send(limiter, limits, [90.0, 0.0], times=3)
    adopt(limits, effort=[100.0, 50.0])
    assert send(limiter, limits, [90.0, 0.0])[0] == [15.0, 0.0]


def test_a_command_is_read_only(limiter, limits):
    command, _ = limiter.limit(np.ones(2), DT, limits.effort_rate)
    with pytest.raises(ValueError, match='read-only'):
        command[0] = 99.0
