"""Any user's URDF, written here as text, against bare Pinocchio, closed forms and finite differences."""

import re

import numpy as np
import pinocchio as pin
import pytest
from scipy.linalg import null_space

import krang_dynamics as kd

EXACT = {'rtol': 1e-9, 'atol': 1e-10}
SLOPE = {'rtol': 1e-6, 'atol': 1e-6}
STEP = 1e-6  # [rad or m], of central differences
RANK = 1e-6  # singular values below are zero
NO_INERTIA = np.zeros((3, 3))


def numbers(values):
    return ' '.join(repr(float(value)) for value in values)


def inertia_of(masses, points):
    return sum(m * (p @ p * np.eye(3) - np.outer(p, p)) for m, p in zip(masses, points, strict=True))


def inertial(mass, com=(0, 0, 0), inertia=NO_INERTIA, rpy=(0, 0, 0)):
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = np.asarray(inertia, dtype=float).tolist()
    return (
        f'<inertial><origin xyz="{numbers(com)}" rpy="{numbers(rpy)}"/><mass value="{mass!r}"/>'
        f'<inertia ixx="{xx!r}" ixy="{xy!r}" ixz="{xz!r}" iyy="{yy!r}" iyz="{yz!r}" izz="{zz!r}"/></inertial>'
    )


def link(name, *content):
    return f'<link name="{name}">{"".join(content)}</link>'


def joint(name, kind, parent, child, *content, xyz=(0, 0, 0), rpy=(0, 0, 0), axis=(0, 0, 1)):
    limit = '<limit lower="-10" upper="10" effort="100" velocity="10"/>'
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{numbers(xyz)}" rpy="{numbers(rpy)}"/><axis xyz="{numbers(axis)}"/>'
        f'{limit if kind in ("revolute", "prismatic") else ""}{"".join(content)}</joint>'
    )


def mimic(leader, multiplier=1.0, offset=0.0):
    return f'<mimic joint="{leader}" multiplier="{multiplier!r}" offset="{offset!r}"/>'


def dynamics(damping=0.0, friction=0.0):
    return f'<dynamics damping="{damping!r}" friction="{friction!r}"/>'


def urdf(*elements, head='<robot name="foreign">'):
    return head + '\n'.join(elements) + '</robot>'


BOB = inertial(2.0, (0.0, 0.0, -0.5), np.diag([0.1, 0.12, 0.03]))
BALL = inertial(1.5, (0.1, -0.2, 0.3), np.diag([0.02, 0.03, 0.04]))


class Bare:
    """Pinocchio without the package: by joint name, followers written out as q_full = G q + offset."""

    def __init__(self, text, robot, followers=()):
        self.model = pin.buildModelFromXML(text)
        self.data = self.model.createData()
        names = list(self.model.names)[1:]
        self.rows = [self.model.joints[self.model.getJointId(name)].idx_v for name in names]
        self.names = names
        self.G = np.zeros((self.model.nv, robot.nv))
        self.offset = np.zeros(self.model.nv)
        for name in names:
            leader, multiplier, offset = dict(followers).get(name, (name, 1.0, 0.0))
            self.G[self.row(name), robot.joint_names.index(leader)] = multiplier
            self.offset[self.row(name)] = offset

    def row(self, name):
        return self.model.joints[self.model.getJointId(name)].idx_v

    def q(self, q):
        full = self.G @ q + self.offset
        result = pin.neutral(self.model)
        for name in self.names:
            its = self.model.joints[self.model.getJointId(name)]
            angle = full[its.idx_v]
            result[its.idx_q : its.idx_q + its.nq] = angle if its.nq == 1 else (np.cos(angle), np.sin(angle))
        return result

    def mass_matrix(self, q):
        upper = np.triu(pin.crba(self.model, self.data, self.q(q)))
        return self.G.T @ (upper + np.triu(upper, 1).T) @ self.G

    def gravity_torque(self, q):
        return self.G.T @ pin.computeGeneralizedGravity(self.model, self.data, self.q(q))

    def inverse_dynamics(self, q, v, a):
        return self.G.T @ pin.rnea(self.model, self.data, self.q(q), self.G @ v, self.G @ a)

    def kinetic_energy(self, q, v):
        return pin.computeKineticEnergy(self.model, self.data, self.q(q), self.G @ v)

    def potential_energy(self, q):
        return pin.computePotentialEnergy(self.model, self.data, self.q(q))

    def center_of_mass(self, q):
        return pin.centerOfMass(self.model, self.data, self.q(q))

    def frame_pose(self, q, frame):
        pin.framesForwardKinematics(self.model, self.data, self.q(q))
        return self.data.oMf[self.model.getFrameId(frame, pin.FrameType.BODY)].homogeneous


def assert_same_physics(robot, bare, rng, states=3):
    for _ in range(states):
        q, v, a = rng.uniform(-2, 2, (3, robot.nv))
        tau = bare.inverse_dynamics(q, v, a)
        velocity_torque = bare.inverse_dynamics(q, v, 0 * a) - bare.gravity_torque(q)
        np.testing.assert_allclose(robot.mass_matrix(q), bare.mass_matrix(q), **EXACT)
        np.testing.assert_allclose(robot.gravity_torque(q), bare.gravity_torque(q), **EXACT)
        np.testing.assert_allclose(robot.coriolis_matrix(q, v) @ v, velocity_torque, **EXACT)
        np.testing.assert_allclose(robot.inverse_dynamics(q, v, a), tau, **EXACT)
        np.testing.assert_allclose(robot.forward_dynamics(q, v, tau), a, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(robot.motor_torque(q, v, a), tau, **EXACT)
        np.testing.assert_allclose(robot.center_of_mass(q), bare.center_of_mass(q), **EXACT)
        np.testing.assert_allclose(robot.kinetic_energy(q, v), bare.kinetic_energy(q, v), **EXACT)
        np.testing.assert_allclose(robot.potential_energy(q), bare.potential_energy(q), **EXACT)
        for frame in robot.frames:
            np.testing.assert_allclose(robot.frame_pose(q, frame), bare.frame_pose(q, frame), **EXACT)


def assert_robots_agree(one, other, rng):
    order = [one.joint_names.index(name) for name in other.joint_names]
    for _ in range(3):
        q, v, a = rng.uniform(-2, 2, (3, one.nv))
        np.testing.assert_allclose(
            one.mass_matrix(q)[np.ix_(order, order)], other.mass_matrix(q[order]), **EXACT
        )
        np.testing.assert_allclose(
            one.inverse_dynamics(q, v, a)[order],
            other.inverse_dynamics(q[order], v[order], a[order]),
            **EXACT,
        )


def slope(function, q, direction):
    return (function(q + STEP * direction) - function(q - STEP * direction)) / (2 * STEP)


def jacobian_of_pose(robot, q, frame):
    """World-aligned, by central differences of the pose alone."""
    rotation = robot.frame_pose(q, frame)[:3, :3]
    columns = []
    for direction in np.eye(robot.nv):
        rate = slope(lambda at: robot.frame_pose(at, frame), q, direction)
        turn = rate[:3, :3] @ rotation.T
        columns.append([*rate[:3, 3], turn[2, 1], turn[0, 2], turn[1, 0]])
    return np.transpose(columns)


def random_body(rng):
    points = rng.normal(size=(5, 3)) * 0.2
    masses = rng.uniform(0.1, 1.0, 5)
    return inertial(
        float(masses.sum()), rng.normal(size=3) * 0.2, inertia_of(masses, points), rng.uniform(-3, 3, 3)
    )


def random_tree(rng, joints=9, mimics=2):
    """A tree with massless, fixed, split and mimicking members in shuffled order, and who follows whom."""
    links = ['base']
    bodies = {'base': random_body(rng) if rng.random() < 0.5 else ''}
    moving, elements, followers, used = [], [], {}, set()
    for index in range(joints):
        parent = links[rng.integers(len(links))]
        child, name = f'part {index}', f'axis_{rng.integers(1000)}_{index}'
        kind = rng.choice(['revolute', 'continuous', 'prismatic', 'fixed'], p=[0.35, 0.25, 0.2, 0.2])
        extra = ''
        if kind != 'fixed':
            if len(followers) < mimics and moving and rng.random() < 0.5:
                leader = moving[rng.integers(len(moving))]
                multiplier, offset = rng.uniform(-2, 2, 2).tolist()
                extra = mimic(leader, multiplier, offset)
                first, scale, shift = followers.get(leader, (leader, 1.0, 0.0))
                followers[name] = (first, multiplier * scale, multiplier * shift + offset)
            moving.append(name)
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        elements.append(
            joint(
                name, kind, parent, child, extra, xyz=rng.normal(size=3), rpy=rng.uniform(-3, 3, 3), axis=axis
            )
        )
        links.append(child)
        used.add(parent)
        massless = rng.random() < 0.3
        bodies[child] = '' if massless else random_body(rng)
    for name in set(links) - used:
        bodies[name] = bodies[name] or random_body(rng)
    elements += [link(name, body) for name, body in bodies.items()]
    rng.shuffle(elements)
    return urdf(*elements), followers


@pytest.fixture
def rng():
    return np.random.default_rng(20)


@pytest.mark.parametrize('number', range(25))
def test_random_tree_has_the_physics_of_bare_pinocchio(number):
    rng = np.random.default_rng(number)
    text, followers = random_tree(rng)
    robot = kd.load_robot(text)
    bare = Bare(text, robot, followers)
    assert sorted(robot.joint_names) == sorted(set(bare.names) - set(followers))
    assert robot.actuated_joint_names == robot.joint_names
    assert_same_physics(robot, bare, rng)


@pytest.mark.parametrize('number', range(100, 106))
def test_random_tree_passes_finite_differences(number):
    rng = np.random.default_rng(number)
    text, _ = random_tree(rng)
    robot = kd.load_robot(text)
    q, v = rng.uniform(-1, 1, (2, robot.nv))
    mass_rate = slope(robot.mass_matrix, q, v)
    skew = mass_rate - 2 * robot.coriolis_matrix(q, v)
    np.testing.assert_allclose(skew, -skew.T, **SLOPE)
    gravity = [slope(robot.potential_energy, q, direction) for direction in np.eye(robot.nv)]
    np.testing.assert_allclose(robot.gravity_torque(q), gravity, **SLOPE)
    for frame in robot.frames:
        np.testing.assert_allclose(robot.jacobian(q, frame), jacobian_of_pose(robot, q, frame), **SLOPE)


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


MASS, LENGTH, GRAVITY = 2.0, 0.5, 9.81
PENDULUM = (link('base'), link('rod', BOB))


@pytest.mark.parametrize('kind', ['revolute', 'continuous'])
@pytest.mark.parametrize('angle', [-7.0, -1.0, 0.0, 0.3, 3.0, 9.0])
def test_given_a_pendulum_when_it_swings_then_the_textbook_holds(kind, angle):
    robot = kd.load_robot(urdf(*PENDULUM, joint('swing', kind, 'base', 'rod', axis=(0, 1, 0))))
    inertia = 0.12 + MASS * LENGTH**2
    torque = MASS * GRAVITY * LENGTH * np.sin(angle)
    np.testing.assert_allclose(robot.mass_matrix([angle]), [[inertia]], **EXACT)
    np.testing.assert_allclose(robot.gravity_torque([angle]), [torque], **EXACT)
    np.testing.assert_allclose(robot.coriolis_matrix([angle], [3.0]), [[0.0]], **EXACT)
    np.testing.assert_allclose(robot.forward_dynamics([angle], [3.0], [0.0]), [-torque / inertia], **EXACT)
    np.testing.assert_allclose(robot.kinetic_energy([angle], [3.0]), 0.5 * inertia * 9.0, **EXACT)


@pytest.mark.parametrize('reference', ['world', 'local', 'base', 'rod'])
def test_jacobian_of_a_single_joint_keeps_its_two_dimensions(reference):
    robot = kd.load_robot(urdf(*PENDULUM, joint('swing', 'revolute', 'base', 'rod', axis=(0, 1, 0))))
    jacobian = robot.jacobian([0.4], 'rod', reference)
    assert jacobian.shape == (6, 1)
    np.testing.assert_allclose(jacobian[:, 0], [0, 0, 0, 0, 1, 0], **EXACT)


def test_every_array_of_a_single_joint_has_its_documented_shape():
    robot = kd.load_robot(urdf(*PENDULUM, joint('swing', 'continuous', 'base', 'rod', axis=(0, 1, 0))))
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
    robot = kd.load_robot(urdf(*PENDULUM, joint('lift', 'prismatic', 'base', 'rod')))
    np.testing.assert_allclose(robot.gravity_torque([0.7]), [MASS * GRAVITY], **EXACT)
    np.testing.assert_allclose(robot.mass_matrix([0.7]), [[MASS]], **EXACT)


@pytest.mark.parametrize('turns', [-3, 1, 100])
def test_continuous_joint_is_one_number_and_periodic(rng, turns):
    robot = kd.load_robot(urdf(*PENDULUM, joint('swing', 'continuous', 'base', 'rod', axis=(0, 1, 0))))
    q = rng.uniform(-3, 3, 1)
    np.testing.assert_allclose(
        robot.gravity_torque(q + 2 * np.pi * turns), robot.gravity_torque(q), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize('scale', [1e-6, 0.5, 3.0, 1e6])
@pytest.mark.parametrize('kind', ['revolute', 'continuous', 'prismatic'])
@pytest.mark.parametrize('axis', [(0.6, 0.0, -0.8), (0.0, 1.0, 0.0)])
def test_length_of_the_axis_does_not_matter(rng, scale, kind, axis):
    unit = urdf(*PENDULUM, joint('it', kind, 'base', 'rod', axis=axis, rpy=(0.3, 0.2, 0.1)))
    scaled = urdf(
        *PENDULUM, joint('it', kind, 'base', 'rod', axis=np.multiply(scale, axis), rpy=(0.3, 0.2, 0.1))
    )
    robot = kd.load_robot(scaled)
    assert_same_physics(robot, Bare(unit, robot), rng)


def test_axis_is_x_where_the_urdf_is_silent(rng):
    spoken = urdf(*PENDULUM, joint('it', 'continuous', 'base', 'rod', axis=(1, 0, 0)))
    silent = spoken.replace('<axis xyz="1.0 0.0 0.0"/>', '')
    assert silent != spoken
    assert_robots_agree(kd.load_robot(silent), kd.load_robot(spoken), rng)


def test_rotated_inertial_origin_turns_the_inertia_and_not_the_centre_of_mass():
    body = inertial(1.0, (0.0, 0.0, -1.0), np.diag([0.1, 0.2, 0.25]), rpy=(np.pi / 2, 0, 0))
    text = urdf(link('base'), link('rod', body), joint('swing', 'revolute', 'base', 'rod', axis=(0, 1, 0)))
    np.testing.assert_allclose(kd.load_robot(text).mass_matrix([0.0]), [[0.25 + 1.0]], **EXACT)


def test_massive_root_link_changes_nothing(rng):
    moving = (link('rod', BOB), joint('swing', 'revolute', 'base', 'rod', axis=(0, 1, 0)))
    heavy = kd.load_robot(urdf(link('base', inertial(1000.0, (1, 2, 3), np.eye(3))), *moving))
    light = kd.load_robot(urdf(link('base'), *moving))
    assert_robots_agree(heavy, light, rng)
    np.testing.assert_array_equal(heavy.center_of_mass([0.3]), light.center_of_mass([0.3]))


TWO_ARMS = (
    link('torso', inertial(20.0, (0, 0, 0.3), np.eye(3))),
    link('left upper', BALL),
    link('left lower', BOB),
    link('left hand'),
    link('right upper', BALL),
    link('right lower', BOB),
    link('right hand'),
    joint('left_a', 'revolute', 'torso', 'left upper', xyz=(0, 0.3, 0), axis=(1, 0, 0)),
    joint('left_b', 'continuous', 'left upper', 'left lower', xyz=(0.1, 0, -0.3), axis=(0, 1, 0)),
    joint('left_grip', 'fixed', 'left lower', 'left hand', xyz=(0, 0, -0.4), rpy=(0.2, 0.1, 0)),
    joint('right_a', 'revolute', 'torso', 'right upper', xyz=(0, -0.3, 0), axis=(1, 0, 0)),
    joint('right_b', 'prismatic', 'right upper', 'right lower', xyz=(0.1, 0, -0.3), axis=(0, 1, 0)),
    joint('right_grip', 'fixed', 'right lower', 'right hand', xyz=(0, 0, -0.4)),
)


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


@pytest.mark.parametrize('reference', ['world', 'local', 'right lower', 'torso'])
def test_jacobian_turns_into_the_axes_of_its_reference(rng, reference):
    robot = kd.load_robot(urdf(*TWO_ARMS))
    q = rng.uniform(-1, 1, robot.nv)
    axes = {'world': np.eye(3), 'local': robot.frame_pose(q, 'left hand')[:3, :3]}
    rotation = axes[reference] if reference in axes else robot.frame_pose(q, reference)[:3, :3]
    expected = np.kron(np.eye(2), rotation.T) @ jacobian_of_pose(robot, q, 'left hand')
    np.testing.assert_allclose(robot.jacobian(q, 'left hand', reference), expected, **SLOPE)


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


def test_pose_of_a_rotation_given_as_quaternion_is_never_silently_dropped():
    text = urdf(*PENDULUM, joint('swing', 'revolute', 'base', 'rod'))
    text = text.replace('rpy="0.0 0.0 0.0"/><axis', 'quat_xyzw="1 0 0 0"/><axis')
    try:
        robot = kd.load_robot(text)
    except kd.KrangError:
        return
    np.testing.assert_allclose(robot.frame_pose([0.0], 'rod')[:3, :3], np.diag([1, -1, -1]), atol=1e-9)


GRIPPER = (
    link('palm', BALL),
    link('finger', BOB),
    link('thumb', BALL),
    link('tip', BOB),
    link('rack', BALL),
    joint('lead', 'revolute', 'palm', 'finger', xyz=(0.1, 0, 0), axis=(0, 1, 0)),
)
FOLLOWERS = {
    'thumb': ('continuous', 'palm', 'thumb', 'lead', -0.7, 0.3),
    'tip': ('revolute', 'thumb', 'tip', 'thumb', 1.5, -0.2),
    'rack': ('prismatic', 'tip', 'rack', 'tip', -0.4, 0.1),
}
FOLDED = {
    'thumb': ('lead', -0.7, 0.3),
    'tip': ('lead', 1.5 * -0.7, 1.5 * 0.3 - 0.2),
    'rack': ('lead', -0.4 * 1.5 * -0.7, -0.4 * (1.5 * 0.3 - 0.2) + 0.1),
}


def gripper(reverse=False, **content):
    followers = [
        joint(
            f'{name}_joint',
            kind,
            parent,
            child,
            mimic(leader if leader == 'lead' else f'{leader}_joint', multiplier, offset),
            content.get(name, ''),
            xyz=(0, 0.1, -0.3),
            axis=(0, 1, 0),
        )
        for name, (kind, parent, child, leader, multiplier, offset) in FOLLOWERS.items()
    ]
    elements = [*GRIPPER, *followers]
    return urdf(*(reversed(elements) if reverse else elements))


@pytest.mark.parametrize('reverse', [False, True], ids=['leader first', 'followers first'])
def test_mimic_of_a_mimic_folds_into_its_leader(rng, reverse):
    text = gripper(reverse)
    robot = kd.load_robot(text)
    assert robot.joint_names == ('lead',)
    assert_same_physics(
        robot, Bare(text, robot, {f'{name}_joint': fold for name, fold in FOLDED.items()}), rng
    )


def test_offset_of_a_mimic_shows_in_the_pose():
    text = urdf(
        link('base'),
        link('a', BOB),
        link('b', BOB),
        joint('lead', 'revolute', 'base', 'a'),
        joint('follow', 'prismatic', 'base', 'b', mimic('lead', -2.0, 0.5)),
    )
    np.testing.assert_allclose(kd.load_robot(text).frame_pose([0.1], 'b')[2, 3], 0.3, **EXACT)


def test_jacobian_of_a_follower_passes_finite_differences(rng):
    robot = kd.load_robot(gripper())
    q = rng.uniform(-1, 1, 1)
    for frame in ('thumb', 'tip', 'rack'):
        np.testing.assert_allclose(robot.jacobian(q, frame), jacobian_of_pose(robot, q, frame), **SLOPE)


def test_friction_of_a_follower_is_felt_by_its_leader():
    robot = kd.load_robot(gripper(thumb=dynamics(2.0, 3.0), rack=dynamics(5.0, 7.0)))
    thumb, rack = FOLDED['thumb'][1], FOLDED['rack'][1]
    for v in (-1.3, 0.4):
        expected = (2 * thumb**2 + 5 * rack**2) * v + (3 * abs(thumb) + 7 * abs(rack)) * np.sign(v)
        np.testing.assert_allclose(robot.friction_torque([v]), [expected], **EXACT)


def test_damping_and_friction_of_the_urdf_oppose_motion():
    text = urdf(*PENDULUM, joint('swing', 'revolute', 'base', 'rod', dynamics(0.3, 0.2)))
    robot = kd.load_robot(text)
    np.testing.assert_allclose(robot.friction_torque([2.0]), [0.8], **EXACT)
    np.testing.assert_allclose(robot.friction_torque([-2.0]), [-0.8], **EXACT)
    np.testing.assert_allclose(robot.inverse_dynamics([0.0], [2.0], [0.0], friction=True), [0.8], **EXACT)
    assert kd.load_robot(text, friction={}).friction_torque([2.0]) == 0.0


def test_payload_reaches_the_leader_through_its_follower(rng):
    robot = kd.load_robot(gripper())
    loaded = robot.with_payload('rack', 2.0, (0.1, 0.2, 0.3), np.diag([0.1, 0.2, 0.25]))
    extra = (
        link('load', inertial(2.0, (0.1, 0.2, 0.3), np.diag([0.1, 0.2, 0.25]))),
        joint('weld', 'fixed', 'rack', 'load'),
    )
    welded = kd.load_robot(gripper().replace('</robot>', ''.join(extra) + '</robot>'))
    assert_robots_agree(loaded, welded, rng)


@pytest.mark.parametrize('frame', ['left hand', 'right hand', 'left upper', 'torso'])
def test_payload_is_an_extra_link_and_leaves_the_old_robot_alone(rng, frame):
    robot = kd.load_robot(urdf(*TWO_ARMS))
    q, v, a = rng.uniform(-1, 1, (3, robot.nv))
    before = robot.inverse_dynamics(q, v, a).tobytes(), robot.mass_matrix(q).tobytes()
    points = rng.normal(size=(4, 3)) * 0.1
    com, inertia = rng.normal(size=3), inertia_of((1.0, 0.5, 0.7, 0.8), points)
    loaded = robot.with_payload(frame, 3.0, com, inertia)
    extra = link('load', inertial(3.0, com, inertia)), joint('weld', 'fixed', frame, 'load')
    welded = kd.load_robot(urdf(*TWO_ARMS, *extra))
    assert_robots_agree(loaded, welded, rng)
    after = robot.inverse_dynamics(q, v, a).tobytes(), robot.mass_matrix(q).tobytes()
    assert after == before


def test_payload_of_no_mass_is_no_payload(rng):
    robot = kd.load_robot(urdf(*TWO_ARMS))
    q = rng.uniform(-1, 1, robot.nv)
    empty = robot.with_payload('left hand', 0.0, (0, 0, 0), NO_INERTIA)
    np.testing.assert_array_equal(empty.gravity_torque(q), robot.gravity_torque(q))


def test_gravity_of_a_tilted_base_is_that_of_the_tilted_robot(rng):
    tilt = (0.4, -0.3, 0.2)
    level = kd.load_robot(urdf(*TWO_ARMS))
    mounted = urdf(link('floor'), *TWO_ARMS, joint('mount', 'fixed', 'floor', 'torso', rpy=tilt))
    down = pin.rpy.rpyToMatrix(*tilt).T @ [0, 0, -GRAVITY]
    assert_robots_agree(kd.load_robot(urdf(*TWO_ARMS), gravity=down), kd.load_robot(mounted), rng)
    assert level.gravity_torque(level.home).any()


def test_visuals_with_absent_meshes_are_ignored(rng):
    shapes = (
        '<visual><geometry><mesh filename="package://nowhere/missing.dae" scale="1 1 1"/></geometry></visual>'
    )
    shapes += '<collision><geometry><mesh filename="file:///nowhere/missing.stl"/></geometry></collision>'
    hinge = joint('swing', 'revolute', 'base', 'rod', axis=(0, 1, 0))
    dressed = urdf(link('base', shapes), link('rod', shapes, BOB), hinge)
    assert_robots_agree(kd.load_robot(dressed), kd.load_robot(urdf(*PENDULUM, hinge)), rng)


@pytest.mark.parametrize(
    'head',
    [
        '<?xml version="1.0" ?>\n<!-- autogenerated by xacro from arm.xacro -->\n<robot name="foreign">',
        '<robot name="foreign" xmlns:xacro="http://www.ros.org/wiki/xacro">',
        '<robot name="foreign" xmlns:xacro="http://ros.org/wiki/xacro" xmlns:sensor="http://a.org/sensor">',
        '\n  <robot version="1.0" name="foreign"><gazebo reference="rod"><kp>1</kp></gazebo>',
        '<robot name="foreign"><transmission name="t"><joint name="swing"/></transmission>',
        '<robot name="foreign"><ros2_control name="s" type="system"><joint name="swing"/></ros2_control>',
        '<robot name="foreign"><material name="red"><color rgba="1 0 0 1"/></material>',
    ],
    ids=['declaration', 'namespace', 'two namespaces', 'gazebo', 'transmission', 'ros2_control', 'material'],
)
def test_what_other_tools_add_is_ignored(head):
    hinge = joint('swing', 'revolute', 'base', 'rod', axis=(0, 1, 0))
    robot = kd.load_robot(urdf(*PENDULUM, hinge, head=head))
    assert robot.name == 'foreign'
    assert robot.joint_names == ('swing',)


@pytest.mark.parametrize('encoding', ['utf-8', 'utf-8-sig', 'latin-1', 'utf-16'])
def test_urdf_file_is_read_in_the_encoding_it_declares(tmp_path, encoding):
    head = f'<?xml version="1.0" encoding="{encoding.removesuffix("-sig")}"?><robot name="bras_articulé">'
    path = tmp_path / 'arm.urdf'
    hinge = joint('swing', 'revolute', 'base', 'rod')
    path.write_bytes(urdf(*PENDULUM, hinge, head=head).encode(encoding))
    assert kd.load_robot(path).name == 'bras_articulé'


@pytest.mark.parametrize('suffix', ['urdf', 'xml', 'urdf.xml'])
@pytest.mark.parametrize('kind', [str, lambda path: path], ids=['text', 'Path'])
def test_path_of_a_urdf_equals_its_text(tmp_path, suffix, kind, rng):
    path = tmp_path / f'arm.{suffix}'
    path.write_text(urdf(*TWO_ARMS))
    assert_robots_agree(kd.load_robot(kind(path)), kd.load_robot(urdf(*TWO_ARMS)), rng)


SPELLINGS = {
    'padded': lambda value: f' {value} ',
    'trailing space': lambda value: f'{value} ',
    'trailing line': lambda value: f'{value}\n',
    'tab': lambda value: f'\t{value}',
    'plus': lambda value: value if value.startswith('-') else f'+{value}',
    'exponent': lambda value: f'{value}E+0',
    'underscore': lambda value: f'0_{value}',
    'tiny': lambda value: '1e-400',
    'subnormal': lambda value: '1e-310',
}
SPELT = urdf(
    link('base'),
    link('a', inertial(2.0, (0.1, 0.2, 0.3), [[0.1, 0.01, 0.02], [0.01, 0.1, 0.03], [0.02, 0.03, 0.1]])),
    link('b', BALL),
    joint('lead', 'revolute', 'base', 'a', dynamics(0.5, 0.25), axis=(0, 1, 0)),
    joint('follow', 'revolute', 'a', 'b', mimic('lead', 2.0, 0.5), axis=(0, 1, 0)),
)
NUMBERS = ['value', 'ixx', 'ixy', 'damping', 'friction', 'multiplier', 'offset', 'upper', 'effort']


@pytest.mark.parametrize('spelling', SPELLINGS)
@pytest.mark.parametrize('attribute', NUMBERS)
def test_number_is_read_as_it_is_written_or_refused(attribute, spelling):
    """Pinocchio's reader drops an inertial whose numbers it cannot read, with a line on stderr."""
    value = re.search(f' {attribute}="([^"]*)"', SPELT)[1]
    text = SPELLINGS[spelling](value)
    spelt = SPELT.replace(f' {attribute}="{value}"', f' {attribute}="{text}"', 1)
    plain = SPELT.replace(f' {attribute}="{value}"', f' {attribute}="{float(text)!r}"', 1)
    try:
        robot = kd.load_robot(spelt)
    except kd.KrangError:
        return
    truth = kd.load_robot(plain)
    np.testing.assert_allclose(robot.mass_matrix([0.3]), truth.mass_matrix([0.3]), **EXACT)
    np.testing.assert_allclose(robot.gravity_torque([0.3]), truth.gravity_torque([0.3]), **EXACT)
    np.testing.assert_allclose(robot.friction_torque([0.3]), truth.friction_torque([0.3]), **EXACT)


@pytest.mark.parametrize('gap', ['  ', '\n', '\t', ' \n '], ids=repr)
def test_gaps_within_a_vector_do_not_matter(rng, gap):
    wide = re.sub(
        '(xyz|rpy)="([^"]*)"', lambda found: f'{found[1]}="{gap}{found[2].replace(" ", gap)}{gap}"', SPELT
    )
    assert wide != SPELT
    assert_robots_agree(kd.load_robot(wide), kd.load_robot(SPELT), rng)


def test_home_of_a_plain_urdf_lies_within_its_limits():
    hinge = joint('swing', 'revolute', 'base', 'rod').replace('lower="-10"', 'lower="2"')
    assert 2.0 <= kd.load_robot(urdf(*PENDULUM, hinge)).home[0] <= 10.0


def test_linearization_passes_finite_differences(rng):
    robot = kd.load_robot(
        urdf(*TWO_ARMS).replace('axis xyz="1.0 0.0 0.0"/>', 'axis xyz="1 0 0"/>' + dynamics(0.3, 0.2))
    )
    assert_linearization_is_the_slope(robot, *rng.uniform(0.2, 1, (3, robot.nv)))


def assert_linearization_is_the_slope(robot, q, v, u):
    nv = robot.nv

    def rate(x, u):
        return np.concatenate([x[nv:], robot.forward_dynamics(x[:nv], x[nv:], u, friction=True)])

    x = np.concatenate([q, v])
    a, b = robot.linearize(q, v, u)
    by_state = [slope(lambda at: rate(at, u), x, direction) for direction in np.eye(2 * nv)]
    by_motor = [slope(lambda at: rate(x, at), u, direction) for direction in np.eye(len(u))]
    np.testing.assert_allclose(a, np.transpose(by_state), rtol=1e-5, atol=1e-5 * (1 + np.abs(a).max()))
    np.testing.assert_allclose(b, np.transpose(by_motor), rtol=1e-5, atol=1e-5 * (1 + np.abs(b).max()))


# Rolling: bases that roll on the ground z = 0, as a user would declare them.

CHASSIS = inertial(10.0, (0.1, 0.02, 0.2), np.diag([0.3, 0.4, 0.5]))
WHEEL = inertial(1.0, (0, 0, 0), np.diag([0.01, 0.02, 0.01]))
FLAT_WHEEL = inertial(1.0, (0, 0, 0), np.diag([0.01, 0.01, 0.02]))


def planar_base(height):
    return (
        link('ground'),
        link('slide_x'),
        link('slide_y'),
        joint('x', 'prismatic', 'ground', 'slide_x', xyz=(0, 0, height), axis=(1, 0, 0)),
        joint('y', 'prismatic', 'slide_x', 'slide_y', axis=(0, 1, 0)),
    )


def balancing_base():
    """Two wheels of one axle on a body that pitches; one wheel's axle is its link's z, at length 2."""
    text = urdf(
        *planar_base(0.2),
        link('turn'),
        link('body', CHASSIS),
        link('left', WHEEL),
        link('right', FLAT_WHEEL),
        joint('heading', 'continuous', 'slide_y', 'turn'),
        joint('pitch', 'continuous', 'turn', 'body', axis=(0, 1, 0)),
        joint('left_spin', 'continuous', 'body', 'left', xyz=(0, 0.3, 0), axis=(0, 1, 0)),
        joint('right_spin', 'continuous', 'body', 'right', xyz=(0, -0.3, 0), rpy=(-np.pi / 2, 0, 0)),
    )
    wheels = [('left', 0.2, (0, 1, 0)), ('right', 0.2, (0, 0, 2))]
    return text, wheels, ['left_spin', 'right_spin'], 3


def tricycle():
    text = urdf(
        *planar_base(0.3),
        link('frame', CHASSIS),
        link('left', WHEEL),
        link('right', WHEEL),
        link('fork', BALL),
        link('front', WHEEL),
        joint('heading', 'continuous', 'slide_y', 'frame'),
        joint('left_spin', 'continuous', 'frame', 'left', xyz=(0, 0.4, 0), axis=(0, 1, 0)),
        joint('right_spin', 'continuous', 'frame', 'right', xyz=(0, -0.4, 0), axis=(0, 1, 0)),
        joint('steer', 'revolute', 'frame', 'fork', xyz=(0.9, 0, -0.15)),
        joint('front_spin', 'continuous', 'fork', 'front', xyz=(-0.05, 0, 0), axis=(0, 1, 0)),
    )
    wheels = [('left', 0.3, (0, 1, 0)), ('right', 0.3, (0, 1, 0)), ('front', 0.15, (0, 1, 0))]
    return text, wheels, ['steer', 'front_spin'], 5


def leaning_wheel():
    """A unicycle's wheel that leans about the line through its contact."""
    text = urdf(
        *planar_base(0.0),
        link('turn'),
        link('lean'),
        link('rim', inertial(2.0, (0, 0, 0), np.diag([0.05, 0.1, 0.05]))),
        joint('heading', 'continuous', 'slide_y', 'turn'),
        joint('leaning', 'revolute', 'turn', 'lean', axis=(1, 0, 0)),
        joint('spin', 'continuous', 'lean', 'rim', xyz=(0, 0, 0.25), axis=(0, 1, 0)),
    )
    return text, [('rim', 0.25, (0, 1, 0))], ['spin'], 2


def car():
    """Two pairs of wheels on two axles, which cannot turn: six conditions on seven joints."""
    text = urdf(
        *planar_base(0.2),
        link('frame', CHASSIS),
        *(link(name, WHEEL) for name in 'abcd'),
        joint('heading', 'continuous', 'slide_y', 'frame'),
        *(
            joint(f'{name}_spin', 'continuous', 'frame', name, xyz=xyz, axis=(0, 1, 0))
            for name, xyz in zip('abcd', [(0, 0.3, 0), (0, -0.3, 0), (1, 0.3, 0), (1, -0.3, 0)], strict=True)
        ),
    )
    return text, [(name, 0.2, (0, 1, 0)) for name in 'abcd'], ['a_spin'], 6


ROLLING = {
    'balancing base': balancing_base(),
    'tricycle': tricycle(),
    'leaning wheel': leaning_wheel(),
    'car': car(),
}


def car_with_steered_wheels():
    """Two front wheels that steer by themselves: parallel, they share their sideways condition."""
    front = [
        part
        for name, y in (('c', 0.3), ('d', -0.3))
        for part in (
            link(f'{name}_fork', BALL),
            link(name, WHEEL),
            joint(f'{name}_steer', 'revolute', 'frame', f'{name}_fork', xyz=(1, y, 0)),
            joint(f'{name}_spin', 'continuous', f'{name}_fork', name, axis=(0, 1, 0)),
        )
    ]
    text = urdf(
        *planar_base(0.2),
        link('frame', CHASSIS),
        link('a', WHEEL),
        link('b', WHEEL),
        joint('heading', 'continuous', 'slide_y', 'frame'),
        joint('a_spin', 'continuous', 'frame', 'a', xyz=(0, 0.3, 0), axis=(0, 1, 0)),
        joint('b_spin', 'continuous', 'frame', 'b', xyz=(0, -0.3, 0), axis=(0, 1, 0)),
        *front,
    )
    return text, [(name, 0.2, (0, 1, 0)) for name in 'abcd'], ['a_spin'], 7


class Rolling:
    """A rolling robot from a user's YAML, with the velocity of its contact points by geometry alone."""

    def __init__(self, folder, text, wheels, driven, rows):
        (folder / 'robot.urdf').write_text(text)
        names = kd.load_robot(text).joint_names
        lines = ['name: rolling', 'urdf: robot.urdf', 'gravity: [0.0, 0.0, -9.81]', 'command_unit: torque']
        lines += ['end_effectors: []', 'stop: {policy: zero, time: 2.0, blind_time: 0.5}', 'joints:']
        lines += [f'  {name}: {{driven: {str(name in driven).lower()}}}' for name in names]
        lines += ['home: {' + ', '.join(f'{name}: 0.0' for name in names) + '}', 'actuators:']
        lines += [f'  - {{name: {name}, joint: {name}}}' for name in driven] + ['rolling:']
        lines += [f'  - {{link: {name}, radius: {r}, axle: {list(axle)}}}' for name, r, axle in wheels]
        (folder / 'robot.yaml').write_text('\n'.join(lines) + '\n')
        self.robot = kd.load_robot(folder / 'robot.yaml')
        self.wheels, self.rows = wheels, rows

    def contact_jacobian(self, q):
        """Velocity of the material point of each wheel that touches the ground, by central differences."""
        blocks = []
        for name, radius, axle in self.wheels:
            rotation = self.robot.frame_pose(q, name)[:3, :3]
            axle_in_world = rotation @ axle / np.linalg.norm(axle)
            down = axle_in_world * axle_in_world[2] - [0, 0, 1]
            point = [*(rotation.T @ down * radius / np.linalg.norm(down)), 1.0]

            def place(at, name=name, point=point):
                return (self.robot.frame_pose(at, name) @ point)[:3]

            blocks.append(np.transpose([slope(place, q, direction) for direction in np.eye(self.robot.nv)]))
        return np.vstack(blocks)

    def state(self, rng):
        q = rng.uniform(-1, 1, self.robot.nv)
        return q, null_space(self.contact_jacobian(q), rcond=RANK) @ rng.normal(
            size=self.robot.nv - self.rows
        )


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
