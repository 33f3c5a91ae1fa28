"""Friction and its slope."""

import numpy as np
import pytest

import krang_dynamics as kd


@pytest.mark.parametrize('name', kd.robots())
def test_slope_is_the_derivative(name):
    robot = kd.load_robot(name)
    v, h = np.linspace(-1, 1, robot.nv) + 0.05, 1e-6
    numeric = (robot.friction_torque(v + h) - robot.friction_torque(v - h)) / (2 * h)
    np.testing.assert_allclose(robot.friction.slope(v), numeric, atol=1e-6)


def test_a_joint_at_rest_has_no_friction():
    for name in kd.robots():
        robot = kd.load_robot(name)
        np.testing.assert_array_equal(robot.friction_torque(np.zeros(robot.nv)), 0)


def test_the_smooth_set_stays_below_the_peak_at_full_speed():
    """With the exact sign the same coefficients would need more than arm joints 5 to 7 have."""
    robot = kd.load_robot('krang')
    peak = np.array([robot.urdf.joints[name].effort for name in robot.joint_names])
    assert (robot.friction_torque(robot.velocity_limits) < peak).all()
    exact = robot.friction.viscous * robot.velocity_limits + robot.friction.coulomb
    assert (exact[7:10] > peak[7:10]).all()
