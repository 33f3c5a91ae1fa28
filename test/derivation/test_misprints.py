"""Every misprint of docs/equations.md: the printed form fails, the corrected one holds.

Printed forms are written out here. Corrected ones are the package's derivation, held against the
derivative of the reference's transforms, conservation of energy, work, rank or measured machines.
"""

from dataclasses import replace
from functools import cache

import casadi as ca
import numpy as np
import pytest
from reference import anthropomorphic, krang, lagrange, otbot, pendubot, planar_2r
from reference.lagrange import GRAVITY, rate, rx, ry, rz, skew
from scipy.integrate import solve_ivp
from tools import assert_close, relative_error, states

from krang_dynamics.derivation.engine import CasadiEngine
from krang_dynamics.derivation.equations import derive, friction, jacobian, kinetic_energy, potential_energy
from krang_dynamics.derivation.numeric import Drive, evaluate
from krang_dynamics.derivation.robots import SYMBOLIC

CONSERVED = 1e-8  # J, what the integrator leaves of a constant energy
ACTUATED = {'otbot': ('right_wheel', 'left_wheel', 'pivot')}


@cache
def frames(robot):
    return SYMBOLIC[robot](CasadiEngine())


@cache
def model(robot):
    """The derivation of a robot as functions of numbers, without rotors and friction."""
    tree = frames(robot)
    zero = [0.0] * len(tree.q)
    return evaluate(derive(tree), Drive(zero, zero, zero, True, ACTUATED.get(robot, tree.joint_names)))


def function(tree, expression):
    """f(q, v) of an expression of the tree; its parameters may be given other numbers by name."""
    inputs = [tree.q_vector(), tree.dq_vector(), ca.vertcat(*tree.symbols.values())]
    compiled = ca.Function('f', inputs, [ca.densify(ca.SX(expression))])

    def value(q, v=None, **numbers):
        parameters = list({**tree.numbers, **numbers}.values())
        return np.array(compiled(q, np.zeros(len(tree.q)) if v is None else v, parameters))

    return value


@cache
def energies(robot):
    tree = frames(robot)
    return function(tree, kinetic_energy(tree)), function(tree, potential_energy(tree))


@cache
def energy(robot):
    tree = frames(robot)
    total = function(tree, kinetic_energy(tree) + potential_energy(tree))
    return lambda q, v: total(q, v).item()


def follow(acceleration, q, v, seconds=2.0):
    """States (k, 2 n) along q'' = acceleration(q, v)."""
    n, calls = len(q), iter(range(20_000))

    def motion(_, x):
        assert next(calls, None) is not None, 'the motion is too wild to integrate'
        return np.concatenate([x[n:], acceleration(x[:n], x[n:])])

    start = np.concatenate([q, v])
    result = solve_ivp(motion, (0, seconds), start, method='DOP853', rtol=1e-10, atol=1e-12)
    assert result.success
    return result.y.T


def drift(robot, acceleration, q, v, seconds=2.0):
    """Largest departure (J) from the energy at the start."""
    n, total = len(q), energy(robot)
    course = [total(x[:n], x[n:]) for x in follow(acceleration, q, v, seconds)]
    return np.abs(np.array(course) - course[0]).max()


def free(robot, **replaced):
    """The free acceleration of a robot; mass_matrix, coriolis_matrix or gravity may be replaced."""
    numeric = model(robot)
    mass = replaced.get('mass_matrix', lambda q: numeric('mass_matrix', q))
    coriolis = replaced.get('coriolis_matrix', lambda q, v: numeric('coriolis_matrix', q, v))
    gravity = replaced.get('gravity', lambda q: numeric('gravity', q))
    return lambda q, v: np.linalg.solve(mass(q), -coriolis(q, v) @ v - gravity(q))


def axial(matrix):
    """w of S(w)."""
    return np.array([matrix[2, 1], matrix[0, 2], matrix[1, 0]])


def world_rotation(key):
    """Of Krang's frame j: a function of q, from the reference's transforms."""
    index = list(frames('krang').frames).index(key)
    return lambda q: krang.world_frames(q)[index][..., :3, :3]


# -- [krang] ---------------------------------------------------------------------------------------

INERTIA = 'XX XY XZ YY YZ ZZ'.split()  # in the order of the listings
UPPER = np.triu_indices(3)


def energy_at_the_centres_of_mass(q, v):
    """[krang] eq. 10, with velocities from the derivative of the world transforms."""
    total = 0.0
    for j, (mass, com, inertia) in enumerate(krang.LINKS):
        V = rate(lambda x, j=j, com=com: krang.world_frames(x)[j] @ [*com, 1.0], q, v)[:3]
        A = krang.world_frames(q)[j][:3, :3]
        w = axial(A.T @ rate(lambda x, j=j: krang.world_frames(x)[j][:3, :3], q, v))
        total += 0.5 * (mass * V @ V + w @ inertia @ w)
    return total


def test_krang_eq_11_holds_with_the_inertia_about_the_frame_and_not_about_the_centre_of_mass():
    kinetic, _ = energies('krang')
    printed = {}
    for key, (_, _, central) in zip(frames('krang').frames, krang.LINKS, strict=True):
        printed |= {f'{name}_{key}': x for name, x in zip(INERTIA, central[UPPER], strict=True)}
    for q, v in zip(*states(4, 17, parts=2), strict=True):
        expected = energy_at_the_centres_of_mass(q, v)
        assert kinetic(q, v).item() == pytest.approx(expected, rel=1e-12)
        assert kinetic(q, v, **printed).item() < 0.98 * expected


def test_krang_eq_11_as_printed_gives_a_hand_that_turns_about_its_centre_of_mass_negative_energy():
    mass, com, central = krang.LINKS[9]
    w = np.array([1.0, 0, 0])
    V = -np.cross(w, com)  # so that the centre of mass rests

    def eq_11(inertia):
        return 0.5 * (w @ inertia @ w + mass * V @ V + 2 * mass * np.array(com) @ np.cross(V, w))

    about_the_frame = function(frames('krang'), frames('krang').inertia('10l'))(np.zeros(17))
    assert eq_11(about_the_frame) == pytest.approx(0.5 * w @ central @ w)
    assert eq_11(central) < -0.005


def test_krang_parallel_axes_have_no_transpose():
    """J = I_G - M S^ S^ is the inertia of the points themselves; with S^ S^' it is not even positive."""
    points, masses = np.random.default_rng(4).uniform(0, 1, (20, 3)), np.full(20, 0.1)
    com = masses @ points / 2.0
    about = sum(-m * skew(p) @ skew(p) for m, p in zip(masses, points, strict=True))
    central = sum(-m * skew(p - com) @ skew(p - com) for m, p in zip(masses, points, strict=True))
    assert_close(central - 2.0 * skew(com) @ skew(com), about)
    assert np.linalg.eigvalsh(central - 2.0 * skew(com) @ skew(com).T).min() < 0

    mass, com, central = krang.LINKS[9]
    S = skew(np.array(com))
    assert_close(
        function(frames('krang'), frames('krang').inertia('10l'))(np.zeros(17)), central - mass * S @ S
    )
    assert np.linalg.eigvalsh(central - mass * S @ S.T).min() < 0


def test_krang_ten_parameters_are_in_the_order_of_the_listings():
    """Listing B.14 reads XX XY XZ YY YZ ZZ; in the order of section 5.1 no inertia is possible."""
    tree = frames('krang')
    for key, expected in zip(tree.frames, krang.J, strict=True):
        inertia = function(tree, tree.inertia(key))
        assert_close(inertia(np.zeros(17)), expected)
        assert np.linalg.eigvalsh(inertia(np.zeros(17))).min() > 0
        order_of_5_1 = [tree.numbers[f'{name}_{key}'] for name in 'XX YY ZZ XY XZ YZ'.split()]
        misread = {f'{name}_{key}': x for name, x in zip(INERTIA, order_of_5_1, strict=True)}
        assert np.linalg.eigvalsh(inertia(np.zeros(17), **misread)).min() < 0


def test_krang_friction_takes_energy_only_on_the_side_of_the_accelerations():
    tree, n = frames('planar_2r'), 2
    resistance = function(tree, friction(tree, [0.6, 0.4], [0.5, 0.3], smooth=True))
    mass, left_alone, total = model('planar_2r'), free('planar_2r'), energy('planar_2r')

    def course(sign):
        def acceleration(q, v):
            return left_alone(q, v) + sign * np.linalg.solve(mass('mass_matrix', q), resistance(q, v)[:, 0])

        path = follow(acceleration, [0.6, 0.8], [1.0, -2.0], 0.5)
        return np.array([total(x[:n], x[n:]) for x in path])

    assert (np.diff(course(-1)) < 0).all()  # A a + C v + Q + Gamma_f = 0
    assert (np.diff(course(+1)) > 0).all()  # A a + C v + Q = Gamma_f, as printed


PRINTED_STEPS = {
    '1': lambda c, s: [[0, s, -c, 0], [-1, 0, 0, 0, 0], [0, c, s, 0], [0, 0, 0, 0, 1]],
    '2': lambda c, s: [[1, 0, 0, 0, 0], [0, c, s, krang.L1], [0, -s, c, -krang.L2], [0, 0, 0, 1]],
}


@pytest.mark.parametrize(('key', 'reference', 'joint'), [('1', '0', 0), ('2', '1', 1)])
def test_krang_first_two_transforms_have_a_zero_too_many(key, reference, joint):
    tree, angle = frames('krang'), 0.3
    printed = PRINTED_STEPS[key](np.cos(angle), np.sin(angle))
    with pytest.raises(ValueError, match='inhomogeneous'):
        np.array(printed)
    # All entries between the first and the last of the long rows are zero, so any of them may go.
    mended = np.array([row if len(row) == 4 else [row[0], *row[2:]] for row in printed])
    q = angle * np.eye(17)[joint]
    step = function(tree, tree.transform(key, reference))
    assert_close(step(q), mended)
    turn = step(q)[:3, :3]
    assert_close(turn @ turn.T, np.eye(3))
    slope = (step(q + 1e-6 * np.eye(17)[joint]) - step(q - 1e-6 * np.eye(17)[joint]))[:3, :3] / 2e-6
    assert_close(axial(turn.T @ slope), np.array([-1.0, 0, 0]), 1e-8)  # e_1 and e_2 of section 2.2


@pytest.mark.parametrize('key', ['1', '2', '3', '7l', '10r'])
def test_krang_angular_velocities_add_and_do_not_multiply(key):
    tree = frames('krang')
    frame = tree.frames[key]
    q, v = states(1, 17, parts=2)[:, 0]
    before = np.zeros((3, 1))
    if frame.antecedent != '0':
        before = function(tree, tree.angular_velocity(frame.antecedent))(q, v)
    turned = function(tree, tree.rotation(frame.antecedent, key))(q) @ before
    spin = function(tree, frame.e * frame.dq)(q, v)
    with pytest.raises(ValueError, match='mismatch'):
        turned @ spin  # Rot * w * e dq, 3 x 1 times 3 x 1
    expected = axial(world_rotation(key)(q).T @ rate(world_rotation(key), q, v))
    derived = function(tree, tree.angular_velocity(key))(q, v)[:, 0]
    assert_close(derived, expected)
    assert_close(derived, (turned + spin)[:, 0])
    assert relative_error([(turned * spin)[:, 0]], [expected]) > 0.5  # entry by entry is no better


def printed_rot(tree, key1, key2):
    """Listing B.10; None where MATLAB would miss the output."""
    first, second = tree.frames[key1], tree.frames[key2]
    if first.antecedent == key1:
        return first.rotation
    if second.antecedent == key1:
        return second.rotation.T
    return None


def test_krang_rot_looks_for_its_second_frame_before_the_first():
    tree = frames('krang')
    q = states(1, 17, parts=1)[0, 0]
    for key, frame in list(tree.frames.items())[1:]:
        assert printed_rot(tree, key, frame.antecedent) is None
        index = list(tree.frames).index(key)
        forth = function(tree, tree.rotation(key, frame.antecedent))(q)
        assert_close(forth, krang.transforms(q)[index][:3, :3])
        back = function(tree, printed_rot(tree, frame.antecedent, key))(q)  # the branch that is right
        assert_close(forth @ back, np.eye(3))


def test_krang_eq_17_multiplies_a_diagonal_matrix_by_coulomb_coefficients():
    tree = frames('krang')
    v = states(1, 17, parts=1)[0, 0]
    F_v, F_c = krang.VISCOUS_EXACT, krang.COULOMB_EXACT
    with pytest.raises(ValueError, match='mismatch'):
        np.sign(v)[:, None] @ F_c[:, None]  # sign(q') F_c, the term inside the bracket
    assert np.diag(np.sign(v) * F_c).shape == (17, 17)  # entry by entry: no vector to add to diag(q') F_v
    each = [F_c[i] * np.sign(v[i]) + F_v[i] * v[i] for i in range(17)]  # the line above eq. 17
    assert_close(np.diag(v) @ F_v + np.diag(np.sign(v)) @ F_c, each)
    derived = function(tree, friction(tree, F_v.tolist(), F_c.tolist(), smooth=False))
    assert_close(derived(np.zeros(17), v)[:, 0], each)


def printed_velocities(tree, key, w0, V0, value):
    """Listings B.8 (with a sum) and B.9: the calls for the antecedent do not hand on w0 and V0."""
    frame = tree.frames[key]
    if frame.antecedent == '0':
        w, V = w0, V0
    else:
        w, V = printed_velocities(tree, frame.antecedent, np.zeros(3), np.zeros(3), value)
    jAi = value(frame.rotation).T
    return jAi @ w + value(frame.e * frame.dq)[:, 0], jAi @ (V + np.cross(w, value(frame.P)[:, 0]))


@pytest.mark.parametrize(('key', 'printed_holds'), [('1', True), ('2', False), ('6l', False)])
def test_krang_recursion_hands_on_the_velocity_of_a_moving_base(key, printed_holds):
    tree = frames('krang')
    q, v = states(1, 17, parts=2)[:, 0]
    w0, V0 = np.array([0.3, -0.5, 0.7]), np.array([1.0, 0.2, -0.4])
    index = list(tree.frames).index(key)
    world = krang.world_frames(q)[index]
    A, P = world[:3, :3], world[:3, 3]
    change = rate(lambda x: krang.world_frames(x)[index], q, v)
    # A base that turns and slides carries the whole robot with it.
    expected = [A.T @ w0 + axial(A.T @ change[:3, :3]), A.T @ (V0 + np.cross(w0, P) + change[:3, 3])]
    base = [tree.engine.column(x.tolist()) for x in (w0, V0)]
    derived = [tree.angular_velocity(key, base[0]), tree.linear_velocity(key, *base)]
    assert_close([function(tree, x)(q, v)[:, 0] for x in derived], expected)
    printed = printed_velocities(tree, key, w0, V0, lambda x: function(tree, x)(q, v))
    assert (relative_error(printed, expected) < 1e-9) == printed_holds


# -- [lecture] -------------------------------------------------------------------------------------


def test_lecture_potential_energy_wants_the_vector_against_gravity():
    """P = g' r m gives the example's P_1 + P_2 and conserves energy only with g pointing up."""
    _, potential = energies('planar_2r')
    q = np.array([0.6, 0.8])

    def formula(g):
        first, second = (
            planar_2r.LC1 * np.sin(q[0]),
            planar_2r.L1 * np.sin(q[0]) + planar_2r.LC2 * np.sin(q.sum()),
        )
        return planar_2r.M1 * g * first + planar_2r.M2 * g * second

    assert formula(+GRAVITY) == pytest.approx(planar_2r.potential(q))
    assert formula(+GRAVITY) == pytest.approx(potential(q).item())
    assert formula(-GRAVITY) == pytest.approx(-planar_2r.potential(q))
    downwards = free('planar_2r', gravity=lambda q: -lagrange.gravity(planar_2r.potential, q))
    assert drift('planar_2r', free('planar_2r'), q, np.zeros(2), 1.0) < CONSERVED
    assert drift('planar_2r', downwards, q, np.zeros(2), 1.0) > 1


def test_lecture_rate_of_a_rotation_takes_the_inertial_angular_velocity_on_the_left():
    tree = frames('krang')
    q, v = states(1, 17, parts=2)[:, 0]
    R, change = world_rotation('3')(q), rate(world_rotation('3'), q, v)
    body = function(tree, tree.angular_velocity('3'))(q, v)[:, 0]
    assert_close(skew(R @ body) @ R, change)
    assert_close(R @ skew(body), change)
    assert relative_error([skew(body) @ R], [change]) > 0.5  # R' = S(w) R with w of the body frame


# -- [arm] -----------------------------------------------------------------------------------------


def tool_jacobian(turn):
    """J of the tool with another fixed turn between joints 4 and 5."""
    tree = SYMBOLIC['anthropomorphic'](CasadiEngine())
    frame = tree.frames['link_5']
    rotation = tree.engine.matrix(turn.tolist()) @ tree.engine.rotation([0, 0, 1], frame.q)
    tree.frames['link_5'] = replace(frame, rotation=rotation)
    return function(tree, jacobian(tree, 'tool'))


def test_arm_rz_between_joints_4_and_5_makes_them_one_axis():
    printed = tool_jacobian(rz(-np.pi / 2))
    others = [tool_jacobian(turn(-np.pi / 2)) for turn in (rx, ry)]
    for q in states(20, 6, parts=1)[0]:
        J = printed(q)
        assert_close(J, model('anthropomorphic')('jacobian_tool', q))  # the package keeps what is printed
        assert_close(J[:, 3], J[:, 4])
        assert np.linalg.matrix_rank(J, tol=1e-9) == 5
        assert all(np.linalg.matrix_rank(other(q), tol=1e-9) == 6 for other in others)


HOME = np.array([0, 0.7, -1.2, 0.3, 0.2, 0.4])


def printed_gravity(q):
    """[arm] eq. 1: the sum of J_v' m g_0, J_v the derivative of the last column of CoM_i."""
    total = np.zeros(6)
    for i, mass in enumerate(anthropomorphic.MASS):
        J_v = lagrange.derivative(lambda x, i=i: anthropomorphic.com_poses(x)[i][..., :3, 3], q)
        total += J_v @ (mass * np.array([0, 0, -GRAVITY]))
    return total


def test_arm_gravity_conserves_energy_with_minus_the_printed_sign():
    gravity = model('anthropomorphic').functions['gravity']
    for q in states(10, 6, parts=1)[0]:
        assert_close(-printed_gravity(q), np.array(gravity(q))[:, 0])
    rising = free('anthropomorphic', gravity=lambda q: -np.array(gravity(q))[:, 0])
    assert drift('anthropomorphic', free('anthropomorphic'), HOME, np.zeros(6), 0.5) < CONSERVED
    assert drift('anthropomorphic', rising, HOME, np.zeros(6), 0.5) > 10


def test_arm_let_go_at_rest_sinks_and_as_printed_rises():
    _, potential = energies('anthropomorphic')
    printed = free('anthropomorphic', gravity=printed_gravity)
    assert potential(follow(free('anthropomorphic'), HOME, np.zeros(6), 0.01)[-1, :6]) < potential(HOME)
    assert potential(follow(printed, HOME, np.zeros(6), 0.01)[-1, :6]) > potential(HOME)


@pytest.mark.parametrize('link', range(1, 7))
def test_arm_columns_of_j_w_are_joint_axes_before_their_own_turn(link):
    tree = frames('anthropomorphic')
    q, v = states(1, 6, parts=2)[:, 0]
    R = anthropomorphic.com_poses(q)[link - 1][:3, :3]
    change = rate(lambda x: anthropomorphic.com_poses(x)[link - 1][..., :3, :3], q, v)
    w = axial(change @ R.T)
    derived = function(tree, jacobian(tree, f'link_{link}'))(q)[3:]
    assert_close(derived @ v, w)
    third_columns = np.zeros((3, 6))
    for j in range(link):  # printed, read kindly: column j from CoM_j
        third_columns[:, j] = anthropomorphic.com_poses(q)[j][:3, 2]
    assert relative_error([third_columns @ v], [w]) > 0.1
    one_column = np.outer(R[:, 2], np.arange(6) < link)  # printed, to the letter: all from CoM_i
    assert relative_error([one_column @ v], [w]) > 0.1


# -- [otbot] ---------------------------------------------------------------------------------------


def test_otbot_without_the_unprinted_jacobian_stays_where_it_is():
    q, v, u = np.zeros(6), np.zeros(6), np.array([10.0, 10.0, 0.0])
    unconstrained = np.linalg.solve(model('otbot')('mass_matrix', q), otbot.E @ u)
    assert_close(unconstrained[:3], np.zeros(3))  # the wheels spin and nothing else moves
    a = model('otbot')('forward_dynamics', q, v, u)
    assert a[0] > 0.5
    assert_close(a[0], otbot.R * a[3])
    assert_close(a, otbot.forward(q, v, u)[0])


def test_otbot_rolling_gives_the_known_jacobian_in_another_basis():
    for q in states(20, 6, parts=1)[0]:
        J, known = model('otbot')('constraint_jacobian', q), otbot.constraint_jacobian(q)
        assert J.shape == known.shape == (3, 6)
        basis = known @ np.linalg.pinv(J)
        assert np.linalg.cond(basis) < 100
        assert_close(basis @ J, known)


def test_otbot_without_the_unprinted_friction_rolls_for_ever():
    tree = frames('otbot')
    viscous = [0, 0, 0, 0.18, 0.18, 0.24]  # N m s/rad
    resistance = function(tree, friction(tree, viscous, [0] * 6, smooth=True))
    q = np.array([0.1, -0.2, 0.4, 0, 0, 0.3])
    v = otbot.project(q, np.array([0, 0, 0, 6.0, 4.0, -1.0]))

    def motion(x, v, friction):
        u = -friction * resistance(x, v)[3:, 0]
        return model('otbot')('forward_dynamics', x, v, u)

    assert drift('otbot', lambda x, v: motion(x, v, 0), q, v) < CONSERVED
    total = energy('otbot')
    path = follow(lambda x, v: motion(x, v, 1), q, v)
    course = np.array([total(x[:6], x[6:]) for x in path])
    assert (np.diff(course) < 0).all()
    assert course[-1] < 0.9 * course[0]
    for x in path[:: len(path) // 5]:  # and the wheels never slip
        assert_close(otbot.constraint_jacobian(x[:6]) @ x[6:], np.zeros(3), 1e-6)


# -- [pendubot], in N m and without friction -------------------------------------------------------

TH1, TH2, TH3, TH4, _, _ = pendubot.PRIMED['nominal']
START = np.array([0.3, 0.5]), np.array([2.0, -1.0])


def eq_7(q):
    return np.array([0, TH4 * GRAVITY * np.sin(q[1])])


def eq_5(q, v, factor, theta_6):
    """C with its c11 times `factor`: q1' as printed, 1 as in the source's own code."""
    s, c = np.sin(q[1]), np.cos(q[1])
    return np.array([[2 * TH2 * s * c * v[1] * factor, -TH3 * s * v[1]], [-TH2 * s * c * v[0], theta_6]])


def test_pendubot_falls_from_upright_and_eq_7_as_printed_holds_it_there():
    assert_close(model('pendubot')('gravity', START[0]), -eq_7(START[0]))
    assert drift('pendubot', free('pendubot'), *START) < CONSERVED
    assert drift('pendubot', free('pendubot', gravity=eq_7), *START) > 0.02

    def largest_growth(acceleration):
        """Of small motions about upright, 1/s."""
        h, rest = 1e-6, np.zeros(2)
        stiffness = [(acceleration(x, rest) - acceleration(-x, rest)) / (2 * h) for x in h * np.eye(2)]
        return np.sqrt(np.linalg.eigvals(np.array(stiffness).T).astype(complex)).real.max()

    assert largest_growth(free('pendubot')) > 5
    assert largest_growth(free('pendubot', gravity=eq_7)) < 1e-3


def test_pendubot_eq_5_has_one_speed_too_many_in_c11():
    q, v = START
    expected = model('pendubot')('coriolis_matrix', q, v) @ v
    assert_close(eq_5(q, v, 1, 0) @ v, expected)  # the same C q' as by Christoffel symbols
    assert relative_error([eq_5(q, v, v[0], 0) @ v], [expected]) > 0.1
    # Twice the speed gives four times the Coriolis torque; not as printed.
    assert_close(eq_5(q, 2 * v, 1, 0) @ (2 * v), 4 * expected)
    assert relative_error([eq_5(q, 2 * v, 2 * v[0], 0) @ v * 2], [4 * eq_5(q, v, v[0], 0) @ v]) > 0.1

    printed = free('pendubot', coriolis_matrix=lambda q, v: eq_5(q, v, v[0], 0))
    mended = free('pendubot', coriolis_matrix=lambda q, v: eq_5(q, v, 1, 0))
    assert drift('pendubot', mended, *START) < CONSERVED
    assert drift('pendubot', printed, *START, 0.35) > 0.5  # of 0.2 J; soon afterwards it diverges


def test_pendubot_eq_5_mixes_friction_into_coriolis_and_is_not_skew():
    theta_6 = pendubot.BETA2
    for q, v in zip(*states(10, 2, parts=2), strict=True):
        change = rate(pendubot.mass_matrix, q, v)
        derived = model('pendubot')('coriolis_matrix', q, v)
        assert_close(derived, pendubot.closed_coriolis_matrix(q, v, pendubot.PRIMED['nominal']))
        skewed = change - 2 * derived
        assert_close(skewed, -skewed.T)
        for C in (eq_5(q, v, v[0], theta_6), eq_5(q, v, 1, theta_6), eq_5(q, v, 1, 0)):
            assert np.abs(change - 2 * C + (change - 2 * C).T).max() > 1e-5
        # Coriolis torques do no work except for the change of A; the term with theta_6 dissipates.
        assert v @ skewed @ v == pytest.approx(0, abs=1e-14)
        assert v @ (change - 2 * eq_5(q, v, 1, theta_6)) @ v == pytest.approx(-2 * theta_6 * v[1] ** 2)


def test_pendubot_eq_3_accelerates_the_arm_in_its_first_term():
    def printed(q, v):
        """q1'' of eq. 2 with q2'' of eq. 3 as printed, theta_3 cos(q2) q1'."""
        s, c = np.sin(q[1]), np.cos(q[1])
        a2 = (TH2 * s * c * v[0] ** 2 + TH4 * GRAVITY * s - TH3 * c * v[0]) / TH2
        torque = -2 * TH2 * s * c * v[0] * v[1] + TH3 * s * v[1] ** 2 - TH3 * c * a2
        return np.array([torque / (TH1 + TH2 * s**2), a2])

    def corrected(q, v):
        """Both equations of the reference solved for the accelerations."""
        thetas = np.array([TH1, TH2, TH3, TH4, 0, 0])
        at_rest = pendubot.voltage_equation(q, v, np.zeros(2), thetas)
        columns = [pendubot.voltage_equation(q, v, a, thetas) - at_rest for a in np.eye(2)]
        return np.linalg.solve(np.array(columns).T, -at_rest)

    assert_close(corrected(*START), free('pendubot')(*START))
    assert drift('pendubot', corrected, *START) < CONSERVED
    assert drift('pendubot', printed, *START) > 0.05


def test_pendubot_eq_8_has_no_solution_with_a_speed_among_the_accelerations():
    """As printed, (q1'', q2') leaves one unknown for two equations; eq. 1 has (q1'', q2'')."""
    q, v = START
    M, C = model('pendubot')('mass_matrix', q), model('pendubot')('coriolis_matrix', q, v)
    rest = C @ v + model('pendubot')('gravity', q)
    known = M[:, 1] * v[1] + rest
    a1 = np.linalg.lstsq(M[:, :1], -known, rcond=None)[0]
    assert np.abs(M[:, :1] @ a1 + known).max() > 0.01
    assert_close(M @ free('pendubot')(q, v) + rest, np.zeros(2))


def test_pendubot_beta_2_of_the_code_damps_like_the_measured_machines():
    """Damping ratio of the hanging pendulum, theta_6 / (2 sqrt(theta_2 theta_4 g))."""

    def damping(thetas):
        return thetas[5] / (2 * np.sqrt(thetas[1] * thetas[3] * GRAVITY))

    measured = [damping(pendubot.THETAS[f'station_{i}']) for i in (7, 9)]
    nominal = pendubot.THETAS['nominal']
    assert nominal[5] == pytest.approx(0.009685, abs=1e-6)
    by_hand = np.array([*nominal[:5], pendubot.VOLTS_PER_TORQUE * 0.007])
    assert min(measured) < damping(nominal) < max(measured)
    assert damping(by_hand) > 1.8 * max(measured)
