"""The field before the joint limits only dissipates energy."""

import numpy as np
from harness import robot_named, term_inputs

import krang_dynamics as kd
from krang_dynamics.control.terms.joint_limits import ZONE, JointLimits


def test_joint_limits_never_kick():
    """Only energy is taken, only on the way towards a limit, and the torque begins at zero."""
    robot = robot_named('planar_2r')
    term = JointLimits(robot)
    for depth in np.linspace(-0.1, 1.2, 27):
        q = robot.upper - ZONE * (1 - depth)
        for v in (np.array([0.5, 0.3]), np.array([-0.5, -0.3]), np.zeros(2)):
            torque = term.torque(term_inputs(robot, q, v))
            assert (torque * v <= 0).all()
            assert not torque[v <= 0].any()
            if depth <= 0:
                assert not torque.any()


def test_joint_limits_stop_a_joint_before_its_end():
    robot = kd.load_robot('planar_2r', gravity=(0, 0, 0))
    term = JointLimits(robot)
    q, v = robot.upper - 0.4, np.array([1.0, 0.0])
    for _ in range(3000):
        a = robot.forward_dynamics(q, v, term.torque(term_inputs(robot, q, v)))
        v = v + 1e-3 * a
        q = q + 1e-3 * v
    assert q[0] < robot.upper[0]
