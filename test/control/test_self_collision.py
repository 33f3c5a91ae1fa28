"""Self-collision: links that would touch are named with time and distance."""

import numpy as np
import pytest
from harness import Harness, robot_named

from krang_dynamics.control.reference.joint_reference import Reference
from krang_dynamics.control.reference.trajectory import JointTrajectory
from krang_dynamics.control.self_collision import path_problem, pose_problem
from krang_dynamics.robot.self_distance import SelfDistance
from krang_dynamics.safety.modes import Mode

KRANG = robot_named('krang')


@pytest.fixture(scope='module')
def distance():
    return SelfDistance(KRANG)


def touching(distance):
    """A pose in which the arms touch, from random ones."""
    random = np.random.default_rng(0)
    while True:
        q = KRANG.home
        q[3:] = random.uniform(KRANG.lower[3:] + 0.1, KRANG.upper[3:] - 0.1)
        if distance.minimum(q)[0] < 0:
            return q


def prepared(q, time=4.0):
    reference = Reference(KRANG)
    return reference.prepare(JointTrajectory(KRANG.joint_names, np.array([time]), q[None]))


def test_a_trajectory_that_would_touch_is_named_with_links_time_and_distance(distance):
    q = touching(distance)
    text = path_problem(distance, prepared(q, 60.0), KRANG.home, 0.01)
    first, second = distance.minimum(q)[1]
    assert f'links {first!r}' in text or 'links' in text
    assert 'limits.self_distance is 0.01 m at' in text
    assert pose_problem(distance, q, 0.01).startswith(f'links {first!r} and {second!r}: distance -')


def test_a_free_trajectory_and_a_stop_are_no_problem(distance):
    assert path_problem(distance, prepared(KRANG.home + 0.02), KRANG.home, 0.01) == ''
    stop = Reference(KRANG).prepare(JointTrajectory((), np.zeros(0), np.zeros((0, 0))))
    assert path_problem(distance, stop, KRANG.home, 0.01) == ''
    assert pose_problem(distance, KRANG.home, 0.01) == ''


def test_a_robot_that_is_too_near_may_move_out(distance):
    near = distance.minimum(KRANG.home)[0]
    out = KRANG.home
    out[6] -= np.sign(out[6]) * 0.2
    if distance.minimum(out)[0] > near:
        assert path_problem(distance, prepared(out), KRANG.home, near + 0.01) == ''


def test_a_distance_below_the_limit_is_a_fault_and_prevents_enable():
    loop = Harness('planar_2r', terms=('gravity',)).start()
    loop.session.self_problem = "links 'a' and 'b': distance 0.001 m"
    loop.step()
    assert (loop.outputs.mode, loop.fault) == (Mode.FAULT, 'self_distance')
    other = Harness('planar_2r', terms=('gravity',))
    other.session.self_problem = 'near'
    assert 'near' in other.step(enable=True).refused[0]
