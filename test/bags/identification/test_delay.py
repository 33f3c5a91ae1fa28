"""The delay of a signal that is known."""

import numpy as np
import pytest

from krang_dynamics.bags.identification.delay import DELAYS, at_delay, estimate_delay
from krang_dynamics.bags.identification.least_squares import TriangularFactor


def signal(t):
    return np.sin(9 * t) + 0.5 * np.cos(23 * t)


@pytest.mark.parametrize('delay', [-0.003, 0.0, 0.0047, 0.02])
def test_a_delay_is_found(delay):
    t = np.arange(0, 20, 0.04)
    noise = 0.02 * np.random.default_rng(1).normal(size=len(t))
    efforts = np.column_stack([2 * signal(t + shift - delay) + noise for shift in DELAYS])
    factor = TriangularFactor.of(signal(t)[:, None], efforts)
    found = estimate_delay([factor], [(np.zeros(1), np.full(1, 10.0))])
    assert found == pytest.approx(delay, abs=2e-4)


def test_a_constant_effort_has_no_delay():
    t = np.arange(0, 20, 0.04)
    efforts = np.ones((len(t), len(DELAYS))) + 0.01 * np.random.default_rng(1).normal(size=(len(t), 1))
    factor = TriangularFactor.of(np.ones((len(t), 1)), efforts)
    assert estimate_delay([factor], [(np.zeros(1), np.full(1, 10.0))]) == 0.0


def test_the_weights_interpolate_between_the_delays():
    for delay in (-0.0093, 0.0, 0.0151, 0.0395):
        assert at_delay(delay) @ signal(0.3 + DELAYS) == pytest.approx(signal(0.3 + delay), abs=1e-6)
