"""Robot against the equations of its source, written a second time in reference/."""

import numpy as np
import pytest
from reference import anthropomorphic, krang, lagrange, otbot, pendubot, planar_2r
from reference.robots import REFERENCE
from scipy.integrate import solve_ivp
from tools import assert_close, relative_error, states

import krang_dynamics as kd

COUNT = 1000
CORIOLIS_COUNT = {'krang': 20}  # the Christoffel symbols of 17 joints by complex steps are dear
every_robot = pytest.mark.parametrize('name', REFERENCE)
every_variant = pytest.mark.parametrize('name', kd.robots())


def each(function, *arrays):
    """function over the rows of arrays, stacked."""
    return np.array([function(*row) for row in zip(*arrays, strict=True)])


@every_robot
def test_joints_come_in_the_order_of_the_source(name):
    assert kd.load_robot(name).joint_names == REFERENCE[name].JOINTS


@every_robot
def test_mass_matrix(name):
    robot, reference = kd.load_robot(name), REFERENCE[name]
    (q,) = states(COUNT, robot.nv, parts=1)
    expected = reference.mass_matrix(q)
    assert_close(each(kd.load_robot(name, rotor_inertia=False).mass_matrix, q), expected)
    assert_close(each(robot.mass_matrix, q), expected + np.diag(reference.ROTOR_INERTIA))


@every_robot
def test_coriolis_matrix(name):
    robot, reference = kd.load_robot(name), REFERENCE[name]
    q, v = states(CORIOLIS_COUNT.get(name, COUNT), robot.nv, parts=2)
    assert_close(each(robot.coriolis_matrix, q, v), lagrange.coriolis_matrix(reference.mass_matrix, q, v))


@every_robot
def test_gravity_torque(name):
    robot, reference = kd.load_robot(name), REFERENCE[name]
    (q,) = states(COUNT, robot.nv, parts=1)
    assert_close(each(robot.gravity_torque, q), lagrange.gravity(reference.potential, q))


@every_robot
def test_inverse_dynamics(name):
    robot, reference = kd.load_robot(name, rotor_inertia=False), REFERENCE[name]
    q, v, a = states(CORIOLIS_COUNT.get(name, COUNT), robot.nv)
    expected = lagrange.inverse_dynamics(reference.mass_matrix, reference.potential, q, v, a)
    assert_close(each(robot.inverse_dynamics, q, v, a), expected)


@every_robot
def test_energies(name):
    robot, reference = kd.load_robot(name, rotor_inertia=False), REFERENCE[name]
    q, v = states(COUNT, robot.nv, parts=2)
    assert_close(each(robot.kinetic_energy, q, v), reference.kinetic(q, v))
    potential = each(robot.potential_energy, q)
    expected = reference.potential(q)
    scale = max(1.0, np.ptp(expected))  # the zero of a potential is anybody's choice
    assert np.abs((potential - potential[0]) - (expected - expected[0])).max() <= 1e-9 * scale


def test_kinetic_energy_includes_the_rotors_as_the_mass_matrix_does():
    robot = kd.load_robot('krang')
    q, v = states(1, robot.nv, parts=2)[:, 0]
    assert robot.kinetic_energy(q, v) == pytest.approx(0.5 * v @ robot.mass_matrix(q) @ v, rel=1e-12)


@pytest.mark.parametrize('side', ['left', 'right'])
def test_krang_hands(side):
    robot = kd.load_robot('krang')
    (q,) = states(COUNT, robot.nv, parts=1)
    frame = f'{side}_hand'
    assert_close(each(lambda x: robot.frame_pose(x, frame), q), krang.hand_pose(q, side))
    assert_close(each(lambda x: robot.jacobian(x, frame), q), krang.jacobian(q, side))


def test_anthropomorphic_tool():
    robot = kd.load_robot('anthropomorphic')
    (q,) = states(COUNT, robot.nv, parts=1)
    assert_close(each(lambda x: robot.frame_pose(x, 'tool'), q), anthropomorphic.tool_pose(q))
    assert_close(each(lambda x: robot.jacobian(x, 'tool'), q), anthropomorphic.tool_jacobian(q))


def test_planar_2r_tip():
    robot = kd.load_robot('planar_2r')
    (q,) = states(COUNT, robot.nv, parts=1)
    assert_close(each(lambda x: robot.frame_pose(x, 'tip')[:3, 3], q), planar_2r.tip_position(q))
    assert_close(each(lambda x: robot.jacobian(x, 'tip'), q), planar_2r.tip_jacobian(q))


def test_pendubot_tip():
    robot = kd.load_robot('pendubot')
    (q,) = states(COUNT, robot.nv, parts=1)
    assert_close(each(lambda x: robot.frame_pose(x, 'tip')[:3, 3], q), pendubot.tip_position(q))


@pytest.mark.parametrize('thetas', ['nominal', 'station_7', 'station_9'])
def test_pendubot_equations_in_volts(thetas):
    """[pendubot] eq. 2 and 3: the motor's volts, and nothing on the pendulum."""
    robot = kd.load_robot('pendubot' if thetas == 'nominal' else f'pendubot_{thetas}')
    q, v, a = states(COUNT, 2)
    tau = each(lambda *x: robot.inverse_dynamics(*x, friction=True), q, v, a)
    arm, pendulum = pendubot.voltage_equation(q, v, a, pendubot.THETAS[thetas]).T
    # theta_5 holds the arm's friction and the back-EMF, so volts come from the torque with friction.
    volts = each(robot.motor_command, tau, v)
    assert_close(volts[:, 0], arm)
    assert not volts[:, 1].any()
    assert_close(pendubot.VOLTS_PER_TORQUE * tau[:, 1], pendulum)


def test_otbot_constraint_spans_the_published_one():
    robot = kd.load_robot('otbot')
    q, v = states(COUNT, 6, parts=2)
    J = each(robot.constraint_jacobian, q)
    published = otbot.constraint_jacobian(q)
    assert J.shape == published.shape
    assert np.linalg.matrix_rank(J).min() == 3
    # Published rows are combinations of ours, and their rate follows with the same combination.
    mix = published @ np.linalg.pinv(J)
    assert_close(mix @ J, published)
    allowed = otbot.project(q, v)
    bias = each(robot.constraint_bias, q, allowed)
    expected = lagrange.apply(otbot.constraint_jacobian_rate(q, allowed), allowed)
    assert_close(lagrange.apply(mix, bias), expected)


def test_otbot_constrained_solutions():
    """Forward and inverse dynamics of [otbot] sections 7 and 8."""
    robot = kd.load_robot('otbot')
    q, v = states(COUNT, 6, parts=2)
    v = otbot.project(q, v)
    u = states(COUNT, 3, parts=1, reach=50)[0]
    a, multipliers = otbot.forward(q, v, u)
    assert_close(each(robot.forward_dynamics, q, v, u), a)
    force = lagrange.apply(otbot.constraint_jacobian(q).swapaxes(-1, -2), multipliers)
    assert_close(each(robot.constraint_force, q, v, u), force)
    assert_close(each(robot.motor_torque, q, v, a), otbot.inverse(q, v, a)[0])
    with_friction = otbot.forward(q, v, u - otbot.friction(v)[:, 3:])[0]
    assert_close(each(lambda *x: robot.forward_dynamics(*x, friction=True), q, v, u), with_friction)


def test_an_infeasible_acceleration_gets_the_nearest_motor_torque():
    """Least squares: no other (u, lambda) comes closer to the generalised force asked for."""
    robot = kd.load_robot('otbot')
    q, v, a = states(1, 6)[:, 0]
    u = robot.motor_torque(q, v, a)
    columns = np.hstack([robot.actuation_matrix(), -robot.constraint_jacobian(q).T])
    tau = robot.inverse_dynamics(q, v, a)
    best = np.linalg.lstsq(columns, tau, rcond=None)[0]
    np.testing.assert_allclose(u, best[:3], rtol=1e-12)
    pendulum = kd.load_robot('pendubot')
    tau = pendulum.inverse_dynamics(q[:2], v[:2], a[:2])
    np.testing.assert_array_equal(pendulum.motor_torque(q[:2], v[:2], a[:2]), tau[:1])


@every_variant
def test_rate_of_the_mass_matrix_minus_2c_is_skew(name):
    robot = kd.load_robot(name)
    h = 1e-5
    for q, v in zip(*states(50, robot.nv, parts=2), strict=True):
        # Fifth-order accurate: central differences at h and 2 h.
        near, far = (robot.mass_matrix(q + k * h * v) - robot.mass_matrix(q - k * h * v) for k in (1, 2))
        rate = (8 * near - far) / (12 * h)
        skew = rate - 2 * robot.coriolis_matrix(q, v)
        assert np.abs(skew + skew.T).max() <= 1e-9 * max(
            np.abs(robot.mass_matrix(q)).max(), np.abs(rate).max()
        )


@pytest.mark.parametrize('name', ['krang', 'krang_exact_sign', 'planar_2r', 'anthropomorphic'])
def test_forward_undoes_inverse_dynamics_where_every_joint_has_a_motor(name):
    robot = kd.load_robot(name)
    for q, v, a in zip(*states(50, robot.nv), strict=True):
        for friction in (False, True):
            u = robot.inverse_dynamics(q, v, a, friction=friction)
            np.testing.assert_allclose(
                robot.forward_dynamics(q, v, u, friction=friction), a, rtol=1e-8, atol=1e-9
            )
            np.testing.assert_array_equal(robot.motor_torque(q, v, a, friction=friction), u)


@every_variant
def test_every_jacobian_is_the_derivative_of_the_pose(name):
    robot = kd.load_robot(name)
    h = 1e-4
    for frame in robot.frames:
        for q, v in zip(*states(3, robot.nv, parts=2), strict=True):
            poses = [robot.frame_pose(q + k * h * v, frame) for k in (-2, -1, 1, 2)]
            rate = (poses[0] - 8 * poses[1] + 8 * poses[2] - poses[3]) / (12 * h)
            pose = robot.frame_pose(q, frame)
            spin = rate[:3, :3] @ pose[:3, :3].T
            twist = np.array([*rate[:3, 3], spin[2, 1], spin[0, 2], spin[1, 0]])
            scale = max(1.0, np.abs(twist).max())
            assert np.abs(robot.jacobian(q, frame) @ v - twist).max() <= 1e-9 * scale


@every_variant
def test_jacobian_in_other_axes_is_the_world_jacobian_turned(name):
    robot = kd.load_robot(name)
    (q,) = states(1, robot.nv, parts=1)[:, 0]
    for frame in robot.config.end_effectors:
        world = robot.jacobian(q, frame)
        for reference in ('local', frame, robot.frames[-1], 'world'):
            axes = robot.frame_pose(q, frame if reference == 'local' else reference)[:3, :3]
            turned = np.vstack([axes.T @ world[:3], axes.T @ world[3:]])
            np.testing.assert_allclose(robot.jacobian(q, frame, reference), turned, atol=1e-12)


def test_wrench_does_the_same_work_in_every_reference():
    """Virtual work, [krang] eq. 16: tau . v is the power of both wrenches, whatever their axes."""
    robot = kd.load_robot('krang')
    q, v = states(1, robot.nv, parts=2)[:, 0]
    wrenches = {
        'left_hand': np.array([30.0, -20, 10, 3, 2, -1]),
        'right_hand': np.array([5.0, 6, 7, -1, 2, 3]),
    }
    for reference in ('world', 'local', 'bracket'):
        power = sum(w @ (robot.jacobian(q, frame, reference) @ v) for frame, w in wrenches.items())
        assert robot.wrench_to_torque(q, wrenches, reference) @ v == pytest.approx(power, rel=1e-12)


def test_friction_opposes_motion_with_both_sets():
    v = states(COUNT, 17, parts=1)[0]
    assert_close(each(kd.load_robot('krang').friction_torque, v), krang.friction_smooth(v))
    assert_close(each(kd.load_robot('krang_exact_sign').friction_torque, v), krang.friction_exact(v))
    assert (krang.friction_smooth(v) * v >= 0).all()


@every_robot
def test_energy_is_conserved_without_friction(name):
    """10 s of free motion; the drift is measured against the largest kinetic energy."""
    robot = kd.load_robot(name, rotor_inertia=False)
    n, u = robot.nv, np.zeros(len(robot.actuated_joint_names))
    q0, v0 = robot.home.copy(), 0.3 * states(1, n, parts=1)[0, 0]
    if name == 'otbot':
        v0 = otbot.project(q0, v0)

    def motion(_, x):
        return np.concatenate([x[n:], robot.forward_dynamics(x[:n], x[n:], u)])

    # Links without rotors are light and fast: the integrator must be far better than the bound.
    path = solve_ivp(
        motion, (0, 10), [*q0, *v0], method='DOP853', rtol=1e-11, atol=1e-12, t_eval=np.arange(0, 10.1, 0.5)
    )
    assert path.success
    kinetic = each(lambda x: robot.kinetic_energy(x[:n], x[n:]), path.y.T)
    total = kinetic + each(lambda x: robot.potential_energy(x[:n]), path.y.T)
    assert np.abs(total - total[0]).max() <= 1e-6 * kinetic.max()
    slip = each(lambda x: np.abs(robot.constraint_jacobian(x[:n]) @ x[n:]).max(initial=0.0), path.y.T)
    assert slip.max() <= 1e-9


@every_variant
def test_linearisation_is_the_derivative_of_the_motion(name):
    """A and B against central differences of x' = f(x, u), u in the driver's unit."""
    robot = kd.load_robot(name)
    n, nu = robot.nv, len(robot.actuated_joint_names)
    q, v = 0.5 * states(1, n, parts=2)[:, 0]
    if name == 'otbot':
        v = otbot.project(q, v)
    u = np.linspace(-1, 1, nu)
    E = robot.actuation_matrix()

    def rate(x, u):
        tau = E.T @ robot.motors.torque(E @ u, x[n:])
        return np.concatenate([x[n:], robot.forward_dynamics(x[:n], x[n:], tau, friction=True)])

    x, h = np.concatenate([q, v]), 1e-5
    A, B = robot.linearize(q, v, u)
    numeric = np.array([(rate(x + h * e, u) - rate(x - h * e, u)) / (2 * h) for e in np.eye(2 * n)]).T
    np.testing.assert_allclose(A, numeric, atol=2e-7 * max(1, np.abs(A).max()))
    numeric = np.array([(rate(x, u + h * e) - rate(x, u - h * e)) / (2 * h) for e in np.eye(nu)]).T
    np.testing.assert_allclose(B, numeric, atol=2e-7 * max(1, np.abs(B).max()))


def test_pendubot_upright_is_unstable_and_hanging_is_not():
    robot = kd.load_robot('pendubot')
    zero = np.zeros(2)
    upright = np.linalg.eigvals(robot.linearize(zero, zero, np.zeros(1))[0]).real.max()
    hanging = np.linalg.eigvals(robot.linearize(np.array([0, np.pi]), zero, np.zeros(1))[0]).real.max()
    assert upright > 5
    assert hanging <= 1e-9


def test_krang_home_is_balanced_free_and_not_singular():
    robot = kd.load_robot('krang')
    assert abs(robot.center_of_mass(robot.home)[0]) <= 1e-6
    margin = np.minimum(robot.home - robot.lower, robot.upper - robot.home)
    assert margin.min() >= 0.2
    for side, columns in (('left', slice(3, 10)), ('right', slice(10, 17))):
        hand = f'{side}_hand'
        assert robot.frame_pose(robot.home, hand)[0, 3] > 0.3
        assert np.linalg.svd(robot.jacobian(robot.home, hand)[:, columns])[1][-1] >= 0.1
    assert (np.abs(robot.gravity_torque(robot.home)) < robot.effort_limits).all()


def test_gravity_follows_its_vector():
    up, tilted = kd.load_robot('planar_2r'), (1.0, 0.0, -9.0)
    robot = up.with_gravity(tilted)
    h = 1e-6
    numeric = [
        (robot.potential_energy(robot.home + h * e) - robot.potential_energy(robot.home - h * e)) / (2 * h)
        for e in np.eye(2)
    ]
    np.testing.assert_allclose(robot.gravity_torque(robot.home), numeric, atol=1e-7)
    np.testing.assert_array_equal(
        kd.load_robot('planar_2r', gravity=tilted).gravity_torque(robot.home),
        robot.gravity_torque(robot.home),
    )
    assert relative_error(up.gravity_torque(up.home)[None], robot.gravity_torque(up.home)[None]) > 0.01
