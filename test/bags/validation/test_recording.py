"""Joint states of a recording over the joints of the robot."""

import numpy as np
import pytest
from bags.bagging import START, motion, record, torques

import krang_dynamics as kd
from krang_dynamics.bags.io.joint_state_codec import TYPE, encode
from krang_dynamics.bags.io.reader import Bag
from krang_dynamics.bags.io.writer import BagWriter
from krang_dynamics.bags.validation.recording import Reading, Recording
from krang_dynamics.bags.validation.validation import validate
from krang_dynamics.errors import ConfigError, KrangError

pytest.importorskip('rosbags', reason='rosbags is not installed')
FOREVER = 2**62


@pytest.fixture(scope='module')
def robot():
    return kd.load_robot('planar_2r')


def opened(path, robot, **reading):
    return Recording(Bag(path), robot, Reading(**reading))


def all_samples(path, robot, **reading):
    return opened(path, robot, **reading).samples(0, FOREVER)


def test_samples_are_in_the_order_of_joint_names(robot, tmp_path):
    t, q, v, a = motion(robot, 1.0)
    tau = torques(robot, q, v, a)
    bag = record(tmp_path / 'bag', ['j2', 'other', 'j1'], t, *(x[:, [1, 0, 0]] for x in (q, v, tau)))
    samples = all_samples(bag, robot, maps=('j*=joint_*',))
    np.testing.assert_array_equal(samples.q, q)
    np.testing.assert_array_equal(samples.v, v)
    np.testing.assert_array_equal(samples.effort, tau)
    np.testing.assert_allclose(samples.t, t, atol=1e-9)


def test_two_publishers_are_merged(robot, tmp_path):
    t, q, v, a = motion(robot, 1.0)
    tau = torques(robot, q, v, a)
    with BagWriter(tmp_path / 'bag') as writer:
        for k in range(len(t)):
            for joint, late in ((0, 0), (1, 1_000_000)):
                now = START + round(1e9 * t[k]) + late
                state = (x[k, joint : joint + 1] for x in (q, v, tau))
                writer.write('/joint_states', TYPE, encode([f'joint_{joint + 1}'], now, *state), now)
    samples = all_samples(tmp_path / 'bag', robot)
    assert len(samples.t) == len(t) - 1  # the second publisher starts one sample later
    exact = robot.home[1] + 0.4 * np.sin(2 * np.pi * 0.3 * 1.37 * (samples.t - 1e-3) + 1)
    np.testing.assert_allclose(samples.q[:, 1], exact, atol=1e-5)


def test_repeated_backward_and_incomplete_samples_are_dropped_and_counted(robot, tmp_path):
    t, q, v, a = motion(robot, 1.0)
    tau = torques(robot, q, v, a)
    stamps = START + np.round(1e9 * t).astype(np.int64)
    stamps[10] = stamps[9]
    stamps[20] = stamps[15] + 1
    q = q.copy()
    q[30, 0] = np.nan
    samples = all_samples(record(tmp_path / 'bag', robot.joint_names, t, q, v, tau, stamps=stamps), robot)
    assert len(samples.t) == len(t) - 3
    assert (np.diff(samples.t) > 0).all()
    for found, k in ((samples.repeated, 10), (samples.backward, 20), (samples.incomplete, 30)):
        assert found.tolist() == [START + round(1e9 * t[k])]


def test_a_stamp_of_zero_means_the_time_of_arrival(robot, tmp_path):
    t, q, v, a = motion(robot, 0.5)
    tau = torques(robot, q, v, a)
    path = record(tmp_path / 'bag', robot.joint_names, t, q, v, tau, stamps=np.zeros(len(t), int))
    np.testing.assert_allclose(all_samples(path, robot).t, t, atol=1e-9)


def test_simulated_time_starts_with_the_recording_and_runs_at_its_own_pace(robot, tmp_path):
    t, q, v, a = motion(robot, 2.0)
    stamps = np.round(1e9 * (1 + t)).astype(np.int64)  # 1 s is the simulator's start
    path = record(tmp_path / 'bag', robot.joint_names, t / 3, q, v, torques(robot, q, v, a), stamps=stamps)
    np.testing.assert_allclose(all_samples(path, robot).t, t, atol=0.01)
    assert validate(path, robot).duration == pytest.approx(2.0, abs=0.05)


def test_locked_joints_have_the_given_position(robot, tmp_path):
    t, q, v, _ = motion(robot, 0.5)
    path = record(tmp_path / 'bag', ['joint_1'], t, q[:, :1], v[:, :1], v[:, :1])
    samples = all_samples(path, robot, locked={'joint_2': 0.7})
    assert (samples.q[:, 1] == 0.7).all()
    assert not samples.v[:, 1].any()
    with pytest.raises(KrangError, match='joint to lock'):
        all_samples(path, robot, locked={'joint_9': 0})


def test_a_passive_joint_needs_no_effort_and_spins_without_a_jump(tmp_path):
    robot = kd.load_robot('pendubot')
    t = np.arange(0, 2, 0.01)
    q = np.column_stack([0.1 * np.sin(t), 4 * t])
    wrapped = np.column_stack([q[:, 0], (q[:, 1] + np.pi) % (2 * np.pi) - np.pi])
    tau = np.column_stack([np.ones(len(t)), np.full(len(t), np.nan)])
    samples = all_samples(record(tmp_path / 'bag', robot.joint_names, t, wrapped, q, tau), robot)
    np.testing.assert_allclose(samples.q[:, 1], q[:, 1], atol=1e-12)
    assert not samples.effort[:, 1].any()


def test_currents_and_voltages_are_converted_to_torques(tmp_path):
    krang = kd.load_robot('krang')
    t, q, v, a = motion(krang, 0.2, reach=0.05)
    tau = torques(krang, q, v, a)
    current = np.array([krang.motor_command(x, y) for x, y in zip(tau, v, strict=True)])
    path = record(tmp_path / 'bag', krang.joint_names, t, q, v, current)
    np.testing.assert_allclose(all_samples(path, krang, unit='current').effort, tau, rtol=1e-12)
    with pytest.raises(ConfigError, match='back_emf'):
        all_samples(path, krang, unit='voltage')


def test_windows_cover_everything_once(robot, tmp_path, monkeypatch):
    monkeypatch.setattr('krang_dynamics.bags.validation.recording.WINDOW', 100)
    t, q, v, _ = motion(robot, 5.0)
    recording = opened(record(tmp_path / 'bag', robot.joint_names, t, q, v, v), robot)
    windows = recording.windows()
    assert len(windows) == 10
    counts = [len(recording.samples(*window).t) for window in windows]
    assert sum(counts) == len(t)
    assert sum(len(recording.samples(*window).t) for window in recording.windows(0.5, 1.0)) == len(t) // 2


def test_a_share_counts_samples_and_not_the_time_before_a_simulator_starts(robot, tmp_path):
    t, q, v, _ = motion(robot, 2.0)
    wait = len(t)  # repeated samples before the first step
    q, v = (np.concatenate([np.repeat(x[:1], wait, axis=0), x]) for x in (q, v))
    stamps = START + np.concatenate([np.zeros(wait), np.round(1e9 * t)]).astype(np.int64)
    late = np.arange(len(stamps)) / 200
    recording = opened(record(tmp_path / 'bag', robot.joint_names, late, q, v, v, stamps=stamps), robot)
    (half,) = recording.windows(0.0, 0.5)
    assert len(recording.samples(*half).t) == len(t) // 2


def test_joints_of_other_sensors_come_from_the_truth_of_a_simulator(tmp_path):
    krang = kd.load_robot('krang')
    t, q, v, _ = motion(krang, 0.2)
    with BagWriter(tmp_path / 'bag') as writer:
        for topic, columns in (('/joint_states', slice(1, None)), ('/simulator/truth', slice(None))):
            names = krang.joint_names[columns]
            for k, time in enumerate((START + np.round(1e9 * t).astype(int)).tolist()):
                data = encode(names, time, q[k, columns], v[k, columns], v[k, columns])
                writer.write(topic, TYPE, data, time)
    assert opened(tmp_path / 'bag', krang).topic == '/simulator/truth'
    locked = opened(tmp_path / 'bag', krang, locked={'base_pitch': 0.0})
    assert locked.topic == '/joint_states'


def test_wrong_names_missing_topics_and_missing_effort_are_one_line_each(robot, tmp_path):
    t, q, v, _ = motion(robot, 0.2)
    path = record(tmp_path / 'a', ['arm_1', 'arm_2'], t, q, v, v)
    with pytest.raises(KrangError, match=r"lacks 'joint_1', 'joint_2'; it has arm_1, arm_2.*arm_\*=joint_\*"):
        opened(path, robot)
    with pytest.raises(KrangError, match='has no topic'):
        opened(path, robot, topic='/states')
    path = record(tmp_path / 'b', robot.joint_names, t, q, v, None)
    with pytest.raises(KrangError, match='no effort of joint_1, joint_2'):
        opened(path, robot)
    path = record(tmp_path / 'c', robot.joint_names, t, q, v, v, topic='/a')
    with BagWriter(tmp_path / 'd') as writer:
        writer.write('/chatter', 'std_msgs/msg/String', b'\0\1\0\0\1\0\0\0\0', START)
    with pytest.raises(KrangError, match='no topic of type sensor_msgs/msg/JointState; it has /chatter'):
        opened(tmp_path / 'd', robot)
    with pytest.raises(KrangError, match='not sensor_msgs/msg/JointState'):
        opened(tmp_path / 'd', robot, topic='/chatter')
