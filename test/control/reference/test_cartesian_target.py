"""Cartesian targets: inverse kinematics, limits of the way there, twists, and what is refused."""

import re
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest
from harness import robot_named

from krang_dynamics.control.reference.cartesian_target import CartesianTargets, PoseSample, TwistSample
from krang_dynamics.control.reference.joint_reference import Reference
from krang_dynamics.control.terms.cartesian_impedance import arm_joints
from krang_dynamics.errors import InputError

HAND = 'left_hand'
KRANG = robot_named('krang')
ARM = np.flatnonzero(arm_joints(KRANG, HAND))


def pose_of(T, frame_id='world'):
    return PoseSample(HAND, frame_id, T[:3, 3], np.array(pin.Quaternion(T[:3, :3]).coeffs()), 0.0)


def twist_of(linear, angular=(0, 0, 0), frame_id='world'):
    return TwistSample(HAND, frame_id, np.array([*linear, *angular], dtype=float), 0.0)


def setup(timeout=0.5):
    reference = Reference(KRANG, timeout)
    reference.hold(KRANG.home)
    term = SimpleNamespace(arms={HAND: arm_joints(KRANG, HAND)}, posture=None)
    targets = CartesianTargets(KRANG, term, np.ones(17, dtype=bool))
    targets.reset(KRANG.home)
    return targets, reference


def take(targets, sample, now, q, reference):
    """A target, with its whole search at once; what was reported."""
    targets.take(sample, now, q, reference)
    reports = []
    while targets.is_searching:
        reports += targets.advance(now, reference)
    return reports


def at(reference, time):
    return [x.copy() for x in reference.sample(time)]


def near_home(random, size=0.3):
    q = KRANG.home
    q[ARM] += random.uniform(-size, size, len(ARM))
    return q


def test_only_the_joints_of_the_arm_move_a_hand():
    assert [KRANG.joint_names[i] for i in ARM] == [f'left_{i}' for i in range(1, 8)]
    assert arm_joints(robot_named('anthropomorphic'), 'tool').all()


def test_reachable_poses_are_reached_exactly_and_other_joints_stay():
    random = np.random.default_rng(1)
    for _ in range(20):
        targets, reference = setup()
        T = KRANG.frame_pose(near_home(random), HAND)
        take(targets, pose_of(T), 10.0, KRANG.home, reference)
        q, v, *_ = at(reference, 60.0)
        np.testing.assert_allclose(KRANG.frame_pose(q, HAND), T, atol=1e-6)
        np.testing.assert_array_equal(np.delete(q, ARM), np.delete(KRANG.home, ARM))
        assert not v.any()


def test_a_target_in_another_frame_is_the_same_target():
    T = KRANG.frame_pose(near_home(np.random.default_rng(2)), HAND)
    in_spine = np.linalg.inv(KRANG.frame_pose(KRANG.home, 'spine')) @ T
    goals = []
    for sample in (pose_of(T), pose_of(in_spine, 'spine')):
        targets, reference = setup()
        take(targets, sample, 10.0, KRANG.home, reference)
        goals.append(at(reference, 60.0)[0])
    np.testing.assert_allclose(*goals, atol=1e-6)


def test_a_deflection_of_the_trunk_does_not_change_the_target():
    """The hand's spring acts about the reference, and the trunk's reference is not deflected."""
    T, goals = KRANG.frame_pose(near_home(np.random.default_rng(2)), HAND), []
    for deflection in (0.0, 0.01):
        targets, reference = setup()
        take(targets, pose_of(T), 10.0, KRANG.home + deflection, reference)
        goals.append(at(reference, 60.0)[0])
    np.testing.assert_array_equal(*goals)


def test_the_way_there_and_back_ends_in_the_same_posture():
    """Hands return to where they began: the posture does not drift."""
    targets, reference = setup()
    random, home = np.random.default_rng(3), KRANG.frame_pose(KRANG.home, HAND)
    for k in range(10):
        T = home if k == 9 else KRANG.frame_pose(near_home(random), HAND)
        take(targets, pose_of(T), 60.0 * k, at(reference, 60.0 * k)[0], reference)
    np.testing.assert_allclose(at(reference, 999.0)[0], KRANG.home, atol=0.02)


@pytest.mark.parametrize(('name', 'frame'), [('anthropomorphic', 'tool'), ('planar_2r', 'tip')])
def test_an_arm_without_the_orientation_of_a_pose_reaches_its_position(name, frame):
    """As when a hand is dragged: another position, the same orientation."""
    robot, random, reports = robot_named(name), np.random.default_rng(7), []
    term = SimpleNamespace(arms={frame: arm_joints(robot, frame)}, posture=None)
    for _ in range(10):
        reference, T = Reference(robot), robot.frame_pose(robot.home, frame)
        targets = CartesianTargets(robot, term, np.ones(robot.nv, dtype=bool))
        T[:3, 3] = robot.frame_pose(robot.home + random.uniform(-0.3, 0.3, robot.nv), frame)[:3, 3]
        sample = PoseSample(frame, 'world', T[:3, 3], np.array(pin.Quaternion(T[:3, :3]).coeffs()), 0.0)
        reports += take(targets, sample, 10.0, robot.home, reference)
        reached = robot.frame_pose(at(reference, 60.0)[0], frame)
        assert np.linalg.norm(reached[:3, 3] - T[:3, 3]) < 0.001
    assert all(re.search(r'out of reach by [01] mm and [\d.]+ rad', report) for report in reports)
    assert len(reports) >= 8


def test_a_position_at_the_edge_of_reach_is_reached_whatever_the_orientation():
    """The arm is almost stretched; the orientation must not pull it away from the position."""
    robot, T = robot_named('anthropomorphic'), robot_named('anthropomorphic').frame_pose
    goal = T(robot.home, 'tool')
    goal[:3, 3] = T(np.array([0.0, 0.7, -0.35, 0.5, 0.4, 0.9]), 'tool')[:3, 3]
    term = SimpleNamespace(arms={'tool': arm_joints(robot, 'tool')}, posture=None)
    targets, reference = CartesianTargets(robot, term, np.ones(6, dtype=bool)), Reference(robot)
    sample = PoseSample('tool', 'world', goal[:3, 3], np.array(pin.Quaternion(goal[:3, :3]).coeffs()), 0.0)
    take(targets, sample, 10.0, robot.home, reference)
    assert np.linalg.norm((T(at(reference, 60.0)[0], 'tool') - goal)[:3, 3]) < 2e-4


@pytest.mark.parametrize('far', [1.0, 100.0])
def test_a_pose_out_of_reach_is_reported_and_approached_within_the_limits(far):
    targets, reference = setup()
    T = KRANG.frame_pose(KRANG.home, HAND)
    T[:3, 3] += [far, 0.3, 0.2]
    before = KRANG.frame_pose(KRANG.home, HAND)[:3, 3]
    (report,) = take(targets, pose_of(T), 10.0, KRANG.home, reference)
    assert re.match(r'target_pose/left_hand: out of reach by \d+ mm and [\d.]+ rad', report)
    q = at(reference, 60.0)[0]
    assert (q >= KRANG.lower).all()
    assert (q <= KRANG.upper).all()
    x = KRANG.frame_pose(q, HAND)[:3, 3]
    assert np.linalg.norm(T[:3, 3] - x) < np.linalg.norm(T[:3, 3] - before) - 0.1


def test_a_stream_of_poses_at_30_hz_with_losses_stays_within_the_limits_at_every_step():
    random = np.random.default_rng(4)
    targets, reference = setup()
    limits, path, now, sent = reference.stream, [], 10.0, 0.0
    goal = KRANG.home
    for _ in range(4000):
        now += 1e-3
        if now - sent >= 1 / 30:
            sent = now
            goal = near_home(random) if random.random() < 0.1 else goal  # a step
            if random.random() >= 0.2:
                T = KRANG.frame_pose(goal, HAND)
                take(targets, pose_of(T), now, at(reference, now)[0], reference)
        reference.update(now, KRANG.home)
        path.append(at(reference, now)[:3])
    q, v, a = np.swapaxes(path, 0, 1)
    assert np.abs(v).max() > 0.1
    assert (np.abs(v) <= limits.velocity + 1e-6).all()
    assert (np.abs(a) <= limits.acceleration + 1e-6).all()
    assert (np.abs(np.diff(a, axis=0)) <= 1e-3 * limits.jerk + 1e-6).all()
    np.testing.assert_allclose(np.diff(q, axis=0), 1e-3 * (v[1:] + v[:-1]) / 2, atol=1e-6)


def test_a_step_of_the_controller_makes_few_steps_of_the_search():
    targets, reference = setup()
    targets.take(
        pose_of(KRANG.frame_pose(near_home(np.random.default_rng(5)), HAND)), 10.0, KRANG.home, reference
    )
    targets.advance(10.0, reference)
    assert targets.is_searching
    np.testing.assert_array_equal(at(reference, 60.0)[0], KRANG.home)


def test_poses_faster_than_their_search_are_followed_all_the_same():
    targets, reference = setup()
    T = KRANG.frame_pose(KRANG.home, HAND)
    for k in range(3000):  # one pose, and one call, per step of 1 ms
        now = 10 + 1e-3 * k
        T[1, 3] += 5e-5
        targets.take(pose_of(T), now, at(reference, now)[0], reference)
        assert not targets.advance(now, reference)
    assert np.linalg.norm(T[:3, 3] - KRANG.frame_pose(at(reference, now)[0], HAND)[:3, 3]) < 0.03


def test_a_motion_of_the_same_joints_replaces_a_target():
    targets, reference = setup()
    T = KRANG.frame_pose(near_home(np.random.default_rng(6)), HAND)
    for joints in (np.array([0, 12]), ARM[:1]):
        targets.take(pose_of(T), 10.0, KRANG.home, reference)
        targets.forget(joints)
        assert targets.is_searching == (joints[0] == 0)


def test_a_twist_moves_the_hand_straight_and_stops_when_it_is_not_renewed():
    targets, reference = setup(timeout=0.2)
    start = KRANG.frame_pose(KRANG.home, HAND)
    for k in range(60):  # 2 s at 30 Hz
        q = at(reference, 10 + k / 30)[0]
        take(targets, twist_of([0.0, 0.0, 0.05]), 10 + k / 30, q, reference)
    end = KRANG.frame_pose(at(reference, 10 + 59 / 30)[0], HAND)
    lag = 0.05 * 59 / 30 - (end - start)[2, 3]
    print(f'lag at 0.05 m/s: {1e3 * lag:.2f} mm')
    assert abs(lag) < 0.005
    assert np.abs((end - start)[:2, 3]).max() < 0.001
    assert np.abs(pin.log3(end[:3, :3] @ start[:3, :3].T)).max() < 0.01
    reference.update(12.2, q)
    assert not at(reference, 13.5)[1].any()


def test_a_twist_never_drives_a_joint_into_its_limit():
    targets, reference = setup()
    q = KRANG.home
    for k in range(600):
        q = at(reference, 10 + k / 30)[0]
        take(targets, twist_of([0.2, 0.1, 0.2], [0.5, 0.0, 0.3]), 10 + k / 30, q, reference)
        assert (q >= KRANG.lower).all()
        assert (q <= KRANG.upper).all()
    assert np.abs(q - KRANG.home).max() > 0.3


def test_a_twist_beside_a_pose_is_its_velocity():
    """A line at 0.1 m/s, sent as poses alone and with twists: the latter has no lag."""
    lags = []
    for with_twist in (False, True):
        targets, reference = setup()
        T = KRANG.frame_pose(KRANG.home, HAND)
        for k in range(100):
            now, q = 10 + k / 50, at(reference, 10 + k / 50)[0]
            X = T.copy()
            X[1, 3] += 0.05 * k / 50
            take(targets, pose_of(X), now, q, reference)
            if with_twist:
                take(targets, twist_of([0.0, 0.05, 0.0]), now, q, reference)
        lags.append(np.linalg.norm(X[:3, 3] - KRANG.frame_pose(at(reference, now)[0], HAND)[:3, 3]))
    assert lags[1] < 0.001 < 0.005 < lags[0]


@pytest.mark.parametrize(
    ('sample', 'reason'),
    [
        (PoseSample(HAND, 'world', np.zeros(3), np.array([0, 0, 0, 1.1]), 0.0), 'norm 1.1; it must be 1'),
        (PoseSample(HAND, 'world', np.zeros(3), np.zeros(4), 0.0), 'norm 0; it must be 1'),
        (PoseSample(HAND, 'world', np.array([0, np.nan, 0]), np.array([0, 0, 0, 1.0]), 0.0), 'position'),
        (PoseSample(HAND, 'world', np.zeros(3), np.full(4, np.inf), 0.0), 'orientation'),
        (PoseSample(HAND, 'camera', np.zeros(3), np.array([0, 0, 0, 1.0]), 0.0), "frame_id 'camera' is not"),
        (PoseSample('foot', 'world', np.zeros(3), np.array([0, 0, 0, 1.0]), 0.0), 'target_pose/foot: not a'),
        (TwistSample(HAND, 'world', np.full(6, np.nan), 0.0), 'target_twist/left_hand'),
    ],
)
def test_invalid_targets_are_refused_by_name_and_change_nothing(sample, reason):
    targets, reference = setup()
    with pytest.raises(InputError, match=reason):
        take(targets, sample, 10.0, KRANG.home, reference)
    np.testing.assert_array_equal(at(reference, 20.0)[0], KRANG.home)
