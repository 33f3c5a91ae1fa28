"""Gravity compensation, once and by one party."""

import numpy as np
import pytest
from harness import robot_named, term_inputs

from krang_dynamics.control.settings import Settings
from krang_dynamics.control.terms.gravity_compensation import GravityCompensation
from krang_dynamics.control.terms.term import build_terms


def test_gravity_is_left_to_the_hardware_where_it_compensates_it():
    robot = robot_named('krang')
    now = term_inputs(robot, robot.home, np.zeros(17))
    expected = robot.gravity_torque(robot.home)
    np.testing.assert_allclose(GravityCompensation().torque(now), expected, atol=1e-12)
    assert not GravityCompensation(hardware_compensates=True).torque(now).any()


@pytest.mark.parametrize(
    'terms', [('computed_torque',), ('gravity', 'computed_torque'), ('computed_torque', 'gravity')]
)
def test_gravity_counts_once(terms):
    robot = robot_named('krang')
    now = term_inputs(robot, robot.home, np.zeros(17))
    total = sum(term.torque(now) for term in build_terms(robot, Settings(terms=terms)))
    np.testing.assert_allclose(total, robot.gravity_torque(robot.home), atol=1e-12)


def test_gravity_does_not_count_where_the_hardware_compensates_it():
    robot = robot_named('krang')
    now = term_inputs(robot, robot.home, np.zeros(17))
    for terms in (('computed_torque',), ('gravity', 'computed_torque')):
        settings = Settings(terms=terms, hardware_compensates_gravity=True)
        assert np.abs(sum(term.torque(now) for term in build_terms(robot, settings))).max() < 1e-12
