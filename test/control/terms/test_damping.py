"""Joint damping."""

import numpy as np
from harness import robot_named, term_inputs

from krang_dynamics.control.terms.damping import Damping


def test_damping_takes_energy():
    robot = robot_named('planar_2r')
    v = np.array([1.0, -2.0])
    assert Damping(np.array([3.0, 4.0])).torque(term_inputs(robot, robot.home, v)) @ v == -19.0
