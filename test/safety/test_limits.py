"""The limits in force: where they come from, and how they may change."""

import numpy as np
import pytest
from safety.feeding import robot_named

from krang_dynamics.errors import InputError
from krang_dynamics.safety.limits import OVERSPEED, RATE, Limits


@pytest.fixture
def robot():
    return robot_named('planar_2r')


@pytest.fixture
def limits(robot):
    return Limits.of(robot)


def test_defaults_are_the_nominal_torque_and_ten_of_it_per_second(robot, limits):
    assert limits.effort.tolist() == [100.0, 50.0]
    assert limits.effort_rate.tolist() == (RATE * limits.effort).tolist()
    assert limits.stop_rate.tolist() == (RATE * limits.effort).tolist()
    assert limits.velocity.tolist() == (OVERSPEED * robot.velocity_limits).tolist()


@pytest.mark.parametrize('name', ['krang', 'otbot', 'pendubot', 'anthropomorphic'])
def test_no_default_is_above_the_urdf(name):
    limits = Limits.of(robot_named(name))
    assert (limits.effort <= limits.peak).all()


def test_effort_is_never_set_above_the_urdf(robot, limits):
    limits.set(robot, effort=[1e6, 20.0])
    assert limits.effort.tolist() == [100.0, 20.0]


@pytest.mark.parametrize('value', [[-1.0, 1.0], [np.nan, 1.0], [np.inf, 1.0], [1.0], 'much', None])
def test_a_limit_that_cannot_be_is_refused(robot, limits, value):
    with pytest.raises(InputError, match=r'limits\.effort'):
        limits.set(robot, effort=value)


def test_changes_are_made_together_or_not_at_all(robot, limits):
    with pytest.raises(InputError):
        limits.set(robot, effort=[1.0, 1.0], velocity=[-1.0, 1.0])
    assert limits.effort.tolist() == [100.0, 50.0]


@pytest.mark.parametrize('name', ['stop_rate', 'peak', 'torque'])
def test_what_is_not_live_cannot_be_set(robot, limits, name):
    with pytest.raises(InputError, match=name):
        limits.set(robot, **{name: [1.0, 1.0]})


def test_a_caller_who_keeps_the_array_cannot_change_the_limit_later(robot, limits):
    mine = np.array([10.0, 10.0])
    limits.set(robot, effort=mine, velocity=mine)
    mine[:] = 90.0
    assert limits.effort.tolist() == limits.velocity.tolist() == [10.0, 10.0]
