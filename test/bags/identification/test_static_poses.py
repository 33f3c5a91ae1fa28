"""Poses from tables and from bags."""

import numpy as np
import pytest
from bags.bagging import record, torques

import krang_dynamics as kd
from krang_dynamics.bags.identification.static_poses import read_poses
from krang_dynamics.bags.validation.recording import Reading
from krang_dynamics.cli.main import main

pytest.importorskip('rosbags', reason='rosbags is not installed')


def test_rests_of_a_bag_are_poses(tmp_path):
    robot = kd.load_robot('planar_2r')
    goals = robot.home + np.array([[0, 0], [0.5, -0.2], [-0.3, 0.4]])
    q = np.repeat(goals, 100, axis=0)
    t = np.arange(len(q)) * 0.01
    tau = torques(robot, q, 0 * q, 0 * q)
    poses = read_poses([record(tmp_path / 'bag', robot.joint_names, t, q, 0 * q, tau)], robot, Reading())
    np.testing.assert_allclose(poses.q, goals, atol=1e-9)
    np.testing.assert_allclose(poses.tau, tau[::100], atol=1e-9)


def test_poses_in_a_table_correct_the_masses(tmp_path, capsys):
    robot = kd.load_robot('planar_2r')
    true = robot.with_payload('tip', 0.5)
    q = robot.home + np.random.default_rng(1).uniform(-1, 1, (12, 2))
    rows = np.column_stack([q, [true.gravity_torque(x) for x in q]])
    header = 'q.joint_1,q.joint_2,tau.joint_1,tau.joint_2'
    np.savetxt(tmp_path / 'poses.csv', rows, delimiter=',', header=header, comments='')
    out, urdf = tmp_path / 'a.yaml', tmp_path / 'a.urdf'
    command = ['identify', '--static', str(tmp_path / 'poses.csv'), '--robot', 'planar_2r']
    assert main([*command, '--total-mass', '4.0', '--out', str(out), '--urdf', str(urdf)]) == 0
    assert 'held-out poses' in capsys.readouterr().out
    found = kd.load_robot(out)
    for x in q:
        np.testing.assert_allclose(found.gravity_torque(x), true.gravity_torque(x), atol=0.3)
