"""Two engines on the same URDF must agree; what is MuJoCo's own (end stops, dry friction) must make sense."""

import numpy as np
import pytest
from simulation.driving import drive, free, one_joint

import krang_dynamics as kd
from krang_dynamics.simulation import MujocoPlant, PinocchioPlant

pytest.importorskip('mujoco', reason='mujoco is not installed')


def run_both(robot, torque, seconds, q=None, **options):
    plants = [PinocchioPlant(robot, **options), MujocoPlant(robot, **options)]
    for plant in plants:
        plant.reset(robot.home if q is None else q, np.zeros(robot.nv))
        drive(plant, torque, seconds)
    return plants[0].q, plants[1].q


def test_given_small_torques_without_friction_then_krang_moves_alike():
    robot = kd.load_robot('krang')
    rates = np.linspace(1, 3, 17)
    hold = robot.gravity_torque(robot.home)
    exact, other = run_both(robot, lambda t, p: hold + 2 * np.sin(rates * t), 2.0, friction=False)
    assert np.abs(exact - robot.home).max() > 0.1
    np.testing.assert_allclose(other, exact, atol=1e-9)


def test_given_smooth_friction_then_krang_moves_alike():
    robot = kd.load_robot('krang')
    rates = np.linspace(1, 3, 17)
    exact, other = run_both(robot, lambda t, p: robot.gravity_torque(p.q) + 30 * np.sin(rates * t), 2.0)
    assert np.abs(exact - robot.home).max() > 0.1
    np.testing.assert_allclose(other, exact, atol=1e-9)


@pytest.mark.parametrize('name', ['pendubot', 'pendubot_station_7', 'planar_2r'])
def test_given_a_released_state_then_it_swings_alike(name):
    robot = kd.load_robot(name)
    q = robot.home + 0.3
    exact, other = run_both(robot, free, 1.0, q)
    assert np.abs(exact - q).max() > 1
    np.testing.assert_allclose(other, exact, atol=1e-6)


def test_given_pushes_on_both_hands_then_krang_moves_alike():
    robot = kd.load_robot('krang')
    plants = [PinocchioPlant(robot), MujocoPlant(robot)]
    hold = robot.gravity_torque(robot.home)
    for plant in plants:
        plant.push('left_hand', [30, -10, 20, 3, -2, 1])
        plant.push('right_hand', [-5, 25, -30, 1, 2, -3])
        drive(plant, lambda t, p: hold, 0.5)
        assert np.abs(plant.q - robot.home).max() > 0.01
    np.testing.assert_allclose(plants[1].q, plants[0].q, atol=1e-10)


def test_given_dry_friction_then_krang_sticks_and_slides_alike():
    robot = kd.load_robot('krang_exact_sign')
    hold, F_c = robot.gravity_torque(robot.home), robot.friction.coulomb
    exact, other = run_both(robot, lambda t, p: hold + 1.5 * F_c * np.sign(np.sin(6 * t)), 1.0)
    assert np.abs(exact - robot.home).max() > 0.05
    np.testing.assert_allclose(other, exact, atol=3e-4)


def test_given_less_than_the_dry_friction_then_it_creeps_less_than_a_hundredth_of_a_milliradian_per_second():
    robot = kd.load_robot('krang_exact_sign')
    u = robot.gravity_torque(robot.home) + 0.9 * robot.friction.coulomb
    plant = drive(MujocoPlant(robot), lambda t, p: u, 0.5)
    # base_pitch has no dry friction: it moves with what is left of the others' creep.
    assert np.abs(plant.q - robot.home)[1:].max() < 0.5e-5


def test_given_an_end_stop_then_the_joint_stays_within_it_only_if_asked():
    robot = kd.load_robot(one_joint(limits='lower="-0.5" upper="0.5"'))
    stopped = drive(MujocoPlant(robot, position_limits=True), lambda t, p: [2.0], 2.0)
    np.testing.assert_allclose(stopped.q, [0.5], atol=2e-3)
    np.testing.assert_allclose(stopped.v, [0], atol=1e-3)
    np.testing.assert_allclose(drive(MujocoPlant(robot), lambda t, p: [2.0], 2.0).q, [2.0], atol=1e-9)


def test_given_a_robot_that_rolls_then_the_plant_for_it_is_named():
    with pytest.raises(kd.KrangError, match='use ContactPlant'):
        MujocoPlant(kd.load_robot('otbot'))
