"""One pass gives what Robot gives call by call."""

import numpy as np
import pytest
from harness import robot_named
from tools import ROD, states

import krang_dynamics as kd
from krang_dynamics.control.dynamics import Dynamics


@pytest.mark.parametrize('name', kd.robots())
def test_the_pass_agrees_with_the_robot(name):
    robot = robot_named(name)
    dynamics = Dynamics(robot, coriolis=True)
    for q, v in zip(*states(5, robot.nv, parts=2), strict=True):
        dynamics.update(q, v)
        np.testing.assert_allclose(dynamics.A, robot.mass_matrix(q), atol=1e-12)
        np.testing.assert_allclose(dynamics.C, robot.coriolis_matrix(q, v), atol=1e-11)
        np.testing.assert_allclose(dynamics.gravity, robot.gravity_torque(q), atol=1e-11)
        np.testing.assert_allclose(dynamics.bias, robot.inverse_dynamics(q, v, 0 * q), atol=1e-11)
        for frame in robot.config.end_effectors:
            np.testing.assert_allclose(dynamics.jacobian(frame), robot.jacobian(q, frame), atol=1e-12)
            rotation, position = dynamics.pose(frame)
            np.testing.assert_allclose(rotation, robot.frame_pose(q, frame)[:3, :3], atol=1e-12)
            np.testing.assert_allclose(position, robot.frame_pose(q, frame)[:3, 3], atol=1e-12)


def test_gravity_can_be_turned_without_touching_the_robot():
    robot = robot_named('planar_2r')
    dynamics = Dynamics(robot)
    tilted = np.array([2.0, 0.0, -9.0])
    dynamics.set_gravity(tilted)
    dynamics.update(robot.home, np.zeros(2))
    expected = robot.with_gravity(tilted).gravity_torque(robot.home)
    np.testing.assert_allclose(dynamics.gravity, expected, rtol=1e-12)
    assert not np.allclose(dynamics.gravity, robot.gravity_torque(robot.home))


def test_the_same_arrays_again_need_no_pass_unless_gravity_changes():
    robot = robot_named('planar_2r')
    dynamics, q, v = Dynamics(robot), robot.home, np.zeros(2)
    dynamics.update(q, v)
    first = dynamics.gravity
    dynamics.update(q, v)
    assert dynamics.gravity is first
    dynamics.update(q.copy(), v)
    assert dynamics.gravity is not first
    dynamics.set_gravity(np.array([0.0, 0.0, -1.0]))
    dynamics.update(q, v)
    np.testing.assert_allclose(9.81 * dynamics.gravity, first, rtol=1e-12)


def test_the_fastest_point_is_the_far_end_of_a_link_without_a_frame_there():
    """A uniform rod of 0.8 m whose only frame is at its joint."""
    robot = kd.load_robot(ROD)
    dynamics = Dynamics(robot)
    dynamics.update(np.array([0.4]), np.zeros(1))
    assert dynamics.point_speed(np.array([-2.0])) == pytest.approx(1.6)


def test_a_wrench_acts_on_a_robot_of_one_joint():
    robot = kd.load_robot(ROD)
    dynamics, torque, f = Dynamics(robot), np.zeros(1), np.arange(1.0, 7.0)
    dynamics.update(np.array([0.4]), np.zeros(1))
    frame = robot.frames[-1]
    dynamics.add_wrench(torque, frame, f, frame)
    assert torque == pytest.approx(robot.jacobian(np.array([0.4]), frame, 'local').T @ f)


@pytest.mark.parametrize('name', ['planar_2r', 'krang'])
def test_no_frame_is_faster_than_the_fastest_point(name):
    robot = robot_named(name)
    dynamics = Dynamics(robot)
    for q, v in zip(*states(5, robot.nv, parts=2), strict=True):
        dynamics.update(q, v)
        frames = [np.linalg.norm(robot.jacobian(q, frame)[:3] @ v) for frame in robot.frames]
        assert dynamics.point_speed(v) >= max(frames) - 1e-9


@pytest.mark.parametrize('name', ['planar_2r', 'krang', 'otbot'])
def test_no_pose_is_faster_than_the_bound_for_every_pose(name):
    robot = robot_named(name)
    dynamics = Dynamics(robot)
    for q, v in zip(*states(50, robot.nv, parts=2), strict=True):
        dynamics.update(q, v)
        assert dynamics.point_speed(v) <= dynamics.point_speed_in_any_pose(v) + 1e-9


def test_the_bound_for_every_pose_is_that_of_a_stretched_arm():
    """Links of 1.0 and 0.8 m: the tip is 1.8 m from the first joint, corners of its shape little more."""
    dynamics = Dynamics(robot_named('planar_2r'))
    assert dynamics.point_speed_in_any_pose(np.array([-1.0, 2.0])) == pytest.approx(1.8 + 2 * 0.8, rel=1e-2)
