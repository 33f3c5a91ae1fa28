"""Residuals of a model that lacks one effect each, and loads that only robot or model carries."""

import numpy as np
import pytest
from bags.bagging import motion

import krang_dynamics as kd
from krang_dynamics.bags.validation.residual import gravity_columns, load_hint, residual_hints, verdict
from krang_dynamics.bags.validation.window_comparison import PlotSeries

T = np.linspace(0, 20, 2000)
Q = np.sin(T) + 0.5 * np.sin(2.3 * T)
V, A = np.gradient(Q, T), np.gradient(np.gradient(Q, T), T)
MODEL = 5.0 * np.cos(Q)  # gravity [N m]
NOISE = 0.02 * np.random.default_rng(1).standard_normal(len(T))


def judged(measured, has_load_hint=False, moved=1.0):
    column = measured[:, None]
    predicted = {'friction': MODEL[:, None]}
    series = PlotSeries(T, Q[:, None], moved * V[:, None], moved * A[:, None], column, predicted)
    return verdict(series, 0, has_load_hint)


@pytest.mark.parametrize(
    ('missing', 'hint', 'word'),
    [
        (0.0, False, 'good'),
        (3.0 * np.sign(V), False, 'friction unknown'),
        (4.0 * V, False, 'friction unknown'),
        (2.0 * A, False, 'rotor missing'),
        (2.5 * np.cos(Q), True, 'payload?'),
        (0.4 * np.cos(Q), True, 'payload?'),
        (0.4 * np.cos(Q), False, 'good'),
        (4.0, False, 'offset'),
        (4.0 * np.sin(40 * Q), False, 'unexplained'),
    ],
)
def test_the_missing_effect_is_named(missing, hint, word):
    assert judged(MODEL + missing + NOISE, hint).startswith(word)


def between(begin, end):
    return (begin <= T) & (end >= T)


@pytest.mark.parametrize(
    ('pushes', 'words'),
    [
        (4.0 * between(8, 8.5), 'good; except 8.0 .. 8.5 s: a push'),
        (1.5 * between(3, 3.2) - 4.0 * between(8, 8.5), 'good; except 3.0 .. 3.2 s, 8.0 .. 8.5 s: a push'),
        (4.0 * between(8, 8.5) + 3.0 * np.sign(V), 'friction unknown: the residual follows the velocity'),
        (4.0 * between(8, 8.5) + 4.0, 'offset: the residual is nearly constant'),
        (1.0 * (np.arange(len(T)) % 200 == 0), 'good'),
    ],
)
def test_a_push_is_not_the_fault_of_the_model(pushes, words):
    found = judged(MODEL + pushes + NOISE)
    assert found.startswith(words) if 'except' in words else found == words


def test_friction_of_a_joint_that_moves_shortly_is_no_push():
    v = np.where(between(8, 9), np.sin(2 * np.pi * T), 0.0)
    column = (MODEL + 3.0 * np.sign(v) + NOISE)[:, None]
    series = PlotSeries(T, Q[:, None], v[:, None], 0 * v[:, None], column, {'friction': MODEL[:, None]})
    assert verdict(series, 0, False).startswith('friction unknown')


def test_a_joint_at_rest_is_not_judged():
    assert judged(MODEL + 4.0, moved=1e-3).startswith('hardly moved')


@pytest.fixture(scope='module')
def robot():
    return kd.load_robot('anthropomorphic')


def test_columns_are_the_change_of_gravity_torque_by_a_load(robot):
    q, com = robot.home, np.array([0.02, -0.03, 0.05])
    change = robot.with_payload('tool', 1.5, com).gravity_torque(q) - robot.gravity_torque(q)
    np.testing.assert_allclose(gravity_columns(robot, q, 'tool') @ [1.5, *(1.5 * com)], change, atol=1e-12)


@pytest.mark.parametrize(('mass', 'word'), [(1.2, 'more than the model'), (-1.2, 'less than the model')])
def test_a_load_is_recognised_despite_friction(robot, mass, word):
    _, q, v, _ = motion(robot, 20.0, rate=20)
    loaded = robot.with_payload('tool', 1.2, (0, 0, 0.1))
    residual = np.array([loaded.gravity_torque(x) - robot.gravity_torque(x) for x in q]) * np.sign(mass)
    residual += 0.3 * np.sign(v) + 0.1 * v
    hint = load_hint(robot, q, v, residual, np.ones(6, dtype=bool))
    assert f'1.20 kg {word} at tool' in hint


def test_noise_is_no_load(robot):
    _, q, v, _ = motion(robot, 20.0, rate=20)
    noise = np.random.default_rng(1).normal(size=q.shape)
    assert load_hint(robot, q, v, noise, np.ones(6, dtype=bool)) is None


@pytest.mark.parametrize(
    ('kind', 'words'),
    [
        ('a', 'joint_3: the residual looks like a rotor of 6 kg m2'),
        ('v', 'joint_3: the residual looks like viscous friction of 6 N m s/rad'),
        ('sign', 'joint_3: the residual looks like Coulomb friction of 6 N m'),
    ],
)
def test_what_is_left_over_is_named(robot, kind, words):
    _, _, v, a = motion(robot, 20.0, rate=20)
    residual = 0.2 * np.random.default_rng(1).normal(size=v.shape)
    residual[:, 2] += 6 * {'a': a, 'v': v, 'sign': np.sign(v)}[kind][:, 2]
    assert residual_hints(robot, v, a, residual, np.ones(6, dtype=bool)) == [words]
