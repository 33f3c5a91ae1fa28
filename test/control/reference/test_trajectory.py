"""References: what is followed, how it is joined, what is refused and why."""

import gc
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import BPoly, CubicHermiteSpline, CubicSpline

import krang_dynamics as kd
from krang_dynamics.control.reference.joint_reference import Reference
from krang_dynamics.control.reference.trajectory import JointTrajectory
from krang_dynamics.safety.limits import Limits

CONTINUOUS = 1e-9  # position, velocity and acceleration across a switch
KRANG = kd.load_robot('krang')
ARM = kd.load_robot('anthropomorphic')  # limits +-3.1416 rad, 3 rad/s
OTBOT = kd.load_robot('otbot')  # continuous joints
PENDUBOT = kd.load_robot('pendubot')  # a joint without any limit

NAMES = ('joint_4', 'joint_2')  # some joints, not in the order of the robot
COLUMNS = [3, 1]
TIMES = [0.5, 1.0, 1.8, 2.5]
OFFSETS = np.array([[0.1, -0.1], [0.3, -0.2], [0.2, 0.1], [-0.1, 0.2]])
SLOPES = np.array([[0.3, -0.2], [0.1, 0.2], [-0.4, 0.1], [0.0, 0.0]])
BENDS = np.array([[0.5, -1.0], [0.2, 0.4], [-0.3, 0.0], [0.1, -0.1]])
EFFORTS = np.array([[1.0, 2.0], [3.0, -1.0], [0.0, 4.0], [2.0, 5.0]])

KINDS = {
    'quintic': {'velocities': SLOPES, 'accelerations': BENDS},
    'cubic': {'velocities': SLOPES},
    'positions only': {},
}


def trajectory(**changes):
    """Four points of two joints of the arm, near its home."""
    given = {'joint_names': NAMES, 'times': TIMES, 'positions': ARM.home[COLUMNS] + OFFSETS, **changes}
    return JointTrajectory(**given)


def point(offset=0.0, **changes):
    """A set-point for the same joints."""
    return trajectory(times=[0.0], positions=ARM.home[None, COLUMNS] + offset, **changes)


def following(*trajectories, now=10.0, **options):
    reference = Reference(ARM, **options)
    for each in trajectories:
        reference.accept(each, now, ARM.home)
    return reference


def snapshot(reference, now):
    return np.array(reference.sample(now))


def over(reference, times):
    """Samples (4, len(times), joints)."""
    return np.stack([snapshot(reference, t) for t in times], axis=1)


# -- what is followed ----------------------------------------------------------------------------------


def test_it_holds_home_and_then_the_given_position():
    reference = Reference(ARM)
    np.testing.assert_array_equal(snapshot(reference, 3.0), [ARM.home, *np.zeros((3, 6))])
    reference.accept(trajectory(), 4.0, ARM.home)
    reference.hold(ARM.home + 0.2)
    for now in (-1e9, 0.0, 5.0, 1e9):
        np.testing.assert_array_equal(snapshot(reference, now), [ARM.home + 0.2, *np.zeros((3, 6))])
    with pytest.raises(kd.KrangError, match='q has shape'):
        reference.hold(np.zeros(5))
    with pytest.raises(kd.KrangError, match='finite'):
        reference.hold(np.full(6, np.nan))


@pytest.mark.parametrize('first', [0.0, 0.5])
@pytest.mark.parametrize('kind', KINDS)
def test_velocity_and_acceleration_are_the_derivatives_of_position(kind, first):
    moved = trajectory(times=[first, *TIMES[1:]], positions=ARM.home[COLUMNS] + OFFSETS / 2, **KINDS[kind])
    reference, h = following(moved, start_tolerance=0.3), 1e-5
    times = 10 + np.linspace(first + 0.01, 2.49, 83)
    before, at, after = (over(reference, times + step) for step in (-h, 0, h))
    np.testing.assert_allclose((after[0] - before[0]) / (2 * h), at[1], atol=1e-8)
    np.testing.assert_allclose((after[1] - before[1]) / (2 * h), at[2], atol=1e-7)


@pytest.mark.parametrize('kind', KINDS)
def test_points_are_met_at_their_times(kind):
    reference = following(trajectory(**KINDS[kind]))
    given = np.array([ARM.home[COLUMNS] + OFFSETS, SLOPES, BENDS])[: 1 + len(KINDS[kind])]
    for i, t in enumerate(TIMES[:-1]):
        np.testing.assert_allclose(
            snapshot(reference, 10 + t)[: len(given), COLUMNS], given[:, i], atol=1e-12
        )
    just_before = snapshot(reference, 10 + TIMES[-1] - 1e-9)
    np.testing.assert_allclose(just_before[: len(given), COLUMNS], given[:, -1], atol=1e-7)


def test_given_all_derivatives_it_is_quintic():
    reference = following(trajectory(**KINDS['quintic']))
    q = ARM.home[COLUMNS] + OFFSETS
    truth = BPoly.from_derivatives(TIMES, np.stack([q, SLOPES, BENDS], axis=1))
    for t in np.linspace(0.5, 2.49, 40):
        np.testing.assert_allclose(snapshot(reference, 10 + t)[0, COLUMNS], truth(t), atol=1e-12)


def test_given_velocities_it_is_cubic():
    reference = following(trajectory(**KINDS['cubic']))
    truth = CubicHermiteSpline(TIMES, ARM.home[COLUMNS] + OFFSETS, SLOPES)
    for t in np.linspace(0.5, 2.49, 40):
        np.testing.assert_allclose(snapshot(reference, 10 + t)[0, COLUMNS], truth(t), atol=1e-12)


def test_given_positions_only_it_moves_as_the_smooth_spline_and_starts_and_ends_at_rest():
    path = ARM.home[COLUMNS] + np.array([[0, 0], [0.1, 0], [0.3, -0.1], [0.4, -0.3], [0.3, -0.4]])
    reference = following(trajectory(positions=path[1:]))
    truth = CubicSpline([0, *TIMES], path, bc_type='clamped')
    for t in TIMES[:-1]:
        got = snapshot(reference, 10 + t)[:, COLUMNS]
        np.testing.assert_allclose(got[:3], [truth(t), truth(t, 1), truth(t, 2)], atol=1e-9)
    for t in (10.0, 12.5 - 1e-12):
        np.testing.assert_allclose(snapshot(reference, t)[1:3], 0, atol=1e-9)


def test_positions_of_a_sampled_motion_give_back_its_acceleration():
    """What linear interpolation, or accelerations of zero at the points, would not."""
    t = np.linspace(0, 2 * np.pi, 201)
    wave = 0.2 * (1 - np.cos(t))[:, None]
    reference = Reference(ARM)
    start = ARM.home[:1]
    reference.accept(JointTrajectory(('joint_1',), t, start + wave), 0.0, ARM.home)
    times = np.linspace(0.3, 6.0, 500)
    np.testing.assert_allclose(over(reference, times)[2, :, 0], 0.2 * np.cos(times), atol=1e-3)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(st.floats(0.01, 3), st.floats(-1, 1)), min_size=2, max_size=6))
def test_positions_only_swing_out_by_two_thirds_of_a_neighbouring_step_at_most(points):
    """Also where a long piece follows a short one, which makes a plain spline swing by many steps."""
    durations, offsets = np.array(points).T
    knots, q = np.cumsum([0, *durations]), np.array([0, *offsets])
    reference = Reference(PENDUBOT)
    reference.accept(JointTrajectory(('pendulum',), knots[1:], q[1:, None]), 0.0, PENDUBOT.home)
    steps = np.abs(np.diff(q))
    for i in range(len(durations)):
        margin = 2 / 3 * steps[max(i - 1, 0) : i + 2].max() + 1e-12
        path = over(reference, np.linspace(knots[i], knots[i + 1], 50))[0, :, 1]
        assert min(q[i : i + 2]) - margin <= path.min()
        assert path.max() <= max(q[i : i + 2]) + margin


@pytest.mark.parametrize('kind', KINDS)
def test_acceleration_is_continuous_inside_and_at_the_end(kind):
    accelerations = {'accelerations': BENDS * [[1], [1], [1], [0]]} if kind == 'quintic' else {}
    reference = following(trajectory(**{**KINDS[kind], **accelerations}))
    knots = [0.0, *TIMES]
    smooth = knots[:1] if kind == 'cubic' else knots  # at points, cubics jump
    for t in smooth:
        before, after = snapshot(reference, 10 + t - 1e-10), snapshot(reference, 10 + t)
        np.testing.assert_allclose(before[:3], after[:3], atol=1e-7)


def test_after_the_end_it_holds_the_last_position_without_effort():
    reference = following(trajectory(**KINDS['cubic'], efforts=EFFORTS))
    expected = np.zeros((4, 6))
    expected[0] = ARM.home
    expected[0, COLUMNS] += OFFSETS[-1]
    for now in (12.5, 13.0, 1e6):
        np.testing.assert_allclose(snapshot(reference, now), expected, atol=1e-15)


def test_efforts_are_linear_between_points_and_grow_from_the_present_one():
    reference = following(point(efforts=[[4.0, 6.0]]), trajectory(efforts=EFFORTS))
    times, efforts = [0, *TIMES], np.vstack([[4.0, 6.0], EFFORTS])
    for t in np.linspace(0, 2.49, 50):
        expected = [np.interp(t, times, column) for column in efforts.T]
        np.testing.assert_allclose(snapshot(reference, 10 + t)[3, COLUMNS], expected, atol=1e-12)


def test_before_its_start_it_waits_at_the_start():
    reference = following(trajectory())
    np.testing.assert_array_equal(snapshot(reference, 9.0), snapshot(reference, 10.0))


def test_end_time():
    reference = following(trajectory())
    assert reference.end_time == 12.5
    reference.hold(ARM.home)
    assert reference.end_time == -np.inf


# -- set-points ---------------------------------------------------------------------------------


def test_a_set_point_is_reached_within_the_stream_limits_and_held_with_its_effort():
    reference = following(point(0.05, efforts=[[5.0, 6.0]]))
    times = 10 + np.linspace(0, 0.49, 491)
    q, v, _, effort = over(reference, times)[:, :, COLUMNS]
    speed = ARM.velocity_limits[COLUMNS]
    np.testing.assert_allclose(q[0], ARM.home[COLUMNS])
    np.testing.assert_array_equal(q[-1], ARM.home[COLUMNS] + 0.05)
    np.testing.assert_array_equal(effort, [[5.0, 6.0]] * len(times))
    assert (np.abs(v) <= speed + 1e-9).all()
    assert (np.abs(np.diff(v, axis=0)) <= speed / 0.5 * 1e-3 + 1e-9).all()
    np.testing.assert_allclose(np.gradient(q, times, axis=0)[1:-1], v[1:-1], atol=0.01)


def test_a_stream_that_is_not_renewed_comes_to_rest_and_holds_without_effort():
    reference = following(point(1.0, efforts=[[5.0, 6.0]]), timeout=0.1)
    assert reference.update(10.1 - 1e-9, ARM.home) == []
    assert snapshot(reference, 10.1)[1, 1] == pytest.approx(0.45, abs=1e-6)  # 120 rad/s3, then 6 rad/s2
    reference.update(10.1 + 1e-9, ARM.home)
    after = over(reference, 10.1 + 1e-9 + np.linspace(0, 0.4, 401))
    assert (np.abs(after[2, :, 1]) <= 6 + 1e-9).all()
    assert (np.abs(np.diff(after[2, :, 1])) <= 120e-3 + 1e-6).all()
    final = snapshot(reference, 20.0)
    assert ARM.home[1] + 0.01 < final[0, 1] < ARM.home[1] + 0.2
    np.testing.assert_array_equal(final[1:], 0)


def test_a_renewed_stream_reaches_its_last_set_point():
    reference = Reference(ARM)
    for k in range(500):
        reference.update(10 + k * 0.002, ARM.home)
        reference.accept(point(0.5 * k / 499), 10 + k * 0.002, ARM.home)
    end = 10 + 499 * 0.002
    lag = 0.5**2 / 12 + 0.5 * 0.05 / 2  # v^2 / 2 a, and the time in which the deceleration is reached
    assert abs(snapshot(reference, end)[0, 1] - ARM.home[1] - 0.5) < lag + 1e-3
    for t in np.linspace(0, 0.49, 50):
        reference.update(end + t, ARM.home)
    np.testing.assert_array_equal(snapshot(reference, end + 0.49)[0, COLUMNS], ARM.home[COLUMNS] + 0.5)


def test_each_of_two_streams_must_be_renewed():
    other = JointTrajectory(('joint_1',), [0.0], [ARM.home[:1] + 1.0])
    reference = following(point(1.0), other, timeout=0.1)
    reference.accept(replace(other, positions=[ARM.home[:1] + 1.1]), 10.09, ARM.home)
    reference.update(10.15, ARM.home)
    reference.update(10.18, ARM.home)
    a = snapshot(reference, 10.3)[2]
    assert a[1] < 0 < a[0]


def test_a_clock_that_is_not_a_number_ends_a_stream():
    reference = following(point(1.0), timeout=0.1)
    assert reference._tracks[-1].streamed
    reference.update(np.nan, ARM.home)
    assert not reference._tracks[-1].streamed


def test_no_points_bring_every_joint_to_rest_within_the_stream_limits():
    reference = following(trajectory(**KINDS['quintic'], efforts=EFFORTS))
    before = snapshot(reference, 11.3)
    for names in ((), NAMES, ('no joint',)):
        stopped = following(trajectory(**KINDS['quintic'], efforts=EFFORTS))
        stopped.accept(JointTrajectory(names, [], np.zeros((0, len(names)))), 11.3, before[0])
        now = snapshot(stopped, 11.3)
        np.testing.assert_allclose(now[:2], before[:2], atol=CONTINUOUS)
        np.testing.assert_array_equal(now[3], 0)
        v = over(stopped, 11.3 + np.linspace(0, 1, 1001))[1]
        assert (np.abs(np.diff(v, axis=0)) <= ARM.velocity_limits / 0.5 * 1e-3 + 1e-9).all()
        np.testing.assert_array_equal(v[-1], 0)
        way = before[1] * np.abs(before[1]) / (2 * ARM.velocity_limits / 0.5)
        longest = np.abs(way) + np.abs(before[1]) * 0.1
        assert (np.abs(snapshot(stopped, 20.0)[0] - before[0] - way) <= longest).all()


def test_a_stop_ends_before_a_position_limit():
    """At 2.9 rad/s the stream's deceleration of 6 rad/s2 would need 0.7 rad; 0.3 rad are left."""
    start = ARM.home.copy()
    start[1] = 1.0
    fast = JointTrajectory(('joint_2',), [0.0, 0.9, 1.5], [[1.0], [2.8416], [3.1]], [[0.0], [2.0], [0.0]])
    reference = Reference(ARM)
    reference.hold(start)
    reference.accept(fast, 0.0, start)
    q = snapshot(reference, 0.9)[0]
    reference.accept(JointTrajectory((), [], np.zeros((0, 0))), 0.9, q)
    path = over(reference, np.linspace(0.9, 3, 2000))
    assert path[0, :, 1].max() <= ARM.upper[1] + 1e-9
    np.testing.assert_array_equal(path[1, -1], 0)


# -- goals --------------------------------------------------------------------------------------


def test_one_later_point_is_a_goal_from_the_present_reference():
    reference = following(trajectory(**KINDS['quintic']))
    before = snapshot(reference, 11.3)
    goal = JointTrajectory(NAMES, [2.0], [ARM.home[COLUMNS] + 0.4])
    reference.accept(goal, 11.3, before[0])
    np.testing.assert_allclose(snapshot(reference, 11.3)[:3], before[:3], atol=CONTINUOUS)
    for now in (13.3, 99.0):
        np.testing.assert_array_equal(snapshot(reference, now)[0, COLUMNS], ARM.home[COLUMNS] + 0.4)
        np.testing.assert_array_equal(snapshot(reference, now)[1:], 0)


def test_a_goal_that_is_too_fast_is_refused_with_a_feasible_time():
    goal = JointTrajectory(NAMES, [0.1], [ARM.home[COLUMNS] + [1.0, 0.5]])
    with pytest.raises(kd.KrangError, match=r"'joint_4'.*velocity.*0\.625 s would be feasible"):
        following(goal)
    following(replace(goal, times=[0.625]))


# -- start --------------------------------------------------------------------------------------

CLOCK = 5000.0  # the node's clock when the steady clock is 10 [s]


def started(start, **changes):
    return trajectory(**{**KINDS['quintic'], **changes}, start=CLOCK + start)


def test_a_future_start_begins_then_and_the_present_reference_goes_on_until_then():
    now, later = following(trajectory(**KINDS['quintic'])), Reference(ARM)
    later.accept(JointTrajectory(('joint_1',), [0.5], [ARM.home[:1] + 0.1]), 10.0, ARM.home)
    later.accept(started(1.0), 10.0, ARM.home, CLOCK)
    for t in np.arange(10.0, 14.0, 0.01):
        later.update(t, snapshot(later, t)[0])
        q = snapshot(later, t)[:, COLUMNS]
        expected = (
            snapshot(now, t - 1.0)[:, COLUMNS] if t >= 11.0 else snapshot(Reference(ARM), t)[:, COLUMNS]
        )
        np.testing.assert_allclose(q, expected, atol=1e-12)
    assert snapshot(later, 14.0)[0, 0] == ARM.home[0] + 0.1


def test_a_past_start_joins_the_trajectory_where_it_is_now():
    points = {'times': [0.0, *TIMES[1:]], 'positions': ARM.home[COLUMNS] + OFFSETS / 2}
    slow = {'velocities': SLOPES * [[0], [1], [1], [1]], 'accelerations': None}
    on_time, late = (Reference(ARM, start_tolerance=0.2) for _ in range(2))
    on_time.accept(trajectory(**points, **slow), 9.8, ARM.home)
    late.accept(started(-0.2, **points, **slow), 10.0, ARM.home, CLOCK)
    for t in np.linspace(10.0, 13.0, 50):
        np.testing.assert_allclose(snapshot(late, t), snapshot(on_time, t), atol=1e-11)


def test_a_past_start_shortens_the_way_to_the_first_point():
    reference = Reference(ARM)
    reference.accept(started(-0.2), 10.0, ARM.home, CLOCK)
    np.testing.assert_array_equal(snapshot(reference, 10.0)[:3], snapshot(Reference(ARM), 10.0)[:3])
    np.testing.assert_allclose(snapshot(reference, 10.3)[0, COLUMNS], ARM.home[COLUMNS] + OFFSETS[0])


@pytest.mark.parametrize(
    ('start', 'changes', 'reason'),
    [
        (-3.0, {}, r'start is 3 s ago and the trajectory lasts 2.5 s: it is over'),
        (-1.0, {}, r"joint 'joint_4': the reference would start at 0.6, but the robot is at 0.3"),
        (-CLOCK - 1, {}, r'start is -1 s'),
        (np.nan, {}, 'start is nan'),
    ],
)
def test_a_past_start_that_does_not_fit_is_refused(start, changes, reason):
    with pytest.raises(kd.KrangError, match=reason):
        Reference(ARM).accept(started(start, **changes), 10.0, ARM.home, CLOCK)


def test_a_newer_trajectory_replaces_one_that_waits():
    reference = Reference(ARM)
    reference.accept(started(1.0), 10.0, ARM.home, CLOCK)
    reference.accept(JointTrajectory((), [], np.zeros((0, 0))), 10.5, ARM.home)
    reference.update(11.5, ARM.home)
    np.testing.assert_array_equal(snapshot(reference, 12.0), snapshot(Reference(ARM), 0.0))


def test_an_old_set_point_is_refused():
    with pytest.raises(kd.KrangError, match=r'the set-point is 0\.6 s old'):
        Reference(ARM).accept(replace(point(), start=CLOCK - 0.6), 10.0, ARM.home, CLOCK)
    Reference(ARM).accept(replace(point(), start=CLOCK - 0.4), 10.0, ARM.home, CLOCK)


# -- prepared -----------------------------------------------------------------------------------


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('count', [2, 64, 65, 66, 200])
@pytest.mark.parametrize('first', [0.0, 0.5])
def test_a_prepared_trajectory_is_the_same_to_the_last_bit(kind, count, first):
    t = np.linspace(0, 2 * np.pi, count)
    wave = 0.2 * np.stack([1 - np.cos(t), np.sin(t), np.cos(t)])
    names = ['positions', 'velocities', 'accelerations'][: 1 + len(KINDS[kind])]
    fields = {name: np.tile(w[:, None], 2) for name, w in zip(names, wave, strict=False)}
    fields['positions'] += ARM.home[COLUMNS]
    whole = JointTrajectory(NAMES, first + t, **fields)
    a, b = Reference(ARM), Reference(ARM)
    prepared = b.prepare(whole)
    for reference in (a, b):  # a motion that begins after the preparation
        reference.accept(JointTrajectory(('joint_1', 'joint_2'), [3.0], [ARM.home[:2] + 0.05]), 0.0, ARM.home)
    a.accept(whole, 1.0, ARM.home)
    b.accept(prepared, 1.0, ARM.home)
    times = 1.0 + np.linspace(0, 8, 400)
    np.testing.assert_array_equal(over(a, times), over(b, times))
    if kind == 'positions only' and count == 200 and first:  # and smooth where its parts meet
        v = over(a, times)[1, :, 3]
        np.testing.assert_allclose(v[30:300], 0.2 * np.sin(times - 1 - first)[30:300], atol=1e-4)


def test_limits_that_change_after_the_preparation_count():
    reference = Reference(ARM)
    prepared = reference.prepare(trajectory(**KINDS['quintic']))
    reference.limits.velocity = np.full(6, 0.1)
    with pytest.raises(kd.KrangError, match=r"'joint_4' at point 0: velocity 0.3 is outside"):
        reference.accept(prepared, 10.0, ARM.home)


@pytest.mark.parametrize(
    ('limit', 'value', 'reason'),
    [
        ('velocity', 0.35, r"joint 'joint_4' at point 2: velocity -0.4 .* -0.35 .. 0.35 at 1.8 s"),
        ('position_margin', 2.3, r"joint 'joint_2' at point 3: position 0.9 .* -0.8416 .. 0.8416 at 2.5 s"),
        ('effort', 4.5, r"joint 'joint_2' at point 3: effort 5 .* -4.5 .. 4.5 at 2.5 s"),
    ],
)
def test_the_limits_in_force_are_checked_with_joint_time_and_value(limit, value, reason):
    limits = Limits.of(ARM)
    setattr(limits, limit, np.full(6, value))
    with pytest.raises(kd.KrangError, match=reason):
        following(trajectory(**KINDS['quintic'], efforts=EFFORTS), limits=limits)


def test_a_set_point_with_too_much_effort_is_refused():
    with pytest.raises(kd.KrangError, match=r"'joint_4' at point 0: effort 1000000 is outside"):
        following(point(efforts=[[1e6, 0.0]]))


# -- switching -----------------------------------------------------------------------------------------


@pytest.mark.parametrize('new', KINDS)
@pytest.mark.parametrize('old', KINDS)
def test_a_switch_in_mid_motion_is_smooth(old, new):
    reference = following(trajectory(**KINDS[old]))
    before = snapshot(reference, 11.3)
    q = before[0].copy()
    reference.accept(trajectory(**KINDS[new], efforts=EFFORTS), 11.3, q)
    np.testing.assert_allclose(snapshot(reference, 11.3), before, atol=CONTINUOUS)
    np.testing.assert_allclose(snapshot(reference, 11.3 + 1e-9)[:3], before[:3], atol=1e-6)
    np.testing.assert_allclose(snapshot(reference, 13.8)[0, COLUMNS], ARM.home[COLUMNS] + OFFSETS[-1])


def test_positions_only_from_time_zero_continue_with_the_present_velocity():
    reference = following(trajectory(**KINDS['quintic']))
    before = snapshot(reference, 11.3)
    q = before[0, COLUMNS]
    reference.accept(trajectory(times=[0.0, 1.0], positions=[q, q + 0.1]), 11.3, before[0].copy())
    np.testing.assert_allclose(snapshot(reference, 11.3), before, atol=CONTINUOUS)


def test_joints_that_are_not_named_continue_unchanged():
    """A moving one ends its motion, a resting one holds; whether the new list shares joints or not."""
    alone = following(trajectory(**KINDS['quintic'], efforts=EFFORTS))
    both = following(trajectory(**KINDS['quintic'], efforts=EFFORTS))
    start = snapshot(both, 11.0)[0]
    names, columns = ('joint_6', 'joint_2'), [5, 1]
    both.accept(JointTrajectory(names, [0.5, 1.0], [start[columns] + 0.05] * 2), 11.0, start)
    untouched = [0, 2, 3, 4]
    for now in np.linspace(11.0, 14.0, 100):
        np.testing.assert_array_equal(snapshot(both, now)[:, untouched], snapshot(alone, now)[:, untouched])
    np.testing.assert_allclose(snapshot(both, 12.0)[0, columns], start[columns] + 0.05)
    assert both.end_time == 12.5


def test_a_trajectory_that_has_ended_is_held_at_no_cost():
    reference, goal = Reference(ARM), ARM.home + 0.05
    for i, name in enumerate(ARM.joint_names):
        reference.accept(JointTrajectory((name,), [0.5, 1.0], [goal[i : i + 1]] * 2), 2.0 * i, ARM.home)
        assert len(reference._tracks) <= 2  # one that holds, one that moves
    np.testing.assert_array_equal(snapshot(reference, 99.0), [goal, *np.zeros((3, 6))])


def test_the_order_of_names_does_not_matter():
    turned = trajectory(joint_names=NAMES[::-1], positions=(ARM.home[COLUMNS] + OFFSETS)[:, ::-1])
    a, b = following(trajectory()), following(turned)
    for now in np.linspace(10, 13, 31):
        np.testing.assert_array_equal(snapshot(a, now), snapshot(b, now))


# -- what is refused -----------------------------------------------------------------------------------

REFUSED = {
    'no joint': ({'joint_names': ()}, 'joint_names is empty'),
    'unknown joint': ({'joint_names': ('joint_4', 'joint_9')}, "unknown joint 'joint_9'; did you mean"),
    'not a name': ({'joint_names': ('joint_4', 3)}, 'unknown joint 3'),
    'duplicate joint': ({'joint_names': ('joint_4', 'joint_4')}, 'no joint twice'),
    'times no list': ({'times': 1.0}, 'times is 1.0'),
    'times of text': ({'times': list('abcd')}, 'times is'),
    'too few positions': ({'positions': OFFSETS[:3]}, 'positions has shape'),
    'too many joints': ({'positions': np.zeros((4, 3))}, 'positions has shape'),
    'ragged positions': ({'positions': [[0, 0], [0], [0], [0]]}, 'positions is'),
    'too few velocities': ({'velocities': SLOPES[:1]}, 'velocities has shape'),
    'accelerations of one joint': ({**KINDS['cubic'], 'accelerations': BENDS[:, :1]}, 'accelerations has'),
    'efforts of other length': ({'efforts': EFFORTS[:2]}, 'efforts has shape'),
    'accelerations alone': ({'accelerations': BENDS}, 'without velocities'),
    'nan position': ({'positions': OFFSETS * np.nan}, r'positions\[0, 0\] is nan'),
    'infinite velocity': ({'velocities': SLOPES + np.inf}, r'velocities\[0, 0\] is inf'),
    'nan acceleration': ({**KINDS['cubic'], 'accelerations': BENDS * np.nan}, 'accelerations.* is nan'),
    'infinite effort': ({'efforts': EFFORTS - np.inf}, 'efforts.* is -inf'),
    'nan time': ({'times': [0.5, np.nan, 2, 3]}, r'times\[1\] is nan'),
    'endless time': ({'times': [0.5, 1, 2, 1e300]}, r'times\[3\] is 1e\+300'),
    'negative start': ({'times': [-0.1, 1, 2, 3]}, r'times\[0\] is -0.1 s'),
    'repeated time': ({'times': [0.5, 1, 1, 3]}, r'times\[1\] is 1.0 s, times\[2\] is 1.0 s'),
    'backward time': ({'times': [0.5, 2, 1, 3]}, 'must increase'),
    'position limit': (
        {'positions': ARM.home[COLUMNS] + OFFSETS + [[0, 0], [0, 0], [0, 3], [0, 0]]},
        "joint 'joint_2' at point 2: position 3.8 is outside its limits -3.1416 .. 3.1416",
    ),
    'velocity limit': ({'velocities': SLOPES * 8}, "joint 'joint_4' at point 2: velocity -3.2 is outside"),
    'moving at the end': ({'velocities': SLOPES + 0.1}, "'joint_4': the last velocity is 0.1; it must be 0"),
    'too fast to the first point': ({'times': [0.01, 1, 2, 3]}, 'on the way to point 0: velocity'),
    'too fast between points': (
        {'times': [0.5, 0.51, 2, 3], 'velocities': 0 * SLOPES},
        'on the way to point 1: velocity',
    ),
    'far from the robot': (
        {'times': [0.0, 1, 2, 3], 'positions': ARM.home[COLUMNS] + OFFSETS + 0.15},
        "joint 'joint_4': the reference would start at 0.55, but the robot is at 0.3, farther than 0.1",
    ),
}


@pytest.mark.parametrize('case', REFUSED)
def test_a_refused_trajectory_gives_its_reason_and_changes_nothing(case):
    changes, reason = REFUSED[case]
    times = np.linspace(9, 14, 50)
    reference = following(trajectory(**KINDS['quintic'], efforts=EFFORTS))
    before = over(reference, times)
    last = reference.sample(12.0)[0].copy()
    with pytest.raises(kd.KrangError, match=reason):
        reference.accept(trajectory(**changes), 10.0, ARM.home)
    np.testing.assert_array_equal(reference.sample(12.0)[0], last)
    np.testing.assert_array_equal(over(reference, times), before)
    assert reference.end_time == 12.5


def test_a_refusal_does_not_touch_the_arrays_of_the_last_sample():
    reference = following(trajectory())
    q = reference.sample(12.0)[0]
    copy = q.copy()
    with pytest.raises(kd.KrangError, match='farther than'):
        reference.accept(trajectory(), 11.0, ARM.home + 1.0)
    np.testing.assert_array_equal(q, copy)


@pytest.mark.parametrize(('now', 'q'), [(np.nan, ARM.home), (0.0, ARM.home[:5]), (0.0, np.full(6, np.inf))])
def test_time_and_measured_position_are_checked_too(now, q):
    with pytest.raises(kd.KrangError, match=r'now is nan|q has shape|q.* is inf'):
        Reference(ARM).accept(trajectory(), now, q)


def test_a_present_reference_far_from_the_robot_is_no_start():
    reference = Reference(ARM)
    with pytest.raises(kd.KrangError, match=r"'joint_4'.*start at 0.3, but the robot is at 0.5"):
        reference.accept(trajectory(), 0.0, ARM.home + 0.2)
    elsewhere = np.full(6, 9.0)
    elsewhere[COLUMNS] = ARM.home[COLUMNS]
    reference.accept(trajectory(), 0.0, elsewhere)  # the joints that are not named do not matter


@pytest.mark.parametrize(
    ('changes', 'reason'),
    [
        ({'velocities': [[0.0, 3.1]]}, 'at point 0: velocity 3.1 is outside'),
        ({'positions': [[0.3, 3.2]]}, 'at point 0: position 3.2 is outside'),
    ],
)
def test_a_set_point_has_limits_too(changes, reason):
    with pytest.raises(kd.KrangError, match=reason):
        following(trajectory(times=[0.0], **{'positions': ARM.home[None, COLUMNS], **changes}))


def test_a_position_limit_broken_only_between_points_is_caught():
    """Both points are inside; the cubic between them swings 4/27 * 0.5 rad beyond."""
    edge = ARM.home.copy()
    edge[1] = 3.1
    near = JointTrajectory(('joint_2',), [0.0, 1.0], [[3.1], [3.1]], [[0.5], [0.0]])
    reference = Reference(ARM)
    reference.hold(edge)
    with pytest.raises(kd.KrangError, match=r'on the way to point 1: position 3\.1[4-9]'):
        reference.accept(near, 0.0, edge)
    gentle = replace(near, velocities=[[0.25], [0.0]])
    reference.accept(gentle, 0.0, edge)
    assert over(reference, np.linspace(0, 1, 1001))[0, :, 1].max() == pytest.approx(
        3.1 + 0.25 * 4 / 27, abs=1e-6
    )


def test_full_speed_is_allowed_and_a_thousandth_more_is_not():
    """A quintic between rests is fastest in the middle: 15/8 of the mean velocity."""

    def to_and_fro(speed):
        q = np.array([KRANG.home, KRANG.home + KRANG.velocity_limits * speed * 8 / 15])
        still = np.zeros_like(q)
        return JointTrajectory(KRANG.joint_names, [0.0, 1.0], q, still, still)

    reference = Reference(KRANG)
    reference.accept(to_and_fro(1.0), 0.0, KRANG.home)
    np.testing.assert_allclose(snapshot(reference, 0.5)[1], KRANG.velocity_limits)
    with pytest.raises(kd.KrangError, match='velocity'):
        reference.accept(to_and_fro(1.001), 0.0, KRANG.home)


def test_joints_without_limits_have_none():
    q = np.array([[0.0, 0.0], [0.0, 500.0]])
    Reference(PENDUBOT).accept(JointTrajectory(PENDUBOT.joint_names, [0, 1], q), 0.0, PENDUBOT.home)
    turns = JointTrajectory(('pivot',), [0, 1000], [[0], [3000]])
    Reference(OTBOT).accept(turns, 0.0, OTBOT.home)


def test_a_robot_beyond_its_limit_may_come_back_but_go_no_farther():
    beyond = ARM.home.copy()
    beyond[1] = 3.2
    reference = Reference(ARM)
    reference.hold(beyond)
    reference.accept(JointTrajectory(('joint_2',), [1.0, 2.0], [[3.1], [3.0]]), 0.0, beyond)
    reference.hold(beyond)
    with pytest.raises(kd.KrangError, match=r'at point 0: position 3\.19'):
        reference.accept(JointTrajectory(('joint_2',), [1.0, 2.0], [[3.19], [3.0]]), 0.0, beyond)


# -- any sequence ------------------------------------------------------------------------------------


@st.composite
def anything(draw):
    """Trajectories of the arm, harmless and wild: any joints, counts, steps and sizes."""
    names = draw(st.lists(st.sampled_from(ARM.joint_names), min_size=1, max_size=6, unique=True))
    columns = [ARM.joint_names.index(name) for name in names]
    count = draw(st.integers(1, 5))
    shape = (count, len(names))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size = st.sampled_from([0.0, 0.01, 0.1, 1.0, 3.0, 1e3, 1e8, 1e300])
    times = np.cumsum(random.exponential(draw(st.sampled_from([1e-9, 0.01, 1.0, 1e6])), count))
    times -= times[0] * draw(st.booleans())

    def rows(rest=False):
        values = random.uniform(-1, 1, shape) * draw(size)
        if rest:
            values[-1] = 0.0
        return values if draw(st.booleans()) else None

    positions = ARM.home[columns] + random.uniform(-1, 1, shape) * draw(size)
    velocities = rows(rest=count > 1)
    accelerations = None if velocities is None else rows()
    return JointTrajectory(tuple(names), times, positions, velocities, accelerations, rows())


@pytest.mark.parametrize('count', [80, pytest.param(400, marks=pytest.mark.long)])
def test_any_sequence_is_refused_or_stays_finite_and_inside_the_limits(count):
    @settings(deadline=None, max_examples=count)
    @given(st.lists(anything(), min_size=1, max_size=4), st.floats(0, 5))
    def check(sequence, pause):
        reference, now, q = Reference(ARM), 0.0, ARM.home
        for each in sequence:
            before = snapshot(reference, now)
            try:
                reference.accept(each, now, q)
            except kd.KrangError:
                np.testing.assert_array_equal(snapshot(reference, now), before)
            spans = [end for end in (reference.end_time - now, 5.0) if np.isfinite(end)]
            for t in np.concatenate([now + np.linspace(-0.1, 1.1, 41) * span for span in spans]):
                values = snapshot(reference, t)
                assert np.isfinite(values).all()
                assert (values[0] <= ARM.upper + 1e-8).all()
                assert (values[0] >= ARM.lower - 1e-8).all()
                assert (np.abs(values[1]) <= ARM.velocity_limits + 1e-8).all()
            now += pause
            q = snapshot(reference, now)[0]

    check()


# -- memory --------------------------------------------------------------------------------------------


def test_sampling_again_is_bit_identical():
    a, b = following(trajectory()), following(trajectory())
    times = np.linspace(9, 14, 200)
    np.testing.assert_array_equal(over(a, times), over(a, times))
    np.testing.assert_array_equal(over(a, times), over(b, times))


def test_the_callers_arrays_are_neither_kept_nor_changed():
    arrays = {
        'positions': ARM.home[COLUMNS] + OFFSETS,
        'velocities': SLOPES.copy(),
        'efforts': EFFORTS.copy(),
    }
    arrays['times'], q = np.array(TIMES), ARM.home.copy()
    copies = {name: value.copy() for name, value in arrays.items()}
    reference = Reference(ARM)
    reference.hold(q)
    reference.accept(trajectory(**arrays), 10.0, q)
    for name, value in arrays.items():
        np.testing.assert_array_equal(value, copies[name])
    before = over(reference, np.linspace(9, 14, 50))
    for value in (*arrays.values(), q):
        value[:] = 99.0
    np.testing.assert_array_equal(over(reference, np.linspace(9, 14, 50)), before)


def test_samples_are_one_memory_that_the_caller_cannot_write():
    reference = following(trajectory())
    first, second = reference.sample(10.0), reference.sample(11.0)
    for a, b in zip(first, second, strict=True):
        assert a is b
        with pytest.raises(ValueError, match='read-only'):
            a[0] = 1.0


def test_the_number_of_tracks_does_not_grow():
    reference = Reference(ARM, timeout=0.1)
    single = JointTrajectory(('joint_1',), [0.0], [ARM.home[:1]])
    for i in range(60):
        reference.accept((point(), single, trajectory())[i % 3], i / 1000, ARM.home)
    assert len(reference._tracks) <= 4


@pytest.mark.long
def test_memory_does_not_grow():
    reference = Reference(ARM, timeout=0.1)
    single = JointTrajectory(('joint_1',), [0.0], [ARM.home[:1]])

    def run(count):
        for i in range(count):
            reference.accept((point(), single, trajectory())[i % 3], i / 1000, ARM.home)
            for _ in range(5):
                reference.sample(i / 1000)

    def used_after(count):
        run(count)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    before = used_after(1000)  # numpy and Python have filled most of their caches
    after = used_after(2000)
    tracemalloc.stop()
    assert after - before < 40_000  # one number kept per trajectory would be 48,000 bytes


# -- continuous joints -----------------------------------------------------------------------------------


@pytest.mark.parametrize(('times', 'end'), [([0.0], 3.3), ([2.0], -2.983), ([0.0, 2.0], -2.983)])
def test_a_continuous_joint_goes_the_short_way_round(times, end):
    """From 3.1 rad to -2.983 rad, which is 3.3 rad: a set-point, a goal, and a trajectory."""
    reference = Reference(PENDUBOT)
    q = np.array([0.0, 3.1])
    reference.hold(q)
    away = np.array([[0.0], [-2.983]])[-len(times) :]
    away[0] = 3.1 - 2 * np.pi if len(times) > 1 else -2.983
    reference.accept(JointTrajectory(('pendulum',), times, away), 10.0, q)
    path = np.array([snapshot(reference, 10.0 + t)[:2, 1] for t in np.linspace(0, 0.49, 50)])
    assert (path[:, 1] >= -1e-9).all()  # forwards all the way
    if times != [0.0]:
        assert snapshot(reference, 20.0)[0, 1] == pytest.approx(end)
