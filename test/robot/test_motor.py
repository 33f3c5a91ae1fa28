"""Motors turn joint torque into what a driver takes."""

import numpy as np
import pytest
from reference import pendubot

import krang_dynamics as kd


def test_krang_takes_current():
    robot = kd.load_robot('krang')
    tau = np.ones(17)
    current = robot.motor_command(tau, np.zeros(17))
    assert current[3] == pytest.approx(1 / (0.0314 * 596), rel=1e-14)
    assert current[0] == pytest.approx(1 / (0.0847 * 15), rel=1e-14)


def test_pendubot_takes_volts_and_zero_torque_at_speed_is_not_zero_volts():
    robot = kd.load_robot('pendubot')
    tau, v = np.array([0.2, 0.0]), np.array([3.0, 1.0])
    assert robot.motor_command(tau, v)[0] == pytest.approx(pendubot.volts(0.2, v), rel=1e-14)
    assert robot.motor_command(0 * tau, v)[0] == pytest.approx(0.00767 * 70 * 3.0, rel=1e-14)


def test_stall_torque_at_the_supply_is_the_arms_limit():
    robot = kd.load_robot('pendubot')
    supply = robot.config.joints['arm'].motor.supply
    stall = robot.motors.torque(np.array([supply, 0]), np.zeros(2))[0]
    assert stall == pytest.approx(robot.effort_limits[0], abs=0.01)


@pytest.mark.parametrize('name', kd.robots())
def test_torque_undoes_command(name):
    robot = kd.load_robot(name)
    driven = np.isin(robot.joint_names, robot.actuated_joint_names)
    tau, v = driven * np.linspace(-2, 2, robot.nv), np.linspace(1, -1, robot.nv)
    np.testing.assert_allclose(robot.motors.torque(robot.motor_command(tau, v), v), tau, atol=1e-13)


def test_the_passive_pendulum_takes_nothing_even_when_asked():
    command = kd.load_robot('pendubot').motor_command(np.array([0.0, 5.0]), np.zeros(2))
    np.testing.assert_array_equal(command, [0, 0])


def test_motor_command_takes_what_motor_torque_gives():
    robot = kd.load_robot('otbot')
    u = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(robot.motor_command(u, np.zeros(6)), u)
