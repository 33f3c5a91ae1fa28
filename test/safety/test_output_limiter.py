"""The single exit by itself: P1 before P2 before P3."""

import numpy as np
import pytest
from safety.feeding import robot_named

from krang_dynamics.safety.limits import Limits
from krang_dynamics.safety.output_limiter import OutputLimiter

DT = 0.01  # s
ROBOT = robot_named('planar_2r')


@pytest.fixture
def limits():
    return Limits.of(ROBOT)


@pytest.fixture
def release(limits):
    return OutputLimiter(limits, np.ones(2))


def let_out(release, limits, torque, times=1):
    for _ in range(times):
        command, limited = release.release(np.array(torque), DT, limits.effort_rate)
    return command.tolist(), limited


def test_it_starts_at_the_torque_given_within_the_limit(release):
    assert release.start(np.array([30.0, -80.0])).tolist() == [30.0, -50.0]


@pytest.mark.parametrize('rubbish', [np.nan, np.inf, -np.inf])
def test_it_starts_at_zero_where_nothing_is_measured(release, rubbish):
    assert release.start(np.array([rubbish, 5.0])).tolist() == [0.0, 5.0]


def test_it_goes_by_the_rate_and_says_so(release, limits):
    assert let_out(release, limits, [100.0, 0.0]) == ([10.0, 0.0], True)
    assert let_out(release, limits, [15.0, 0.0]) == ([15.0, 0.0], False)


def test_it_stays_within_the_limit(release, limits):
    assert let_out(release, limits, [1e100, -1e100], times=50) == ([100.0, -50.0], True)


@pytest.mark.parametrize('rubbish', [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_leaves_the_last_command(release, limits, rubbish):
    release.start(np.array([30.0, 10.0]))
    assert let_out(release, limits, [rubbish, 12.0])[0] == [30.0, 12.0]


def test_without_time_nothing_changes(release, limits):
    release.start(np.array([30.0, 10.0]))
    assert release.release(np.zeros(2), 0.0, limits.effort_rate)[0].tolist() == [30.0, 10.0]


def test_a_joint_that_is_not_commanded_gets_nothing(limits):
    release = OutputLimiter(limits, np.array([1.0, 0.0]))
    assert release.start(np.array([30.0, 30.0])).tolist() == [30.0, 0.0]
    assert let_out(release, limits, [30.0, 30.0])[0] == [30.0, 0.0]


def test_a_lowered_limit_is_reached_at_the_stop_rate(release, limits):
    release.start(np.array([90.0, -40.0]))
    limits.set(ROBOT, effort=[50.0, 50.0])
    path = [let_out(release, limits, [90.0, -40.0])[0] for _ in range(6)]
    assert path == [[80.0, -40.0], [70.0, -40.0], [60.0, -40.0], *3 * [[50.0, -40.0]]]


def test_a_lowered_limit_holds_at_once_for_a_torque_below_it(release, limits):
    release.start(np.array([49.0, 0.0]))
    limits.set(ROBOT, effort=[50.0, 50.0])
    assert let_out(release, limits, [90.0, 0.0])[0] == [50.0, 0.0]


def test_a_lowered_limit_does_not_hinder_a_torque_that_falls_faster(release, limits):
    release.start(np.array([90.0, 0.0]))
    limits.set(ROBOT, effort=[50.0, 50.0], effort_rate=[5000.0, 500.0])
    assert let_out(release, limits, [30.0, 0.0])[0] == [40.0, 0.0]


def test_a_raised_limit_is_there_at_once(release, limits):
    limits.set(ROBOT, effort=[5.0, 5.0])
    let_out(release, limits, [90.0, 0.0], times=3)
    limits.set(ROBOT, effort=[100.0, 50.0])
    assert let_out(release, limits, [90.0, 0.0])[0] == [15.0, 0.0]


def test_what_was_handed_out_belongs_to_nobody(release, limits):
    command, _ = release.release(np.ones(2), DT, limits.effort_rate)
    with pytest.raises(ValueError, match='read-only'):
        command[0] = 99.0
