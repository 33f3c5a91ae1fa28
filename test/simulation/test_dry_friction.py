"""Held dry friction against its law, and against a solver of bounded least squares."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from krang_dynamics.simulation.dry_friction import held_torque

H = 1e-3  # [s]


def problem(n, number):
    random = np.random.default_rng([n, number])
    root = random.normal(size=(n, n))
    B = np.linalg.inv(root @ root.T + 0.1 * np.eye(n))
    limit = random.uniform(0.1, 3, n) * (random.random(n) < 0.8)
    v = 1e-3 * random.normal(size=n) * (random.random(n) < 0.5)
    return v, random.normal(size=n), B, limit


@pytest.mark.parametrize('n', [1, 2, 7, 17])
def test_given_coupled_joints_then_the_law_holds(n):
    for number in range(50):
        v, a, B, limit = problem(n, number)
        f = held_torque(v, a, B, limit, H)
        slip = v / H + a - B @ f
        noise = 1e-9 * np.abs(v / H + a).max()
        assert (np.abs(f) <= limit).all()
        sliding = np.abs(slip) > noise
        np.testing.assert_allclose(f[sliding], (limit * np.sign(slip))[sliding])


def test_given_coupled_joints_then_the_torque_is_the_bounded_least_squares_solution():
    v, a, B, limit = problem(7, 1)
    limit = limit + 0.1
    root = np.linalg.cholesky(B).T
    expected = lsq_linear(root, np.linalg.solve(root.T, v / H + a), (-limit, limit), tol=1e-14).x
    np.testing.assert_allclose(held_torque(v, a, B, limit, H), expected, atol=1e-6)


def test_given_a_response_that_a_constraint_makes_singular_then_rest_needs_no_more_than_the_load():
    limit = np.array([1.0, 1.0])
    f = held_torque(np.zeros(2), np.array([0.5, 0.5]), np.ones((2, 2)), limit, H)
    np.testing.assert_allclose(f.sum(), 0.5)
