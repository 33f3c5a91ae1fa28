"""Self-checks of the reference: identities that no single slip of the pen survives."""

import numpy as np
import pytest

from reference import anthropomorphic, krang, lagrange, otbot, pendubot, planar_2r
from reference.lagrange import apply, derivative, rate, rx, ry, rz, skew

ROBOTS = [krang, otbot, pendubot, planar_2r, anthropomorphic]
every_robot = pytest.mark.parametrize('robot', ROBOTS, ids=lambda r: r.__name__.split('.')[-1])


def states(robot, count=5):
    """(q, v, a), each (count, n), the same at every run."""
    return np.random.default_rng(7).uniform(-2, 2, (3, count, len(robot.JOINTS)))


def close(actual, desired, tolerance=1e-11):
    scale = max(1.0, np.max(np.abs(desired)))
    np.testing.assert_allclose(actual, desired, rtol=0, atol=tolerance * scale)


def spin(rotation, q, v):
    """Angular velocity in world axes, from R' R^T."""
    s = rate(rotation, q, v) @ rotation(q).swapaxes(-1, -2)
    return np.stack([s[..., 2, 1], s[..., 0, 2], s[..., 1, 0]], axis=-1)


@every_robot
def test_mass_matrix_is_the_quadratic_form(robot):
    q, v, _ = states(robot)
    a = robot.mass_matrix(q)
    close(a, a.swapaxes(-1, -2))
    assert np.linalg.eigvalsh(a).min() > 0
    close(0.5 * np.einsum('ni,nij,nj->n', v, a, v), robot.kinetic(q, v))


@every_robot
def test_rate_of_the_mass_matrix_minus_2c_is_skew(robot):
    q, v, _ = states(robot)
    c = lagrange.coriolis_matrix(robot.mass_matrix, q, v)
    s = rate(robot.mass_matrix, q, v) - 2 * c
    close(s, -s.swapaxes(-1, -2))


@every_robot
def test_coriolis_torque_follows_from_the_kinetic_energy(robot):
    """C v = A' v - dE/dq, [krang] section 1.1."""
    q, v, _ = states(robot)
    c = lagrange.coriolis_matrix(robot.mass_matrix, q, v)
    de = derivative(lambda x: robot.kinetic(x, v[:, None]), q)
    close(apply(c, v), apply(rate(robot.mass_matrix, q, v), v) - de)


@every_robot
def test_power_is_the_rate_of_energy(robot):
    q, v, a = states(robot)
    torque = lagrange.inverse_dynamics(robot.mass_matrix, robot.potential, q, v, a)
    x, y = q + 1j * lagrange.STEP * v, v + 1j * lagrange.STEP * a
    power = (robot.kinetic(x, y) + robot.potential(x)).imag / lagrange.STEP
    close(np.sum(torque * v, axis=-1), power)


@every_robot
def test_a_single_state_equals_its_row_of_the_batch(robot):
    q, v, _ = states(robot)
    close(robot.mass_matrix(q[1]), robot.mass_matrix(q)[1])
    c = lagrange.coriolis_matrix(robot.mass_matrix, q, v)
    close(lagrange.coriolis_matrix(robot.mass_matrix, q[1], v[1]), c[1])


@every_robot
def test_complex_step_agrees_with_central_differences(robot):
    q, _, _ = states(robot)
    h = 1e-5 * np.eye(q.shape[1])
    numeric = (robot.mass_matrix(q[:, None] + h) - robot.mass_matrix(q[:, None] - h)) / 2e-5
    close(derivative(robot.mass_matrix, q), numeric, 1e-8)


def test_krang_rotations_at_zero():
    pi = np.pi
    half_turn = rz(pi)
    arm = [half_turn] * 5 + [ry(pi) @ rx(pi / 2)]
    expected = [rx(pi / 2) @ ry(-pi / 2), np.eye(3), ry(pi)]
    expected += [rz(-pi / 2) @ ry(pi), *arm, rz(pi / 2), *arm]
    for t, rotation in zip(krang.transforms(np.zeros(17)), expected, strict=True):
        close(t[:3, :3], rotation)


def test_krang_axes_are_those_of_its_rotations():
    q, _, _ = states(krang)
    for j in range(17):
        rotation = krang.transforms(q)[j][..., :3, :3]
        close(rotation.swapaxes(-1, -2) @ rotation, np.broadcast_to(np.eye(3), (5, 3, 3)))
        unit = np.eye(17)[j]
        change = rate(lambda x, j=j: krang.transforms(x)[j][..., :3, :3], q, unit)
        close(rotation.swapaxes(-1, -2) @ change, np.broadcast_to(skew(krang.AXES[j]), (5, 3, 3)))


def test_krang_recursion_equals_the_energy_at_the_centres_of_mass():
    """[krang] eq. 10 in world axes, with velocities from the world transforms."""
    q, v, _ = states(krang)
    energy = 0
    for j, (mass, com, inertia) in enumerate(krang.LINKS):
        point = np.array([*com, 1.0])
        u = rate(lambda x, j=j, point=point: krang.world_frames(x)[j] @ point, q, v)
        w = spin(lambda x, j=j: krang.world_frames(x)[j][..., :3, :3], q, v)
        r = krang.world_frames(q)[j][..., :3, :3]
        world_inertia = r @ inertia @ r.swapaxes(-1, -2)
        energy = energy + 0.5 * (mass * (u * u).sum(-1) + (w * apply(world_inertia, w)).sum(-1))
    close(krang.kinetic(q, v), energy)


def test_krang_potential_is_the_height_of_the_centres_of_mass():
    q, _, _ = states(krang)
    height = sum(
        mass * (t @ np.array([*com, 1.0]))[..., 2]
        for (mass, com, _), t in zip(krang.LINKS, krang.world_frames(q), strict=True)
    )
    close(krang.potential(q), 9.81 * height)


@pytest.mark.parametrize('side', ['left', 'right'])
def test_krang_jacobian_is_the_rate_of_the_hand_pose(side):
    q, v, _ = states(krang)
    linear = rate(lambda x: krang.hand_pose(x, side)[..., :3, 3], q, v)
    angular = spin(lambda x: krang.hand_pose(x, side)[..., :3, :3], q, v)
    close(apply(krang.jacobian(q, side), v), np.concatenate([linear, angular], axis=-1))


def test_krang_upright_points_up_with_the_left_arm_on_the_left():
    q = np.zeros(17)
    close(krang.world_frames(q)[2][:3, 3], [-krang.L4 + krang.L2, 0, krang.L1 + krang.L3])
    assert krang.hand_pose(q, 'left')[1, 3] > 0.2
    assert krang.hand_pose(q, 'right')[1, 3] < -0.2


def test_krang_numbers():
    assert krang.MASS.sum() == pytest.approx(133.3, abs=0.05)
    assert krang.ROTOR_INERTIA[3:].min() == pytest.approx(3.6, abs=0.05)
    assert krang.ROTOR_INERTIA[3:].max() == pytest.approx(15, abs=0.2)
    for _, _, inertia in krang.LINKS:  # a body's principal moments obey the triangle inequality
        principal = np.linalg.eigvalsh(inertia)
        assert principal[0] > 0
        assert principal[2] < principal[0] + principal[1]


def test_krang_friction_at_full_speed():
    speed = np.deg2rad([25, 25, 24, 24, 25, 25, 25])
    v = np.concatenate([np.zeros(3), speed, -speed])
    torque = krang.friction_smooth(v)
    np.testing.assert_allclose(torque[3:10], [78, 69, 81, 72, 28, 27, 31], atol=0.5)
    close(torque[10:], -torque[3:10])
    close(krang.friction_exact(v)[3], 164.84 * speed[0] + 6.01)
    close(krang.friction_exact(np.zeros(17)), np.zeros(17))


def test_otbot_constraint_is_rolling_of_both_wheels():
    q, v, _ = states(otbot)
    v = otbot.project(q, v)
    close(apply(otbot.constraint_jacobian(q), v), np.zeros((5, 3)))
    for side, wheel in ((-1, 3), (1, 4)):  # the right wheel is at -y of the chassis

        def centre(x, side=side):
            theta = x[..., 2] - x[..., 5]
            c, s = np.cos(theta), np.sin(theta)
            px = x[..., 0] - otbot.L_1 * c - side * otbot.L_2 * s
            return np.stack([px, x[..., 1] - otbot.L_1 * s + side * otbot.L_2 * c], axis=-1)

        theta = q[:, 2] - q[:, 5]
        heading = np.stack([np.cos(theta), np.sin(theta)], axis=-1)
        close(rate(centre, q, v), otbot.R * v[:, wheel, None] * heading)


def test_otbot_forward_and_inverse_agree():
    q, v, _ = states(otbot)
    v = otbot.project(q, v)
    u = np.random.default_rng(3).uniform(-50, 50, (5, 3))
    a, multipliers = otbot.forward(q, v, u)
    j, jdot = otbot.constraint_jacobian(q), otbot.constraint_jacobian_rate(q, v)
    close(apply(j, a), -apply(jdot, v))
    torque, again = otbot.inverse(q, v, a)
    close(torque, u)
    close(again, multipliers)
    # The constraints do no work, so only the motors change the energy.
    x, y = q + 1j * lagrange.STEP * v, v + 1j * lagrange.STEP * a
    close(otbot.kinetic(x, y).imag / lagrange.STEP, np.sum(u * v[:, 3:], axis=-1))


def test_otbot_chassis_has_the_figures_that_the_source_prints():
    assert pytest.approx(otbot.M_C) == 105 + 2 * 2.0714
    assert pytest.approx(-0.129744701, abs=5e-10) == otbot.X_B
    assert pytest.approx(1.303786346, abs=5e-10) == otbot.I_C


def test_pendubot_closed_forms_follow_from_the_lagrangian():
    q, v, _ = states(pendubot)
    primed = pendubot.PRIMED['nominal']
    close(pendubot.closed_mass_matrix(q, primed), pendubot.mass_matrix(q), 1e-14)
    close(
        pendubot.closed_coriolis_matrix(q, v, primed),
        lagrange.coriolis_matrix(pendubot.mass_matrix, q, v),
        1e-14,
    )
    close(pendubot.closed_gravity(q, primed), lagrange.gravity(pendubot.potential, q), 1e-14)


@pytest.mark.parametrize('name', pendubot.THETAS)
def test_pendubot_voltage_equation_is_the_model_with_its_motor(name):
    q, v, a = states(pendubot)
    primed, thetas = pendubot.PRIMED[name], pendubot.THETAS[name]
    torque = (
        apply(pendubot.closed_mass_matrix(q, primed), a)
        + apply(pendubot.closed_coriolis_matrix(q, v, primed), v)
        + pendubot.closed_gravity(q, primed)
        + pendubot.friction(v, name)
    )
    left = pendubot.voltage_equation(q, v, a, thetas)
    close(left[:, 0], pendubot.volts(torque[:, 0], v))
    close(left[:, 1], pendubot.VOLTS_PER_TORQUE * torque[:, 1])


def test_pendubot_numbers_and_geometry():
    printed = [0.048426, 0.020339, 0.020339, 0.101695, 0.609539, 0.009685]
    close(pendubot.THETAS['nominal'], printed, 1e-6)
    close(pendubot.VOLTS_PER_TORQUE, 4.842615, 1e-6)
    assert min(primed.min() for primed in pendubot.PRIMED.values()) > 0
    close(pendubot.tip_position(np.zeros(2)), [0.2, 0, 0.3])
    close(pendubot.tip_position(np.array([0, np.pi / 2])), [0.2, 0.3, 0])
    q, v, _ = states(pendubot)
    speed = rate(pendubot.tip_position, q, v)
    close(pendubot._rod_speed_squared(q, v, pendubot.L2), (speed**2).sum(-1))


def test_planar_2r_by_hand():
    q, v, _ = states(planar_2r)
    h = -planar_2r.M2 * planar_2r.L1 * planar_2r.LC2 * np.sin(q[:, 1])
    by_hand = lagrange.matrix([[h * v[:, 1], h * (v[:, 0] + v[:, 1])], [-h * v[:, 0], 0]])
    close(lagrange.coriolis_matrix(planar_2r.mass_matrix, q, v), by_hand)
    close(lagrange.gravity(planar_2r.potential, np.zeros(2))[1], 1.5 * 0.4 * 9.81)


def test_planar_2r_jacobian_is_the_rate_of_the_tip():
    q, v, _ = states(planar_2r)
    twist = apply(planar_2r.tip_jacobian(q), v)
    close(twist[:, :3], rate(planar_2r.tip_position, q, v))
    close(twist[:, 3:], spin(lambda x: ry(-x[..., 0] - x[..., 1]), q, v))


def test_anthropomorphic_energy_is_that_of_its_centres_of_mass():
    """Velocities from the derivative of CoM_i, as in [arm] section 2 for J_v."""
    q, v, _ = states(anthropomorphic)
    energy = height = 0
    for i in range(6):
        u = rate(lambda x, i=i: anthropomorphic.com_poses(x)[i][..., :3, 3], q, v)
        w = spin(lambda x, i=i: anthropomorphic.com_poses(x)[i][..., :3, :3], q, v)
        mass, inertia = anthropomorphic.MASS[i], anthropomorphic.INERTIA[i]
        energy = energy + 0.5 * (mass * u**2 + inertia * w**2).sum(-1)
        height = height + mass * anthropomorphic.com_poses(q)[i][..., 2, 3]
    close(anthropomorphic.kinetic(q, v), energy)
    close(anthropomorphic.potential(q), 9.81 * height)


def test_anthropomorphic_tool():
    q, v, _ = states(anthropomorphic)
    jacobian = anthropomorphic.tool_jacobian(q)
    linear = rate(lambda x: anthropomorphic.tool_pose(x)[..., :3, 3], q, v)
    angular = spin(lambda x: anthropomorphic.tool_pose(x)[..., :3, :3], q, v)
    close(apply(jacobian, v), np.concatenate([linear, angular], axis=-1))
    assert (np.linalg.matrix_rank(jacobian, tol=1e-9) == 5).all()


def test_anthropomorphic_chain_as_printed():
    """CoM_6 typed in one line. [arm] section 2"""

    def r(rotation):
        return lagrange.pose(rotation, np.zeros(3))

    def t(x, y, z):
        return lagrange.pose(np.eye(3), np.array([x, y, z]))

    q1, q2, q3, q4, q5, q6 = q = states(anthropomorphic)[0][0]
    d1, d2, d3, d4, d5, _ = anthropomorphic.D
    half = np.pi / 2
    shoulder = r(rz(q1)) @ t(0, 0, d1) @ r(rx(half)) @ r(rz(q2)) @ t(d2, 0, 0)
    elbow = r(rz(q3)) @ t(d3, 0, 0) @ r(ry(-half)) @ r(rz(q4)) @ t(0, 0, d4) @ r(rz(-half))
    wrist = r(rz(q5)) @ t(0, d5, 0) @ r(rx(half)) @ r(rz(q6)) @ t(0, 0, 0.05)
    close(anthropomorphic.com_poses(q)[5], shoulder @ elbow @ wrist)
