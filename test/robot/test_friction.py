"""Friction and its slope."""

import numpy as np
import pytest

import krang_dynamics as kd


@pytest.mark.parametrize('name', kd.robots())
def test_slope_is_the_derivative(name):
    robot = kd.load_robot(name)
    v, h = np.linspace(-1, 1, robot.nv) + 0.05, 1e-6
    numeric = (robot.friction_torque(v + h) - robot.friction_torque(v - h)) / (2 * h)
    np.testing.assert_allclose(robot.friction.slope(v), numeric, atol=1e-6)


def test_a_joint_at_rest_has_no_friction():
    for name in kd.robots():
        robot = kd.load_robot(name)
        np.testing.assert_array_equal(robot.friction_torque(np.zeros(robot.nv)), 0)


def test_the_smooth_set_stays_below_the_peak_at_full_speed():
    """With the exact sign the same coefficients would need more than arm joints 5 to 7 have."""
    robot = kd.load_robot('krang')
    peak = np.array([robot.urdf.joints[name].effort for name in robot.joint_names])
    assert (robot.friction_torque(robot.velocity_limits) < peak).all()
    exact = robot.friction.viscous * robot.velocity_limits + robot.friction.coulomb
    assert (exact[7:10] > peak[7:10]).all()


SHAPED = {
    'viscous': {'joint_1': 2.0},
    'coulomb': {'joint_1': 3.0, 'joint_2': 1.0},
    'sign': 'smooth',
    'fitted_with': 'smooth',
    'width': {'joint_1': 0.05},
    'stribeck': {'joint_1': 1.5},
    'stribeck_speed': {'joint_1': 0.2},
    'offset': {'joint_2': -0.4},
}


def test_width_stribeck_and_offset_follow_their_formula():
    robot = kd.load_robot('planar_2r', friction=SHAPED)
    for v in (np.array([0.3, -0.7]), np.array([-0.02, 0.0])):
        expected = [
            2 * v[0] + (3 + 1.5 * np.exp(-((v[0] / 0.2) ** 2))) * np.tanh(v[0] / 0.05),
            np.tanh(v[1]) - 0.4,
        ]
        np.testing.assert_allclose(robot.friction_torque(v), expected, rtol=1e-12)
        h = 1e-6
        numeric = (robot.friction_torque(v + h) - robot.friction_torque(v - h)) / (2 * h)
        np.testing.assert_allclose(robot.friction.slope(v), numeric, rtol=1e-6)


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'width': {'joint_1': 0.0}}, 'width.joint_1'),
        ({'load': {'joint_1': -0.1}}, 'load.joint_1'),
        ({'stribeck': {'joint_1': -1.0}}, 'stribeck.joint_1'),
        ({'offset': {'elbow': 1.0}}, 'friction.offset'),
        ({'sign': 'exact', 'fitted_with': 'exact'}, 'stribeck needs sign: smooth'),
    ],
)
def test_impossible_shapes_are_refused(change, message):
    with pytest.raises(kd.KrangError, match=message):
        kd.load_robot('planar_2r', friction={**SHAPED, **change})


@pytest.mark.parametrize('engine', ['pinocchio', 'mujoco'])
def test_a_simulated_joint_carries_the_offset(engine):
    """Under the torque of gravity and offset alone nothing moves."""
    pytest.importorskip(engine)
    for sign in ('smooth', 'exact'):
        friction = {
            'coulomb': {'joint_1': 0.1}, 'sign': sign, 'fitted_with': sign, 'offset': {'joint_1': 1.5},
        }  # fmt: skip
        robot = kd.load_robot('planar_2r', friction=friction)
        plant = kd.make_plant(robot, engine)
        plant.step(robot.inverse_dynamics(robot.home, np.zeros(2), np.zeros(2), friction=True), 0.2)
        np.testing.assert_allclose(plant.q, robot.home, atol=1e-6)


LOADED = {**SHAPED, 'load': {'joint_1': 0.1, 'joint_2': 0.05}}


def test_friction_grows_with_the_gravity_torque():
    robot, plain = (kd.load_robot('planar_2r', friction=entries) for entries in (LOADED, SHAPED))
    q, v, a = np.array([0.3, -0.8]), np.array([0.3, -0.7]), np.array([1.0, 2.0])
    more = np.array([0.1, 0.05]) * np.abs(robot.gravity_torque(q)) * np.tanh(v / [0.05, 1.0])
    np.testing.assert_allclose(robot.friction_torque(v, q), plain.friction_torque(v) + more, rtol=1e-12)
    np.testing.assert_array_equal(robot.friction_torque(v), plain.friction_torque(v))
    tau = robot.inverse_dynamics(q, v, a, friction=True)
    np.testing.assert_allclose(tau, plain.inverse_dynamics(q, v, a, friction=True) + more, rtol=1e-12)
    np.testing.assert_allclose(robot.forward_dynamics(q, v, tau, friction=True), a, rtol=1e-9)


def test_the_linearisation_knows_the_load_of_friction():
    robot, h = kd.load_robot('planar_2r', friction=LOADED), 1e-6
    q, v, u = np.array([0.3, -0.8]), np.array([0.03, -0.7]), np.array([4.0, -2.0])
    A, _ = robot.linearize(q, v, u)
    for k, step in enumerate(h * np.eye(2)):
        by_q = robot.forward_dynamics(q + step, v, u, True) - robot.forward_dynamics(q - step, v, u, True)
        by_v = robot.forward_dynamics(q, v + step, u, True) - robot.forward_dynamics(q, v - step, u, True)
        np.testing.assert_allclose(A[2:, k], by_q / (2 * h), rtol=1e-5)
        np.testing.assert_allclose(A[2:, 2 + k], by_v / (2 * h), rtol=1e-5)


@pytest.mark.parametrize('engine', ['pinocchio', 'mujoco'])
def test_a_simulated_robot_has_the_load_of_friction(engine):
    """A joint that is pushed at constant speed needs the torque of the model."""
    if engine == 'mujoco':
        pytest.importorskip('mujoco', reason='mujoco is not installed')
    robot, h = kd.load_robot('planar_2r', friction=LOADED), 1e-4
    plant, q, v = kd.make_plant(robot, engine), np.array([0.3, -0.8]), np.array([0.3, -0.7])
    plant.reset(q, v)
    plant.step(robot.inverse_dynamics(q, v, np.zeros(2), friction=True), h)
    np.testing.assert_allclose(plant.v, v, atol=1e-4)


def test_the_friction_term_compensates_the_load_of_friction():
    robot = kd.load_robot('planar_2r', friction=LOADED)
    settings = kd.Settings(terms=('friction',), friction_scale=1.0, auto_enable=True, ramp_time=0.0)
    controller, v = kd.TorqueController(robot, settings), np.array([0.3, -0.7])
    for k in range(60):
        t, q = 1 + 0.005 * k, np.array([0.3, -0.8]) + 0.005 * k * v
        samples = kd.JointSamples(robot.joint_names, q, v, np.zeros(2), t, t)
        outputs = controller.step(kd.Inputs(t, t, [samples], enable=True))
    np.testing.assert_allclose(outputs.terms['friction'], robot.friction_torque(v, q), rtol=1e-12)
