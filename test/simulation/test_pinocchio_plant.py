"""The exact model against the reference equations, another integrator, energy and closed forms."""

import numpy as np
import pytest
from reference import lagrange, otbot, planar_2r
from scipy.optimize import lsq_linear
from simulation.driving import drive, free, one_joint, truth

import krang_dynamics as kd
from krang_dynamics.simulation import PinocchioPlant
from krang_dynamics.simulation.pinocchio_plant import dry_friction_torque

PUSH = np.array([3.0, 0.0, -5.0, 0.0, 0.7, 0.0])


def arm_acceleration(q, v, tau):
    A, potential = planar_2r.mass_matrix, planar_2r.potential
    bias = lagrange.inverse_dynamics(A, potential, q, v, np.zeros(2))
    return np.linalg.solve(A(q), tau - bias)


def test_given_a_pushed_arm_then_it_moves_as_the_textbook_says():
    plant = PinocchioPlant(kd.load_robot('planar_2r'), timestep=5e-4)
    u, q0 = np.array([12.0, 3.0]), plant.q
    plant.push('tip', PUSH)
    drive(plant, lambda t, p: u, 0.5)

    def acceleration(t, q, v):
        return arm_acceleration(q, v, u + planar_2r.tip_jacobian(q).T @ PUSH)

    q, v = truth(acceleration, q0, np.zeros(2), 0.5)
    np.testing.assert_allclose(plant.q, q, atol=1e-8)
    np.testing.assert_allclose(plant.v, v, atol=1e-7)


def test_given_joints_in_another_order_then_the_motion_is_the_same():
    robot = kd.load_robot('planar_2r')
    names = ['joint_2', 'joint_1']
    turned = kd.load_robot(
        'planar_2r', joints={name: {'driven': True, 'nominal_torque': 50.0} for name in names}
    )
    assert list(turned.joint_names) == names
    plants = [PinocchioPlant(x) for x in (robot, turned)]
    for plant, u in zip(plants, ([12.0, 3.0], [3.0, 12.0]), strict=True):
        plant.push('tip', PUSH)
        drive(plant, lambda t, p, u=u: u, 0.3)
    np.testing.assert_allclose(plants[0].q, plants[1].q[::-1], atol=1e-11)


def test_given_no_friction_then_a_falling_arm_keeps_its_energy():
    robot = kd.load_robot('anthropomorphic')
    plant = PinocchioPlant(robot, friction=False)
    before = robot.potential_energy(plant.q)
    drive(plant, free, 0.5)
    after = robot.kinetic_energy(plant.q, plant.v) + robot.potential_energy(plant.q)
    assert robot.kinetic_energy(plant.q, plant.v) > 1
    np.testing.assert_allclose(after, before, atol=1e-5)


def test_given_smooth_friction_then_the_joint_follows_its_law():
    text = one_joint(inertia=2.0)
    friction = {'viscous': {'spin': 0.5}, 'coulomb': {'spin': 3.0}, 'sign': 'smooth', 'fitted_with': 'smooth'}
    plant = PinocchioPlant(kd.load_robot(text, friction=friction))
    drive(plant, lambda t, p: [4 * np.sin(t)], 1.0)
    q, v = truth(lambda t, q, v: (4 * np.sin(t) - 0.5 * v - 3 * np.tanh(v)) / 2, [0.0], [0.0], 1.0)
    np.testing.assert_allclose(plant.q, q, atol=1e-3)  # the torque is held for 1 ms
    np.testing.assert_allclose(plant.v, v, atol=1e-3)


def test_given_less_than_the_dry_friction_then_krang_rests_for_ever():
    robot = kd.load_robot('krang_exact_sign')
    u = robot.gravity_torque(robot.home) + 0.99 * robot.friction.coulomb
    plant = drive(PinocchioPlant(robot), lambda t, p: u, 0.5)
    assert np.abs(plant.q - robot.home).max() < 1e-14
    assert np.abs(plant.v).max() < 1e-13


def test_given_dry_friction_then_a_joint_brakes_stops_and_breaks_away_without_chatter():
    plant = PinocchioPlant(kd.load_robot(one_joint(inertia=2.0, friction=3.0)))
    plant.reset([0.0], [1.0])  # brakes at 1.5 rad/s2: rests after 2/3 s at 1/3 rad
    speeds = []
    drive(plant, lambda t, p: speeds.append(p.v[0]) or [0.0], 1.0)
    np.testing.assert_allclose(plant.q, [1 / 3], atol=1e-6)
    assert (np.diff(speeds) <= 0).all()
    assert abs(speeds[-1]) < 1e-12
    drive(plant, lambda t, p: [-2.99], 0.5)
    np.testing.assert_allclose(plant.q, [1 / 3], atol=1e-6)
    drive(plant, lambda t, p: [-4.0], 1.0)  # -0.5 rad/s2
    np.testing.assert_allclose(plant.q, [1 / 3 - 0.25], atol=1e-6)
    np.testing.assert_allclose(plant.v, [-0.5], atol=1e-9)


def test_given_dry_friction_on_krang_then_smaller_steps_change_little():
    robot = kd.load_robot('krang_exact_sign')
    u = robot.gravity_torque(robot.home) + 1.5 * robot.friction.coulomb * (-1) ** np.arange(17)
    runs = [
        drive(PinocchioPlant(robot, timestep=h), lambda t, p: u * np.cos(20 * t), 0.2) for h in (1e-3, 2e-4)
    ]
    np.testing.assert_allclose(runs[0].q, runs[1].q, atol=2e-5)


def test_given_otbot_then_it_rolls_and_keeps_its_energy_for_ten_seconds():
    robot = kd.load_robot('otbot')
    plant = PinocchioPlant(robot, friction=False, timestep=1e-2)
    drive(plant, lambda t, p: np.array([3.0, 2.0, 0.5]), 1.0, dt=1e-2)
    energy = otbot.kinetic(plant.q, plant.v)
    slip = []
    drive(plant, lambda t, p: slip.append(otbot.constraint_jacobian(p.q) @ p.v) or free(t, p), 9.0, dt=1e-2)
    assert np.abs(slip).max() < 1e-9
    np.testing.assert_allclose(otbot.kinetic(plant.q, plant.v), energy, rtol=1e-9)


def test_given_otbot_with_friction_then_it_moves_as_the_reference():
    plant = PinocchioPlant(kd.load_robot('otbot'))
    u, start = np.array([8.0, 3.0, 2.0]), plant.q
    drive(plant, lambda t, p: u, 0.5)

    def acceleration(t, q, v):
        return otbot.forward(q, v, u - otbot.friction(v)[3:])[0]

    q, v = truth(acceleration, start, np.zeros(6), 0.5)
    np.testing.assert_allclose(plant.q, q, atol=1e-7)
    np.testing.assert_allclose(plant.v, v, atol=1e-7)


def test_given_wheels_that_slip_then_the_ground_catches_them_without_gain_of_energy():
    plant = PinocchioPlant(kd.load_robot('otbot'))
    v = np.array([1.0, 1.0, 0.5, 0.0, 3.0, 0.2])
    plant.reset(plant.q, v)
    np.testing.assert_allclose(otbot.constraint_jacobian(plant.q) @ plant.v, 0, atol=1e-12)
    lost = v - plant.v
    np.testing.assert_allclose(plant.v @ otbot.mass_matrix(plant.q) @ lost, 0, atol=1e-5)


@pytest.mark.parametrize('frame', ['left_hand', 'spine'])
def test_given_a_push_on_krang_then_the_motors_can_hold_it_by_the_transposed_jacobian(frame):
    robot = kd.load_robot('krang')
    wrench = np.array([30.0, -10, 20, 3, -2, 1])
    u = robot.gravity_torque(robot.home) - robot.wrench_to_torque(robot.home, {frame: wrench})
    plant = PinocchioPlant(robot)
    plant.push(frame, wrench)
    drive(plant, lambda t, p: u, 0.1)
    np.testing.assert_allclose(plant.q, robot.home, atol=1e-12)


@pytest.mark.parametrize('timestep', [1e-3, 4e-3])
def test_given_end_stops_then_a_falling_arm_rests_on_them(timestep):
    robot = kd.load_robot('planar_2r')
    stops = robot.home - 0.3, robot.home + 0.1
    plant = PinocchioPlant(robot, timestep=timestep, end_stops=stops)
    for _ in range(2000):
        plant.step(np.zeros(2), 4e-3)
        assert (plant.q > stops[0] - 0.15).all()
        assert (plant.q < stops[1] + 0.15).all()
    assert np.abs(plant.v).max() < 1e-3
    load = np.abs(robot.gravity_torque(plant.q))
    assert (np.abs(plant.q - stops[0]) < load / np.diag(robot.mass_matrix(robot.home)) / 50**2 + 1e-3).all()


# -- dry friction: its law, and a solver of bounded least squares --------------------------------------


H = 1e-3  # [s]


def problem(n, number):
    random = np.random.default_rng([n, number])
    root = random.normal(size=(n, n))
    B = np.linalg.inv(root @ root.T + 0.1 * np.eye(n))
    limit = random.uniform(0.1, 3, n) * (random.random(n) < 0.8)
    v = 1e-3 * random.normal(size=n) * (random.random(n) < 0.5)
    return v, random.normal(size=n), B, limit


@pytest.mark.parametrize('n', [1, 2, 7, 17])
def test_given_coupled_joints_then_the_law_holds(n):
    for number in range(50):
        v, a, B, limit = problem(n, number)
        f = dry_friction_torque(v, a, B, limit, H)
        slip = v / H + a - B @ f
        noise = 1e-9 * np.abs(v / H + a).max()
        assert (np.abs(f) <= limit).all()
        sliding = np.abs(slip) > noise
        np.testing.assert_allclose(f[sliding], (limit * np.sign(slip))[sliding])


def test_given_coupled_joints_then_the_torque_is_the_bounded_least_squares_solution():
    v, a, B, limit = problem(7, 1)
    limit = limit + 0.1
    root = np.linalg.cholesky(B).T
    expected = lsq_linear(root, np.linalg.solve(root.T, v / H + a), (-limit, limit), tol=1e-14).x
    np.testing.assert_allclose(dry_friction_torque(v, a, B, limit, H), expected, atol=1e-6)


def test_given_a_response_that_a_constraint_makes_singular_then_rest_needs_no_more_than_the_load():
    limit = np.array([1.0, 1.0])
    f = dry_friction_torque(np.zeros(2), np.array([0.5, 0.5]), np.ones((2, 2)), limit, H)
    np.testing.assert_allclose(f.sum(), 0.5)
