"""Least squares in parts compared with least squares in one piece."""

import numpy as np
import pytest

import krang_dynamics as kd
from krang_dynamics.bags.identification.least_squares import (
    TriangularFactor,
    base_parameters,
    fit_base,
    stacked,
)
from krang_dynamics.bags.identification.regressor import Regressor, Unknowns, random_motion


@pytest.fixture(scope='module')
def data():
    random = np.random.default_rng(1)
    Y, theta = random.normal(size=(500, 6)), np.arange(1.0, 7)
    return Y, theta, Y @ theta + 0.1 * random.normal(size=500)


def test_added_factors_give_the_solution_and_the_noise(data):
    Y, _, y = data
    triangle = TriangularFactor.of(Y[:3], y[:3])
    triangle.add(TriangularFactor.of(Y[3:], y[3:]))
    expected = np.linalg.lstsq(Y, y, rcond=None)
    np.testing.assert_allclose(
        np.linalg.lstsq(triangle.R[:, :-1], triangle.R[:, -1], rcond=None)[0], expected[0]
    )
    assert triangle.noise() == pytest.approx(np.sqrt(expected[1][0] / (500 - 6)))
    assert triangle.rmse(np.zeros(6)) == pytest.approx(np.sqrt((y**2).mean()))
    assert triangle.scaled(2.0).noise() == pytest.approx(2 * triangle.noise())


def test_noise_of_dependent_columns_needs_no_svd(data, monkeypatch):
    """LAPACK's SVD does not converge for some matrices of lower rank."""
    Y, _, y = data
    expected = TriangularFactor.of(Y, y).noise()
    dependent = TriangularFactor.of(np.column_stack([Y, Y[:, 0] - 2 * Y[:, 3], np.zeros(500)]), y)
    monkeypatch.delattr(np.linalg, 'svd')
    monkeypatch.delattr(np.linalg, 'lstsq')
    assert dependent.noise() == pytest.approx(expected)


def test_base_parameters_have_their_textbook_deviations(data):
    Y, theta, y = data
    dependent = np.column_stack([Y, Y[:, 0] - 2 * Y[:, 3], np.zeros(500)])
    base = base_parameters(dependent, np.arange(8) < 6)
    assert base.independent == list(range(6))
    assert base.dependent == [6]
    np.testing.assert_allclose(base.combination[:, 0], [1, 0, 0, -2, 0, 0], atol=1e-12)
    R, z = stacked([TriangularFactor.of(dependent, y)], np.array([0.1]))
    fit = fit_base(R, z, base)
    covariance = 0.01 * np.linalg.inv(Y.T @ Y)
    np.testing.assert_allclose(fit.value, theta, atol=0.03)
    np.testing.assert_allclose(fit.deviation, np.sqrt(np.diag(covariance)), rtol=1e-9)
    scaled = Y / np.linalg.norm(Y, axis=0)
    assert fit.condition == pytest.approx(np.linalg.cond(scaled))


def test_the_planar_arm_has_the_base_parameters_of_the_textbook():
    """First moments of both links (4) and, beside the rotors, the inertia that couples them (1)."""
    robot, every = kd.load_robot('planar_2r'), np.ones(2, bool)
    regressor = Regressor(robot, Unknowns(), every, every)
    Y = regressor.matrix(random_motion(robot, 60)).reshape(-1, len(regressor.names))
    base = base_parameters(Y, np.arange(len(regressor.names)) >= regressor.inertial)
    assert len(base.independent) == np.linalg.matrix_rank(Y) == 8 + 4 + 1
    theta = np.random.default_rng(0).normal(size=len(regressor.names))
    np.testing.assert_allclose(Y[:, base.independent] @ base.value(theta), Y @ theta, atol=1e-9)
