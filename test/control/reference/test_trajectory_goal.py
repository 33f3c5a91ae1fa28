"""Goals of FollowJointTrajectory: every way to end, each with the code that MoveIt reads."""

from types import SimpleNamespace

import numpy as np
import pytest
from harness import Harness, robot_named

from krang_dynamics.control.messages import joint_trajectory
from krang_dynamics.control.reference import trajectory_goal as goals
from krang_dynamics.control.reference.trajectory import JointTrajectory
from krang_dynamics.control.reference.trajectory_goal import Tolerance, TrajectoryGoal, tolerances
from krang_dynamics.errors import InputError

ARM = robot_named('anthropomorphic')
NAMES = ('joint_2', 'joint_1')
END = ARM.home[[1, 0]] + 0.2


def goal(trajectory=None, **fields):
    trajectory = JointTrajectory(NAMES, np.array([1.0]), END[None]) if trajectory is None else trajectory
    return TrajectoryGoal(ARM, trajectory, **fields)


def at_end(error=0.0, speed=0.0):
    """Measured state and reference at the goal, with an error of joint_2."""
    q, v = ARM.home, np.zeros(6)
    q[[1, 0]] = END
    reference = (q.copy(), np.zeros(6))
    q[1] += error
    v[1] += speed
    return q, v, reference


@pytest.mark.parametrize(
    ('changes', 'code', 'text'),
    [
        ({'joint_names': ('joint_2', 'jiont_1')}, goals.INVALID_JOINTS, "did you mean 'joint_1'"),
        ({'joint_names': ('joint_2', 'joint_2')}, goals.INVALID_JOINTS, 'once'),
        ({'joint_names': ()}, goals.INVALID_JOINTS, 'once'),
        ({'times': np.zeros(0), 'positions': np.zeros((0, 2))}, goals.INVALID_GOAL, 'no points'),
        ({'positions': np.zeros((1, 3))}, goals.INVALID_GOAL, 'one position per joint'),
        ({'start': 50.0}, goals.OLD_HEADER_TIMESTAMP, '49.000 s ago'),
    ],
)
def test_goals_that_cannot_be_followed_are_refused_with_their_code(changes, code, text):
    fields = {'joint_names': NAMES, 'times': np.array([1.0]), 'positions': END[None]}
    result = goal(JointTrajectory(**{**fields, **changes})).refusal(clock=100.0)
    assert result.code == code
    assert text in result.text


def test_a_tolerance_of_another_joint_is_refused_and_one_that_is_no_number_too():
    wrong = goal(path_tolerance={'joint_3': Tolerance(0.1)}).refusal(0.0)
    assert (wrong.code, 'joint_3' in wrong.text) == (goals.INVALID_JOINTS, True)
    with pytest.raises(InputError, match='joint_1'):
        tolerances([('joint_1', np.nan, 0.0, 0.0)])


def test_the_goal_is_reached_at_its_end_at_rest():
    x = goal()
    assert x.refusal(100.0) is None
    x.accepted(100.0)
    feedback, result = x.take(100.5, *at_end())
    assert (feedback.time, result) == (0.5, None)
    np.testing.assert_array_equal(feedback.desired[0], END)
    assert x.take(101.1, *at_end(speed=0.1))[1] is None
    assert x.take(101.2, *at_end())[1].code == goals.SUCCESSFUL


def test_before_the_start_nothing_is_compared():
    x = goal(
        JointTrajectory(NAMES, np.array([1.0]), END[None], start=105.0),
        path_tolerance={'joint_2': Tolerance(0.01)},
    )
    x.accepted(100.0)
    assert x.take(104.0, *at_end(error=0.5))[1] is None
    assert x.take(105.5, *at_end(error=0.5))[1].code == goals.PATH_TOLERANCE_VIOLATED


def test_the_path_tolerance_names_the_joint_and_minus_one_is_none():
    x = goal(path_tolerance=tolerances([('joint_2', 0.05, 0.0, 0.0)]))
    x.accepted(0.0)
    assert x.take(0.5, *at_end(error=0.04))[1] is None
    result = x.take(0.5, *at_end(error=0.06))[1]
    assert result.code == goals.PATH_TOLERANCE_VIOLATED
    assert "joint 'joint_2' after 0.500 s: position error 0.0600 rad" in result.text
    assert x.take(0.5, *at_end(error=np.nan))[1].code == goals.PATH_TOLERANCE_VIOLATED
    free = goal(path_tolerance={'joint_2': Tolerance(-1.0, 0.1)})
    free.accepted(0.0)
    assert free.take(0.5, *at_end(error=9.0))[1] is None
    assert 'velocity' in free.take(0.5, *at_end(speed=0.2))[1].text


def test_the_goal_tolerance_is_violated_after_the_goal_time_tolerance():
    x = goal(goal_tolerance={'joint_2': Tolerance(0.02)}, goal_time_tolerance=0.5)
    x.accepted(0.0)
    assert x.take(1.4, *at_end(error=0.03))[1] is None
    assert x.take(1.4, *at_end(error=0.01))[1].code == goals.SUCCESSFUL
    late = x.take(1.6, *at_end(error=0.03))[1]
    assert late.code == goals.GOAL_TOLERANCE_VIOLATED
    assert 'tolerance is 0.02' in late.text
    patient = goal()
    patient.accepted(0.0)
    assert patient.take(99.0, *at_end(error=0.5))[1] is None


def test_a_goal_whose_joints_follow_another_motion_is_not_reached():
    """A target of a hand, or a trajectory from elsewhere, has moved the reference."""
    x = goal()
    x.accepted(0.0)
    q, v, reference = at_end()
    q, reference = q + 0.3, (reference[0] + 0.3, reference[1])
    assert x.take(1.1, q, v, (reference[0], v + 0.1))[1] is None  # on its way
    result = x.take(1.2, q, v, reference)[1]
    assert result.code == goals.INVALID_GOAL
    assert 'another motion' in result.text


def test_a_cancelled_goal_stops_smoothly():
    loop = Harness(ARM, terms=('computed_torque',)).start()
    x = goal(JointTrajectory(NAMES, np.array([2.0]), END[None]))
    loop.step(trajectory=x.trajectory)
    loop.run(1.0)
    before = loop.outputs.reference[1].copy()
    loop.step(trajectory=x.stop)
    assert not loop.outputs.refused
    v = np.array([loop.step().reference[1].copy() for _ in range(1000)])
    assert np.abs(np.diff(np.vstack([before, v]), axis=0)).max() < 0.01
    np.testing.assert_array_equal(v[-1], 0)


def test_a_plan_of_moveit_with_500_points_is_accepted():
    """Positions, velocities and accelerations in every point, the first at time 0."""
    names, count = ARM.joint_names[::-1], 500
    s = np.linspace(0, 1, count)[:, None]
    way, home = np.full(6, 0.5), ARM.home[::-1]
    q = home + way * (10 * s**3 - 15 * s**4 + 6 * s**5)
    v = way * (30 * s**2 - 60 * s**3 + 30 * s**4) / 5
    a = way * (60 * s - 180 * s**2 + 120 * s**3) / 25
    points = [
        SimpleNamespace(
            positions=q[k], velocities=v[k], accelerations=a[k], effort=[],
            time_from_start=SimpleNamespace(sec=int(5 * s[k, 0]), nanosec=round(1e9 * (5 * s[k, 0] % 1))),
        )
        for k in range(count)
    ]  # fmt: skip
    header = SimpleNamespace(stamp=SimpleNamespace(sec=0, nanosec=0))
    plan = joint_trajectory(SimpleNamespace(header=header, joint_names=names, points=points))
    assert TrajectoryGoal(ARM, plan).refusal(100.0) is None
    loop = Harness(ARM, terms=('computed_torque',)).start()
    outputs = loop.step(trajectory=plan)
    assert outputs.accepted, outputs.refused
