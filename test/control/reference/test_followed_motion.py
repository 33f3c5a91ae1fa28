"""A motion that is followed from joint states: errors per joint, and its end."""

import numpy as np
import pytest

import krang_dynamics as kd
from krang_dynamics.control.reference.followed_motion import FollowedMotion

START = 100.0  # on the node's clock [s]
ROBOT = kd.load_robot('planar_2r')
GOAL = kd.JointTrajectory(ROBOT.joint_names, np.array([2.0]), ROBOT.home[None] + 0.5)


def sample(q, time, names=ROBOT.joint_names, stamp=None):
    return kd.JointSamples(names, q, np.zeros(0), np.zeros(0), time if stamp is None else stamp, time)


def test_the_error_is_the_distance_from_the_motion_from_where_the_robot_was():
    followed = FollowedMotion(ROBOT, GOAL, START)
    followed.take(sample(ROBOT.home + 5.0, START - 0.1))  # before the start
    assert followed.elapsed == 0
    followed.take(sample(ROBOT.home, START))
    followed.take(sample(ROBOT.home + np.array([0.25, 0.2]), START + 1.0))  # the middle of a symmetric motion
    assert not followed.is_over
    followed.take(sample(ROBOT.home + 0.5, START + 2.0))
    assert followed.is_over
    lines = followed.text().splitlines()
    assert lines[2].split()[:2] == ['joint_1', '0.00000']
    assert lines[3].split() == ['joint_2', '0.05000', '1.00', '0.00000']


def test_states_without_stamps_count_by_arrival():
    followed = FollowedMotion(ROBOT, GOAL, START)
    followed.take(sample(ROBOT.home, START + 1.5, stamp=0.0))
    assert followed.elapsed == pytest.approx(1.5)


def test_without_robot_or_joints_only_time_is_followed():
    for robot, names in ((None, ROBOT.joint_names), (ROBOT, ('x', 'y'))):
        followed = FollowedMotion(robot, GOAL, START)
        followed.take(sample(ROBOT.home, START + 3.0, names))
        assert followed.is_over
        assert 'errors are not known' in followed.text()
