"""The disturbed robot of a run: what is an excuse for a robot that is too fast, and what is not."""

from dataclasses import replace

import numpy as np
import pytest
from harness import robot_named

from krang_dynamics.control.drivers import drivers_of
from krang_dynamics.scenarios.campaign.campaign_plan import NAMES, Conditions, load_plan
from krang_dynamics.scenarios.campaign.campaign_robot import DisturbedRobot


def body_with(name='planar_2r', **values):
    robot = robot_named(name)
    drivers = drivers_of(load_plan(robot).settings, robot)
    return DisturbedRobot(robot, drivers, Conditions(3, values), 9.0, robot.home)


def test_only_drivers_and_frozen_sensors_are_beyond_control():
    found = set()
    for name in NAMES:
        body = body_with(**{name: 0.01})
        if body.beyond(body.begin + 0.005):
            found.add(name)
    assert found == {'wrong_sign', 'dead_driver', 'weak_driver', 'frozen_sensor'}


@pytest.mark.parametrize(('share', 'cause'), [(0.99, 'weak_driver'), (1.01, '')])
def test_a_weak_driver_is_an_excuse_only_below_gravity(share, cause):
    body = body_with(weak_driver=1.0)
    weak = body._weak
    needed = abs(body.true.gravity_torque(body.start)[weak])
    relative = share * needed / body.robot.effort_limits[weak]
    body.conditions = replace(body.conditions, values={'weak_driver': relative})
    body._set_drivers()
    assert body.beyond(body.begin) == cause


def test_a_frozen_sensor_is_no_excuse_afterwards():
    body = body_with(frozen_sensor=0.5)
    assert not body.beyond(body.begin - 0.01)
    assert body.beyond(body.begin + 0.49) == 'frozen_sensor'
    assert not body.beyond(body.begin + 0.51)


def test_a_robot_that_balances_starts_beside_its_equilibrium():
    """Exactly upright, it would stay there without a controller."""
    tilt = abs(body_with('pendubot').start - robot_named('pendubot').home)
    assert 0 < tilt.min() < tilt.max() < 0.02


def test_torque_noise_does_not_throw_a_light_joint():
    """5 % of the effort limit would accelerate the last joint of the wrist by 100 rad/s2."""
    body = body_with('anthropomorphic', torque_noise=0.05)
    inertia = np.diag(body.robot.mass_matrix(body.start))
    body.receive(np.zeros(6))
    torques = np.array([body._motor_torque(4e-3) for _ in range(2000)])
    accelerations = torques.std(axis=0) / inertia
    assert accelerations.max() == pytest.approx(10.0, rel=0.1)
    assert torques.std(axis=0)[0] == pytest.approx(0.05 * body.robot.effort_limits[0], rel=0.1)
