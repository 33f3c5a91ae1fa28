"""Measured wrenches compared with the torque residual and with the observer."""

import numpy as np
import pytest
from bags.bagging import START, motion, torques

import krang_dynamics as kd
from krang_dynamics.bags.io.joint_state_codec import TYPE, encode
from krang_dynamics.bags.io.writer import BagWriter
from krang_dynamics.bags.validation.validation import validate

pytest.importorskip('rosbags', reason='rosbags is not installed')


def pressed(path, robot, frame_id='tool', sign=1.0):
    """A recording of an arm that presses with a slowly changing wrench, measured in the tool's axes."""
    from rosbags.typesys import Stores, get_typestore

    types = get_typestore(Stores.ROS2_JAZZY).types
    Vector, Time = types['geometry_msgs/msg/Vector3'], types['builtin_interfaces/msg/Time']
    t, q, v, a = motion(robot, 6.0)
    tau = torques(robot, q, v, a)
    with BagWriter(path) as writer:
        for k, now in enumerate((START + np.round(1e9 * t).astype(np.int64)).tolist()):
            f = np.array([5, -3, 10, 0.5, 0.2, -0.4]) * np.sin(2 * np.pi * 0.4 * t[k])
            effort = tau[k] + robot.wrench_to_torque(q[k], {'tool': f}, 'tool')
            writer.write('/joint_states', TYPE, encode(robot.joint_names, now, q[k], v[k], effort), now)
            header = types['std_msgs/msg/Header'](Time(*divmod(now, 1_000_000_000)), frame_id)
            wrench = types['geometry_msgs/msg/Wrench'](Vector(*(sign * f[:3])), Vector(*(sign * f[3:])))
            writer.write_message(
                '/wrench/tool', types['geometry_msgs/msg/WrenchStamped'](header, wrench), now
            )
    return path


def test_a_wrench_applied_by_the_robot_explains_the_residual(tmp_path):
    robot = kd.load_robot('anthropomorphic')
    result = validate(pressed(tmp_path / 'bag', robot), robot)
    for name in robot.joint_names[:3]:
        figures = result.wrenches[name]
        assert figures['residual'].correlation > 0.999
        assert figures['residual'].rmse < 0.1 * result.joints[name]['friction'].rmse
        # The observer lags by 1 / gain behind a wrench of 0.4 Hz.
        assert figures['observer'].correlation > 0.98
    assert 'Measured wrenches' in result.text()


def test_the_opposite_convention_gives_a_negative_correlation(tmp_path):
    robot = kd.load_robot('anthropomorphic')
    result = validate(pressed(tmp_path / 'bag', robot, sign=-1.0), robot)
    assert result.wrenches['joint_2']['residual'].correlation < -0.999


def test_an_unknown_frame_is_reported(tmp_path):
    robot = kd.load_robot('anthropomorphic')
    result = validate(pressed(tmp_path / 'bag', robot, frame_id='sensor'), robot)
    assert not result.wrenches
    assert any("frame_id 'sensor' is not a frame of anthropomorphic" in line for line in result.check)
