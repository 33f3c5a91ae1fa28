"""The derivation of the shipped robots against Pinocchio and against the equations of its source."""

import numpy as np
import pytest
from derivation.derived import shipped_numeric
from reference import lagrange
from reference.robots import REFERENCE
from tools import assert_close, states

import krang_dynamics as kd
from krang_dynamics.cli import robot_equations as derive


@pytest.mark.slow
@pytest.mark.parametrize('name', kd.robots())
def test_shipped_robots_agree_with_pinocchio(name):
    robot = kd.load_robot(name)
    for difference in derive.check(robot, shipped_numeric(name)):
        assert difference.value <= derive.TOLERANCE, difference


@pytest.mark.parametrize('name', REFERENCE)
def test_the_derivation_agrees_with_the_equations_of_its_source(name):
    """A third route, that shares nothing with either: test/reference."""
    robot, reference = kd.load_robot(name), REFERENCE[name]
    numeric = shipped_numeric(name)
    q, v = states(20, robot.nv, parts=2)
    A = [numeric('mass_matrix', x) for x in q]
    assert_close(A, reference.mass_matrix(q) + np.diag(reference.ROTOR_INERTIA))
    C = [numeric('coriolis_matrix', *x) for x in zip(q, v, strict=True)]
    assert_close(C, lagrange.coriolis_matrix(reference.mass_matrix, q, v))
    assert_close([numeric('gravity', x) for x in q], lagrange.gravity(reference.potential, q))
