"""RigidTorques against Pinocchio, state by state."""

import numpy as np
import pinocchio as pin
import pytest

import krang_dynamics as kd
from krang_dynamics.bags.validation.rigid_torques import RigidTorques

TILTED = (1.0, -2.0, -9.5)
# A slide on a turning joint, a fork, and axes in any direction.
TREE = """
<robot name="tree">
  <link name="base"/>
  {links}
</robot>
"""
LINK = """
  <link name="{name}"><inertial><origin xyz="{com}"/><mass value="{mass}"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{name}"/>
    <origin xyz="{place}" rpy="{rpy}"/><axis xyz="{axis}"/>
    <limit lower="-3" upper="3" effort="100" velocity="10"/></joint>
"""


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.fixture
def tree(rng):

    def numbers(low=-1.0):
        return ' '.join(f'{x:.4f}' for x in rng.uniform(low, 1.0, 3))

    kinds = [('a', 'base', 'revolute'), ('b', 'a', 'prismatic'), ('c', 'b', 'revolute')]
    kinds += [('d', 'b', 'prismatic'), ('e', 'd', 'continuous'), ('f', 'base', 'prismatic')]
    links = ''.join(
        LINK.format(
            name=name,
            parent=parent,
            kind=kind,
            mass=rng.uniform(0.5, 2.0),
            com=numbers(),
            place=numbers(),
            rpy=numbers(),
            axis=numbers(0.1),
        )
        for name, parent, kind in kinds
    )
    return kd.load_robot(TREE.format(links=links), gravity=TILTED)


def states(rng, count, model, order='C'):
    return [np.asarray(rng.uniform(-4.0, 4.0, (count, model.nv)), order=order) for _ in range(3)]


def assert_as_pinocchio(model, q, v, a):
    data = model.createData()
    Q = np.array([pin.computeGeneralizedGravity(model, data, x) for x in q]).reshape(q.shape)
    rnea = np.array([pin.rnea(model, data, *x) for x in zip(q, v, a, strict=True)]).reshape(q.shape)
    gravity, rigid = RigidTorques(model)(q, v, a)
    for torque, expected in ((gravity, Q), (rigid, rnea - model.armature * a)):
        largest = np.abs(expected).max(initial=1.0)
        assert torque == pytest.approx(expected, rel=0, abs=1e-12 * largest)


@pytest.mark.parametrize('name', kd.robots())
def test_shipped_robots_in_random_states(name, rng):
    model = kd.load_robot(name).model
    assert_as_pinocchio(model, *states(rng, 20, model))


@pytest.mark.parametrize('order', ['C', 'F'])
def test_slides_forks_and_skew_axes_in_tilted_gravity(tree, rng, order):
    assert_as_pinocchio(tree.model, *states(rng, 50, tree.model, order))


@pytest.mark.parametrize('count', [0, 1, 2, 3, 9])
def test_any_number_of_states(tree, rng, count):
    assert_as_pinocchio(tree.model, *states(rng, count, tree.model))


def test_a_payload_counts(rng):
    inertia = np.diag([0.01, 0.02, 0.03])
    robot = kd.load_robot('krang').with_payload('left_hand', 2.0, (0.1, 0.2, 0.3), inertia)
    assert_as_pinocchio(robot.model, *states(rng, 5, robot.model))


def test_a_number_that_is_not_finite_stays_in_its_state(rng):
    model = kd.load_robot('planar_2r').model
    q, v, a = states(rng, 4, model)
    v[1, 0] = np.nan
    _, rigid = RigidTorques(model)(q, v, a)
    assert np.isfinite(rigid).all(axis=1).tolist() == [True, False, True, True]
