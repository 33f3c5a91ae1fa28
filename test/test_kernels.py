"""Every compiled kernel against the same formula in numpy: any numbers, any count of joints."""

import ctypes
import re
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from krang_dynamics import kernels

COUNTS = (0, 1, 2, 17, 60)
SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0, 5e-324, 1.7e308, -1.7e308)
ROOT = Path(__file__).resolve().parents[1]
VECTOR, SMALL, WHEEL = np.zeros(3), np.zeros(2), np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.3])


def drawn(count):
    """Samples of `count` vectors of one size, with and without special numbers, and one more number."""
    random = np.random.default_rng(count)
    for n in COUNTS:
        for k in range(60):
            share = (0.0, 0.02, 0.5)[k % 3]
            x = random.choice([1e-3, 1.0, 10.0]) * random.uniform(-1, 1, (count, n + 1))
            x = np.where(random.uniform(size=x.shape) < share, random.choice(SPECIAL, x.shape), x)
            yield tuple(x[:, :n].copy()), float(x[0, n])


def usual(seed, *shapes):
    random = np.random.default_rng(seed)
    return [random.uniform(-2, 2, shape) for shape in shapes]


def test_is_finite():
    for x, _ in drawn(1):
        assert kernels.is_finite(x[0]) == np.isfinite(x[0]).all()


@pytest.mark.parametrize('view', [lambda x: x[::2], lambda x: x.T, lambda x: x[:, 1], np.asfortranarray])
def test_is_finite_of_arrays_in_any_order(view):
    x = np.ones((6, 4))
    assert kernels.is_finite(view(x))
    x[:, 1] = np.nan
    assert not kernels.is_finite(view(x))


def test_are_vectors():
    for x, _ in drawn(3):
        n = len(x[0])
        assert kernels.are_vectors(n, *x) == all(np.isfinite(y).all() for y in x)
        assert not kernels.are_vectors(n + 1, *x)


@pytest.mark.parametrize(
    'value',
    [
        [1.0, 2.0],
        None,
        np.zeros(3),
        np.zeros((2, 1)),
        np.zeros(2, np.float32),
        np.zeros(2, int),
        np.zeros(4)[::2],
        np.zeros(2, '>f8'),
        np.ma.zeros(2),
    ],
)
def test_are_vectors_refuses_everything_else(value):
    assert kernels.are_vectors(2, np.zeros(2))
    assert not kernels.are_vectors(2, np.zeros(2), value)


@pytest.mark.parametrize('count', [(), (-1,), ('2',)])
def test_are_vectors_needs_a_count(count):
    with pytest.raises((TypeError, OverflowError)):
        kernels.are_vectors(*count)


FUNCTION = ctypes.CFUNCTYPE(
    None, ctypes.POINTER(ctypes.POINTER(ctypes.c_double)), ctypes.POINTER(ctypes.c_double)
)


def test_evaluated():
    @FUNCTION
    def difference(inputs, out):
        for i in range(3):
            out[i] = inputs[0][i] - inputs[1][i]

    address = ctypes.cast(difference, ctypes.c_void_p).value
    x, y = np.array([3.0, 2.0, 1.0]), np.array([1.0, 1.0, 2.0])
    np.testing.assert_array_equal(kernels.evaluated(address, 3, x, y), x - y)
    for wrong in (x[:2], x.tolist(), x * np.nan, np.ones(3, int)):
        assert kernels.evaluated(address, 3, x, wrong) is None
    for arguments in ((), (address,), (address, 3, x, x, x, x), (address, -1, x), (0, 3, x), ('x', 3, x)):
        with pytest.raises((TypeError, ValueError)):
            kernels.evaluated(*arguments)


def test_joint_state():
    for x, _ in drawn(2):
        rows = np.random.default_rng(1).permutation(len(x[0]))
        for order in (None, rows, rows[: len(rows) // 2]):
            expected = np.concatenate(x if order is None else [y[order] for y in x])
            state = kernels.joint_state(*x, order)
            if np.isfinite(expected).all():
                assert state.tobytes() == expected.tobytes()
            else:
                assert state is None


def test_joint_state_takes_numbers_of_other_types():
    state = kernels.joint_state([1, 2], np.array([3, 4], np.float32), np.array([1, 0]))
    np.testing.assert_array_equal(state, [2, 1, 4, 3])
    assert kernels.joint_state(np.arange(4.0)[::2], np.zeros(2), None).tolist() == [0, 2, 0, 0]


@pytest.mark.parametrize(
    ('position', 'velocity', 'rows'),
    [
        (np.zeros((2, 1)), np.zeros((2, 1)), None),
        (np.zeros(2), np.zeros(3), None),
        (np.zeros(2), np.zeros(2), np.array([0, 2])),
        (np.zeros(2), np.zeros(2), np.array([-1])),
        (np.zeros(2), np.zeros(2), np.array([0.0])),
        (np.zeros(2), np.zeros(2), [0, 1]),
        (['a', 'b'], np.zeros(2), None),
    ],
)
def test_joint_state_refuses_what_does_not_fit(position, velocity, rows):
    with pytest.raises((TypeError, ValueError, IndexError)):
        kernels.joint_state(position, velocity, rows)


HOLD, SPEED, WAY, TIME, NOISE = BOUNDS = np.array([0.05, 0.05, 0.01, 0.2, 0.025])


@np.errstate(all='ignore')
def test_consistent():
    verdicts = set()
    for x, dt in drawn(5):
        q, v, last_q, last_v, drift = x
        state, last = np.concatenate([q, v]), np.concatenate([last_q, last_v])
        error = q - last_q - 0.5 * dt * (v + last_v)
        expected = (1 - dt / TIME) * drift + error
        small = bool(np.sum(error**2) <= NOISE**2 and np.sum(expected**2) <= 4 * NOISE**2)
        verdicts.add((len(q), small))
        for each in (dt, np.float64(dt), np.full(len(q), dt)):
            found = drift.copy()
            assert kernels.consistent(state, last, np.zeros(len(q)), found, each, BOUNDS) is small
            if small:
                np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
            else:
                assert found.tobytes() == drift.tobytes()
    assert verdicts == {(n, small) for n in COUNTS for small in (True, False)} - {(0, False)}


def test_consistent_finds_joints_that_repeat_their_state():
    last = np.array([1.0, 2.0, 3.0, 0.5, 0.5, 0.0])  # three joints
    state = last + np.array([0.0, 1e-15, 0.0, 0.0, 1e-16, 0.0])

    def repeated(times, dt, *bounds, state=state):
        times, drift = np.full(3, times), np.zeros(3)
        verdict = kernels.consistent(state, last, times, drift, dt, np.array([*bounds, TIME, 1.0]))
        assert verdict == drift.any()  # what a frozen joint adds is not kept
        return verdict, times

    for dt in (0.01, np.full(3, 0.01)):
        is_consistent, times = repeated(0.05, dt, HOLD, SPEED, WAY)
        assert not is_consistent
        np.testing.assert_array_equal(times, [0.05 + 0.01, 0.0, 0.05 + 0.01])
    for bounds in ((0.07, 0.05, 0.01), (0.05, 0.6, 0.01), (0.05, 0.05, 0.04)):
        assert repeated(0.05, 0.01, *bounds)[0]
    for dt in (-0.01, 0.06):
        is_consistent, times = repeated(0.05, dt, HOLD, SPEED, WAY, state=last)
        assert is_consistent
        assert not times.any()
    assert not repeated(0.05, np.nan, HOLD, SPEED, WAY, state=last)[1].any()


@np.errstate(all='ignore')
def test_is_within_and_is_near():
    for (x, y, z), _ in drawn(3):
        for low, high in ((y, z), (x, x), (x - 1, x + 1)):
            assert kernels.is_within(x, low, high) == ((low <= x) & (x <= high)).all()
        for tolerance in (z, np.abs(x - y), np.full(len(x), np.inf)):
            assert kernels.is_near(x, y, tolerance) == (np.abs(x - y) <= tolerance).all()


@pytest.mark.parametrize('n', COUNTS)
@pytest.mark.parametrize('s', [0.0, 0.3, 1.0])
def test_quintic(n, s):
    (control,) = usual(n, (6, n))
    basis = [(1 - s) ** 5, 5 * s * (1 - s) ** 4, 10 * s**2 * (1 - s) ** 3]
    basis += [10 * s**3 * (1 - s) ** 2, 5 * s**4 * (1 - s), s**5]
    out = np.empty(n)
    kernels.quintic(control, s, out)
    np.testing.assert_allclose(out, basis @ control, rtol=1e-12, atol=1e-14)


@np.errstate(all='ignore')
def test_feedback():
    for (*x, followed), _ in drawn(8):
        q_d, v_d, a_d, q, v, kp, kd = x
        for mask in (np.zeros(len(q), bool), np.ones(len(q), bool)):
            error = q_d - q
            short = np.remainder(error + np.pi, 2 * np.pi) - np.pi
            error = np.where(mask & ~(np.abs(error) < np.pi), short, error)
            found = kernels.feedback(*x, mask, followed)
            expected = followed * (kd * (v_d - v) + kp * error + a_d)
            plain = ~(np.abs(q_d - q) > 1e3)  # beyond, the rounding of a turn matters
            np.testing.assert_allclose(found[plain], expected[plain], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize('n', COUNTS)
@pytest.mark.parametrize('order', 'CF')
def test_complete(n, order):
    a, E, h, other = usual(n, n, (n + 2, n), n + 2, n + 2)
    random = np.random.default_rng(n)
    unknown, rows = random.permutation(n)[: n // 2], random.permutation(n + 2)[: n // 2]
    before = a.copy()
    kernels.complete(a, unknown, rows, np.array(E, order=order), h, other)
    np.testing.assert_allclose((E @ a + h + other)[rows], 0, atol=1e-9)
    np.testing.assert_array_equal(np.delete(a, unknown), np.delete(before, unknown))


def test_complete_of_singular_equations_is_an_error():
    with pytest.raises(ZeroDivisionError):
        kernels.complete(np.ones(2), np.array([1]), np.array([0]), np.zeros((2, 2)), *np.ones((2, 2)))
    with pytest.raises(IndexError):
        kernels.complete(np.ones(2), np.array([2]), np.array([0]), np.eye(2), *np.ones((2, 2)))


@pytest.mark.parametrize('n', COUNTS)
@pytest.mark.parametrize('order', 'CF')
def test_release(n, order):
    rows = np.random.default_rng(n).permutation(n)[: n // 2]
    force, J = usual(n, n, (len(rows), n))
    expected = force - np.linalg.solve(J[:, rows].T, force[rows]) @ J
    kernels.release(force, np.array(J, order=order), rows)
    np.testing.assert_allclose(force, expected, rtol=1e-7, atol=1e-9)
    assert not force[rows].any()


@pytest.mark.parametrize('n', COUNTS)
@pytest.mark.parametrize('order', 'CF')
def test_unconstrained(n, order):
    force, J = usual(n, n, (n // 2, n))
    expected = force - np.linalg.solve(J @ J.T, J @ force) @ J
    found = kernels.unconstrained(force, np.array(J, order=order))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize('n', COUNTS)
@pytest.mark.parametrize('order', 'CF')
def test_forces(n, order):
    A, a, bias, effort, gravity, followed = usual(n, (n, n), *[n] * 5)
    A = A + A.T
    found = kernels.forces(np.array(A, order=order), a, bias, effort, gravity, followed)
    np.testing.assert_allclose(found, followed * (A @ a + bias + effort - gravity), rtol=1e-12, atol=1e-12)


@np.errstate(all='ignore')
def test_scaled():
    for (factor, x), one in drawn(2):
        np.testing.assert_array_equal(kernels.scaled(factor, x), factor * x)
        for wrong in (None, 'x', np.ones(len(x) + 1), x.astype(np.float32)):
            with pytest.raises(TypeError):
                kernels.scaled(wrong, x)
        np.testing.assert_array_equal(kernels.scaled(one, x), one * x)
        np.testing.assert_array_equal(kernels.scaled(2, x), 2 * x)


@np.errstate(all='ignore')
def test_limited():
    for x, _ in drawn(4):
        torque, last, rate, bound = x[0], *(np.nan_to_num(y, posinf=9.0, neginf=-9.0) for y in x[1:])
        rate, bound = np.abs(rate), np.abs(bound)
        wanted = np.where(np.isfinite(torque), torque, last)
        for dt in (0.0, 1e-3, 0.02):
            expected = np.clip(np.clip(wanted, last - rate * dt, last + rate * dt), -bound, bound)
            command, is_limited = kernels.limited(torque, last, rate, dt, bound)
            np.testing.assert_array_equal(command, expected)
            assert is_limited is bool((expected != wanted).any())
            assert not command.flags.writeable
            assert np.isfinite(command).all()
            assert (np.abs(command) <= bound).all()


@pytest.mark.parametrize('place', ['torque', 'last', 'rate', 'dt'])
def test_limited_is_within_the_bound_even_where_something_is_not_a_number(place):
    values = {'torque': np.ones(2), 'last': np.ones(2), 'rate': np.ones(2), 'dt': 1e-3}
    values[place] = values[place] * np.nan
    command, _ = kernels.limited(*values.values(), np.array([0.5, 2.0]))
    assert (np.abs(command) <= [0.5, 2.0]).all()
    if place != 'last':
        assert command.tolist() == [0.5, 1.0]  # it stays where it is


@pytest.mark.parametrize('n', COUNTS)
@pytest.mark.parametrize('order', 'CF')
def test_observed(n, order):
    external, last_A, A, v, last_v, bias, friction, last_h, applied = usual(n, n, (n, n), (n, n), *[n] * 6)
    A, last_A, h = A + A.T, last_A + last_A.T, bias + friction
    gain = 25.0
    for dt in (0.01, 0.0, -1.0):
        expected = external
        if dt >= 0:
            change = 0.5 * (A + last_A) @ (v - last_v) + dt * (0.5 * (h + last_h) - applied - external)
            expected = external + gain * change
        last = np.vstack([last_A, last_v[None], last_h[None]])
        found = kernels.observed(
            external, last, np.array(A, order=order), v, bias, friction, applied, dt, gain
        )
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(last, np.vstack([A, v[None], h[None]]))


@pytest.mark.parametrize('n', COUNTS)
def test_solved(n):
    A, b = usual(n, (n, n), n)
    before = A.copy(), b.copy()
    np.testing.assert_allclose(kernels.solved(A, b), np.linalg.solve(A, b), rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(A, before[0])
    np.testing.assert_array_equal(b, before[1])


@pytest.mark.parametrize('n', COUNTS)
@pytest.mark.parametrize('order', 'CF')
def test_solved_with_several_right_sides(n, order):
    A, b = (np.array(x, order=order) for x in usual(n, (n, n), (n, 5)))
    np.testing.assert_allclose(kernels.solved(A, b), np.linalg.solve(A, b), rtol=1e-8, atol=1e-10)


def test_solved_exchanges_rows_where_the_diagonal_is_zero():
    assert kernels.solved(np.array([[0.0, 2.0], [1.0, 0.0]]), np.array([4.0, 3.0])).tolist() == [3.0, 2.0]


@pytest.mark.parametrize('A', [np.zeros((2, 2)), np.ones((2, 2)), np.full((2, 2), np.nan)])
def test_solved_of_a_singular_matrix_is_an_error(A):
    with pytest.raises(ZeroDivisionError):
        kernels.solved(A, np.ones(2))


@pytest.mark.parametrize('is_smooth', [True, False])
@np.errstate(all='ignore')
def test_friction(is_smooth):
    for (v,), _ in drawn(1):
        parts = np.abs(usual(1, (6, len(v)))[0])
        parts[3, ::2] = 0.0  # joints with and without Stribeck friction
        viscous, coulomb, width, stribeck, speed, offset = parts
        sign = np.tanh(v / width) if is_smooth else np.sign(v)
        dry = np.where(stribeck != 0, coulomb + stribeck * np.exp(-((v / speed) ** 2)), coulomb)
        found = kernels.friction(v, parts, is_smooth)
        np.testing.assert_allclose(found, sign * dry + viscous * v + offset, rtol=1e-9, atol=1e-12)


def test_friction_of_many_velocities_in_any_order():
    v, table = usual(3, (5, 4), (6, 4))
    expected = np.array([kernels.friction(row, table, True) for row in v])
    for given in (v, np.asfortranarray(v), np.repeat(v, 2, axis=1)[:, ::2], v.copy()[::-1][::-1]):
        np.testing.assert_array_equal(kernels.friction(given, table, True), expected)
    np.testing.assert_array_equal(kernels.friction(v[::-1], table, True), expected[::-1])
    assert kernels.friction(np.asfortranarray(v), table, True).flags.f_contiguous
    assert kernels.friction(np.zeros((0, 4)), table, True).shape == (0, 4)


def test_add():
    for (total, x), _ in drawn(2):
        with np.errstate(all='ignore'):
            expected = total + x
        assert kernels.add(total, x)
        np.testing.assert_array_equal(total, expected)


@pytest.mark.parametrize(
    'x', [None, 1.0, [1.0, 2.0], np.ones(3), np.ones((2, 1)), np.ones(2, int), np.ones(4)[::2]]
)
def test_add_changes_nothing_where_the_kinds_differ(x):
    total = np.zeros(2)
    assert not kernels.add(total, x)
    assert total.tolist() == [0, 0]


@pytest.mark.parametrize('n', COUNTS[1:])
@pytest.mark.parametrize('order', 'CF')
def test_folded_and_unfolded(n, order):
    """Two joints more than leaders, in any order."""
    m = n + 2
    random = np.random.default_rng(n)
    leaders = random.permutation([*range(n), *random.integers(n, size=2)])
    multipliers, offset, x, M, nle, g = usual(n, m, m, n, (m, m), m, m)
    M, A, bias = M + M.T, np.ones((n, n), order=order), np.ones(n)
    G = np.zeros((m, n))
    G[np.arange(m), leaders] = multipliers
    np.testing.assert_allclose(kernels.unfolded(leaders, multipliers, x, offset), G @ x + offset, atol=1e-14)
    gravity = kernels.folded(leaders, multipliers, np.array(M, order=order), nle, g, A, bias)
    np.testing.assert_allclose(A, G.T @ M @ G, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(bias, nle @ G, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(gravity, g @ G, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize('leader', [-1, 3])
def test_a_leader_that_does_not_exist_is_an_error(leader):
    leaders = np.array([0, 1, leader])
    with pytest.raises(IndexError):
        kernels.unfolded(leaders, VECTOR, VECTOR, VECTOR)
    with pytest.raises(IndexError):
        kernels.folded(leaders, *[VECTOR], np.eye(3), VECTOR, VECTOR, np.eye(3), np.ones(3))


@np.errstate(all='ignore')
def test_command():
    for (torque, v, per_torque, per_speed, limit), _ in drawn(5):
        rows = np.random.default_rng(2).permutation(len(torque))
        for factor in (per_speed, 0 * rows.astype(float)):
            limits = np.where(np.isnan(limit), np.inf, np.abs(limit))
            wanted = per_torque * torque[rows] + np.where(factor != 0, factor * v[rows], 0.0)
            expected = np.clip(np.where(np.isfinite(wanted), wanted, 0.0), -limits, limits)
            found = kernels.command(torque, v, rows, per_torque, factor, limits)
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize('row', [-1, 3])
def test_command_of_a_joint_that_does_not_exist_is_an_error(row):
    with pytest.raises(IndexError):
        kernels.command(VECTOR, VECTOR, np.array([row]), *[np.ones(1)] * 3)


@pytest.mark.parametrize('n', COUNTS)
@pytest.mark.parametrize('order', 'CF')
def test_add_wrench(n, order):
    turn, inner_turn, p, inner, f, J, moving, torque = usual(n, (3, 3), (3, 3), 3, 3, 6, (6, n), n, n)
    rotation, inner_rotation = np.linalg.qr(turn)[0], np.linalg.qr(inner_turn)[0]
    force = inner_rotation @ f[:3]
    moment = inner_rotation @ f[3:] + np.cross(inner, force)
    force, moment = rotation @ force, rotation @ moment
    expected = torque + moving * (np.concatenate([force, moment + np.cross(p, force)]) @ J)
    place = np.concatenate([inner_rotation.ravel(), inner])
    R, J = np.array(rotation, order=order), np.array(J, order=order)
    kernels.add_wrench(torque, R, p, place, f, J, moving)
    np.testing.assert_allclose(torque, expected, rtol=1e-12, atol=1e-12)


@np.errstate(all='ignore')
def test_solved_part():
    for (b, mask), _ in drawn(2):
        part, n = mask > 0, len(b)
        A = usual(n, (n, n))[0] + 9 * np.eye(n)
        expected = np.zeros(n)
        expected[part] = np.linalg.solve(A[np.ix_(part, part)], b[part])
        for order in 'CF':
            found = kernels.solved_part(np.array(A, order=order), b, part)
            finite = np.isfinite(expected).all()
            np.testing.assert_allclose(found[~part], 0.0)
            assert np.isfinite(found).all() == finite
            if finite:
                np.testing.assert_allclose(
                    found, expected, rtol=1e-9, atol=1e-9 * np.abs(b[part]).max(initial=0.0)
                )


def test_solved_part_of_a_singular_part_is_an_error_and_of_nan_is_nan():
    A, part = np.diag([1.0, 0.0, np.nan]), np.array([True, False, False])
    assert kernels.solved_part(A, np.ones(3), part).tolist() == [1, 0, 0]
    with pytest.raises(ZeroDivisionError):
        kernels.solved_part(A, np.ones(3), ~part)
    part[2] = True
    assert np.isnan(kernels.solved_part(A, np.ones(3), part)[[0, 2]]).all()


@pytest.mark.parametrize('order', 'CF')
@pytest.mark.parametrize(('n', 'm'), [(1, 0), (6, 3), (17, 2)])
def test_constrained(n, m, order):
    root, J, force, acceleration = usual(n, (n, n), (m, n), n, m)
    A = root @ root.T + np.eye(n)
    K = np.block([[A, J.T], [J, np.zeros((m, m))]])
    expected = np.linalg.solve(K, np.concatenate([force, acceleration]))[:n]
    found = kernels.constrained(np.array(A, order=order), np.array(J, order=order), force, acceleration)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_constrained_by_dependent_rows_is_an_error():
    with pytest.raises(ZeroDivisionError):
        kernels.constrained(np.eye(3), np.ones((2, 3)), VECTOR, SMALL)


@np.errstate(all='ignore')
def test_end_stop_torque():
    for (q, v, lower, width, stiffness, damping), _ in drawn(6):
        lower, upper = np.nan_to_num(lower), np.nan_to_num(lower) + np.abs(width)
        depth = np.minimum(q - lower, 0.0) + np.maximum(q - upper, 0.0)
        torque = -stiffness * depth - damping * v
        expected = np.where(torque * depth < 0, torque, 0.0)
        usual_width = np.isfinite(width)
        found = kernels.end_stop_torque(q, v, lower, upper, stiffness, damping)
        np.testing.assert_array_equal(found[usual_width], expected[usual_width])


@np.errstate(all='ignore')
def test_moved():
    for (x, rate), h in drawn(2):
        np.testing.assert_array_equal(kernels.moved(x, rate, h), x + h * rate)


def nearest_within(torque, effort, A, driven, rounding):
    """The active set method in numpy."""
    side = np.where(driven * np.abs(torque) > (1 + rounding) * effort, np.sign(torque), 0.0)
    if not side.any():
        return torque
    for turn in range(4 * len(torque)):
        rows = np.flatnonzero(side)
        missing = np.linalg.solve(A[np.ix_(rows, rows)], (side * effort - torque)[rows])
        limited = torque + A[:, rows] @ missing
        wanted = np.where(np.abs(limited) > (1 + rounding) * effort, np.sign(limited), 0.0)
        wanted[rows] = np.where(side[rows] * missing > 0, 0.0, side[rows])
        changes = np.flatnonzero((wanted != side) & (driven > 0))
        if not changes.size:
            break
        rows = changes if turn < len(torque) else changes[-1:]
        side[rows] = wanted[rows]
    return limited


@pytest.mark.parametrize('n', COUNTS)
def test_nearest_within(n):
    for seed in range(30):
        root, torque, effort, share = usual(seed, (n, n), n, n, n)
        A, effort, driven = root @ root.T + 0.1 * np.eye(n), np.abs(effort), (share > -1).astype(float)
        expected = nearest_within(10 * torque, effort, A, driven, 1e-9)
        for order in 'CF':
            found = kernels.nearest_within(10 * torque, effort, np.array(A, order=order), driven, 1e-9)
            np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


@np.errstate(all='ignore')
def test_nearest_within_of_special_numbers():
    for (torque, effort), _ in drawn(2):
        A, driven = 2 * np.eye(len(torque)), np.ones(len(torque))
        expected = nearest_within(torque, np.abs(effort), A, driven, 1e-9)
        found = kernels.nearest_within(torque, np.abs(effort), A, driven, 1e-9)
        finite = np.isfinite(expected) & (np.abs(torque) < 1e300)
        np.testing.assert_allclose(found[finite], expected[finite], rtol=1e-12, atol=1e-12)


@np.errstate(all='ignore')
def test_decay_in_time():
    for (momentum, driven, effort, rate), _ in drawn(4):
        driven, effort, rate = (driven > 0).astype(float), np.abs(effort), np.abs(rate)
        slowness, delay = np.minimum(np.abs(momentum), effort / 40.0) / rate, 0.02
        # The positive root of slowness d^2 + delay d = 1.
        expected = 2 / (delay + np.sqrt(delay**2 + 4 * slowness))
        assert kernels.decay_in_time(momentum, driven, effort, rate, 40.0, delay) == pytest.approx(
            expected[driven > 0].min(initial=40.0), nan_ok=True
        )


@np.errstate(all='ignore')
def test_follow():
    random, bounds = np.random.default_rng(3), (9.0, 0.01, 0.01, 0.1, 0.1)
    highest, filter, slack, jump, gap = bounds
    for (q, v, error, speed), _ in drawn(4):
        n = len(q)
        continuous = random.uniform(size=n) < 0.5
        sampled = random.choice([np.nan, 1.0, 1.9], n)
        used, times, now = random.choice([1.0, 1.95, 2.1], n), random.choice([1.0, 1.9, 2.0], n), 2.0
        place = q - random.choice([0.0, 0.01, 6.0]) * error
        motion = np.array([sampled, used, speed, place])
        elapsed, is_first = np.maximum(0.0, now - used), np.isnan(sampled)
        limited = np.clip(v, -highest, highest)
        predicted = place + elapsed * limited
        gone = q - predicted
        gone = np.where(
            continuous & ~(np.abs(gone) < np.pi), np.remainder(gone + np.pi, 2 * np.pi) - np.pi, gone
        )
        begins = is_first | (np.abs(gone) > jump) | (elapsed > gap)
        missed = np.where(begins, 0.0, gone - np.clip(gone, -slack, slack)) / np.maximum(elapsed, filter)
        share = np.where(is_first, 1.0, np.minimum(1.0, elapsed / filter))
        new = [times, np.full(n, now), speed + share * (limited + missed - speed)]
        new += [np.where(begins, q, predicted + elapsed * missed)]
        expected = np.where(times != sampled, new, motion)
        kernels.follow(motion, q, v, times, now, continuous, *bounds)
        np.testing.assert_allclose(motion, expected, rtol=1e-12, atol=1e-12)
        again = motion.copy()
        kernels.follow(motion, q + 1.0, v, times, now, continuous, *bounds)
        np.testing.assert_array_equal(motion, again)


def test_between():
    for x, _ in drawn(3):
        if not np.isnan(x[1:]).any():
            expected = np.clip(x[0], np.minimum(x[1], x[2]), np.maximum(x[1], x[2]))
            np.testing.assert_array_equal(kernels.between(*x), expected)


@np.errstate(all='ignore')
def test_in_proportion():
    for (torque, last, limit, rate), dt in drawn(4):
        limit, dt = np.where(np.isnan(limit), 1.0, np.abs(limit)), abs(dt)
        change, allowed = np.clip(torque, -limit, limit) - last, rate * dt
        excess = np.divide(np.abs(change), allowed, out=np.zeros_like(change), where=allowed > 0).max(
            initial=0.0
        )
        expected = last + change / excess if excess > 1.0 else torque
        found = kernels.in_proportion(torque, last, limit, rate, dt)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize('seed', range(10))
@pytest.mark.parametrize('order', 'CF')
def test_fastest_point(seed, order):
    n, m = 6, 9
    random = np.random.default_rng(seed)
    parents, links = np.array([random.integers(i + 1) for i in range(n)]), random.integers(n + 1, size=m)
    axes, points, v = usual(seed, (n, 6), (m, 3), n)
    placements = [pin.SE3.Random() for _ in range(n)]
    motions = [pin.Motion.Zero()]
    for placement, parent, axis, speed in zip(placements, parents, axes, v, strict=True):
        motions.append(placement.actInv(motions[parent]) + pin.Motion(speed * axis))
    speeds = [
        np.linalg.norm(motions[link].linear + np.cross(motions[link].angular, point))
        for link, point in zip(links, points, strict=True)
    ]
    views = tuple(x for T in placements for x in (np.array(T.rotation, order=order), T.translation.copy()))
    found = kernels.fastest_point(views, parents, axes, links, points, v)
    assert found == pytest.approx(max(speeds), rel=1e-12)
    v[3] = np.nan
    links[0] = 4
    assert np.isnan(kernels.fastest_point(views, parents, axes, links, points, v))


@pytest.mark.parametrize(('parents', 'links'), [([1, 0], [0]), ([0, -1], [0]), ([0, 0], [3]), ([0, 0], [-1])])
def test_fastest_point_refuses_links_that_do_not_exist(parents, links):
    views = (np.eye(3), VECTOR) * 2
    with pytest.raises(IndexError):
        kernels.fastest_point(views, np.array(parents), np.zeros((2, 6)), np.array(links), VECTOR, SMALL)


class LeaningWheel:
    """A wheel at the end of a chain of screw joints, of which one does not move it."""

    moving = np.array([1.0, 1.0, 0.0, 1.0])

    def __init__(self, seed):
        axle, self.centre, *screws = usual(seed, 3, 3, 6, 6, 6, 6)
        self.axle, self.radius = axle / np.linalg.norm(axle), 0.3
        self.screws = [pin.Motion(screw) for screw in screws]
        self.wheel = np.array([*self.axle, *self.centre, self.radius])

    def at(self, q, order='F'):
        """Pose of the last joint, the wheel and the joints that move it; the Jacobian about the origin."""
        pose, columns = pin.SE3.Identity(), []
        for screw, angle, moving in zip(self.screws, q, self.moving, strict=True):
            columns.append(pose.act(screw).vector)
            pose = pose * pin.exp6(moving * angle * screw)
        J = np.array(np.transpose(columns), order=order)
        return (np.array(pose.rotation, order=order), pose.translation.copy(), self.wheel, self.moving), J

    def contact_velocity(self, q, v):
        """Of the lowest point of the disc, along the axes forwards, sideways and up."""
        (rotation, translation, _, _), J = self.at(q)
        a, up = rotation @ self.axle, np.array([0.0, 0.0, 1.0])
        side = np.array([a[0], a[1], 0.0]) / np.hypot(a[0], a[1])
        point = translation + rotation @ self.centre
        point += self.radius * (a[2] * side - np.hypot(a[0], a[1]) * up)
        linear, angular = np.split(J @ (self.moving * v), 2)
        return np.array([np.cross(side, up), side, up]) @ (linear + np.cross(angular, point))


@pytest.mark.parametrize('seed', range(10))
@pytest.mark.parametrize('order', 'CF')
def test_rows_of_contacts(seed, order):
    wheel, (q, v) = LeaningWheel(seed), usual(seed, 4, 4)
    at, J = wheel.at(q, order)
    rows, _ = kernels.contacts((at,), J, v)
    np.testing.assert_allclose(rows @ v, wheel.contact_velocity(q, v), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize('seed', range(10))
def test_bias_of_contacts_is_the_derivative_of_their_velocities(seed):
    wheel, (q, v), h = LeaningWheel(seed), usual(seed, 4, 4), 1e-4
    slip = [wheel.contact_velocity(q + k * h * v, v) for k in (-2, -1, 1, 2)]
    expected = (8 * (slip[2] - slip[1]) - slip[3] + slip[0]) / (12 * h)
    at, J = wheel.at(q)
    _, found = kernels.contacts((at,), J, v)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_contacts_of_several_wheels_are_sorted_by_direction():
    (q, v), wheels = usual(0, 4, 4), [LeaningWheel(seed) for seed in range(3)]
    J = wheels[0].at(q)[1]
    places = [wheel.at(q)[0] for wheel in wheels]
    rows, bias = kernels.contacts(tuple(places), J, v)
    for k, place in enumerate(places):
        own_rows, own_bias = kernels.contacts((place,), J, v)
        np.testing.assert_array_equal(rows[k::3], own_rows)
        np.testing.assert_array_equal(bias[k::3], own_bias)


def test_a_vertical_axle_is_refused():
    upright = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.3])
    with pytest.raises(ValueError, match='axle is vertical'):
        kernels.contacts(((np.eye(3), VECTOR, upright, SMALL),), np.zeros((6, 2)), SMALL)


@pytest.mark.parametrize('parents', [[0, 0], [0, 1]])
def test_rigid_torques_of_two_point_masses_on_vertical_slides(parents):
    # Each slide moves a mass along z, in the frame of the root or of the first one.
    body = [*np.eye(3).ravel(), 0, 0, 0, 2.0, 0, 0, 0, *np.zeros(6)]
    q, v, a = usual(1, (2, 5), (2, 5), (2, 5))
    slides, gravity = np.ones(2, bool), np.array([0.0, 0.0, -9.81])
    Q, rigid = kernels.rigid_torques(q, v, a, np.array(parents), slides, np.array([body, body]), gravity)
    second = a[1] + (a[0] if parents[1] else 0.0)
    first = 2.0 * a[0] + (2.0 * second if parents[1] else 0.0)
    weight = np.array([[39.24], [19.62]] if parents[1] else [[19.62], [19.62]])
    np.testing.assert_allclose(Q, np.tile(weight, 5))
    np.testing.assert_allclose(rigid, weight + np.array([first, 2.0 * second]))


@pytest.mark.parametrize('parents', [[1, 0], [0, 2], [0, -1]])
def test_rigid_torques_refuses_a_link_before_its_parent(parents):
    states, bodies = np.zeros((3, 2, 4)), np.zeros((2, 22))
    with pytest.raises(IndexError):
        kernels.rigid_torques(*states, np.array(parents), np.zeros(2, bool), bodies, np.zeros(3))


CALLS = {
    'consistent': (np.zeros(6), np.zeros(6), VECTOR, np.zeros(3), 0.1, np.ones(5)),
    'is_within': (VECTOR, VECTOR, VECTOR),
    'is_near': (VECTOR, VECTOR, VECTOR),
    'quintic': (np.zeros((6, 3)), 0.5, np.zeros(3)),
    'feedback': (*[VECTOR] * 7, np.zeros(3, bool), VECTOR),
    'complete': (np.zeros(3), np.arange(3), np.arange(3), np.eye(3), VECTOR, VECTOR),
    'release': (np.zeros(3), np.eye(3), np.arange(3)),
    'unconstrained': (VECTOR, np.eye(3)),
    'forces': (np.eye(3), *[VECTOR] * 5),
    'limited': (VECTOR, VECTOR, VECTOR, 0.1, VECTOR),
    'observed': (VECTOR, np.zeros((5, 3)), np.zeros((3, 3)), *[VECTOR] * 4, 0.1, 25.0),
    'solved': (np.eye(3), VECTOR),
    'solved_part': (np.eye(3), VECTOR, np.ones(3, bool)),
    'constrained': (np.eye(3), np.eye(3), VECTOR, VECTOR),
    'end_stop_torque': (VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR),
    'moved': (VECTOR, VECTOR, 0.1),
    'nearest_within': (VECTOR, VECTOR, np.eye(3), VECTOR, 1e-9),
    'decay_in_time': (VECTOR, VECTOR, VECTOR, VECTOR, 40.0, 0.02),
    'follow': (np.zeros((4, 3)), VECTOR, VECTOR, 0.1, 0.1, np.zeros(3, bool), 9.0, 0.01, 0.01, 0.1, 0.1),
    'between': (VECTOR, VECTOR, VECTOR),
    'in_proportion': (VECTOR, VECTOR, VECTOR, VECTOR, 0.1),
    'fastest_point': (
        (np.eye(3), VECTOR) * 3,
        np.zeros(3, np.intp),
        np.zeros((3, 6)),
        np.zeros(2, np.intp),
        np.zeros((2, 3)),
        VECTOR,
    ),
    'friction': (VECTOR, np.ones((6, 3)), True),
    'command': (VECTOR, VECTOR, np.arange(3), VECTOR, VECTOR, VECTOR),
    'folded': (np.arange(3), VECTOR, np.eye(3), VECTOR, VECTOR, np.eye(3), np.zeros(3)),
    'add_wrench': (np.zeros(5), np.eye(3), VECTOR, np.zeros(12), np.zeros(6), np.zeros((6, 5)), np.zeros(5)),
    'contacts': (((np.eye(3), VECTOR, WHEEL, np.zeros(5)),), np.zeros((6, 5)), np.zeros(5)),
    'rigid_torques': (
        *np.zeros((3, 3, 5)),
        np.zeros(3, np.intp),
        np.zeros(3, bool),
        np.zeros((3, 22)),
        np.zeros(3),
    ),
}


@pytest.mark.parametrize('name', CALLS)
def test_a_wrong_argument_is_an_error_and_never_a_wrong_address(name):
    kernel, good = getattr(kernels, name), CALLS[name]
    kernel(*good)
    for arguments in ((), good[:-1], (*good, VECTOR)):
        with pytest.raises(TypeError):
            kernel(*arguments)
    for i, argument in enumerate(good):
        if isinstance(argument, bool):
            continue
        wrong = [None, 'x', SMALL, np.zeros(4)]
        if isinstance(argument, np.ndarray):
            wrong += [0.0, argument.astype(np.float32)]
            is_vector = argument.ndim == 1 and name not in ('friction', 'solved')  # which take any order
            wrong += [np.stack([argument, argument], axis=-1)[..., 0]] if is_vector else []
        for value in wrong:
            with pytest.raises(TypeError):
                kernel(*good[:i], value, *good[i + 1 :])


@pytest.mark.parametrize(
    'wheel', [(), (np.eye(3), VECTOR, WHEEL, VECTOR), (np.eye(3), VECTOR, SMALL, np.zeros(5))]
)
def test_contacts_of_something_else_are_an_error(wheel):
    with pytest.raises(TypeError):
        kernels.contacts((wheel,), np.zeros((6, 5)), np.zeros(5))


def read_only(*shape):
    x = np.zeros(shape)
    x.flags.writeable = False
    return x


@pytest.mark.parametrize(
    'call',
    [
        lambda: kernels.quintic(np.zeros((6, 3)), 0.5, read_only(3)),
        lambda: kernels.consistent(*np.zeros((2, 6)), read_only(3), VECTOR.copy(), 0.1, BOUNDS),
        lambda: kernels.consistent(*np.zeros((2, 6)), VECTOR.copy(), read_only(3), 0.1, BOUNDS),
        lambda: kernels.follow(read_only(4, 3), VECTOR, VECTOR, 0.0, 0.0, np.zeros(3, bool), *np.ones(5)),
        lambda: kernels.observed(VECTOR, read_only(5, 3), np.eye(3), *np.zeros((4, 3)), 0.1, 1.0),
        lambda: kernels.complete(read_only(2), *[np.array([0])] * 2, np.eye(2), *np.zeros((2, 2))),
        lambda: kernels.release(read_only(3), np.eye(3)[:1], np.array([0])),
        lambda: kernels.folded(
            np.arange(3), VECTOR, np.eye(3), VECTOR, VECTOR, read_only(3, 3), VECTOR.copy()
        ),
        lambda: kernels.folded(np.arange(3), VECTOR, np.eye(3), VECTOR, VECTOR, np.eye(3), read_only(3)),
        lambda: kernels.add_wrench(
            read_only(3), np.eye(3), VECTOR, np.zeros(12), np.zeros(6), np.zeros((6, 3)), VECTOR
        ),
    ],
)
def test_an_array_that_is_read_only_is_not_changed(call):
    with pytest.raises(ValueError, match='read-only'):
        call()


def test_every_kernel_is_described_and_every_description_has_a_kernel():
    described = re.findall(
        r'^def (\w+)\(', (ROOT / 'krang_dynamics' / 'kernels.pyi').read_text(), re.MULTILINE
    )
    assert sorted(described) == sorted(name for name in dir(kernels) if not name.startswith('_'))
