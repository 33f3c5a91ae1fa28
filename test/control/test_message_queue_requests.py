"""Requests between two steps: which of them a step gets, and in which order."""

from types import SimpleNamespace

import numpy as np
import pytest
from harness import message

from krang_dynamics.control.controller import Inputs
from krang_dynamics.control.message_queue import MOST_PRESSES, MOST_TRAJECTORIES, RequestQueue
from krang_dynamics.control.terms.wrench import WrenchSample
from krang_dynamics.errors import InputError


@pytest.fixture
def queue():
    return RequestQueue()


def taken(queue, time=7.0):
    """The inputs of one step, and when its trajectory was received [ns]."""
    inputs = Inputs(time, time)
    return inputs, queue.empty_into(inputs)


def trajectory(*positions, name='a'):
    """A trajectory_msgs/JointTrajectory with one point of one joint, as far as a controller reads it."""
    point = SimpleNamespace(
        time_from_start=SimpleNamespace(sec=0, nanosec=0),
        positions=list(positions),
        velocities=[],
        accelerations=[],
        effort=[],
    )
    stamp = SimpleNamespace(sec=0, nanosec=0)
    return SimpleNamespace(header=SimpleNamespace(stamp=stamp), joint_names=[name], points=[point])


def wrench(frame, force=1.0, arrival=0.0):
    return WrenchSample(frame, frame, np.array([force, 0, 0, 0, 0, 0.0]), arrival)


def test_an_empty_queue_gives_a_step_nothing(queue):
    inputs, received = taken(queue)
    assert inputs == Inputs(7.0, 7.0)
    assert received == 0


@pytest.mark.parametrize(('values', 'given'), [((True, True), True), ((True, False, True), False)])
def test_heartbeats_are_given_once_and_a_false_one_is_not_lost(queue, values, given):
    for value in values:
        queue.take_deadman(message(value))
    assert taken(queue)[0].deadman is given
    assert taken(queue)[0].deadman is None


def test_every_press_of_the_emergency_stop_reaches_a_step_of_its_own(queue):
    for value in (True, True, False, False, True):
        queue.take_emergency_stop(message(value))
    assert [taken(queue)[0].emergency_stop for _ in range(4)] == [True, False, True, None]


@pytest.mark.parametrize('last', [True, False])
def test_after_a_flood_of_presses_the_last_one_counts(queue, last):
    for k in range(3 * MOST_PRESSES + last):
        queue.take_emergency_stop(message(k % 2 == 0))
    pressed = []
    while (value := taken(queue)[0].emergency_stop) is not None:
        pressed.append(value)
    assert len(pressed) == MOST_PRESSES
    assert pressed[-1] is last


def test_the_newest_trajectory_is_given_with_the_time_of_its_reception(queue):
    for k in range(3):
        queue.take_trajectory(trajectory(k), received=100 + k)
    inputs, received = taken(queue)
    assert (inputs.trajectory.positions[0, 0], received) == (2.0, 102)
    assert taken(queue)[0].trajectory is None


def test_trajectories_of_different_joints_are_given_one_by_one(queue):
    for k, name in enumerate('aba'):
        queue.take_trajectory(trajectory(k, name=name), received=100 + k)
    assert [taken(queue)[1] for _ in range(3)] == [101, 102, 0]


def test_an_empty_trajectory_discards_those_that_wait(queue):
    queue.take_trajectory(trajectory(1.0), received=1)
    stop = trajectory()
    stop.points, stop.joint_names = [], []
    queue.take_trajectory(stop, received=2)
    inputs, received = taken(queue)
    assert (len(inputs.trajectory.times), received) == (0, 2)
    assert taken(queue)[0].trajectory is None


def test_trajectories_that_wait_have_a_bound(queue):
    for k in range(2 * MOST_TRAJECTORIES):
        queue.take_trajectory(trajectory(k, name=str(k)), received=k + 1)
    received = [taken(queue)[1] for _ in range(MOST_TRAJECTORIES + 1)]
    assert received == [*range(MOST_TRAJECTORIES + 1, 2 * MOST_TRAJECTORIES + 1), 0]


def test_an_invalid_trajectory_is_refused_at_reception_and_leaves_the_others(queue):
    queue.take_trajectory(trajectory(1.0), received=1)
    bad = trajectory(1.0)
    bad.points = [*bad.points, *trajectory(1.0, 2.0).points]
    with pytest.raises(InputError, match='positions'):
        queue.take_trajectory(bad, received=2)
    assert taken(queue)[1] == 1


def test_the_newest_wrench_of_every_frame_is_given_once_and_its_age_counts_from_the_step(queue):
    for sample in (wrench('left', 1.0, 3.0), wrench('right', 2.0, 4.0), wrench('left', 5.0, 99.0)):
        queue.take_wrench(sample)
    inputs, _ = taken(queue, time=7.0)
    assert [(w.frame, w.wrench[0], w.arrival) for w in inputs.wrenches] == [
        ('left', 5.0, 7.0), ('right', 2.0, 7.0),
    ]  # fmt: skip
    assert taken(queue)[0].wrenches == ()
