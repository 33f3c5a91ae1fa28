"""Motions are smooth, at rest at both ends, within limits, and have the intended shape."""

import numpy as np
import pytest

import krang_dynamics as kd
from krang_dynamics.scenarios.motions import (
    JointMotion,
    balanced_pitch,
    figure_of_eight,
    krang_at_full_speed,
    smooth_step,
)

KRANG = kd.load_robot('krang')


@pytest.fixture(scope='module')
def full_speed():
    return krang_at_full_speed(KRANG, step=0.02)


@pytest.fixture(scope='module')
def eight():
    return figure_of_eight()


def rates(motion, step=1e-3):
    """Times, velocities and accelerations of a motion, by differences."""
    times = np.arange(0, motion.times[-1], step)
    v = np.gradient(motion.at(times), step, axis=0)
    return times, v, np.gradient(v, step, axis=0)


def test_a_smooth_step_rests_at_both_ends():
    s = np.linspace(-0.5, 1.5, 20001)
    x = smooth_step(s)
    assert x[0] == 0
    assert x[-1] == 1
    v = np.gradient(x, s)
    a = np.gradient(v, s)
    assert v.max() == pytest.approx(1.875, rel=1e-4)
    assert (v > -1e-12).all()
    for end in (0.0, 1.0):
        near = np.abs(s - end) < 2e-4
        assert np.abs(v[near]).max() < 1e-5
        assert np.abs(a[near]).max() < 0.05


def test_a_motion_has_the_same_values_as_points_and_as_a_function():
    times = np.arange(0, 2, 0.02)
    motion = JointMotion(('a', 'b'), times, np.outer(smooth_step(times / 1.5), [1.0, -2.0]))
    points = motion.trajectory
    assert points.joint_names == ('a', 'b')
    np.testing.assert_allclose(points.positions, motion.at(times), atol=1e-12)
    h = 1e-5
    np.testing.assert_allclose(
        points.velocities[5:-5], ((motion.at(times + h) - motion.at(times - h)) / (2 * h))[5:-5], atol=1e-6
    )
    for x in (points.velocities, points.accelerations):
        assert not x[[0, -1]].any()
    np.testing.assert_array_equal(motion.at(-1.0), motion.at(0.0))
    np.testing.assert_array_equal(motion.at(99.0), motion.at(times[-1]))


def test_krang_goes_there_and_back_from_home(full_speed):
    assert full_speed.names == KRANG.joint_names
    for time in (0.0, full_speed.times[-1]):
        np.testing.assert_allclose(full_speed.at(time)[1:], KRANG.home[1:], atol=1e-9)
    q = full_speed.at(full_speed.times)
    assert (np.ptp(q, axis=0)[1:] > 0.25).all()
    assert (q >= KRANG.lower).all()
    assert (q <= KRANG.upper).all()


def test_every_joint_of_krang_reaches_its_full_speed_and_no_more(full_speed):
    _, v, _ = rates(full_speed)
    np.testing.assert_allclose(np.abs(v).max(axis=0)[1:], KRANG.velocity_limits[1:], rtol=0.02)


def test_krang_keeps_its_balance(full_speed):
    for q in full_speed.at(full_speed.times[::10]):
        assert abs(KRANG.center_of_mass(q)[0]) < 1e-6
    q = KRANG.home
    q[0] = balanced_pitch(KRANG, q)
    assert abs(KRANG.center_of_mass(q)[0]) < 1e-12


def test_the_eight_is_driven_at_one_metre_per_second_and_one_radian_per_second(eight):
    times, v, _ = rates(eight)
    middle = (times > 5) & (times < times[-1] - 5)
    assert np.hypot(v[:, 0], v[:, 1])[middle] == pytest.approx(np.ones(middle.sum()), rel=0.03)
    assert v[middle, 2] == pytest.approx(np.ones(middle.sum()), rel=0.01)
    assert np.hypot(v[:, 0], v[:, 1]).max() < 1.05


def test_the_eight_has_the_published_size(eight):
    x, y, _ = eight.at(eight.times).T
    length = np.hypot(np.diff(x), np.diff(y)).sum()
    assert length == pytest.approx(6.0 + 3 * np.pi, rel=0.01)
    # Two circles of 1 m to the left and right of the lines.
    v = np.gradient(np.array([x, y]), eight.times, axis=1)
    heading = np.unwrap(np.arctan2(v[1], v[0])[5:-5])
    assert heading.max() - heading[0] == pytest.approx(1.5 * np.pi, abs=0.05)
    assert heading[-1] - heading[0] == pytest.approx(0.0, abs=0.05)


def test_the_eight_is_smooth(eight):
    _, v, a = rates(eight)
    assert np.abs(v[[0, -1]]).max() < 1e-3
    inner = a[20:-20]
    assert np.abs(inner).max() < 3.0
    assert np.abs(np.diff(inner, axis=0)).max() < 0.05  # per millisecond
