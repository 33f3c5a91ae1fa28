"""Robot against the equations of its source, written a second time in reference/."""

import pickle
import re
from copy import deepcopy

import numpy as np
import pinocchio as pin
import pytest
from reference import anthropomorphic, krang, lagrange, otbot, pendubot, planar_2r
from reference.robots import REFERENCE
from robot.bad_input import ANYTHING, campaign, outcome, refusal
from robot.urdf_text import (
    BALL,
    BOB,
    EXACT,
    GRAVITY,
    LENGTH,
    MASS,
    SLOPE,
    TWO_ARMS,
    Bare,
    assert_linearization_is_the_slope,
    assert_robots_agree,
    assert_same_physics,
    dynamics,
    inertia_of,
    inertial,
    jacobian_of_pose,
    joint,
    link,
    pendulum,
    random_body,
    random_tree,
    slope,
    urdf,
)
from scipy.integrate import solve_ivp
from tools import assert_close, relative_error, states

import krang_dynamics as kd
from krang_dynamics.errors import UrdfError

CORIOLIS_COUNT = {'krang': 20}  # complex steps take long for the Christoffel symbols of 17 joints
every_robot = pytest.mark.parametrize('name', REFERENCE)


@pytest.fixture(params=[100, pytest.param(1000, marks=pytest.mark.long)])
def count(request):
    """Number of random states."""
    return request.param


def each(function, *arrays):
    """function over the rows of arrays, stacked."""
    return np.array([function(*row) for row in zip(*arrays, strict=True)])


@every_robot
def test_joints_come_in_the_order_of_the_source(name):
    assert kd.load_robot(name).joint_names == REFERENCE[name].JOINTS


@every_robot
def test_mass_matrix(name, count):
    robot, reference = kd.load_robot(name), REFERENCE[name]
    (q,) = states(count, robot.nv, parts=1)
    expected = reference.mass_matrix(q)
    assert_close(each(kd.load_robot(name, rotor_inertia=False).mass_matrix, q), expected)
    assert_close(each(robot.mass_matrix, q), expected + np.diag(reference.ROTOR_INERTIA))


@every_robot
def test_coriolis_matrix(name, count):
    robot, reference = kd.load_robot(name), REFERENCE[name]
    q, v = states(CORIOLIS_COUNT.get(name, count), robot.nv, parts=2)
    assert_close(each(robot.coriolis_matrix, q, v), lagrange.coriolis_matrix(reference.mass_matrix, q, v))


@every_robot
def test_gravity_torque(name, count):
    robot, reference = kd.load_robot(name), REFERENCE[name]
    (q,) = states(count, robot.nv, parts=1)
    assert_close(each(robot.gravity_torque, q), lagrange.gravity(reference.potential, q))


@every_robot
def test_inverse_dynamics(name, count):
    robot, reference = kd.load_robot(name, rotor_inertia=False), REFERENCE[name]
    q, v, a = states(CORIOLIS_COUNT.get(name, count), robot.nv)
    expected = lagrange.inverse_dynamics(reference.mass_matrix, reference.potential, q, v, a)
    assert_close(each(robot.inverse_dynamics, q, v, a), expected)


@every_robot
def test_energies(name, count):
    robot, reference = kd.load_robot(name, rotor_inertia=False), REFERENCE[name]
    q, v = states(count, robot.nv, parts=2)
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
def test_krang_hands(side, count):
    robot = kd.load_robot('krang')
    (q,) = states(count, robot.nv, parts=1)
    frame = f'{side}_hand'
    assert_close(each(lambda x: robot.frame_pose(x, frame), q), krang.hand_pose(q, side))
    assert_close(each(lambda x: robot.jacobian(x, frame), q), krang.jacobian(q, side))


def test_anthropomorphic_tool(count):
    robot = kd.load_robot('anthropomorphic')
    (q,) = states(count, robot.nv, parts=1)
    assert_close(each(lambda x: robot.frame_pose(x, 'tool'), q), anthropomorphic.tool_pose(q))
    assert_close(each(lambda x: robot.jacobian(x, 'tool'), q), anthropomorphic.tool_jacobian(q))


def test_planar_2r_tip(count):
    robot = kd.load_robot('planar_2r')
    (q,) = states(count, robot.nv, parts=1)
    assert_close(each(lambda x: robot.frame_pose(x, 'tip')[:3, 3], q), planar_2r.tip_position(q))
    assert_close(each(lambda x: robot.jacobian(x, 'tip'), q), planar_2r.tip_jacobian(q))


def test_pendubot_tip(count):
    robot = kd.load_robot('pendubot')
    (q,) = states(count, robot.nv, parts=1)
    assert_close(each(lambda x: robot.frame_pose(x, 'tip')[:3, 3], q), pendubot.tip_position(q))


@pytest.mark.parametrize('thetas', ['nominal', 'station_7', 'station_9'])
def test_pendubot_equations_in_volts(thetas, count):
    """[pendubot] eq. 2 and 3: the motor's volts, and nothing on the pendulum."""
    robot = kd.load_robot('pendubot' if thetas == 'nominal' else f'pendubot_{thetas}')
    q, v, a = states(count, 2)
    tau = each(lambda *x: robot.inverse_dynamics(*x, friction=True), q, v, a)
    arm, pendulum = pendubot.voltage_equation(q, v, a, pendubot.THETAS[thetas]).T
    # theta_5 includes the arm's friction and the back-EMF, so tau must include friction.
    volts = each(robot.motor_command, tau, v)
    assert_close(volts[:, 0], arm)
    assert not volts[:, 1].any()
    assert_close(pendubot.VOLTS_PER_TORQUE * tau[:, 1], pendulum)


def test_otbot_constraint_spans_the_published_one(count):
    robot = kd.load_robot('otbot')
    q, v = states(count, 6, parts=2)
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


def test_otbot_constrained_solutions(count):
    """Forward and inverse dynamics of [otbot] sections 7 and 8."""
    robot = kd.load_robot('otbot')
    q, v = states(count, 6, parts=2)
    v = otbot.project(q, v)
    u = states(count, 3, parts=1, reach=50)[0]
    a, multipliers = otbot.forward(q, v, u)
    assert_close(each(robot.forward_dynamics, q, v, u), a)
    force = lagrange.apply(otbot.constraint_jacobian(q).swapaxes(-1, -2), multipliers)
    assert_close(each(robot.constraint_force, q, v, u), force)
    assert_close(each(robot.motor_torque, q, v, a), otbot.inverse(q, v, a)[0])
    with_friction = otbot.forward(q, v, u - otbot.friction(v)[:, 3:])[0]
    assert_close(each(lambda *x: robot.forward_dynamics(*x, friction=True), q, v, u), with_friction)


def test_an_infeasible_acceleration_gets_the_nearest_motor_torque():
    """Least squares: no other (u, lambda) is closer to the required generalised force."""
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


def test_friction_opposes_motion_with_both_sets(count):
    v = states(count, 17, parts=1)[0]
    assert_close(each(kd.load_robot('krang').friction_torque, v), krang.friction_smooth(v))
    assert_close(each(kd.load_robot('krang_exact_sign').friction_torque, v), krang.friction_exact(v))
    assert (krang.friction_smooth(v) * v >= 0).all()


@pytest.mark.parametrize('seconds', [2, pytest.param(10, marks=pytest.mark.long)])
@every_robot
def test_energy_is_conserved_without_friction(name, seconds):
    """Free motion; the drift is relative to the largest kinetic energy."""
    robot = kd.load_robot(name, rotor_inertia=False)
    n, u = robot.nv, np.zeros(len(robot.actuated_joint_names))
    q0, v0 = robot.home.copy(), 0.3 * states(1, n, parts=1)[0, 0]
    if name == 'otbot':
        v0 = otbot.project(q0, v0)

    def motion(_, x):
        return np.concatenate([x[n:], robot.forward_dynamics(x[:n], x[n:], u)])

    # Links without rotors are light and fast: the integrator must be far better than the bound.
    path = solve_ivp(
        motion,
        (0, seconds),
        [*q0, *v0],
        method='DOP853',
        rtol=1e-11,
        atol=1e-12,
        t_eval=np.arange(0, seconds + 0.1, 0.5),
    )
    assert path.success
    kinetic = each(lambda x: robot.kinetic_energy(x[:n], x[n:]), path.y.T)
    total = kinetic + each(lambda x: robot.potential_energy(x[:n]), path.y.T)
    assert np.abs(total - total[0]).max() <= 1e-6 * kinetic.max()
    slip = each(lambda x: np.abs(robot.constraint_jacobian(x[:n]) @ x[n:]).max(initial=0.0), path.y.T)
    assert slip.max() <= 1e-9


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
    np.testing.assert_array_equal(
        kd.load_robot('planar_2r', gravity=tilted).gravity_torque(robot.home),
        robot.gravity_torque(robot.home),
    )
    assert relative_error(up.gravity_torque(up.home)[None], robot.gravity_torque(up.home)[None]) > 0.01


# -- derivatives of shipped robots, and of random trees --------------------------------------------------


@pytest.fixture(params=[*kd.robots(), *range(100, 106)])
def any_robot(request):
    """A shipped robot by name, or a random tree by number."""
    source = request.param
    return kd.load_robot(source if source in kd.robots() else random_tree(np.random.default_rng(source))[0])


def test_rate_of_the_mass_matrix_minus_2c_is_skew(any_robot):
    for q, v in zip(*states(50, any_robot.nv, parts=2), strict=True):
        A, rate = any_robot.mass_matrix(q), slope(any_robot.mass_matrix, q, v)
        skew = rate - 2 * any_robot.coriolis_matrix(q, v)
        assert np.abs(skew + skew.T).max() <= 1e-9 * max(np.abs(A).max(), np.abs(rate).max())


def test_gravity_is_the_slope_of_the_potential(any_robot):
    (q,) = states(1, any_robot.nv, parts=1)[:, 0]
    gravity = [slope(any_robot.potential_energy, q, direction) for direction in np.eye(any_robot.nv)]
    np.testing.assert_allclose(any_robot.gravity_torque(q), gravity, **SLOPE)


def test_every_jacobian_is_the_derivative_of_the_pose(any_robot):
    for q in states(3, any_robot.nv, parts=1)[0]:
        for frame in any_robot.frames:
            np.testing.assert_allclose(
                any_robot.jacobian(q, frame), jacobian_of_pose(any_robot, q, frame), **SLOPE
            )


def test_jacobian_in_other_axes_is_the_world_jacobian_turned(any_robot):
    (q,) = states(1, any_robot.nv, parts=1)[:, 0]
    for frame in any_robot.config.end_effectors:
        world = any_robot.jacobian(q, frame)
        for reference in ('local', frame, any_robot.frames[-1]):
            axes = any_robot.frame_pose(q, frame if reference == 'local' else reference)[:3, :3]
            turned = np.vstack([axes.T @ world[:3], axes.T @ world[3:]])
            np.testing.assert_allclose(any_robot.jacobian(q, frame, reference), turned, atol=1e-12)
        np.testing.assert_array_equal(any_robot.jacobian(q, frame, 'world'), world)


def test_linearization_is_the_slope_of_the_motion(any_robot):
    q, v = 0.5 * states(1, any_robot.nv, parts=2)[:, 0]
    if any_robot.config.rolling:
        v = otbot.project(q, v)
    assert_linearization_is_the_slope(
        any_robot, q, v, np.linspace(-1, 1, len(any_robot.actuated_joint_names))
    )


def test_linearization_includes_friction_of_the_exact_sign(rng):
    hinge = 'axis xyz="1.0 0.0 0.0"/>'
    robot = kd.load_robot(urdf(*TWO_ARMS).replace(hinge, hinge + dynamics(0.3, 0.2)))
    assert_linearization_is_the_slope(robot, *rng.uniform(0.2, 1, (3, robot.nv)))


# -- URDFs of users, against bare Pinocchio, closed forms and finite differences -------------------------


@pytest.mark.parametrize('number', range(25))
def test_random_tree_has_the_physics_of_bare_pinocchio(number):
    rng = np.random.default_rng(number)
    text, followers = random_tree(rng)
    robot = kd.load_robot(text)
    bare = Bare(text, robot, followers)
    assert sorted(robot.joint_names) == sorted(set(bare.names) - set(followers))
    assert robot.actuated_joint_names == robot.joint_names
    assert_same_physics(robot, bare, rng)


def test_chain_of_sixty_joints_agrees_with_bare_pinocchio(rng):
    parts = [link('base')]
    for index in range(60):
        kind = ['revolute', 'continuous', 'prismatic'][index % 3]
        parent = f'part_{index - 1}' if index else 'base'
        parts += [
            link(f'part_{index}', random_body(rng)),
            joint(f'joint_{index}', kind, parent, f'part_{index}', xyz=(0.1, 0, 0.1), axis=(0, 1, 0)),
        ]
    text = urdf(*parts)
    robot = kd.load_robot(text)
    bare = Bare(text, robot)
    q, v, a = rng.uniform(-0.2, 0.2, (3, 60))
    tau = bare.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(robot.inverse_dynamics(q, v, a), tau, rtol=1e-9, atol=1e-9 * np.abs(tau).max())


@pytest.mark.parametrize(('kind', 'message'), [('revolute', '1500 moving joints'), ('fixed', '1501 links')])
def test_a_chain_that_pinocchio_cannot_hold_is_refused(rng, kind, message):
    parts = [link('part_0')]
    for k in range(1, 1501):
        this = kind if k > 1 else 'revolute'
        parts += [
            link(f'part_{k}', random_body(rng)),
            joint(f'joint_{k}', this, f'part_{k - 1}', f'part_{k}'),
        ]
    with pytest.raises(UrdfError, match=f'has {message}; at most'):
        kd.load_robot(urdf(*parts))


@pytest.mark.parametrize('kind', ['revolute', 'continuous'])
@pytest.mark.parametrize('angle', [-7.0, -1.0, 0.0, 0.3, 3.0, 9.0])
def test_given_a_pendulum_when_it_swings_then_the_textbook_holds(kind, angle):
    robot = kd.load_robot(pendulum(kind))
    inertia = 0.12 + MASS * LENGTH**2
    torque = MASS * GRAVITY * LENGTH * np.sin(angle)
    np.testing.assert_allclose(robot.mass_matrix([angle]), [[inertia]], **EXACT)
    np.testing.assert_allclose(robot.gravity_torque([angle]), [torque], **EXACT)
    np.testing.assert_allclose(robot.coriolis_matrix([angle], [3.0]), [[0.0]], **EXACT)
    np.testing.assert_allclose(robot.forward_dynamics([angle], [3.0], [0.0]), [-torque / inertia], **EXACT)
    np.testing.assert_allclose(robot.kinetic_energy([angle], [3.0]), 0.5 * inertia * 9.0, **EXACT)


@pytest.mark.parametrize('reference', ['world', 'local', 'base', 'rod'])
def test_jacobian_of_a_single_joint_keeps_its_two_dimensions(reference):
    robot = kd.load_robot(pendulum())
    jacobian = robot.jacobian([0.4], 'rod', reference)
    assert jacobian.shape == (6, 1)
    np.testing.assert_allclose(jacobian[:, 0], [0, 0, 0, 0, 1, 0], **EXACT)


def test_every_array_of_a_single_joint_has_its_documented_shape():
    robot = kd.load_robot(pendulum('continuous'))
    q = v = u = [0.1]
    assert robot.mass_matrix(q).shape == robot.coriolis_matrix(q, v).shape == (1, 1)
    assert robot.gravity_torque(q).shape == robot.friction_torque(v).shape == (1,)
    assert robot.constraint_jacobian(q).shape == (0, 1)
    assert robot.constraint_bias(q, v).shape == (0,)
    assert robot.constraint_force(q, v, u).shape == (1,)
    assert robot.actuation_matrix().shape == (1, 1)
    assert robot.wrench_to_torque(q, {'rod': [0.0] * 6}).shape == (1,)
    assert [matrix.shape for matrix in robot.linearize(q, v, u)] == [(2, 2), (2, 1)]


def test_given_a_vertical_slide_when_at_rest_then_it_carries_the_weight():
    robot = kd.load_robot(pendulum('prismatic', axis=(0, 0, 1)))
    np.testing.assert_allclose(robot.gravity_torque([0.7]), [MASS * GRAVITY], **EXACT)
    np.testing.assert_allclose(robot.mass_matrix([0.7]), [[MASS]], **EXACT)


@pytest.mark.parametrize('turns', [-3, 1, 100])
def test_continuous_joint_is_one_number_and_periodic(rng, turns):
    robot = kd.load_robot(pendulum('continuous'))
    q = rng.uniform(-3, 3, 1)
    np.testing.assert_allclose(
        robot.gravity_torque(q + 2 * np.pi * turns), robot.gravity_torque(q), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize('scale', [1e-6, 0.5, 3.0, 1e6])
@pytest.mark.parametrize('kind', ['revolute', 'continuous', 'prismatic'])
@pytest.mark.parametrize('axis', [(0.6, 0.0, -0.8), (0.0, 1.0, 0.0)])
def test_length_of_the_axis_does_not_matter(rng, scale, kind, axis):
    turn = (0.3, 0.2, 0.1)
    unit = pendulum(kind, axis=axis, rpy=turn)
    robot = kd.load_robot(pendulum(kind, axis=np.multiply(scale, axis), rpy=turn))
    assert_same_physics(robot, Bare(unit, robot), rng)


def test_axis_is_x_where_the_urdf_is_silent(rng):
    spoken = pendulum('continuous', axis=(1, 0, 0))
    silent = spoken.replace('<axis xyz="1.0 0.0 0.0"/>', '')
    assert silent != spoken
    assert_robots_agree(kd.load_robot(silent), kd.load_robot(spoken), rng)


def test_rotated_inertial_origin_turns_the_inertia_and_not_the_centre_of_mass():
    body = inertial(1.0, (0.0, 0.0, -1.0), np.diag([0.1, 0.2, 0.25]), rpy=(np.pi / 2, 0, 0))
    robot = kd.load_robot(pendulum(body=body))
    np.testing.assert_allclose(robot.mass_matrix([0.0]), [[0.25 + 1.0]], **EXACT)


def test_massive_root_link_changes_nothing(rng):
    moving = (link('rod', BOB), joint('swing', 'revolute', 'base', 'rod', axis=(0, 1, 0)))
    heavy = kd.load_robot(urdf(link('base', inertial(1000.0, (1, 2, 3), np.eye(3))), *moving))
    light = kd.load_robot(urdf(link('base'), *moving))
    assert_robots_agree(heavy, light, rng)
    np.testing.assert_array_equal(heavy.center_of_mass([0.3]), light.center_of_mass([0.3]))


@pytest.mark.parametrize('number', range(6))
def test_document_order_changes_nothing_but_the_order(number):
    rng = np.random.default_rng(number)
    shuffled = list(TWO_ARMS)
    rng.shuffle(shuffled)
    text = urdf(*shuffled)
    robot = kd.load_robot(text)
    assert sorted(robot.joint_names) == ['left_a', 'left_b', 'right_a', 'right_b']
    assert_same_physics(robot, Bare(text, robot), rng)
    assert_robots_agree(kd.load_robot(urdf(*TWO_ARMS)), robot, rng)


def test_one_arm_does_not_move_the_other(rng):
    robot = kd.load_robot(urdf(*TWO_ARMS))
    right = [index for index, name in enumerate(robot.joint_names) if name.startswith('right')]
    jacobian = robot.jacobian(rng.uniform(-1, 1, robot.nv), 'left hand')
    assert not jacobian[:, right].any()
    assert np.abs(jacobian).max() > 0.1


@pytest.mark.parametrize('reference', ['world', 'local', 'right lower'])
def test_wrenches_do_the_work_of_their_torques(rng, reference):
    robot = kd.load_robot(urdf(*TWO_ARMS))
    q, v = rng.uniform(-1, 1, (2, robot.nv))
    wrenches = {'left hand': rng.normal(size=6), 'right hand': rng.normal(size=6)}
    power = 0.0
    for frame, wrench in wrenches.items():
        named = {'world': np.eye(3), 'local': robot.frame_pose(q, frame)[:3, :3]}
        rotation = named[reference] if reference in named else robot.frame_pose(q, reference)[:3, :3]
        power += np.kron(np.eye(2), rotation) @ wrench @ jacobian_of_pose(robot, q, frame) @ v
    np.testing.assert_allclose(robot.wrench_to_torque(q, wrenches, reference) @ v, power, **SLOPE)


def test_links_split_by_fixed_joints_weigh_as_one(rng):
    masses, points = (1.0, 2.0, 0.5), rng.normal(size=(3, 3))
    whole = inertial(
        3.5,
        np.average(points, axis=0, weights=masses),
        inertia_of(masses, points - np.average(points, axis=0, weights=masses)),
    )
    hinge = joint('swing', 'revolute', 'base', 'part', axis=(0, 1, 0))
    split = [link('base'), link('part', inertial(1.0, points[0])), hinge]
    previous = np.zeros(3)
    for index, parent in ((1, 'part'), (2, 'part_1')):
        split += [
            link(f'part_{index}', inertial(masses[index])),
            joint(f'weld_{index}', 'fixed', parent, f'part_{index}', xyz=points[index] - previous),
        ]
        previous = points[index]
    fused = kd.load_robot(urdf(link('base'), link('part', whole), hinge))
    assert_robots_agree(kd.load_robot(urdf(*split)), fused, rng)


def test_massless_links_may_carry_massive_ones(rng):
    text = urdf(
        link('base'),
        link('yaw'),
        link('pitch'),
        link('head', BALL),
        joint('pan', 'continuous', 'base', 'yaw'),
        joint('tilt', 'revolute', 'yaw', 'pitch', axis=(0, 1, 0)),
        joint('neck', 'fixed', 'pitch', 'head', xyz=(0.1, 0, 0.2)),
    )
    robot = kd.load_robot(text)
    assert_same_physics(robot, Bare(text, robot), rng)


def test_frame_is_the_link_even_if_a_joint_has_its_name(rng):
    text = urdf(
        link('base'),
        link('arm', BOB),
        link('hand', BALL),
        joint('hand', 'revolute', 'base', 'arm', axis=(0, 1, 0)),
        joint('arm', 'revolute', 'arm', 'hand', xyz=(0, 0, -1), axis=(0, 1, 0)),
    )
    robot = kd.load_robot(text)
    assert_same_physics(robot, Bare(text, robot), rng)


def test_gravity_of_a_tilted_base_is_that_of_the_tilted_robot(rng):
    tilt = (0.4, -0.3, 0.2)
    level = kd.load_robot(urdf(*TWO_ARMS))
    mounted = urdf(link('floor'), *TWO_ARMS, joint('mount', 'fixed', 'floor', 'torso', rpy=tilt))
    down = pin.rpy.rpyToMatrix(*tilt).T @ [0, 0, -GRAVITY]
    assert_robots_agree(kd.load_robot(urdf(*TWO_ARMS), gravity=down), kd.load_robot(mounted), rng)
    assert level.gravity_torque(level.home).any()


# -- arguments and results ----------------------------------------------------------------------------

FRAMES = {'planar_2r': 'tip', 'otbot': 'platform', 'krang': 'left_hand', 'pendubot': 'tip'}

METHODS = {
    'mass_matrix': 'q',
    'coriolis_matrix': 'q v',
    'gravity_torque': 'q',
    'friction_torque': 'v',
    'inverse_dynamics': 'q v a',
    'forward_dynamics': 'q v u',
    'motor_torque': 'q v a',
    'constraint_jacobian': 'q',
    'constraint_bias': 'q v',
    'constraint_force': 'q v u',
    'jacobian': 'q frame',
    'frame_pose': 'q frame',
    'wrench_to_torque': 'q wrenches',
    'center_of_mass': 'q',
    'kinetic_energy': 'q v',
    'potential_energy': 'q',
    'linearize': 'q v u',
    'motor_command': 'tau v',
}
VECTORS = ['q', 'v', 'a', 'u', 'tau']
VECTOR_ARGUMENTS = [
    (method, name) for method, names in METHODS.items() for name in names.split() if name in VECTORS
]

NOT_NUMBERS = {
    'none': None,
    'text': 'abc',
    'list of text': ['a', 'b', 'c', 'd', 'e', 'f'],
    'list of digits': ['1', '2', '3', '4', '5', '6'],
    'list of none': [None] * 6,
    'complex': np.full(6, 1j),
    'bool': np.ones(6, dtype=bool),
    'ragged': [[1.0], [2.0, 3.0]],
    'mapping': {'x': 0.0},
    'object': object(),
    'bytes': b'123456',
    'overflow': [10**400] * 6,
}
WRONG_SHAPES = {
    'scalar': 0.0,
    'empty': [],
    'one short': np.zeros(5),
    'one long': np.zeros(7),
    'row': np.zeros((1, 6)),
    'column': np.zeros((6, 1)),
    'cube': np.zeros((6, 1, 1)),
    'nested list': [[0.0] * 6],
}


def arguments(robot, method, scale=0.1):
    nu = len(robot.actuated_joint_names)
    frame = FRAMES[robot.name]
    valid = {name: scale * np.arange(1.0, robot.nv + 1) for name in VECTORS} | {
        'u': scale * np.arange(1.0, nu + 1),
        'frame': frame,
        'wrenches': {frame: np.arange(1.0, 7.0)},
    }
    return {name: valid[name] for name in METHODS[method].split()}


def call(robot, method, **changed):
    values = arguments(robot, method) | changed
    return getattr(robot, method)(*values.values())


def parts(result):
    return list(result) if isinstance(result, tuple) else [result]


@pytest.mark.parametrize(('method', 'name'), VECTOR_ARGUMENTS)
def test_wrong_shape_is_refused_with_the_right_one(otbot, method, name):
    for bad in WRONG_SHAPES.values():
        message = refusal(call, otbot, method, **{name: bad})
        assert re.search(rf'\b{name}\b', message)
        assert str(np.shape(bad)) in message
        assert ('3' if name == 'u' else '6') in message
        assert 'right_wheel, left_wheel, pivot' in message


@pytest.mark.parametrize(('method', 'name'), VECTOR_ARGUMENTS)
def test_what_is_no_number_is_refused(otbot, method, name):
    for bad in NOT_NUMBERS.values():
        message = refusal(call, otbot, method, **{name: bad})
        assert re.search(rf'\b{name}\b', message)
        assert 'numbers' in message


@pytest.mark.parametrize(('method', 'name'), VECTOR_ARGUMENTS)
def test_non_finite_number_is_refused_by_its_place(otbot, method, name):
    for bad in (np.nan, np.inf, -np.inf):
        value = arguments(otbot, method)[name]
        value[1] = bad
        message = refusal(call, otbot, method, **{name: value})
        assert f'{name}[1]' in message
        assert str(bad) in message
        assert 'finite' in message


@pytest.mark.parametrize('bad', ['platfrom', 'Platform', '', None, 3, b'platform', ['platform'], 'alpha'])
@pytest.mark.parametrize('method', ['jacobian', 'frame_pose'])
def test_unknown_frame_is_refused_with_the_known_ones(otbot, method, bad):
    message = refusal(call, otbot, method, frame=bad)
    assert repr(bad) in message
    assert ', '.join(otbot.frames) in message


@pytest.mark.parametrize('bad', ['LOCAL', 'base', None])
@pytest.mark.parametrize('method', ['jacobian', 'wrench_to_torque'])
def test_unknown_reference_is_refused_with_all_valid_ones(otbot, method, bad):
    message = refusal(getattr(otbot, method), *arguments(otbot, method).values(), bad)
    assert repr(bad) in message
    assert 'reference' in message
    for valid in ('world', 'local', 'platform', 'chassis'):
        assert valid in message


def test_unknown_reference_is_refused_without_any_wrench(otbot):
    refusal(otbot.wrench_to_torque, otbot.home, {}, 'nowhere')


@pytest.mark.parametrize(
    'bad', [None, 'platform', 3, [1.0] * 6, [('platform', [0.0] * 6)], np.zeros(6), {'platform'}], ids=repr
)
def test_wrenches_that_are_no_mapping_are_refused(otbot, bad):
    assert 'wrench' in refusal(otbot.wrench_to_torque, otbot.home, bad)


@pytest.mark.parametrize(
    'bad',
    [None, 'up', 0.0, [0.0] * 3, [0.0] * 7, np.zeros((6, 1)), [0, 0, np.nan, 0, 0, 0], [1j] * 6],
    ids=repr,
)
def test_wrench_that_is_not_six_finite_numbers_is_refused_by_frame(otbot, bad):
    message = refusal(otbot.wrench_to_torque, otbot.home, {'platform': bad})
    assert 'platform' in message
    assert '6' in message or 'finite' in message


def test_wrench_at_an_unknown_frame_is_refused(otbot):
    message = refusal(otbot.wrench_to_torque, otbot.home, {'platfrom': np.zeros(6)})
    assert "'platfrom'" in message
    assert "did you mean 'platform'" in message


def test_torque_may_cover_all_joints_or_the_driven_ones_and_nothing_else(otbot):
    for u in (np.arange(3.0), np.array([0.0, 0, 0, 1, 2, 3])):  # otbot's drivers take N m
        np.testing.assert_array_equal(otbot.motor_command(u, np.zeros(6)), u)
    message = refusal(otbot.motor_command, np.ones(4), np.zeros(6))
    assert '3' in message
    assert '6' in message


def test_surplus_and_missing_arguments_are_python_errors(otbot):
    with pytest.raises(TypeError):
        otbot.mass_matrix()
    with pytest.raises(TypeError):
        otbot.mass_matrix(otbot.home, otbot.home)


# What is returned is the caller's, what is given stays the caller's.

RETURNED = {method: lambda robot, method=method: call(robot, method) for method in METHODS} | {
    'actuation_matrix': lambda robot: robot.actuation_matrix(),
    'home': lambda robot: robot.home,
    'linearize B': lambda robot: call(robot, 'linearize')[1],
    'linearize': lambda robot: call(robot, 'linearize')[0],
}
SCALARS = {'kinetic_energy', 'potential_energy'}


@pytest.mark.parametrize('name', sorted(RETURNED.keys() - SCALARS))
@pytest.mark.parametrize('robot_name', ['otbot', 'planar_2r', 'pendubot'])
def test_spoiling_a_result_spoils_nothing_later(robot_name, name):
    robot = kd.load_robot(robot_name)
    first = RETURNED[name](robot)
    expected = first.copy()
    first[...] = 77.0
    second = RETURNED[name](robot)
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(second, expected)
    assert second.dtype == np.float64


def test_later_calls_do_not_change_earlier_results(otbot):
    results = {name: get(otbot) for name, get in RETURNED.items()}
    copies = deepcopy(results)
    for method in METHODS:
        getattr(otbot, method)(*arguments(otbot, method, scale=0.7).values())
    np.testing.assert_equal(results, copies)


def test_a_robot_in_another_process_is_the_same(rng):
    robot = kd.load_robot('otbot', gravity=(0.1, 0.0, -9.7)).with_payload('platform', 2.0, (0.1, 0.0, 0.0))
    q, v, a = rng.uniform(-1, 1, (3, robot.nv))
    text = pickle.dumps(robot)
    assert len(text) < 2 * len(robot.urdf.text)
    expected = robot.inverse_dynamics(q, v, a)
    np.testing.assert_array_equal(pickle.loads(text).inverse_dynamics(q, v, a), expected)


@pytest.mark.parametrize('name', sorted(SCALARS))
def test_energy_is_a_float(otbot, name):
    assert type(call(otbot, name)) is float


@pytest.mark.parametrize('method', METHODS)
def test_inputs_are_neither_changed_nor_kept(otbot, method):
    values = arguments(otbot, method)
    before = deepcopy(values)
    result = getattr(otbot, method)(*values.values())
    for name, value in values.items():
        np.testing.assert_equal(value, before[name])
        for part in parts(result):
            if isinstance(value, np.ndarray):
                assert not np.shares_memory(part, value)


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def strided(array):
    return np.repeat(array, 2)[::2]


CONTAINERS = {
    'list': np.ndarray.tolist,
    'tuple': tuple,
    'read-only': read_only,
    'strided': strided,
    'reversed twice': lambda array: array[::-1].copy()[::-1],
    'column of a matrix': lambda array: np.column_stack([array, array])[:, 1],
    'big endian': lambda array: array.astype('>f8'),
    'long double': lambda array: array.astype(np.longdouble),
}


@pytest.mark.parametrize('method', METHODS)
def test_floats_are_accepted_in_any_container(otbot, method):
    expected = parts(call(otbot, method))
    for container in CONTAINERS.values():
        values = {
            name: container(value) if isinstance(value, np.ndarray) else value
            for name, value in arguments(otbot, method).items()
        }
        np.testing.assert_equal(parts(getattr(otbot, method)(*values.values())), expected)


@pytest.mark.parametrize('method', METHODS)
def test_integers_and_single_precision_are_numbers(otbot, method):
    values = arguments(otbot, method, scale=1.0)
    expected = parts(getattr(otbot, method)(*values.values()))
    for kind in (list, np.array, np.int32, np.uint8, np.float32):
        converted = {
            name: kind([int(number) for number in value]) if isinstance(value, np.ndarray) else value
            for name, value in values.items()
        }
        np.testing.assert_equal(parts(getattr(otbot, method)(*converted.values())), expected)


PLANAR = kd.load_robot('planar_2r')


@pytest.mark.slow
@campaign(ANYTHING)
def test_random_object_is_a_position_or_is_refused(q):
    torque, reason = outcome(PLANAR.gravity_torque, q)
    if torque is None:
        assert re.search(r'\bq\b', reason)
        return
    assert np.isfinite(torque).all()
    assert np.shape(q) == (2,)
