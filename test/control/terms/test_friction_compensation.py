"""Friction compensation."""

import numpy as np
import pytest
from harness import robot_named, term_inputs

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
