"""Streamed motion: limits of velocity, acceleration and jerk, goal and continuity, from any start."""

import numpy as np
import pytest
from harness import robot_named
from hypothesis import given, settings
from hypothesis import strategies as st

from krang_dynamics.control.reference.stream import StreamedMotion, StreamLimits

NUMBER = st.floats(-3, 3)
FREE = np.array([-np.inf]), np.array([np.inf])


def limits(speed, acceleration, jerk, n=1):
    return StreamLimits(*(np.full(n, x) for x in (speed, acceleration, jerk)))


def sampled(motion, end, count=1000):
    """Times and (count, 3, n) positions, velocities and accelerations."""
    times = np.linspace(0, end, count)
    return times, np.array([motion.sample(t)[:3] for t in times])


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(NUMBER, st.floats(-1, 1), NUMBER, st.floats(0.1, 3), st.floats(0.1, 20), st.floats(1, 100))
def test_a_motion_is_limited_continuous_and_ends_at_its_goal(p, share, goal, speed, acceleration, jerk):
    start = np.array([[p], [share * speed], [0.0]])
    motion = StreamedMotion(start, limits(speed, acceleration, jerk), FREE, np.zeros(1), np.array([goal]))
    times, path = sampled(motion, max(motion.end, 1e-3))
    q, v, a = path[:, :, 0].T
    dt = times[1]
    assert q[0] == pytest.approx(p, abs=1e-9)
    assert (np.abs(v) <= max(speed, abs(v[0])) + 1e-6).all()
    assert (np.abs(a) <= acceleration + 1e-6).all()
    assert (np.abs(np.diff(a)) <= jerk * dt + 1e-6).all()
    np.testing.assert_allclose(np.diff(q), (v[1:] + v[:-1]) / 2 * dt, atol=acceleration * dt**2 + 1e-7)
    np.testing.assert_array_equal(motion.sample(motion.end + 1)[:, 0], [goal, 0, 0, 0])


def test_a_velocity_is_reached_and_kept_and_rest_is_reached_from_any_state():
    start = np.array([[0.2, 0.1], [0.5, -0.4], [1.0, 0.0]])
    within = np.full(2, -np.inf), np.full(2, np.inf)
    moving = StreamedMotion(
        start, limits(1.0, 2.0, 20.0, 2), within, np.zeros(2), velocity=np.array([0.3, 0.0])
    )
    np.testing.assert_allclose(moving.sample(10.0)[1:3], [[0.3, 0.0], [0, 0]], atol=1e-9)
    stop = StreamedMotion(start, limits(1.0, 2.0, 20.0, 2), within, np.zeros(2))
    np.testing.assert_array_equal(stop.sample(stop.end)[1:], 0)
    _, path = sampled(stop, stop.end)
    assert (np.abs(np.diff(path[:, 2], axis=0)) <= 20 * stop.end / 999 + 1e-9).all()


def test_a_joint_that_would_pass_its_limit_brakes_harder():
    start = np.array([[0.0], [1.0], [0.0]])
    bounds = np.array([-1.0]), np.array([0.1])
    for goal in (None, np.array([0.05])):
        motion = StreamedMotion(start, limits(1.0, 2.0, 20.0), bounds, np.zeros(1), goal)
        _, path = sampled(motion, motion.end)
        assert path[:, 0].max() <= 0.1 + 1e-6
        np.testing.assert_array_equal(motion.sample(motion.end)[1:], 0)


def test_by_default_the_speed_of_the_urdf_is_reached_in_half_a_second():
    arm = robot_named('anthropomorphic')
    default = StreamLimits.of(arm)
    np.testing.assert_array_equal(default.velocity, arm.velocity_limits)
    np.testing.assert_array_equal(default.acceleration, 2 * arm.velocity_limits)
    np.testing.assert_allclose(default.jerk, 40 * arm.velocity_limits)
    pendubot = StreamLimits.of(robot_named('pendubot'))
    assert np.isfinite(pendubot.velocity).all()


def test_a_stop_out_of_a_strong_acceleration_hardly_adds_speed():
    """With the jerk limit of the stream alone, 20 rad/s2 would add 5 rad/s first."""
    start = np.array([[0.0], [1.0], [20.0]])
    motion = StreamedMotion(start, limits(1.0, 2.0, 40.0), FREE, np.zeros(1))
    _, path = sampled(motion, motion.end)
    assert path[:, 1].max() <= 1.05 + 1e-9


@pytest.mark.parametrize('range_', [(-3.0, -0.1), (0.5, 5.7)])
def test_a_joint_whose_range_excludes_zero_keeps_its_limits(range_):
    lower, upper = (np.array([x]) for x in range_)
    start = np.array([(lower + upper) / 2, [0.0], [0.0]])
    motion = StreamedMotion(start, limits(1.0, 2.0, 40.0), (lower, upper), np.zeros(1), goal=start[0] + 0.2)
    _, path = sampled(motion, motion.end)
    assert 0.1 < np.abs(path[:, 2]).max() <= 2.0 + 1e-9
    np.testing.assert_allclose(motion.sample(9.0)[0], start[0] + 0.2)
