"""Samples from any number of publishers become one state, joint by joint."""

import time

import numpy as np
import pytest

from krang_dynamics.safety.joint_buffer import MOST_LISTS, JointBuffer, JointSamples

NAMES = ('a', 'b', 'c')
NOW, CLOCK = 10.0, 1000.0  # steady, and the node's [s]
TIMEOUT = 0.1  # s


def message(position, names=NAMES, velocity=None, effort=(), stamp=CLOCK, arrival=NOW):
    velocity = np.zeros(len(position)) if velocity is None else velocity
    return JointSamples(names, np.array(position), np.array(velocity), np.array(effort), stamp, arrival)


@pytest.fixture
def buffer():
    return JointBuffer(NAMES)


def take(buffer, *args, **kwargs):
    return buffer.take(message(*args, **kwargs), NOW, CLOCK)


def test_joints_are_found_by_name(buffer):
    assert take(buffer, [3.0, 9.0, 1.0, 2.0], names=('c', 'x', 'a', 'b')) is None
    assert buffer.q.tolist() == [1.0, 2.0, 3.0]
    assert buffer.extra == {'x'}


def test_two_publishers_make_one_state(buffer):
    take(buffer, [1.0, 2.0], names=('a', 'b'))
    assert buffer.stale(NOW, CLOCK, TIMEOUT) is not None
    take(buffer, [3.0], names=('c',), stamp=CLOCK - 0.05)
    assert buffer.stale(NOW, CLOCK, TIMEOUT) is None
    assert buffer.q.tolist() == [1.0, 2.0, 3.0]


def test_a_late_publisher_does_not_undo_a_newer_one(buffer):
    take(buffer, [1.0, 1.0, 1.0])
    take(buffer, [5.0, 5.0], names=('a', 'b'), stamp=CLOCK - 0.01)
    assert buffer.q.tolist() == [1.0, 1.0, 1.0]


def test_a_repeated_stamp_is_ignored_joint_by_joint(buffer):
    take(buffer, [1.0], names=('a',), stamp=CLOCK)
    take(buffer, [2.0, 2.0, 2.0], stamp=CLOCK)
    assert buffer.q.tolist() == [1.0, 2.0, 2.0]


@pytest.mark.parametrize('invalid', [np.nan, np.inf])
def test_a_number_that_is_not_finite_is_refused_for_its_joint_alone(buffer, invalid):
    take(buffer, [1.0, 1.0, 1.0])
    reason = take(buffer, [2.0, invalid, 2.0], stamp=CLOCK + 0.1)
    assert "joint 'b'" in reason
    assert buffer.q.tolist() == [2.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ('wrong', 'reason'),
    [
        ({'names': ('a', 'a', 'b')}, "'a' occurs twice"),
        ({'names': ('x', 'x', 'b')}, "'x' occurs twice"),
        ({'names': ('a', 'b')}, '3 positions for 2 names'),
        ({'velocity': [1.0]}, '1 velocities for 3 names'),
        ({'effort': [1.0]}, '1 efforts for 3 names'),
        ({'stamp': np.nan}, 'stamp nan'),
        ({'stamp': -1.0}, 'stamp -1.0'),
        ({'stamp': CLOCK + 2.0}, '2.000 s ahead of the clock'),
    ],
)
def test_a_wrong_message_is_refused_with_the_reason_and_changes_nothing(buffer, wrong, reason):
    assert reason in take(buffer, [1.0, 1.0, 1.0], **wrong)
    assert not buffer.q.any()
    assert "'a' was never received" in buffer.stale(NOW, CLOCK, TIMEOUT)


def test_age_counts_from_arrival_and_from_the_stamp(buffer):
    take(buffer, [1.0, 1.0, 1.0])
    assert buffer.stale(NOW + 0.09, CLOCK + 0.09, TIMEOUT) is None
    assert "'a' is 0.110 s old" in buffer.stale(NOW + 0.11, CLOCK, TIMEOUT)
    assert "'a' is 0.110 s old" in buffer.stale(NOW, CLOCK + 0.11, TIMEOUT)


def test_an_unstamped_sample_is_as_old_as_its_arrival(buffer):
    take(buffer, [1.0, 1.0, 1.0], stamp=0.0)
    assert buffer.stale(NOW + 0.09, CLOCK + 50.0, TIMEOUT) is None
    assert buffer.stale(NOW + 0.11, CLOCK, TIMEOUT) is not None


@pytest.mark.parametrize('arrival', [NOW + 1e6, np.inf, np.nan])
def test_nothing_arrives_later_than_now(buffer, arrival):
    take(buffer, [1.0, 1.0, 1.0], arrival=arrival)
    assert buffer.stale(NOW + 0.2, CLOCK, TIMEOUT) is not None


def test_a_steady_clock_that_goes_back_makes_samples_old(buffer):
    take(buffer, [1.0, 1.0, 1.0])
    assert buffer.stale(NOW - 1.0, CLOCK, TIMEOUT) is not None


@pytest.mark.parametrize(('now', 'clock'), [(np.nan, CLOCK), (NOW, np.nan)])
def test_a_clock_that_is_no_number_makes_samples_old(buffer, now, clock):
    take(buffer, [1.0, 1.0, 1.0])
    assert buffer.stale(now, clock, TIMEOUT) is not None


def test_after_discarded_stamps_one_earlier_sample_is_accepted(buffer):
    take(buffer, [1.0, 1.0, 1.0])
    buffer.reset_stamps()
    take(buffer, [2.0, 2.0, 2.0], stamp=CLOCK - 500.0)
    take(buffer, [3.0, 3.0, 3.0], stamp=CLOCK - 501.0)
    assert buffer.q.tolist() == [2.0, 2.0, 2.0]


def test_a_clock_that_was_set_back_is_reported_and_states_are_accepted_again(buffer):
    take(buffer, [1.0, 1.0, 1.0])
    assert 'set back' in buffer.stale(NOW + 0.01, CLOCK - 0.45, TIMEOUT)
    buffer.begin_step()
    sample = message([2.0, 2.0, 2.0], stamp=CLOCK - 0.45, arrival=NOW + 0.01)
    assert buffer.take(sample, NOW + 0.01, CLOCK - 0.45) is None
    assert buffer.q.tolist() == [2.0, 2.0, 2.0]
    assert 'set back by 0.450 s' in buffer.problem
    assert buffer.increase == 0.0
    assert buffer.stale(NOW + 0.01, CLOCK - 0.45, TIMEOUT) is None
    buffer.begin_step()
    assert buffer.problem is None


def test_states_without_a_stamp_follow_those_with_one(buffer):
    take(buffer, [1.0, 1.0, 1.0])
    buffer.take(message([2.0, 2.0, 2.0], stamp=0.0, arrival=NOW + 0.01), NOW + 0.01, CLOCK + 0.01)
    assert buffer.q.tolist() == [2.0, 2.0, 2.0]
    buffer.take(message([3.0, 3.0, 3.0], stamp=CLOCK + 0.02, arrival=NOW + 0.02), NOW + 0.02, CLOCK + 0.02)
    assert buffer.q.tolist() == [3.0, 3.0, 3.0]


def test_a_missing_velocity_is_an_error_by_default(buffer):
    assert 'velocity is missing' in take(buffer, [1.0, 1.0, 1.0], velocity=[])
    assert 'velocity is missing' in take(buffer, [1.0, 1.0, 1.0], velocity=[0.0, np.nan, 0.0])


def test_a_missing_velocity_may_count_as_zero():
    buffer = JointBuffer(NAMES, 'zero')
    assert take(buffer, [1.0, 1.0, 1.0], velocity=[3.0, np.nan, 3.0]) is None
    assert buffer.v.tolist() == [3.0, 0.0, 3.0]


def test_a_missing_velocity_may_be_differentiated_by_the_stamps():
    buffer = JointBuffer(NAMES, 'differentiate')
    buffer.ahead = 1.0
    take(buffer, [1.0, 1.0, 1.0], velocity=[])
    assert buffer.v.tolist() == [0.0, 0.0, 0.0]
    take(buffer, [1.5, 1.0, 0.5], velocity=[], stamp=CLOCK + 0.5)
    assert buffer.v.tolist() == [1.0, 0.0, -1.0]


def test_effort_is_not_kept_from_an_older_message(buffer):
    take(buffer, [1.0, 1.0, 1.0], effort=[5.0, 5.0, 5.0])
    take(buffer, [1.0, 1.0, 1.0], stamp=CLOCK + 0.1)
    assert np.isnan(buffer.effort).all()


def test_memory_does_not_grow_with_invalid_names(buffer):
    for k in range(10 * MOST_LISTS):
        take(buffer, [1.0], names=(f'invalid_{k}',))
    assert len(buffer._maps) <= MOST_LISTS
    assert len(buffer.extra) <= MOST_LISTS


def test_very_many_names_do_not_delay_the_loop(buffer):
    names = tuple(map(str, range(20_000)))
    begin = time.monotonic()
    assert 'occurs twice' in take(buffer, [], names=(*names, '7'))
    assert 'positions' in take(buffer, [], names=names)
    assert time.monotonic() - begin < 0.5


def test_a_continuous_joint_is_differentiated_the_short_way_round():
    buffer = JointBuffer(NAMES, 'differentiate', np.array([True, False, False]))
    take(buffer, [3.1, 0.0, 0.0], velocity=[])
    take(buffer, [-3.1, 0.0, 0.0], velocity=[], stamp=CLOCK + 0.05)
    assert buffer.v[0] == pytest.approx((2 * np.pi - 6.2) / 0.05, rel=1e-6)


def test_the_rate_of_states_is_infinite_while_time_waits_for_a_command(buffer):
    for _ in range(2):
        take(buffer, [1.0, 1.0, 1.0])
        buffer.take(message([1.0], names=('nobody',)), NOW, CLOCK)
    assert buffer.state_rate.hertz == np.inf
    take(buffer, [1.0, 1.0, 1.0], stamp=CLOCK + 0.01)
    assert (buffer.state_rate.hertz, buffer.state_rate.count) == (0.0, 2)


def test_a_repeated_stamp_at_a_later_time_is_no_waiting(buffer):
    take(buffer, [1.0, 1.0, 1.0], arrival=NOW - 0.01)
    take(buffer, [1.0, 1.0, 1.0])
    assert buffer.state_rate.hertz == 0
