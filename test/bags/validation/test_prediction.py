"""Torques along motions compared with single-state functions of the robot."""

import numpy as np
import pytest
from bags.bagging import motion
from tools import assert_close

import krang_dynamics as kd
from krang_dynamics.bags.validation.filtering import FilteredMotion
from krang_dynamics.bags.validation.prediction import LEVELS, Predictor


@pytest.mark.parametrize('name', ['krang', 'pendubot', 'anthropomorphic'])
def test_levels_are_the_robots_own_functions(name):
    robot, bare = kd.load_robot(name), kd.load_robot(name, rotor_inertia=False)
    t, q, v, a = motion(robot, 0.5, rate=20)
    predictor = Predictor(robot)
    levels = predictor.torques(FilteredMotion(t, t.astype(int), q, v, a, q))
    assert tuple(levels) == LEVELS
    states = list(zip(q, v, a, strict=True))
    assert_close(levels['gravity'], [robot.gravity_torque(x) for x in q])
    assert_close(levels['inverse_dynamics'], [bare.inverse_dynamics(*state) for state in states])
    assert_close(levels['rotor'], [robot.inverse_dynamics(*state) for state in states])
    assert_close(levels['friction'], [robot.inverse_dynamics(*state, friction=True) for state in states])
    predictor._pool = None  # as with a Pinocchio without rneaInParallel
    again = predictor.torques(FilteredMotion(t, t.astype(int), q, v, a, q))
    assert all(np.array_equal(again[level], levels[level]) for level in LEVELS)


def test_a_rolling_robot_is_compared_at_its_motors():
    robot = kd.load_robot('otbot')
    random = np.random.default_rng(2)
    q, v = random.uniform(-1, 1, (2, 5, 6))
    u = random.uniform(-5, 5, (5, 3))
    for k, x in enumerate(q):
        J = robot.constraint_jacobian(x)
        v[k] -= np.linalg.pinv(J) @ (J @ v[k])
    a = np.array([robot.forward_dynamics(*state, friction=True) for state in zip(q, v, u, strict=True)])
    t = np.arange(5.0)
    torque = Predictor(robot).torques(FilteredMotion(t, t.astype(int), q, v, a, q))['friction']
    assert_close(torque, u @ robot.actuation_matrix().T)
