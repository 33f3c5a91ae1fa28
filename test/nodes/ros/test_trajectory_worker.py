"""Messages of trajectories: at once or by the thread, in order, and a stop before all others."""

import time

import numpy as np
import pytest

import krang_dynamics as kd
from krang_dynamics.bags.io.trajectory_codec import encode_trajectory
from krang_dynamics.control.reference.joint_reference import Reference
from krang_dynamics.control.reference.trajectory import PreparedTrajectory
from krang_dynamics.nodes.ros.trajectory_worker import LARGEST, SHORT, TrajectoryWorker

ROBOT = kd.load_robot('planar_2r')
REFERENCE = Reference(ROBOT)


@pytest.fixture
def worker():
    worker = TrajectoryWorker(ROBOT)
    yield worker
    worker.close()


def message(count, offset=0.0):
    times = 0.01 * np.arange(count)
    return encode_trajectory(
        kd.JointTrajectory(ROBOT.joint_names, times, np.tile(ROBOT.home + offset, (count, 1)))
    )


def take(worker, data, received=1):
    return worker.take(data, received, REFERENCE.bounds)


def next_result(worker):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if (result := worker.ready()) is not None:
            return result
        time.sleep(1e-3)
    raise AssertionError('no result of the thread')


def test_a_short_message_is_ready_at_once(worker):
    assert len(take(worker, message(3)).times) == 3
    assert worker.ready() is None


def test_long_messages_and_short_ones_after_them_are_ready_in_order(worker):
    long = message(1000)
    assert len(long) > SHORT
    assert take(worker, long, 1) is None
    assert take(worker, message(1), 2) is None
    (first, one), (second, two) = next_result(worker), next_result(worker)
    assert isinstance(first, PreparedTrajectory)
    assert (one, two) == (1, 2)
    assert [len(first.points.times), len(second.points.times)] == [1000, 1]


def test_a_stop_discards_what_is_being_prepared(worker):
    take(worker, message(3000))
    stop = encode_trajectory(kd.JointTrajectory((), np.zeros(0), np.zeros((0, 0))))
    assert len(take(worker, stop).times) == 0
    time.sleep(0.3)
    assert worker.ready() is None


def test_invalid_messages_are_refused_and_do_not_end_the_thread(worker):
    with pytest.raises(kd.KrangError, match='cannot be read'):
        take(worker, b'not a message')
    take(worker, b'\0\1\0\0' + b'\xff' * (2 * SHORT))
    assert isinstance(next_result(worker)[0], kd.KrangError)
    take(worker, message(1000, offset=9.0))
    assert 'outside its limits' in str(next_result(worker)[0])
    take(worker, message(1000))
    assert isinstance(next_result(worker)[0], PreparedTrajectory)


def test_the_size_of_waiting_messages_is_bounded_and_the_newest_remains(worker):
    large = bytes(LARGEST // 4)
    for k in range(20):
        take(worker, large, k)
        with worker._changed:
            assert sum(len(data) for _, data, _, _ in worker._jobs) <= LARGEST
    while next_result(worker)[1] != 19:
        pass
