"""Friction compensation."""

import numpy as np
import pytest
from harness import robot_named, term_inputs

from krang_dynamics.control.settings import Settings
from krang_dynamics.control.terms.friction_compensation import FrictionCompensation


@pytest.mark.parametrize('name', ['krang', 'krang_exact_sign'])
def test_friction_compensation_is_smooth_at_rest(name):
    robot = robot_named(name)
    term = FrictionCompensation(robot)
    speeds = np.linspace(-0.1, 0.1, 2001)
    torque = np.array([term.torque(term_inputs(robot, robot.home, np.full(17, v))) for v in speeds[::50]])
    assert np.abs(term.torque(term_inputs(robot, robot.home, np.zeros(17)))).max() == 0
    assert (np.diff(torque, axis=0) >= 0).all()
    fast = np.full(17, 1.0)
    np.testing.assert_allclose(
        term.torque(term_inputs(robot, robot.home, fast)), robot.friction_torque(fast), rtol=1e-9
    )


def test_the_default_scale_compensates_a_part_and_the_observer_keeps_all():
    robot = robot_named('krang')
    v = np.linspace(-0.3, 0.3, 17)
    state = term_inputs(robot, robot.home, v)
    term = FrictionCompensation.from_settings(robot, Settings())
    np.testing.assert_allclose(term.torque(state), 0.8 * robot.friction_torque(v), rtol=1e-12)
    np.testing.assert_array_equal(state.friction, robot.friction_torque(v))
    term.adopt(FrictionCompensation.from_settings(robot, Settings(friction_scale=0.5)))
    np.testing.assert_allclose(term.torque(state), 0.5 * robot.friction_torque(v), rtol=1e-12)


@pytest.mark.parametrize('scale', [0.8, 1.0])
def test_with_less_friction_than_modelled_only_full_compensation_runs_away(scale):
    """Krang's first arm joint, at rest and nudged, with 15 % less friction than its model."""
    robot = robot_named('krang')
    joint = robot.joint_names.index('left_1')
    inertia = robot.mass_matrix(robot.home)[joint, joint]
    term, speed, dt = FrictionCompensation(robot, scale), 0.02, 1e-3
    for _ in range(2000):
        v = speed * np.eye(17)[joint]
        torque = term.torque(term_inputs(robot, robot.home, v))[joint]
        speed += dt * (torque - 0.85 * robot.friction_torque(v)[joint]) / inertia
    assert (speed < 0.02) == (scale == 0.8)
