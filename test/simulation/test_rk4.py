"""Runge-Kutta against the harmonic oscillator."""

import numpy as np

from krang_dynamics.simulation.rk4 import rk4_step


def error(steps):
    q, v = np.array([1.0]), np.array([0.0])
    for _ in range(steps):
        q, v = rk4_step(lambda q, v: -q, q, v, 1 / steps)
    return max(abs(q[0] - np.cos(1)), abs(v[0] + np.sin(1)))


def test_given_half_the_step_then_a_sixteenth_of_the_error():
    assert error(20) < 1e-7
    np.testing.assert_allclose(np.log2(error(20) / error(40)), 4, atol=0.1)


def test_given_a_damped_swing_then_the_velocity_of_every_stage_counts():
    q, v = np.array([0.0]), np.array([1.0])
    for _ in range(100):
        q, v = rk4_step(lambda q, v: -3 * v, q, v, 0.01)
    np.testing.assert_allclose([q[0], v[0]], [(1 - np.exp(-3)) / 3, np.exp(-3)], atol=1e-8)
