"""Cartesian impedance: springs, damping, null space and limits, from the torque alone."""

import numpy as np
import pinocchio as pin
import pytest
from harness import robot_named, term_inputs

import krang_dynamics as kd
from krang_dynamics.control.settings import Settings
from krang_dynamics.control.terms.cartesian_impedance import EASE, CartesianImpedance, near_turn
from krang_dynamics.errors import ConfigError, InputError, KrangError

HANDS = ('left_hand', 'right_hand')
STIFFNESS = [300.0, 400.0, 500.0, 40.0, 50.0, 60.0]
KRANG = robot_named('krang')


def term(robot=KRANG, **settings):
    settings = {'wheels_locked': True, 'terms': ('gravity', 'cartesian_impedance'), **settings}
    return CartesianImpedance.from_settings(robot, Settings(**settings))


def displaced(size=0.1, seed=0):
    return KRANG.home + np.random.default_rng(seed).uniform(-size, size, 17)


def expected_wrench(q, q_d, frame, axes):
    """Stiffness times error in the axes of a frame, in the world."""
    A, B = KRANG.frame_pose(q, frame), KRANG.frame_pose(q_d, frame)
    R = KRANG.frame_pose(q, axes)[:3, :3]
    error = np.concatenate([R.T @ (B - A)[:3, 3], R.T @ pin.log3(B[:3, :3] @ A[:3, :3].T)])
    f = np.array(STIFFNESS) * error
    return np.concatenate([R @ f[:3], R @ f[3:]])


@pytest.mark.parametrize('axes', ['world', 'left_hand', 'bracket'])
def test_at_rest_the_torque_of_the_arms_is_that_of_the_springs(axes):
    """With no posture stiffness; in any axes, and of both hands at once."""
    given = {f'cartesian_{hand}_stiffness': STIFFNESS for hand in HANDS}
    given |= {f'cartesian_{hand}_axes': axes for hand in HANDS}
    q, q_d = displaced(), KRANG.home
    torque = term(**given, nullspace_stiffness=0.0).torque(term_inputs(KRANG, q, np.zeros(17), q_d=q_d))
    wrenches = {hand: expected_wrench(q, q_d, hand, axes) for hand in HANDS}
    expected = KRANG.wrench_to_torque(q, wrenches)
    expected[:3] = 0  # the trunk keeps its posture
    np.testing.assert_allclose(torque, expected, atol=1e-9)


@pytest.mark.parametrize('free', [(), (0,), (2, 4)])
def test_the_posture_does_not_accelerate_the_hands(free):
    """Along axes without stiffness neither."""
    stiffness = [0.0 if axis in free else 4000.0 for axis in range(6)]
    given = {f'cartesian_{hand}_stiffness': stiffness for hand in HANDS}
    q = displaced(0.3)
    posture = q + np.random.default_rng(1).uniform(-1, 1, 17)
    posture[:3] = q[:3]
    inputs = term_inputs(KRANG, q, np.zeros(17))
    torque = term(**given, nullspace_posture=posture.tolist()).torque(inputs)
    assert np.abs(torque).max() > 10
    arms = slice(3, 17)
    a = np.linalg.solve(KRANG.mass_matrix(q)[arms, arms], torque[arms])
    for hand in HANDS:
        assert np.abs(KRANG.jacobian(q, hand)[:, arms] @ a).max() < 1e-9


@pytest.mark.parametrize('ratio', [0.7, 1.0])
@pytest.mark.parametrize('stiffness', [STIFFNESS, [5.0, 4000.0, 4000.0, 1.0, 400.0, 400.0]])
def test_damping_gives_every_mode_of_the_hand_its_ratio(ratio, stiffness):
    """Eigenvalues of the linear motion of the hand with its real inertia."""
    given = {'cartesian_left_hand_stiffness': stiffness, 'cartesian_left_hand_damping_ratio': ratio}
    q, arm = KRANG.home, slice(3, 10)
    impedance = term(**given, nullspace_stiffness=0.0)
    slow = 0.1  # below the speed zones [rad/s]
    D = np.array(
        [
            -impedance.torque(term_inputs(KRANG, q, slow * e, v_d=np.zeros(17)))[arm] / slow
            for e in np.eye(17)[arm]
        ]
    ).T
    J, A = KRANG.jacobian(q, 'left_hand')[:, arm], KRANG.mass_matrix(q)[arm, arm]
    bar = np.linalg.solve(A, J.T) @ np.linalg.inv(J @ np.linalg.solve(A, J.T))
    inertia, damping = np.linalg.inv(J @ np.linalg.solve(A, J.T)), bar.T @ D @ bar
    system = np.block(
        [
            [np.zeros((6, 6)), np.eye(6)],
            [-np.linalg.solve(inertia, np.diag(stiffness)), -np.linalg.solve(inertia, damping)],
        ]
    )
    poles = np.linalg.eigvals(system)
    np.testing.assert_allclose(-poles.real / np.abs(poles), ratio, atol=0.02)


def test_forces_and_moments_are_limited():
    given = {'cartesian_left_hand_stiffness': STIFFNESS, 'nullspace_stiffness': 0.0}
    q = displaced(0.4)
    impedance = term(**given, cartesian_left_hand_max_force=10.0, cartesian_left_hand_max_moment=2.0)
    torque = impedance.torque(term_inputs(KRANG, q, np.zeros(17), q_d=KRANG.home))
    f = np.linalg.lstsq(KRANG.jacobian(q, 'left_hand')[:, 3:10].T, torque[3:10], rcond=None)[0]
    assert np.linalg.norm(f[:3]) == pytest.approx(10.0)
    assert np.linalg.norm(f[3:]) == pytest.approx(2.0)


def test_a_spring_that_becomes_stiffer_pulls_smoothly_and_one_that_becomes_softer_at_once():
    hand = 'cartesian_left_hand_stiffness'
    q, arm, none = displaced(), slice(3, 10), {'nullspace_stiffness': 0.0}
    inputs = term_inputs(KRANG, q, np.zeros(17), q_d=KRANG.home, dt=0.01)
    stiff = term(**none, **{hand: STIFFNESS}).torque(inputs)[arm]
    impedance = term(**none, **{hand: [0.0] * 6})
    assert np.abs(impedance.torque(inputs)[arm]).max() < 1e-9
    impedance.adopt(term(**none, **{hand: STIFFNESS}))
    torques = np.array([impedance.torque(inputs)[arm] for _ in range(round(EASE / 0.01) + 1)])
    steps = np.abs(np.diff(torques, axis=0)).max(axis=0)
    assert (np.abs(torques[0]) <= 0.011 * np.abs(stiff) + 1e-9).all()
    assert (steps <= 0.011 * np.abs(stiff) + 1e-9).all()
    np.testing.assert_allclose(torques[-1], stiff)
    impedance.adopt(term(**none, **{hand: [1.0] * 6}))
    np.testing.assert_allclose(
        impedance.torque(inputs)[arm], term(**none, **{hand: [1.0] * 6}).torque(inputs)[arm]
    )


def test_a_live_change_of_one_hand_leaves_the_other_as_it_is():
    inputs = term_inputs(KRANG, displaced(), np.zeros(17), q_d=KRANG.home)
    impedance = term(nullspace_stiffness=0.0)
    right = impedance.torque(inputs)[10:]
    impedance.adopt(term(nullspace_stiffness=0.0, cartesian_left_hand_stiffness=STIFFNESS))
    assert list(impedance.hands) == list(HANDS)
    np.testing.assert_allclose(impedance.torque(inputs)[10:], right)


def test_a_live_change_adds_no_hand():
    impedance = term(cartesian_left_hand_stiffness=STIFFNESS)
    with pytest.raises(InputError, match=r'cartesian.right_hand.stiffness: the hands are left_hand'):
        impedance.check_change(term(cartesian_right_hand_stiffness=STIFFNESS))


def test_an_angular_error_passes_pi_without_a_jump():
    axis, turn = np.array([0.6, 0.0, 0.8]), None
    for angle in np.linspace(3.0, 3.4, 41):
        turn = near_turn(pin.log3(pin.exp3(angle * axis)), turn)
        np.testing.assert_allclose(turn, angle * axis, atol=1e-6)


def test_a_singular_jacobian_gives_a_finite_torque():
    """The tool of `anthropomorphic` has rank 5 everywhere; a stretched arm of Krang has rank 5."""
    arm = robot_named('anthropomorphic')
    q = arm.home + 0.05
    torque = term(arm).torque(term_inputs(arm, q, np.ones(6), q_d=arm.home))
    assert np.abs(torque).max() < 200
    stretched = KRANG.home
    stretched[3:10] = 0.0
    inputs = term_inputs(KRANG, stretched + 0.01, np.full(17, 0.1), q_d=stretched)
    assert np.abs(term().torque(inputs)).max() < 200


def test_a_joint_that_is_not_commanded_gets_no_torque_and_causes_none():
    impedance = term(wheels_locked=False)
    q, reference = displaced(), KRANG.home
    one = impedance.torque(term_inputs(KRANG, q, np.zeros(17), q_d=reference))
    moved = reference.copy()
    moved[0] += 0.3
    two = impedance.torque(term_inputs(KRANG, q, np.zeros(17), q_d=moved))
    assert one[0] == two[0] == 0
    np.testing.assert_array_equal(one, two)


def test_gravity_counts_once():
    q = displaced()
    inputs = term_inputs(KRANG, q, np.zeros(17))
    alone = term(terms=('cartesian_impedance',)).torque(inputs)
    np.testing.assert_allclose(alone - term().torque(inputs), KRANG.gravity_torque(q), atol=1e-9)


@pytest.mark.parametrize(
    ('settings', 'reason'),
    [
        ({'terms': ('computed_torque', 'cartesian_impedance')}, 'use one'),
        ({'cartesian_left_hand_stiffness': [1.0, 2.0]}, 'left_hand.stiffness'),
        ({'cartesian_foot_stiffness': STIFFNESS}, 'foot'),
        ({'cartesian_left_hand_axes': 'camera'}, 'camera'),
        ({'nullspace_posture': [0.0]}, 'nullspace.posture'),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, reason):
    with pytest.raises(KrangError, match=reason):
        term(**settings)


def test_a_rolling_base_is_refused():
    with pytest.raises(KrangError, match='rolling_base'):
        term(robot_named('otbot'))


def two_fingers(own):
    """An arm of six joints, with a tool and with two fingers of some joints, as one URDF."""
    joints, links = [], ['base', *(f'link_{i}' for i in range(1, 7)), 'tool']

    def joint(name, parent, child, kind='revolute'):
        limit = '<limit lower="-2" upper="2" effort="50" velocity="2"/><axis xyz="0 1 0"/>'
        joints.append(
            f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="0 0 0.2"/>{limit if kind == "revolute" else ""}</joint>'
        )

    for i in range(6):
        joint(f'joint_{i + 1}', links[i], links[i + 1])
    joint('to_tool', 'link_6', 'tool', 'fixed')
    for side in ('left', 'right'):
        for i in range(own):
            links.append(f'{side}_{i}')
            joint(f'{side}_joint_{i}', f'{side}_{i - 1}' if i else 'link_6', f'{side}_{i}')
    inertia = '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
    bodies = ''.join(
        f'<link name="{link}"><inertial><mass value="1"/>{inertia}</inertial></link>' for link in links
    )
    return kd.load_robot(f'<robot name="fingers">{bodies}{"".join(joints)}</robot>')


@pytest.mark.parametrize(
    ('own', 'arms'), [(2, {'tool': 6}), (5, {'left_4': 5, 'right_4': 5})], ids=['fingers', 'arms']
)
def test_an_arm_also_moves_its_fingers_but_not_other_arms(own, arms):
    found = term(two_fingers(own), terms=('cartesian_impedance',), wheels_locked=False).arms
    assert {frame: int(arm.sum()) for frame, arm in found.items()} == arms


def test_a_frame_that_no_joint_moves_is_refused():
    with pytest.raises(ConfigError, match=r'cartesian\.base: no commanded joint moves this frame'):
        term(two_fingers(1), cartesian_base_stiffness=[1.0] * 6, wheels_locked=False)
