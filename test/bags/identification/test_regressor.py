"""tau = Y theta compared with the inverse dynamics of the robot."""

import numpy as np
import pytest
from tools import assert_close

import krang_dynamics as kd
from krang_dynamics.bags.identification.regressor import Regressor, Unknowns, random_motion


@pytest.mark.parametrize('name', ['krang', 'krang_exact_sign', 'pendubot', 'anthropomorphic'])
def test_the_prior_gives_the_torque_of_the_description(name):
    robot = kd.load_robot(name)
    driven = np.isin(robot.joint_names, robot.actuated_joint_names)
    regressor = Regressor(robot, Unknowns(robot.friction.sign or 'exact'), np.ones(robot.nv, bool), driven)
    motion = random_motion(robot, 5)
    expected = [
        robot.inverse_dynamics(*state, friction=True)
        for state in zip(motion.q, motion.v, motion.a, strict=True)
    ]
    assert_close(regressor.matrix(motion) @ regressor.prior, expected)


def test_random_motions_of_a_rolling_robot_do_not_slip():
    robot = kd.load_robot('otbot')
    motion = random_motion(robot, 5)
    for q, v, a in zip(motion.q, motion.v, motion.a, strict=True):
        J = robot.constraint_jacobian(q)
        np.testing.assert_allclose(J @ v, 0, atol=1e-12)
        np.testing.assert_allclose(J @ a + robot.constraint_bias(q, v), 0, atol=1e-12)


def test_friction_may_depend_on_direction():
    robot = kd.load_robot('planar_2r')
    every = np.ones(2, bool)
    regressor = Regressor(robot, Unknowns('exact', asymmetric=True), every, every)
    assert not any(name.endswith('offset') for name in regressor.names)
    motion = random_motion(robot, 20)
    theta = np.zeros(len(regressor.names))
    theta[regressor.names.index('joint_2.coulomb_forward')] = 3.0
    theta[regressor.names.index('joint_2.coulomb_backward')] = 2.0
    torque = regressor.matrix(motion) @ theta
    np.testing.assert_array_equal(torque[:, 1], np.where(motion.v[:, 1] > 0, 3.0, -2.0))
    assert not torque[:, 0].any()


def test_locked_and_passive_joints_have_no_motor_parameters():
    robot = kd.load_robot('pendubot')
    names = Regressor(robot, Unknowns(), np.array([True, True]), np.array([True, False])).names
    assert 'arm.rotor' in names
    assert 'pendulum.viscous' in names
    assert 'pendulum.rotor' not in names
    names = Regressor(robot, Unknowns(), np.array([True, False]), np.array([True, False])).names
    assert 'pendulum.viscous' not in names


def test_equations_of_a_rolling_robot_are_those_of_its_motors():
    robot = kd.load_robot('otbot')
    driven = np.isin(robot.joint_names, robot.actuated_joint_names)
    regressor = Regressor(robot, Unknowns(robot.friction.sign or 'exact'), np.ones(6, bool), driven)
    motion = random_motion(robot, 4)
    torque = regressor.matrix(motion) @ regressor.prior
    states = zip(motion.q, motion.v, motion.a, strict=True)
    assert_close(torque[:, driven], [robot.motor_torque(*state, friction=True) for state in states])
