"""Verdicts on recordings of a model that lacks one effect each."""

import numpy as np
import pytest

from krang_dynamics.bags.validation.statistics import CorrelationSums
from krang_dynamics.bags.validation.verdict import verdict
from krang_dynamics.bags.validation.window_comparison import PlotSeries

T = np.linspace(0, 20, 2000)
Q = np.sin(T) + 0.5 * np.sin(2.3 * T)
V, A = np.gradient(Q, T), np.gradient(np.gradient(Q, T), T)
MODEL = 5.0 * np.cos(Q)  # gravity [N m]
NOISE = 0.02 * np.random.default_rng(1).standard_normal(len(T))


def judged(measured, has_load_hint=False, motion=1.0):
    column = measured[:, None]
    predicted = {'friction': MODEL[:, None]}
    series = PlotSeries(T, Q[:, None], motion * V[:, None], motion * A[:, None], column, predicted)
    return verdict(series, 0, CorrelationSums(column, MODEL[:, None]).figures(0), has_load_hint)


@pytest.mark.parametrize(
    ('missing', 'hint', 'word'),
    [
        (0.0, False, 'good'),
        (3.0 * np.sign(V), False, 'friction unknown'),
        (4.0 * V, False, 'friction unknown'),
        (2.0 * A, False, 'rotor missing'),
        (2.5 * np.cos(Q), True, 'payload?'),
        (4.0, False, 'offset'),
        (4.0 * np.sin(40 * Q), False, 'unexplained'),
    ],
)
def test_the_missing_effect_is_named(missing, hint, word):
    assert judged(MODEL + missing + NOISE, hint).startswith(word)


def test_a_joint_at_rest_is_not_judged():
    assert judged(MODEL + 4.0, motion=1e-3).startswith('hardly moved')
