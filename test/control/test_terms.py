"""The smaller terms, and their sum."""

import numpy as np
import pytest
from moments import moment
from tools import states

import krang_dynamics as kd
from krang_dynamics import KrangError
from krang_dynamics.control.settings import Settings, commanded_joints
from krang_dynamics.control.sum import build_terms
from krang_dynamics.control.terms.computed_torque import ComputedTorque
from krang_dynamics.control.terms.damping import Damping
from krang_dynamics.control.terms.friction_compensation import Friction
from krang_dynamics.control.terms.gravity_compensation import Gravity
from krang_dynamics.control.terms.joint_limits import ZONE, JointLimits
from krang_dynamics.control.terms.rolling_base import RollingBase


def test_gravity_is_left_to_the_hardware_where_it_compensates_it():
    robot = kd.load_robot('krang')
    now = moment(robot, robot.home, np.zeros(17))
    np.testing.assert_allclose(Gravity().torque(now), robot.gravity_torque(robot.home), atol=1e-12)
    assert not Gravity(hardware_compensates=True).torque(now).any()


def test_computed_torque_makes_the_error_obey_its_gains():
    """e'' + Kd e' + Kp e = 0, whatever the state: the forward dynamics are cancelled."""
    robot = kd.load_robot('krang')
    q, v, q_d = states(1, 17)[:, 0]
    v_d, a_d = 0.1 * q_d, 0.2 * q_d
    kp, kd_ = np.linspace(10, 100, 17), np.linspace(5, 20, 17)
    torque = ComputedTorque(robot, kp, kd_, with_gravity=True).torque(moment(robot, q, v, q_d, v_d, a_d))
    a = robot.forward_dynamics(q, v, torque)
    np.testing.assert_allclose(a, a_d + kd_ * (v_d - v) + kp * (q_d - q), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(
    'terms', [('computed_torque',), ('gravity', 'computed_torque'), ('computed_torque', 'gravity')]
)
def test_gravity_counts_once(terms):
    robot = kd.load_robot('krang')
    now = moment(robot, robot.home, np.zeros(17))
    total = sum(term.torque(now) for term in build_terms(robot, Settings(terms)))
    np.testing.assert_allclose(total, robot.gravity_torque(robot.home), atol=1e-12)


def test_gravity_does_not_count_where_the_hardware_compensates_it():
    robot = kd.load_robot('krang')
    now = moment(robot, robot.home, np.zeros(17))
    for terms in (('computed_torque',), ('gravity', 'computed_torque')):
        settings = Settings(terms, hardware_compensates_gravity=True)
        assert np.abs(sum(term.torque(now) for term in build_terms(robot, settings))).max() < 1e-12


def test_a_continuous_joint_goes_the_short_way_round():
    robot = kd.load_robot('otbot')
    q, q_d = np.zeros(6), np.zeros(6)
    q[5], q_d[5] = 3.0, -3.0
    ones = np.ones(6)
    torque = ComputedTorque(robot, ones, ones, with_gravity=True).torque(moment(robot, q, 0 * q, q_d, 0 * q))
    assert robot.mass_matrix(q)[5] @ np.linalg.solve(robot.mass_matrix(q), torque) > 0


def test_feed_forward_effort_is_added():
    robot = kd.load_robot('planar_2r')
    ones = np.ones(2)
    plain, pushed = (
        ComputedTorque(robot, ones, ones, True).torque(moment(robot, robot.home, 0 * ones, effort_d=x))
        for x in (0 * ones, ones)
    )
    np.testing.assert_allclose(pushed - plain, ones)


@pytest.mark.parametrize('name', ['krang', 'krang_exact_sign'])
def test_friction_compensation_is_smooth_at_rest(name):
    robot = kd.load_robot(name)
    term = Friction(robot)
    speeds = np.linspace(-0.1, 0.1, 2001)
    torque = np.array([term.torque(moment(robot, robot.home, np.full(17, v))) for v in speeds[::50]])
    assert np.abs(term.torque(moment(robot, robot.home, np.zeros(17)))).max() == 0
    assert (np.diff(torque, axis=0) >= 0).all()
    fast = np.full(17, 1.0)
    np.testing.assert_allclose(
        term.torque(moment(robot, robot.home, fast)), robot.friction_torque(fast), rtol=1e-9
    )


def test_damping_takes_energy():
    robot = kd.load_robot('planar_2r')
    v = np.array([1.0, -2.0])
    assert Damping(np.array([3.0, 4.0])).torque(moment(robot, robot.home, v)) @ v == -19.0


def test_joint_limits_never_kick():
    """Only energy is taken, only on the way towards a limit, and the torque begins at zero."""
    robot = kd.load_robot('planar_2r')
    term = JointLimits(robot)
    for depth in np.linspace(-0.1, 1.2, 27):
        q = robot.upper - ZONE * (1 - depth)
        for v in (np.array([0.5, 0.3]), np.array([-0.5, -0.3]), np.zeros(2)):
            torque = term.torque(moment(robot, q, v))
            assert (torque * v <= 0).all()
            assert not torque[v <= 0].any()
            if depth <= 0:
                assert not torque.any()


def test_joint_limits_stop_a_joint_before_its_end():
    robot = kd.load_robot('planar_2r', gravity=(0, 0, 0))
    term = JointLimits(robot)
    q, v = robot.upper - 0.4, np.array([1.0, 0.0])
    for _ in range(3000):
        a = robot.forward_dynamics(q, v, term.torque(moment(robot, q, v)))
        v = v + 1e-3 * a
        q = q + 1e-3 * v
    assert q[0] < robot.upper[0]


def test_rolling_base_makes_the_task_error_obey_the_published_gains():
    robot = kd.load_robot('otbot')
    q, v = states(1, 6, parts=2)[:, 0]
    J = robot.constraint_jacobian(q)
    v = v - np.linalg.pinv(J) @ (J @ v)
    q_d, v_d, a_d = q + 0.1, v - 0.2, np.full(6, 0.3)
    torque = RollingBase(robot).torque(moment(robot, q, v, q_d, v_d, a_d))
    assert not torque[:3].any()
    a = robot.forward_dynamics(q, v, torque[3:], friction=True)
    np.testing.assert_allclose(a[:3], a_d[:3] + 8.8 * (v_d - v)[:3] + 6.4 * (q_d - q)[:3], rtol=1e-9)


def test_rolling_base_is_refused_where_nothing_rolls():
    with pytest.raises(KrangError, match='no rolling base'):
        RollingBase(kd.load_robot('planar_2r'))


def test_terms_are_known_by_name_and_given_once():
    robot = kd.load_robot('planar_2r')
    for terms in ((), ('gravity', 'gravity'), ('gravty',)):
        with pytest.raises(KrangError):
            build_terms(robot, Settings(terms))


def test_krangs_base_gets_torque_only_with_its_wheels_locked():
    robot = kd.load_robot('krang')
    assert 'base_pitch' not in commanded_joints(robot, Settings(('gravity',)))
    assert 'base_pitch' in commanded_joints(robot, Settings(('gravity',), wheels_locked=True))
    with pytest.raises(KrangError, match='base_pitch'):
        commanded_joints(robot, Settings(('gravity',), command_joints=('waist', 'base_pitch')))


@pytest.mark.parametrize(
    'gains',
    [{'kp': 1.0}, {'kp': -1.0, 'kd': 1.0}, {'bandwidth': np.nan}, {'kp': np.ones(3), 'kd': np.ones(3)}],
)
def test_impossible_gains_are_refused(gains):
    with pytest.raises(KrangError, match='gains'):
        Settings(('computed_torque',), **gains).gains(kd.load_robot('planar_2r'))
