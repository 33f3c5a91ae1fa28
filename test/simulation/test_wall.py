"""A wall pushes whoever is in it, along its normal, and never pulls."""

import numpy as np
import pytest

import krang_dynamics as kd
from krang_dynamics.control.drivers import Drivers
from krang_dynamics.errors import InputError
from krang_dynamics.simulation.simulated_robot import SimulatedRobot
from krang_dynamics.simulation.wall import Wall

ROBOT = kd.load_robot('planar_2r')
REST = np.zeros(2)
NORMAL = np.array([-1.0, 0.0, 0.0])


def tip(q):
    return ROBOT.frame_pose(q, 'tip')[:3, 3]


def wall_at(depth, normal=NORMAL, **numbers):
    """A wall in which the tip is so deep [m] at home; level with the tip, it does not matter where."""
    unit = normal / np.linalg.norm(normal)
    return Wall('tip', tip(ROBOT.home) + depth * unit + [0, 3.0, 0], normal, **numbers)


def test_it_is_a_spring():
    for depth in (0.001, 0.01):
        np.testing.assert_allclose(
            wall_at(depth).wrench(ROBOT, ROBOT.home, REST), [-2e4 * depth, 0, 0, 0, 0, 0], atol=1e-9
        )


def test_out_of_reach_it_does_nothing():
    assert not wall_at(-1e-6).wrench(ROBOT, ROBOT.home, 10 * np.ones(2)).any()


def test_only_the_direction_of_the_normal_counts():
    normal = np.array([-2.0, 0.0, 1.0])
    np.testing.assert_allclose(
        wall_at(0.01, normal).wrench(ROBOT, ROBOT.home, REST)[:3], 200 * normal / np.sqrt(5)
    )


@pytest.mark.parametrize('sign', [1, -1])
def test_it_brakes_who_comes_and_never_pulls_who_goes(sign):
    v = sign * np.array([0.3, 0.2])
    step = 1e-6
    speed = (tip(ROBOT.home + step * v) - tip(ROBOT.home - step * v))[0] / (2 * step)
    for damping in (300.0, 1e6):
        force = wall_at(0.001, damping=damping).wrench(ROBOT, ROBOT.home, v)[0]
        assert force == pytest.approx(-max(0.0, 20.0 + damping * speed), rel=1e-6)
        assert force <= 0


def test_a_wall_without_a_direction_is_refused():
    with pytest.raises(InputError, match='normal of a wall is 0'):
        Wall('tip', np.zeros(3), np.zeros(3))


def test_an_arm_that_leans_on_it_comes_to_rest_with_its_force():
    """A constant force of 15 N at the tip, stiff in the other direction, damped: the wall gives 15 N back."""
    machine = SimulatedRobot(ROBOT, Drivers(ROBOT, ROBOT.joint_names), 'pinocchio')
    machine.lean_on(wall_at(-0.002, np.array([-1.0, 0.0, 0.0])))
    height = tip(ROBOT.home)[2]
    for _ in range(3000):
        q, v = machine.q, machine.v
        J = ROBOT.jacobian(q, 'tip')[:3]
        force = np.array([15.0, 0, 2000 * (height - tip(q)[2])]) - 100 * (J @ v)
        machine.hear(ROBOT.gravity_torque(q) + J.T @ force - 2 * v)
        machine.step()
    assert np.abs(machine.v).max() < 1e-4
    np.testing.assert_allclose(machine.external_wrench('tip')[:3], [-15, 0, 0], atol=0.05)
