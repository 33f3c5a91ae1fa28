"""Profiles of streamed motion: limits, goal and continuity, from any start."""

import numpy as np
import pytest
from harness import robot_named
from hypothesis import given, settings
from hypothesis import strategies as st

from krang_dynamics.control.reference.stream import SetPointProfile, StreamLimits, braking, stop_position

NUMBER = st.floats(-3, 3)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(NUMBER, NUMBER, NUMBER, st.floats(0.1, 3), st.floats(0.1, 20))
def test_a_profile_is_limited_continuous_and_ends_at_its_goal(p, v, goal, speed, acceleration):
    start = np.array([[p], [v]])
    limits = np.array([speed]), np.array([acceleration])
    profile = SetPointProfile(start, np.array([goal]), *limits, np.zeros(1))
    dt = max(profile.end, 1e-3) / 1000
    q, u = np.array([profile.sample(k * dt)[:2, 0] for k in range(1050)]).T
    assert q[0] == pytest.approx(p, abs=1e-9)
    assert u[0] == pytest.approx(v if profile.end else 0.0, abs=1e-9)
    assert (np.abs(u) <= max(speed, abs(v)) + 1e-9).all()
    assert (np.abs(np.diff(u)) <= acceleration * dt + 1e-7).all()
    np.testing.assert_allclose(np.diff(q), (u[1:] + u[:-1]) / 2 * dt, atol=acceleration * dt**2 + 1e-7)
    assert (q[-1], u[-1]) == (goal, 0.0)


def test_another_profile_to_the_same_goal_continues_the_first():
    start, goal = np.array([[0.0], [0.7]]), np.array([1.0])
    one = SetPointProfile(start, goal, np.ones(1), np.full(1, 2.0), np.zeros(1))
    for t in np.linspace(0, one.end, 23):
        other = SetPointProfile(one.sample(t)[:2], goal, np.ones(1), np.full(1, 2.0), np.zeros(1))
        for rest in np.linspace(0, 1, 20):
            np.testing.assert_allclose(other.sample(rest), one.sample(t + rest), atol=1e-7)


def test_a_stop_takes_the_shortest_way_and_more_braking_before_a_limit():
    start = np.array([[0.0, 0.0, 0.0], [1.0, -1.0, 1.0]])
    a = np.full(3, 2.0)
    np.testing.assert_allclose(stop_position(start, a), [0.25, -0.25, 0.25])
    lower, upper = np.array([-1.0, -0.1, -1.0]), np.array([1.0, 1.0, np.inf])
    np.testing.assert_allclose(braking(start, a, lower, upper), [2.0, 5.0, 2.0])


def test_by_default_the_speed_of_the_urdf_is_reached_in_half_a_second():
    arm = robot_named('anthropomorphic')
    limits = StreamLimits.of(arm)
    np.testing.assert_array_equal(limits.velocity, arm.velocity_limits)
    np.testing.assert_array_equal(limits.acceleration, 2 * arm.velocity_limits)
    pendubot = StreamLimits.of(robot_named('pendubot'))
    assert np.isfinite(pendubot.velocity).all()
