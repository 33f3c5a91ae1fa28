"""Runs, filters and accelerations."""

import numpy as np
import pytest

from krang_dynamics.bags.validation.filtering import Filtering, filtered_motions
from krang_dynamics.bags.validation.recording import RecordedSamples
from krang_dynamics.errors import KrangError

OMEGA = 2 * np.pi * 1.5


def sine(t, noise=0.0):
    x = np.sin(OMEGA * t)[:, None]
    v = OMEGA * np.cos(OMEGA * t)[:, None]
    disturbed = v + noise * np.random.default_rng(3).normal(size=v.shape)
    return RecordedSamples(t, np.round(1e9 * t).astype(np.int64), x, disturbed, -x)


def test_without_a_filter_samples_are_unchanged_and_acceleration_is_the_central_difference():
    t = np.arange(0, 2, 0.005)
    (motion,) = filtered_motions(sine(t), Filtering())
    assert len(motion.t) == len(t)
    np.testing.assert_array_equal(motion.q, np.sin(OMEGA * t)[:, None])
    np.testing.assert_allclose(motion.a[1:-1, 0], -(OMEGA**2) * np.sin(OMEGA * t[1:-1]), atol=0.04)


def test_the_filter_has_zero_phase_and_unsettled_ends_are_dropped():
    t = np.arange(0, 10, 0.005)
    (motion,) = filtered_motions(sine(t, noise=0.5), Filtering(10.0))
    assert motion.t[0] == pytest.approx(0.25)
    gain = 1 / (1 + (1.5 / 10) ** 4)  # second order, applied forward and backward
    np.testing.assert_allclose(motion.q[:, 0], gain * np.sin(OMEGA * motion.t), atol=2e-4)
    np.testing.assert_allclose(motion.effort, -motion.q, atol=1e-12)
    assert np.abs(motion.a[:, 0] + OMEGA**2 * np.sin(OMEGA * motion.t)).std() < 0.1 * OMEGA**2


def test_acceleration_can_be_computed_from_position():
    t = np.arange(0, 2, 0.005)
    (motion,) = filtered_motions(sine(t, noise=1.0), Filtering(acceleration='position'))
    np.testing.assert_allclose(motion.a[3:-3, 0], -(OMEGA**2) * np.sin(OMEGA * t[3:-3]), atol=0.1)


def test_a_gap_splits_the_recording_and_jitter_does_not():
    t = np.concatenate([np.arange(0, 3, 0.01), np.arange(4, 6, 0.01)])
    t = t + np.random.default_rng(4).uniform(0, 0.004, len(t))
    first, second = filtered_motions(sine(t), Filtering(8.0))
    for motion, end in ((first, 3.0), (second, 6.0)):
        assert motion.t[-1] == pytest.approx(end - 2.5 / 8, abs=0.02)
        np.testing.assert_allclose(np.diff(motion.t), np.diff(motion.t)[0], rtol=1e-9)
        np.testing.assert_allclose(motion.q[:, 0], np.sin(OMEGA * motion.t), atol=6e-3)


def test_missing_velocities_are_differentiated():
    t = np.arange(0, 2, 0.005)
    samples = sine(t)
    samples.v[:] = np.nan
    (motion,) = filtered_motions(samples, Filtering())
    np.testing.assert_allclose(motion.v[2:-2, 0], OMEGA * np.cos(OMEGA * t[2:-2]), atol=0.01)


@pytest.mark.parametrize('cutoff', [-1.0, np.inf, np.nan])
def test_impossible_cutoffs_are_refused(cutoff):
    with pytest.raises(KrangError, match='--cutoff'):
        Filtering(cutoff)


def test_a_cutoff_above_half_the_rate_is_refused():
    with pytest.raises(KrangError, match='half the sample rate'):
        filtered_motions(sine(np.arange(0, 2, 0.01)), Filtering(60.0))


def test_runs_that_are_too_short_to_filter_are_dropped():
    assert filtered_motions(sine(np.arange(0, 0.4, 0.01)), Filtering(5.0)) == []
    assert filtered_motions(sine(np.arange(0, 0.1, 0.01)), Filtering()) == []
