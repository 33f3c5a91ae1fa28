"""The robot's state: joints from encoders, inertial unit and odometry; dynamics and the torque of a stop."""

from dataclasses import replace

import numpy as np
import pytest
from harness import Harness, robot_named
from scipy.spatial.transform import Rotation

import krang_dynamics as kd
from krang_dynamics.control.controller import Inputs
from krang_dynamics.control.drivers import Drivers
from krang_dynamics.control.robot_state import RobotState
from krang_dynamics.control.sensors import ImuSample, OdomSample
from krang_dynamics.safety.joint_buffer import JointSamples
from krang_dynamics.safety.modes import Mode

# -- inertial unit -------------------------------------------------------------------------------------


def krang_imu(loop, q, v, **changes):
    """What the unit in Krang's base measures: x forward and z up when base_pitch is 0."""
    imu = loop.robot.config.imu
    link = Rotation.from_matrix(loop.robot.frame_pose(q, imu.link)[:3, :3])
    mount = Rotation.from_euler('xyz', imu.mount_rpy)
    spin = mount.inv().apply(loop.robot.jacobian(q, imu.link, 'local')[3:] @ v)
    sample = ImuSample((link * mount).as_quat(), spin, loop.clock, loop.time)
    return replace(sample, **changes)


def encoders(loop, q, v):
    """All joints of Krang but base_pitch."""
    names = loop.robot.joint_names[1:]
    return JointSamples(names, q[1:], v[1:], np.zeros(16), loop.clock, loop.time)


def test_krangs_base_is_known_from_its_inertial_unit():
    loop = Harness('krang', ramp_time=0.0)
    q, v = loop.robot.home + 0.05, np.full(17, 0.01)
    loop.step(samples=[encoders(loop, q, v)], enable=True)
    assert "'base_pitch' was never received" in loop.outputs.refused[0]
    loop.step(samples=[encoders(loop, q, v)], imu=[krang_imu(loop, q, v)], enable=True)
    assert loop.outputs.refused == []
    loop.step(samples=[encoders(loop, q, v)], imu=[krang_imu(loop, q, v)])
    expected = loop.robot.gravity_torque(q)
    np.testing.assert_allclose(loop.outputs.terms['gravity'], expected, atol=1e-9 * np.abs(expected).max())


def test_a_unit_that_stops_publishing_is_a_stale_joint():
    loop = Harness('krang', ramp_time=0.0)
    q, v = loop.robot.home, np.zeros(17)
    loop.step(samples=[encoders(loop, q, v)], imu=[krang_imu(loop, q, v)], enable=True)
    for _ in range(150):
        loop.step(samples=[encoders(loop, q, v)])
    assert loop.outputs.fault.kind == 'state'
    assert 'base_pitch' in loop.outputs.fault.reason


@pytest.mark.parametrize('quaternion', [[0, 0, 0, 0], [np.nan, 0, 0, 1], [0, 0, 0, 5], [np.inf, 0, 0, 0]])
def test_an_invalid_orientation_is_refused_and_the_step_continues(quaternion):
    loop = Harness('krang', ramp_time=0.0)
    q, v = loop.robot.home, np.zeros(17)
    good = krang_imu(loop, q, v)
    loop.step(samples=[encoders(loop, q, v)], imu=[good], enable=True)
    bad = krang_imu(loop, q, v, orientation=np.array(quaternion, dtype=float))
    loop.step(samples=[encoders(loop, q, v)], imu=[bad])
    assert 'imu: orientation' in loop.outputs.refused[0]
    assert (loop.outputs.fault, loop.outputs.mode) == (None, Mode.ACTIVE)


def test_a_unit_that_feeds_gravity_turns_the_torque():
    robot = kd.load_robot(
        'planar_2r', imu={'link': 'world', 'mount_rpy': [0.0, 0.0, 0.0], 'feeds': 'gravity'}
    )
    loop = Harness(robot, ramp_time=0.0)
    tilt = Rotation.from_euler('xyz', [0.2, -0.4, 0.9])
    unit = ImuSample(tilt.as_quat(), np.zeros(3), loop.clock, loop.time)
    outputs = loop.step(imu=[unit], enable=True)
    assert outputs.refused == []
    leaning = tilt.inv().apply([0.0, 0.0, -9.81])
    expected = robot.with_gravity(leaning).gravity_torque(robot.home)
    np.testing.assert_allclose(outputs.terms['gravity'], expected, rtol=1e-9)


@pytest.mark.parametrize('kind', ['imu', 'odom'])
def test_a_sensor_that_the_robot_file_does_not_have_is_refused(kind):
    loop = Harness().start()
    unit = ImuSample(np.array([0, 0, 0, 1.0]), np.zeros(3), loop.clock, loop.time)
    pose = OdomSample(0.0, 0.0, np.array([0, 0, 0, 1.0]), np.zeros(3), np.zeros(3), loop.clock, loop.time)
    outputs = loop.step(**{kind: [unit if kind == 'imu' else pose]})
    assert outputs.fault is None
    assert outputs.refused[0].startswith(f'{kind}: ')


# -- odometry ------------------------------------------------------------------------------------------


def test_otbot_is_where_odometry_sees_its_chassis():
    loop = Harness('otbot', terms=('rolling_base',), ramp_time=0.0)
    robot = loop.robot
    wheels = ('right_wheel', 'left_wheel', 'pivot')
    q = np.array([0.3, -0.2, 0.7, 1.0, 2.0, 0.4])
    theta = q[2] - q[5]  # alpha = theta + pivot
    place = robot.frame_pose(q, 'chassis')[:2, 3]
    pose = OdomSample(
        *place,
        Rotation.from_euler('z', theta).as_quat(),
        np.zeros(3),
        np.zeros(3),
        loop.clock,
        loop.time,
    )
    state = JointSamples(wheels, q[3:], np.zeros(3), np.zeros(3), loop.clock, loop.time)
    loop.step(samples=[state], odom=[pose])
    assert loop.outputs.refused == []
    loop.step(samples=[state], odom=[pose], enable=True)
    assert loop.outputs.refused == []
    np.testing.assert_allclose(loop.controller.state.buffer.q, q, atol=1e-12)


# -- dynamics and stop torque --------------------------------------------------------------------------


def robot_state(**options):
    robot = robot_named('planar_2r')
    state = RobotState(robot, Drivers(robot, ('joint_1',)), 'error', **options)
    sample = JointSamples(robot.joint_names, robot.home, np.array([0.1, 0.2]), np.zeros(2), 10.0, 10.0)
    refused = []
    assert state.take(Inputs(10.0, 10.0, [sample]), refused) == np.inf
    assert refused == []
    state.dynamics.update(state.buffer.q, state.buffer.v)
    return robot, state


def test_stamps_increase_by_the_time_between_two_states():
    robot, state = robot_state()
    later = JointSamples(robot.joint_names, robot.home, np.zeros(2), np.zeros(2), 10.25, 10.25)
    assert state.take(Inputs(10.25, 10.25, [later]), []) == pytest.approx(0.25)
    assert state.take(Inputs(10.3, 10.3), []) is None


@pytest.mark.parametrize('by_hardware', [False, True])
def test_the_stop_torque_is_that_of_the_state_and_of_driven_joints(by_hardware):
    robot, state = robot_state(hardware_compensates_gravity=by_hardware)
    stop = state.stop_torque()
    gravity = robot.gravity_torque(robot.home)
    np.testing.assert_allclose(stop.gravity, 0 * gravity if by_hardware else gravity, rtol=1e-12)
    np.testing.assert_allclose(stop.A, robot.mass_matrix(robot.home), rtol=1e-12)
    assert stop.v.tolist() == [0.1, 0.2]
    assert stop.driven.tolist() == [1.0, 0.0]


def test_another_payload_keeps_gravity():
    robot, state = robot_state()
    gravity = np.array([1.0, 0.0, -5.0])
    state.dynamics.set_gravity(gravity)
    loaded = robot.with_payload('tip', 2.0, [0.0, 0.0, 0.1], np.zeros((3, 3)))
    state.carry(loaded)
    state.dynamics.update(state.buffer.q, state.buffer.v)
    expected = loaded.with_gravity(gravity).gravity_torque(robot.home)
    np.testing.assert_allclose(state.dynamics.gravity, expected, rtol=1e-12)
