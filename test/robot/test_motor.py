"""Units of drivers, and the conversion of joint torque to drivers' commands."""

import numpy as np
import pytest
from reference import pendubot

import krang_dynamics as kd
from krang_dynamics.control.drivers import Drivers
from krang_dynamics.errors import ConfigError, UnknownNameError
from krang_dynamics.robot.motor import UNITS, DriverUnit, Motors


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


def test_a_unit_is_one_object(monkeypatch):
    """A made-up unit, percent of a motor with drag and a limit, drives a joint without any other change."""
    percent = DriverUnit(
        'percent',
        '%',
        ('torque_constant',),
        gain=lambda motor, ratio: 0.5 * motor.constant('torque_constant') * ratio,
        drag=lambda motor: 0.1 * motor.gear,
        limit=lambda motor: 100.0,
    )
    monkeypatch.setitem(UNITS, 'percent', percent)
    motor = {'gear': 2.0, 'torque_constant': 0.4}
    robot = kd.load_robot(
        'planar_2r',
        command_unit='percent',
        joints={'joint_1': {'driven': True, 'motor': motor}, 'joint_2': {'driven': True, 'motor': motor}},
        actuators=[
            {'name': 'm1', 'joint': 'joint_1', 'ratio': 3.0},
            {'name': 'm2', 'joint': 'joint_2', 'sign': -1},
        ],
    )
    tau, v = np.array([6.0, 2.0]), np.array([1.0, -2.0])
    np.testing.assert_allclose(robot.motor_command(tau, v), (tau + 0.2 * v) / 0.2)
    np.testing.assert_allclose(robot.motors.torque(robot.motor_command(tau, v), v), tau)

    drivers = Drivers(robot, ['joint_1', 'joint_2'])
    assert drivers.unit.symbol == '%'
    command = drivers.command(tau, v)
    np.testing.assert_allclose(command, (tau + 0.2 * v) / [0.6, -0.2])
    np.testing.assert_allclose(drivers.torque(command, v), tau)
    np.testing.assert_array_equal(drivers.command(1e3 * tau, v), [100.0, -100.0])

    with pytest.raises(ConfigError, match=r'joints\.joint_1\.motor\.torque_constant is missing; percent'):
        kd.load_robot('planar_2r', command_unit='percent')


def test_an_unknown_unit_is_refused():
    robot = kd.load_robot('krang')
    for make in (
        lambda: Motors(robot.config.joints, 'horsepower'),
        lambda: Drivers(robot, ['waist'], 'horsepower'),
    ):
        with pytest.raises(UnknownNameError, match=r"'horsepower'.*torque, current, voltage"):
            make()
    with pytest.raises(ConfigError, match=r"command_unit: 'horsepower'.*torque, current, voltage"):
        kd.load_robot('krang', command_unit='horsepower')
