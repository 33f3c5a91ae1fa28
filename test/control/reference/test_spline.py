"""Bernstein quintics against scipy's polynomials and against dense sampling."""

import numpy as np
import pytest
from scipy.interpolate import BPoly, CubicHermiteSpline, CubicSpline

from krang_dynamics.control.reference.spline import (
    JoinedSpline,
    Spline,
    beyond,
    cubic_accelerations,
    excursion,
    first,
    quintic,
    smooth_velocities,
)


def pieces(count, joints, number=1):
    """Random knots and position, velocity, acceleration (3, count + 1, joints) at them."""
    random = np.random.default_rng(number)
    return np.cumsum(random.uniform(0.2, 2, count + 1)), random.uniform(-2, 2, (3, count + 1, joints))


def spline(knots, x):
    """The quintics through x; effort and rest are zero."""
    control = quintic(np.diff(knots), x[:, :-1], x[:, 1:])
    control = np.concatenate([control, np.zeros_like(control[:, :, :1])], axis=2)
    return Spline(knots, control, np.zeros((4, x.shape[2])))


def sample(curve, t, joints):
    values = curve.sample(t)
    assert values.shape == (4, joints)
    return values


def test_a_quintic_is_the_only_one_with_these_ends():
    knots, x = pieces(5, 3)
    truth = BPoly.from_derivatives(knots, np.moveaxis(x, 0, 1))
    curve = spline(knots, x)
    for t in np.linspace(knots[0], knots[-1], 101)[:-1]:
        expected = [truth(t), truth(t, 1), truth(t, 2)]
        np.testing.assert_allclose(sample(curve, t, 3)[:3], expected, atol=1e-10)


def test_points_are_met_to_the_last_bit():
    knots, x = pieces(5, 3)
    curve = spline(knots, x)
    for i, t in enumerate(knots[:-1]):
        np.testing.assert_array_equal(sample(curve, t, 3)[:3], x[:, i])


def test_with_the_accelerations_of_cubics_quintics_are_cubics():
    knots, (p, v, _) = pieces(4, 2)
    a0, a1 = cubic_accelerations(np.diff(knots), p, v)
    start, end = np.stack([p[:-1], v[:-1], a0]), np.stack([p[1:], v[1:], a1])
    control = quintic(np.diff(knots), start, end)
    curve = Spline(knots, np.concatenate([control, control[:, :, :1]], axis=2), np.zeros((4, 2)))
    truth = CubicHermiteSpline(knots, p, v)
    for t in np.linspace(knots[0], knots[-1], 57)[:-1]:
        got = sample(curve, t, 2)
        np.testing.assert_allclose(got[:3], [truth(t), truth(t, 1), truth(t, 2)], atol=1e-11)


def test_far_from_zero_derivatives_keep_their_precision():
    """A wheel after 1e6 rad: the positions' rounding must not reach the acceleration."""
    knots = np.array([0.0, 0.01])
    ends = np.zeros((3, 2, 1))
    ends[0] = [[1e6], [1e6 + 0.5**10]]
    near = ends - np.array([1e6, 0, 0])[:, None, None]
    a, b = (sample(spline(knots, x), 0.004, 1) for x in (ends, near))
    np.testing.assert_allclose(a[1:3], b[1:3], rtol=1e-12)


def test_before_the_first_knot_it_waits_there_and_after_the_last_it_rests():
    knots, x = pieces(2, 2)
    curve = spline(knots, x)
    np.testing.assert_array_equal(sample(curve, knots[0] - 5, 2)[:3], x[:, 0])
    for t in (knots[-1], knots[-1] + 5, np.inf, np.nan):
        np.testing.assert_array_equal(sample(curve, t, 2), 0)


def test_a_joined_spline_is_the_spline_of_all_pieces():
    knots, x = pieces(5, 2)
    whole = spline(knots, x)
    joined = JoinedSpline(spline(knots[:3], x[:, :3]), spline(knots[2:], x[:, 2:]))
    assert joined.end == whole.end
    for t in np.linspace(knots[0] - 1, knots[-1] + 1, 50):
        np.testing.assert_array_equal(sample(joined, t, 2), sample(whole, t, 2))


@pytest.mark.parametrize('number', range(20))
def test_excursions_are_those_of_dense_sampling(number):
    knots, x = pieces(1, 1, number)
    control = quintic(np.diff(knots), x[:, :-1], x[:, 1:])
    truth = BPoly.from_derivatives(knots, np.moveaxis(x, 0, 1))
    for row in (0, 1):
        values = truth(np.linspace(*knots, 20001), row)
        low, high = values.min(axis=0), values.max(axis=0)
        assert excursion(control[:, :, row], low - 1e-6, high + 1e-6) is None
        piece, joint, value, place = excursion(control[:, :, row], low - 1, high - 1e-6)
        assert (piece, joint) == (0, 0)
        assert high[0] - 1e-6 < value <= high[0] + 1e-6
        assert truth(knots[0] + place * np.diff(knots)[0], row) == pytest.approx(value, abs=1e-9)
        assert excursion(control[:, :, row], low + 1e-6, high + 1) is not None


def test_an_excursion_has_its_piece_and_joint():
    x = np.zeros((3, 4, 3))
    x[1, 2, 1] = 1.0  # a velocity at rest points: it swings out on both sides of knot 2
    control = quintic(np.ones(3), x[:, :-1], x[:, 1:])
    piece, joint, value, _ = excursion(control[:, :, 0], np.full(3, -0.05), np.full(3, np.inf))
    assert (piece, joint) == (1, 1)
    assert value < -0.05


def test_a_curve_along_its_limit_is_inside():
    """Constant speed at the limit, and within rounding of the tolerance, ends the halving."""
    for offset in (0.0, 1e-9, 1.5e-9, 2e-9, -1e-16):
        control = np.full((50, 6, 1), 1.0 + offset)
        found = excursion(control, np.array([-1.0]), np.array([1.0]))
        assert (found is None) == (offset <= 1e-9)


def test_limits_have_a_tolerance_and_may_be_infinite():
    one, infinite = np.ones(1), np.full(1, np.inf)
    assert not beyond(one + 1e-10, -one, one).any()
    assert beyond(one + 1e-8, -one, one).all()
    assert not beyond(1e6 * one + 1e-4, -one, 1e6 * one).any()
    assert not beyond(np.array([1e300, -1e300]), -infinite, infinite).any()


def test_first_is_the_first_true_entry():
    assert first(np.zeros((2, 3), dtype=bool)) is None
    assert first(np.zeros(0, dtype=bool)) is None
    assert first(np.array([[False, False], [True, True]])) == (1, 0)


@pytest.mark.parametrize('count', [1, 2, 40])
@pytest.mark.parametrize('start', [None, np.array([0.3, -1.0])])
@pytest.mark.parametrize('end', [None, np.zeros(2)])
def test_smooth_velocities_are_those_of_the_cubic_spline(count, start, end):
    knots, (p, _, _) = pieces(count, 2)
    ends = tuple((2, np.zeros(2)) if v is None else (1, v) for v in (start, end))
    truth = CubicSpline(knots, p, bc_type=ends)
    np.testing.assert_allclose(smooth_velocities(np.diff(knots), p, start, end), truth(knots, 1), atol=1e-12)
