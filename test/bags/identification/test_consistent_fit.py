"""Physically consistent parameters."""

import numpy as np
import pinocchio as pin
import pytest

import krang_dynamics as kd
from krang_dynamics.bags.identification.consistent_fit import fit_consistent, is_consistent, log_cholesky


@pytest.fixture(scope='module')
def body():
    return np.array(kd.load_robot('krang').model.inertias[4].toDynamicParameters())


def parameters(x):
    return pin.LogCholeskyParameters(x).toDynamicParameters()


def test_log_cholesky_is_the_inverse_of_pinocchios_map(body):
    np.testing.assert_allclose(parameters(log_cholesky(body)), body, rtol=1e-9)
    x = 0.3 * np.random.default_rng(2).normal(size=10)
    np.testing.assert_allclose(log_cholesky(parameters(x)), x, atol=1e-9)


def test_every_point_is_a_body(body):
    start = log_cholesky(body)
    for x in np.random.default_rng(2).normal(size=(50, 10)):
        assert is_consistent(parameters(start + x))
    assert not is_consistent(-body)
    assert not is_consistent(
        body * np.array([1, 1, 1, 1, 3, 1, 1, 1, 1, 1])
    )  # violates the triangle inequality


def test_pinocchios_jacobian_is_the_derivative(body):
    x = log_cholesky(body) + 0.3 * np.random.default_rng(2).normal(size=10)
    slopes = [(parameters(x + h) - parameters(x - h)) / 2e-6 for h in 1e-6 * np.eye(10)]
    jacobian = pin.LogCholeskyParameters(x).calculateJacobian()
    np.testing.assert_allclose(jacobian, np.array(slopes).T, atol=1e-8)


@pytest.mark.parametrize(
    'described',
    [
        [1.0, 0, 0, 0.5, 1 / 3, 0, 1 / 3, 0, 0, 0],  # a rod
        [1.0, 0, 0, 0.5, 0.25, 0, 0.25, 0, 0, 0],  # a point
    ],
)
def test_a_point_and_a_rod_start_as_the_nearest_body(described):
    start = log_cholesky(np.array(described))
    np.testing.assert_allclose(parameters(start), described, atol=1e-5)
    assert is_consistent(parameters(start))


def test_data_determine_what_they_excite_and_the_prior_the_rest(body):
    spread = np.full(12, 0.3)
    prior = np.concatenate([body, [5.0, 1.0]])
    R = np.zeros((2, 12))
    R[0, 0] = R[1, 10] = 1e4
    z = np.array([1e4 * 4.2, -1e4])  # a mass of 4.2 kg, and negative friction
    theta, deviation = fit_consistent(R, z, prior, spread, 1, np.arange(12) >= 10)
    assert theta[0] == pytest.approx(4.2, rel=1e-4)
    assert theta[10] == 0
    assert theta[11] == pytest.approx(1.0)
    assert is_consistent(theta[:10])
    assert deviation[0] == pytest.approx(1e-4, rel=1e-3)
    assert deviation[11] == pytest.approx(0.3, rel=1e-6)


def test_data_of_an_impossible_body_give_a_possible_one(body):
    R, spread = 1e3 * np.eye(10), np.full(10, 10.0)
    impossible = body.copy()
    impossible[0] = -1.0
    theta, _ = fit_consistent(R, R @ impossible, body, spread, 1, np.zeros(10, bool))
    assert is_consistent(theta)
    assert 0 < theta[0] < 0.5
