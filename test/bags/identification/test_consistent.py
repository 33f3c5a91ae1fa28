"""Bodies that can exist."""

import numpy as np
import pinocchio as pin
import pytest

import krang_dynamics as kd
from krang_dynamics.bags.identification import consistent


@pytest.fixture(scope='module')
def body():
    return np.array(kd.load_robot('krang').model.inertias[4].toDynamicParameters())


def test_pseudo_inertias_are_pinocchios(body):
    np.testing.assert_allclose(consistent.of_pseudo_inertia(consistent.pseudo_inertia(body)), body)
    theirs = pin.PseudoInertia.FromDynamicParameters(body).toMatrix()
    np.testing.assert_allclose(consistent.pseudo_inertia(body), theirs)


def test_zero_is_the_described_body_and_everything_else_is_a_body(body):
    U = consistent.factor(body)
    np.testing.assert_allclose(consistent.parameters(np.zeros(10), U), body, rtol=1e-9)
    for x in np.random.default_rng(2).normal(size=(50, 10)):
        assert consistent.is_consistent(consistent.parameters(x, U))


def test_the_jacobian_is_the_derivative(body):
    U, x = consistent.factor(body), 0.3 * np.random.default_rng(2).normal(size=10)
    steps = 1e-6 * np.eye(10)
    slopes = [(consistent.parameters(x + h, U) - consistent.parameters(x - h, U)) / 2e-6 for h in steps]
    np.testing.assert_allclose(consistent.jacobian(x, U), np.array(slopes).T, atol=1e-8)


def test_a_point_and_a_rod_begin_as_the_nearest_body():
    rod = np.array([1.0, 0, 0, 0.5, 1 / 3, 0, 1 / 3, 0, 0, 0])
    U = consistent.factor(rod)
    np.testing.assert_allclose(U @ U.T, consistent.pseudo_inertia(rod), atol=1e-5)
    assert consistent.is_consistent(consistent.parameters(np.zeros(10), U))


def test_data_win_where_they_speak_and_the_description_where_they_do_not(body):
    spread = np.full(12, 0.3)
    prior = np.concatenate([body, [5.0, 1.0]])
    R = np.zeros((2, 12))
    R[0, 0] = R[1, 10] = 1e4
    z = np.array([1e4 * 4.2, -1e4])  # a mass of 4.2 kg, and friction that would push
    theta, deviation = consistent.fit(R, z, prior, spread, 1, np.arange(12) >= 10)
    assert theta[0] == pytest.approx(4.2, rel=1e-4)
    assert theta[10] == 0
    assert theta[11] == pytest.approx(1.0)
    assert consistent.is_consistent(theta[:10])
    assert deviation[0] == pytest.approx(1e-4, rel=1e-3)
    assert deviation[11] == pytest.approx(0.3, rel=1e-6)


def test_what_no_body_can_have_is_not_found_even_if_the_data_say_so(body):
    R, spread = 1e3 * np.eye(10), np.full(10, 10.0)
    impossible = body.copy()
    impossible[0] = -1.0
    theta, _ = consistent.fit(R, R @ impossible, body, spread, 1, np.zeros(10, bool))
    assert consistent.is_consistent(theta)
    assert 0 < theta[0] < 0.5
