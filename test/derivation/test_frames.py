"""The functions of [krang] section 5.2 on its own frames."""

import casadi as ca
import numpy as np
import pytest
from reference import krang
from tools import states

from krang_dynamics import KrangError
from krang_dynamics.derivation.engine import CasadiEngine, SympyEngine
from krang_dynamics.derivation.robots.krang import frames

KEYS = ['1', '2', '3', *(f'{i}l' for i in range(4, 11)), *(f'{i}r' for i in range(4, 11))]


@pytest.fixture(scope='module')
def tree():
    return frames(CasadiEngine())


def value(tree, expression, q, dq=None):
    """An expression at q and dq, with Krang's numbers."""
    symbols, numbers = ca.vertcat(*tree.symbols.values()), list(tree.numbers.values())
    function = ca.Function('f', [tree.q_vector(), tree.dq_vector(), symbols], [ca.densify(ca.SX(expression))])
    return np.array(function(q, np.zeros(17) if dq is None else dq, numbers))


def test_is_before_follows_the_branches(tree):
    assert tree.is_before('0', '10l')
    assert tree.is_before('3', '4r')
    assert not tree.is_before('4l', '10r')
    assert not tree.is_before('10l', '3')
    assert not tree.is_before('3', '3')


def test_rotation_is_between_neighbours_only_and_its_two_directions_are_transposes(tree):
    q = states(1, 17, parts=1)[0, 0]
    for key in KEYS:
        antecedent = tree.frames[key].antecedent
        R = value(tree, tree.rotation(key, antecedent), q)
        np.testing.assert_allclose(R @ value(tree, tree.rotation(antecedent, key), q), np.eye(3), atol=1e-15)
        assert np.linalg.det(R) == pytest.approx(1)
    with pytest.raises(KrangError, match='not neighbours'):
        tree.rotation('10l', '3')


def test_transform_composes_and_inverts(tree):
    q = states(1, 17, parts=1)[0, 0]
    for row, key in enumerate(KEYS):
        T = value(tree, tree.transform(key, '0'), q)
        np.testing.assert_allclose(T, krang.world_frames(q[None])[row][0], atol=1e-14)
        np.testing.assert_allclose(T @ value(tree, tree.transform('0', key), q), np.eye(4), atol=1e-14)
    np.testing.assert_array_equal(value(tree, tree.transform('3', '3'), q), np.eye(4))
    with pytest.raises(KrangError, match='neither before nor after'):
        tree.transform('4l', '4r')
    with pytest.raises(KrangError, match="unknown frame '11l'"):
        tree.transform('11l', '0')


def test_velocities_are_the_derivative_of_the_transform(tree):
    q, dq = states(1, 17, parts=2)[:, 0]
    h = 1e-6
    for key in ('1', '3', '7l', '10r'):
        T, ahead, behind = (value(tree, tree.transform(key, '0'), q + k * h * dq) for k in (0, 1, -1))
        rate = (ahead - behind) / (2 * h)
        R = T[:3, :3]
        w = value(tree, tree.angular_velocity(key), q, dq)[:, 0]
        V = value(tree, tree.linear_velocity(key), q, dq)[:, 0]
        spin = R.T @ rate[:3, :3]
        np.testing.assert_allclose(w, [spin[2, 1], spin[0, 2], spin[1, 0]], atol=1e-8)
        np.testing.assert_allclose(V, R.T @ rate[:3, 3], atol=1e-8)


def test_inertial_parameters_are_about_the_frames_origin(tree):
    for row, key in enumerate(KEYS):
        assert value(tree, tree.mass(key), np.zeros(17))[0, 0] == krang.MASS[row]
        np.testing.assert_allclose(value(tree, tree.first_moment(key), np.zeros(17))[:, 0], krang.MS[row])
        np.testing.assert_allclose(value(tree, tree.inertia(key), np.zeros(17)), krang.J[row], atol=1e-15)


def test_symbols_stay_symbols_until_numbers_are_given():
    tree = frames(SympyEngine())
    assert str(tree.mass('4l')) == 'm_4l'
    assert str(tree.first_moment('10r').T) == 'Matrix([[MX_10r, MY_10r, MZ_10r]])'
    assert str(tree.transform('3', '2')[1, 3]) == 'L3'
