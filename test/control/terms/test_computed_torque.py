"""Computed torque: error dynamics, angles of continuous joints, feed-forward, gains."""

import numpy as np
import pytest
from harness import robot_named, term_inputs
from tools import states

from krang_dynamics import KrangError
from krang_dynamics.control.settings import Settings
from krang_dynamics.control.terms.computed_torque import ComputedTorque, gains


def test_computed_torque_makes_the_error_obey_its_gains():
    """e'' + Kd e' + Kp e = 0, in any state: the forward dynamics are cancelled."""
    robot = robot_named('krang')
    q, v, q_d = states(1, 17)[:, 0]
    v_d, a_d = 0.1 * q_d, 0.2 * q_d
    kp, kd_ = np.linspace(10, 100, 17), np.linspace(5, 20, 17)
    torque = ComputedTorque(robot, kp, kd_, with_gravity=True).torque(term_inputs(robot, q, v, q_d, v_d, a_d))
    a = robot.forward_dynamics(q, v, torque)
    np.testing.assert_allclose(a, a_d + kd_ * (v_d - v) + kp * (q_d - q), rtol=1e-7, atol=1e-7)


def test_a_continuous_joint_goes_the_short_way_round():
    robot = robot_named('otbot')
    q, q_d = np.zeros(6), np.zeros(6)
    q[5], q_d[5] = 3.0, -3.0
    ones = np.ones(6)
    state = term_inputs(robot, q, 0 * q, q_d, 0 * q)
    torque = ComputedTorque(robot, ones, ones, with_gravity=True).torque(state)
    assert robot.mass_matrix(q)[5] @ np.linalg.solve(robot.mass_matrix(q), torque) > 0


def test_feed_forward_effort_is_added():
    robot = robot_named('planar_2r')
    ones = np.ones(2)
    plain, pushed = (
        ComputedTorque(robot, ones, ones, True).torque(term_inputs(robot, robot.home, 0 * ones, effort_d=x))
        for x in (0 * ones, ones)
    )
    np.testing.assert_allclose(pushed - plain, ones)


@pytest.mark.parametrize(
    'given',
    [
        {'gains_kp': 1.0},
        {'gains_kp': -1.0, 'gains_kd': 1.0},
        {'gains_bandwidth': np.nan},
        {'gains_kp': np.ones(3), 'gains_kd': np.ones(3)},
    ],
)
def test_impossible_gains_are_refused(given):
    with pytest.raises(KrangError, match='gains'):
        gains(robot_named('planar_2r'), Settings(**given))


def test_gains_come_from_the_bandwidth_and_damping_ratio_or_are_given_per_joint():
    robot = robot_named('planar_2r')
    np.testing.assert_array_equal(
        gains(robot, Settings(gains_bandwidth=3.0, gains_damping_ratio=0.5)), [[9.0, 9.0], [3.0, 3.0]]
    )
    np.testing.assert_array_equal(
        gains(robot, Settings(gains_kp=[9.0, 16.0], gains_kd=2.0)), [[9.0, 16.0], [2.0, 2.0]]
    )


# -- P16: joints that are not commanded ----------------------------------------------------------------


def term_of(name, **settings):
    return ComputedTorque.from_settings(robot_named(name), Settings(terms=('computed_torque',), **settings))


@pytest.mark.parametrize('offset', [0.01, 0.5])
def test_p16_a_joint_that_others_hold_causes_no_feedback(offset):
    robot = robot_named('krang')
    term, v = term_of('krang'), np.zeros(17)
    q = robot.home
    reference = q + offset * np.eye(17)[0]  # base_pitch is not commanded while the wheels are free
    torque = term.torque(term_inputs(robot, q, v, reference, v))
    np.testing.assert_allclose(torque[1:], robot.gravity_torque(q)[1:], rtol=1e-12)
    assert torque[0] == 0


def test_p16_a_moving_joint_that_others_hold_enters_with_its_measured_motion_only():
    robot = robot_named('krang')
    q, v = robot.home, 0.3 * np.eye(17)[0]
    torque = term_of('krang').torque(term_inputs(robot, q, v, q, 0 * v))
    expected = robot.inverse_dynamics(q, v, np.zeros(17))
    np.testing.assert_allclose(torque[1:], expected[1:], rtol=1e-12)


def test_p16_the_passive_joint_of_the_pendubot_is_eliminated():
    """The arm gets the wanted acceleration whatever the pendulum does, whose error does not matter."""
    robot = robot_named('pendubot')
    q, v = np.array([0.2, 0.7]), np.array([0.5, -1.5])
    q_d, v_d, a_d = np.array([0.3, 9.0]), np.array([0.1, 4.0]), np.array([2.0, -7.0])
    term = term_of('pendubot', gains_kp=30.0, gains_kd=8.0)
    torque = term.torque(term_inputs(robot, q, v, q_d, v_d, a_d))
    a = robot.forward_dynamics(q, v, torque[:1] + robot.friction_torque(v)[:1], friction=True)
    assert a[0] == pytest.approx(2.0 + 8.0 * (0.1 - 0.5) + 30.0 * (0.3 - 0.2), rel=1e-9)
    assert torque[1] == 0


def test_p16_rolling_robots_are_refused():
    with pytest.raises(KrangError, match='rolling_base'):
        term_of('otbot')
