"""Rolling constraints of bases on the ground z = 0, as a user declares them, against geometry."""

import numpy as np
import pytest
from robot.rolling_robots import ROLLING, Rolling, car_with_steered_wheels
from robot.urdf_text import EXACT, RANK, SLOPE, assert_linearization_is_the_slope, slope
from scipy.linalg import null_space


@pytest.fixture(params=ROLLING, scope='module')
def rolling(request, tmp_path_factory):
    return Rolling(tmp_path_factory.mktemp('rolling'), *ROLLING[request.param])


def test_rolling_holds_the_contact_points_and_nothing_else(rolling, rng):
    for _ in range(5):
        q = rng.uniform(-1, 1, rolling.robot.nv)
        jacobian, contact = rolling.robot.constraint_jacobian(q), rolling.contact_jacobian(q)
        assert jacobian.shape == (rolling.rows, rolling.robot.nv)
        assert np.linalg.matrix_rank(jacobian, RANK) == rolling.rows
        assert np.linalg.matrix_rank(contact, RANK) == rolling.rows
        np.testing.assert_allclose(contact @ null_space(jacobian), 0, atol=1e-8)
        np.testing.assert_allclose(jacobian @ null_space(contact, rcond=RANK), 0, atol=1e-7)


def test_rolling_keeps_its_rank_at_home(rolling):
    jacobian = rolling.robot.constraint_jacobian(rolling.robot.home)
    assert np.linalg.matrix_rank(jacobian, RANK) == len(jacobian) == rolling.rows


def test_constraint_bias_is_the_rate_of_the_jacobian(rolling, rng):
    for _ in range(5):
        q, v = rng.uniform(-1, 1, (2, rolling.robot.nv))
        rate = slope(rolling.robot.constraint_jacobian, q, v)
        np.testing.assert_allclose(rolling.robot.constraint_bias(q, v), rate @ v, **SLOPE)


def test_rolling_motion_keeps_rolling_and_loses_no_power(rolling, rng):
    robot = rolling.robot
    for _ in range(5):
        q, v = rolling.state(rng)
        u = rng.normal(size=len(robot.actuated_joint_names))
        a = robot.forward_dynamics(q, v, u)
        slip = robot.constraint_jacobian(q) @ a + robot.constraint_bias(q, v)
        force = robot.constraint_force(q, v, u)
        motors = robot.actuation_matrix() @ u
        np.testing.assert_allclose(slip, 0, atol=1e-9)
        np.testing.assert_allclose(robot.inverse_dynamics(q, v, a) + force, motors, atol=1e-8)
        np.testing.assert_allclose(force @ v, 0, atol=1e-7)
        np.testing.assert_allclose(robot.motor_torque(q, v, a), u, atol=1e-7)


def test_rolling_acceleration_keeps_the_contact_point_at_rest(rolling, rng):
    """Along q + v t + a t^2 / 2 the contact velocity grows slower than t."""
    robot = rolling.robot
    q, v = rolling.state(rng)
    a = robot.forward_dynamics(q, v, np.ones(len(robot.actuated_joint_names)))
    time = 1e-4
    later, earlier = (rolling.contact_jacobian(q + v * t + a * t**2 / 2) @ (v + a * t) for t in (time, -time))
    np.testing.assert_allclose((later - earlier) / (2 * time), 0, atol=1e-4)


def test_linearization_of_a_rolling_base_passes_finite_differences(rolling, rng):
    q, v = rolling.state(rng)
    assert_linearization_is_the_slope(
        rolling.robot, q, v, rng.normal(size=len(rolling.robot.actuated_joint_names))
    )


def test_payload_keeps_the_wheels_on_the_ground(rolling, rng):
    q, v = rolling.state(rng)
    robot = rolling.robot.with_payload(rolling.wheels[0][0], 1.0, (0.01, 0, 0), np.eye(3) * 0.01)
    np.testing.assert_allclose(robot.constraint_jacobian(q), rolling.robot.constraint_jacobian(q), **EXACT)
    a = robot.forward_dynamics(q, v, np.zeros(len(robot.actuated_joint_names)))
    np.testing.assert_allclose(robot.constraint_jacobian(q) @ a + robot.constraint_bias(q, v), 0, atol=1e-9)


@pytest.mark.parametrize(('steer', 'rows'), [(0.0, 6), (0.3, 7)], ids=['parallel', 'crossed'])
def test_rank_is_full_where_wheels_line_up_and_where_they_do_not(tmp_path, steer, rows):
    text, wheels, driven, _ = car_with_steered_wheels()
    car = Rolling(tmp_path, text, wheels, driven, rows)
    q = np.array([{'c_steer': steer, 'd_steer': -steer}.get(name, 0.1) for name in car.robot.joint_names])
    jacobian = car.robot.constraint_jacobian(q)
    assert np.linalg.matrix_rank(car.contact_jacobian(q), RANK) == rows
    assert np.linalg.matrix_rank(jacobian, RANK) == len(jacobian) == rows
    rest = np.zeros(car.robot.nv)
    np.testing.assert_allclose(jacobian @ car.robot.forward_dynamics(q, rest, [1.0]), 0, atol=1e-9)
