"""Outliers are replaced; what only looks like one is kept."""

import numpy as np
import pytest
from bags.bagging import motion, torques
from scipy.ndimage import median_filter

import krang_dynamics as kd
from krang_dynamics.bags.validation.outliers import _median, replace_outliers


@pytest.fixture
def samples():
    robot = kd.load_robot('planar_2r')
    t, q, v, a = motion(robot, 10.0, 100.0)
    return robot, t, q, v, torques(robot, q, v, a)


def test_single_wrong_samples_are_interpolated(samples):
    robot, t, q, v, effort = samples
    clean = [x.copy() for x in (q, v, effort)]
    q[100, 0] += 1.0
    v[300, 1] = 1000.0
    effort[500:502, 0] = -400.0
    found = replace_outliers(robot, t, q, v, effort)
    assert [tuple(place) for place in np.argwhere(found)] == [(100, 0), (300, 1), (500, 0), (501, 0)]
    for x, y in zip((q, v, effort), clean, strict=True):
        np.testing.assert_allclose(x, y, atol=0.02 * np.ptp(y))


def test_noise_quantised_effort_and_velocities_in_degrees_are_kept(samples):
    robot, t, q, v, effort = samples
    random = np.random.default_rng(1)
    effort = np.round((effort + 0.5 * random.normal(size=effort.shape)) / 2) * 2
    v = np.degrees(v) + 0.05 * random.normal(size=v.shape)
    assert not replace_outliers(robot, t, q, v, effort).any()


def test_a_missing_velocity_stays_missing(samples):
    robot, t, q, v, effort = samples
    v[:, 0] = np.nan
    assert not replace_outliers(robot, t, q, v, effort).any()
    assert np.isnan(v[:, 0]).all()


def test_the_median_of_neighbours_is_that_of_scipy():
    x = np.random.default_rng(2).integers(0, 9, (200, 3)).astype(float)
    np.testing.assert_array_equal(_median(x), median_filter(x, size=(5, 1), mode='nearest'))
