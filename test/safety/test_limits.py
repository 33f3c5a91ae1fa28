"""The limits in force: where they come from, and how other limits replace them."""

import numpy as np
import pytest
from harness import robot_named

import krang_dynamics as kd
from krang_dynamics.control.builder import limits_of
from krang_dynamics.control.settings import Settings
from krang_dynamics.errors import InputError
from krang_dynamics.safety.limits import LIMITS, OVERSPEED, RATE, Limits, default_rate

ROBOT = robot_named('planar_2r')


def limits(**settings):
    """The limits of the two-link arm with these settings."""
    return limits_of(Settings(**settings), ROBOT, ROBOT.joint_names)


def test_defaults_are_the_nominal_torque_and_ten_times_that_per_second():
    default = Limits.of(ROBOT)
    assert default.effort.tolist() == [100.0, 50.0]
    assert default.effort_rate.tolist() == (RATE * default.effort).tolist()
    assert default.stop_rate.tolist() == (RATE * default.effort).tolist()
    assert default.velocity.tolist() == (OVERSPEED * ROBOT.velocity_limits).tolist()
    assert default.position_margin.tolist() == [0.0, 0.0]
    assert default.following_error is None


@pytest.mark.parametrize('name', kd.robots())
def test_no_default_is_above_the_urdf(name):
    default = Limits.of(robot_named(name))
    assert (default.effort <= default.peak).all()


def test_a_joint_without_an_effort_limit_is_refused_by_name():
    urdf = ROBOT.urdf.text.decode().replace('effort="50"', '')
    assert 'effort="100"' in urdf
    with pytest.raises(kd.KrangError, match='joint_2'):
        Limits.of(kd.load_robot(urdf))


def test_the_rate_of_the_robot_file_takes_precedence():
    pendubot = robot_named('pendubot')
    assert default_rate(pendubot, np.array([1.0, 0.0]))[0] == 310.0
    assert default_rate(ROBOT, np.array([3.0, 4.0])).tolist() == [30.0, 40.0]


def test_effort_is_never_above_the_urdf():
    assert limits(limits_effort=[1e6, 20.0]).effort.tolist() == [100.0, 20.0]


@pytest.mark.parametrize('value', [[-1.0, 1.0], [np.nan, 1.0], [np.inf, 1.0], [1.0], 'much'])
def test_an_impossible_limit_is_refused(value):
    with pytest.raises(InputError, match=r'limits\.effort'):
        limits(limits_effort=value)


@pytest.mark.parametrize('name', ['stop_rate', 'peak', 'torque'])
def test_there_are_no_other_limits(name):
    with pytest.raises(InputError, match=name):
        Settings(**{f'limits.{name}': [1.0, 1.0]})


def test_a_caller_that_changes_its_array_does_not_change_the_limit():
    mine = np.array([10.0, 10.0])
    settings = Settings(limits_effort=mine, limits_velocity=mine)
    mine[:] = 90.0
    given = limits_of(settings, ROBOT, ROBOT.joint_names)
    assert given.effort.tolist() == given.velocity.tolist() == [10.0, 10.0]


def test_adopted_limits_are_all_taken_and_equal_arrays_stay_the_same_objects():
    """The output limiter recognises a change of the effort limit by identity."""
    old = limits()
    before = {name: getattr(old, name) for name in LIMITS}
    new = limits(limits_effort=[20.0, 10.0], limits_effort_rate=[1000.0, 500.0], limits_following_error=0.1)
    old.adopt(new)
    np.testing.assert_equal(vars(old), vars(new))
    kept = {name for name in LIMITS if getattr(old, name) is before[name]}
    assert kept == {'effort_rate', 'velocity', 'position_margin'}
