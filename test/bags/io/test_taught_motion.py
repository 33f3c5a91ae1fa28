"""Taught motions: what is recorded is repeated, within the limits."""

import numpy as np
import pytest
from harness import closed_loop, robot_named

from krang_dynamics.bags.io.motion_file import motion_text, read_motion
from krang_dynamics.bags.io.taught_motion import fitted, taught_motion, taught_poses
from krang_dynamics.control.reference.stream import StreamLimits
from krang_dynamics.control.reference.trajectory import Bounds, JointTrajectory, PreparedTrajectory
from krang_dynamics.errors import InputError
from krang_dynamics.safety.limits import Limits
from krang_dynamics.safety.modes import Mode

ARM = robot_named('anthropomorphic')
LIMITS = StreamLimits.of(ARM)
RATES = LIMITS.velocity, LIMITS.acceleration


def guided(duration, rate=500.0, noise=2e-5):
    """A motion from rest to rest, as a person would guide, with rests around it."""
    t = np.arange(-1.0, duration + 1.0, 1 / rate)
    u = np.clip(t / duration, 0, 1)[:, None]
    window = 64 * (u * (1 - u)) ** 3
    q = ARM.home + 0.3 * window * np.sin(2 * np.pi * u * np.arange(1, 7) / 3)
    return t + 7.0, q + noise * np.random.default_rng(0).normal(size=q.shape)


def test_a_motion_of_20_s_is_taught_written_and_played_to_a_milliradian(tmp_path):
    times, q = guided(20.0)
    (tmp_path / 'motion.csv').write_text(motion_text(taught_motion(ARM.joint_names, times, q), '.csv'))
    taught = read_motion(tmp_path / 'motion.csv')
    motion = fitted(taught, ARM.home, LIMITS.velocity, LIMITS.acceleration)
    assert motion.times[-1] - motion.times[0] == pytest.approx(taught.times[-1])
    closed = closed_loop('pinocchio', ARM, terms=('computed_torque',))
    closed.step(trajectory=motion)
    assert not closed.outputs.refused
    begin = len(closed.history) - 1
    closed.run(motion.times[-1])
    assert closed.outputs.mode is Mode.ACTIVE
    played, path = closed.path()
    played = played[begin:] - played[begin] - motion.times[0]
    start = times[np.argmax((np.abs(q - q[0]) > 1e-3).any(axis=1)) - 1]
    expected = np.column_stack([np.interp(played + start, times, x) for x in q.T])
    error = (path[begin:] - expected)[played > 0]
    assert np.sqrt((error**2).mean(axis=0)).max() <= 1e-3


def test_a_motion_that_is_too_fast_is_played_slower():
    times, q = guided(20.0)
    slow = LIMITS.velocity / 30
    motion = fitted(taught_motion(ARM.joint_names, times, q), ARM.home, slow, LIMITS.acceleration)
    assert motion.times[-1] > 22
    limits = Limits.of(ARM)
    limits.velocity = slow
    PreparedTrajectory(ARM, Bounds(ARM, limits), motion)  # refuses a motion beyond the limits


def test_poses_are_reached_one_after_the_other():
    poses = [ARM.home + 0.5, ARM.home - 1.0, ARM.home]
    motion = fitted(taught_poses(ARM.joint_names, poses), ARM.home, LIMITS.velocity / 5, LIMITS.acceleration)
    PreparedTrajectory(ARM, Bounds(ARM, Limits.of(ARM)), motion)
    np.testing.assert_array_equal(motion.positions, poses)
    assert (np.diff(motion.times) >= 3.0).all()


def test_one_point_is_played_and_given_velocities_are_scaled():
    one = fitted(JointTrajectory(ARM.joint_names, np.array([3.0]), ARM.home[None]), ARM.home + 0.1, *RATES)
    assert one.times.tolist() == [1.0]
    t = np.linspace(0, 10, 501)
    sine = [0.5 * np.sin(t), 0.5 * np.cos(t), -0.5 * np.sin(t)]
    motion = JointTrajectory(('joint_1',), t, *(x[:, None] for x in sine))
    slow = fitted(motion, np.zeros(1), np.array([0.25]), np.array([9.0]))
    scale = np.ptp(slow.times) / 10
    assert scale == pytest.approx(2.0, rel=0.05)
    np.testing.assert_allclose(slow.velocities, motion.velocities / scale)
    np.testing.assert_allclose(slow.accelerations, motion.accelerations / scale**2)


def test_nothing_to_teach_is_refused():
    times, q = guided(20.0)
    with pytest.raises(InputError, match='not moved'):
        taught_motion(ARM.joint_names, times[:100], q[:100])
    with pytest.raises(InputError, match='no joint states'):
        taught_motion(ARM.joint_names, times[:0], q[:0])
    with pytest.raises(InputError, match='no pose'):
        taught_poses(ARM.joint_names, [])


def test_a_recording_that_begins_and_ends_in_motion_is_played_from_rest_to_rest():
    times, q = guided(20.0)
    part = (times > 12) & (times < 20)
    motion = taught_motion(ARM.joint_names, times[part], q[part])
    np.testing.assert_allclose(motion.positions[[0, -1]], q[part][[0, -1]], atol=1e-3)
    speed = np.abs(np.diff(motion.positions, axis=0) / np.diff(motion.times)[:, None]).max(axis=1)
    assert max(speed[[0, -1]]) < 0.02 < 0.05 < min(speed[[25, -25]])
    assert np.abs(np.diff(speed)).max() < 0.02
