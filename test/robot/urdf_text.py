"""URDFs written as text, and comparisons with bare Pinocchio and finite differences."""

import numpy as np
import pinocchio as pin

EXACT = {'rtol': 1e-9, 'atol': 1e-10}
SLOPE = {'rtol': 1e-9, 'atol': 1e-9}
STEP = 1e-4  # [rad or m], of central differences
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
    """df/dq along a direction, by central differences of fourth order."""
    near, far = (function(q + k * STEP * direction) - function(q - k * STEP * direction) for k in (1, 2))
    return (8 * near - far) / (12 * STEP)


def jacobian_of_pose(robot, q, frame):
    """World-aligned, by central differences of the pose only."""
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


MASS, LENGTH, GRAVITY = 2.0, 0.5, 9.81


def pendulum(kind='revolute', *content, body=BOB, head='<robot name="foreign">', **place):
    """A rod on one joint, about y unless `place` names another axis."""
    swing = joint('swing', kind, 'base', 'rod', *content, **{'axis': (0, 1, 0), **place})
    return urdf(link('base'), link('rod', body), swing, head=head)


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


def assert_linearization_is_the_slope(robot, q, v, u):
    """u is in the unit of the drivers."""
    n, E = robot.nv, robot.actuation_matrix()

    def rate(x, u):
        tau = E.T @ robot.motors.torque(E @ u, x[n:])
        return np.concatenate([x[n:], robot.forward_dynamics(x[:n], x[n:], tau, friction=True)])

    x = np.concatenate([q, v])
    by_state = [slope(lambda at: rate(at, u), x, direction) for direction in np.eye(2 * n)]
    by_motor = [slope(lambda at: rate(x, at), u, direction) for direction in np.eye(len(u))]
    for found, columns in zip(robot.linearize(q, v, u), (by_state, by_motor), strict=True):
        np.testing.assert_allclose(found, np.transpose(columns), atol=2e-7 * max(1, np.abs(found).max()))
