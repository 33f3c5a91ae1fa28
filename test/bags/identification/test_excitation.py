"""Motions within limits for which identification is well conditioned."""

import numpy as np
import pytest

import krang_dynamics as kd
from krang_dynamics.bags.identification.excitation import Design, excite, friction_passes
from krang_dynamics.errors import KrangError


@pytest.fixture(scope='module')
def arm():
    return excite(kd.load_robot('anthropomorphic'), Design(duration=20.0, rate=50.0, tries=40), {})[0]


def test_all_limits_are_kept(arm):
    robot = arm.robot
    assert (arm.q > robot.lower).all()
    assert (arm.q < robot.upper).all()
    assert (np.abs(arm.v) <= robot.velocity_limits).all()
    for k in range(0, len(arm.t), 20):
        torque = robot.inverse_dynamics(arm.q[k], arm.v[k], arm.a[k], friction=True)
        assert (np.abs(torque) <= robot.effort_limits).all()


def test_the_motion_starts_and_ends_at_home_and_at_rest(arm):
    for k in (0, -1):
        np.testing.assert_allclose(arm.q[k], arm.robot.home, atol=1e-12)
        np.testing.assert_allclose(arm.v[k], 0, atol=1e-12)
        np.testing.assert_allclose(arm.a[k], 0, atol=1e-12)


def test_velocity_and_acceleration_are_derivatives(arm):
    dt = arm.t[1]
    np.testing.assert_allclose(np.gradient(arm.q, dt, axis=0)[1:-1], arm.v[1:-1], atol=0.02)
    np.testing.assert_allclose(np.gradient(arm.v, dt, axis=0)[1:-1], arm.a[1:-1], atol=0.1)


def test_the_search_improves_the_condition_number_and_is_deterministic(arm):
    assert arm.condition < 0.7 * arm.first
    again = excite(kd.load_robot('anthropomorphic'), Design(duration=20.0, rate=50.0, tries=40), {})[0]
    np.testing.assert_array_equal(again.q, arm.q)


def test_a_weak_trunk_does_not_limit_the_arms():
    krang = kd.load_robot('krang')
    motion = excite(krang, Design(tries=2), {})[0]
    assert (np.abs(motion.torque) <= krang.effort_limits).all()
    arms = [i for i, name in enumerate(krang.joint_names) if name[:4] in ('left', 'righ')]
    assert (np.abs(motion.v).max(axis=0)[arms] > 0.5 * krang.velocity_limits[arms]).all()


def test_locked_and_passive_joints_stand_still():
    motion = excite(kd.load_robot('pendubot'), Design(tries=3), {})[0]
    assert motion.moved == ('arm',)
    assert not motion.v[:, 1].any()
    motion = excite(kd.load_robot('planar_2r'), Design(tries=3), {'joint_2': 0.3})[0]
    assert (motion.q[:, 1] == 0.3).all()
    assert motion.moved == ('joint_1',)


def test_several_motions_are_better_together():
    robot = kd.load_robot('planar_2r')
    one, two = excite(robot, Design(duration=6.0, frequency=0.2, tries=20), {}, 2)
    assert two.condition < one.condition
    assert np.abs(one.q - two.q).max() > 0.1


def test_passes_for_friction_have_constant_speeds_within_limits():
    robot = kd.load_robot('planar_2r')
    motion = friction_passes(robot, Design(duration=40.0, rate=500.0), {})
    assert 'constant speeds' in motion.text()
    assert (np.abs(motion.torque) <= robot.effort_limits).all()
    assert (np.abs(motion.v) <= robot.velocity_limits).all()
    np.testing.assert_allclose(np.gradient(motion.q, motion.t, axis=0)[1:-1], motion.v[1:-1], atol=0.02)
    for j in range(2):
        even = motion.v[motion.a[:, j] == 0, j]
        speeds = np.unique(np.round(even[even > 1e-9], 6))
        np.testing.assert_allclose(speeds[1:] / speeds[:-1], 2.0, rtol=1e-3)
        np.testing.assert_allclose(np.unique(np.round(-even[even < -1e-9], 6)), speeds)
        assert len(even) > 0.5 * len(motion.t)


def test_impossible_requests_are_refused():
    with pytest.raises(KrangError, match='rolls'):
        excite(kd.load_robot('otbot'), Design(), {})
    with pytest.raises(KrangError, match='joint to lock'):
        excite(kd.load_robot('planar_2r'), Design(), {'joint_9': 0.0})
    with pytest.raises(KrangError, match='no driven joint'):
        excite(kd.load_robot('planar_2r'), Design(), {'joint_1': 0.0, 'joint_2': 0.0})
    with pytest.raises(KrangError, match='duration is -1'):
        Design(duration=-1)
