"""GravityTorques against Pinocchio, pose by pose."""

import numpy as np
import pinocchio as pin
import pytest

import krang_dynamics as kd
from krang_dynamics.bags.validation import gravity

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


def assert_as_pinocchio(model, q):
    data = model.createData()
    expected = np.array([pin.computeGeneralizedGravity(model, data, x) for x in q]).reshape(q.shape)
    largest = np.abs(expected).max(initial=1.0)
    assert gravity.GravityTorques(model)(q) == pytest.approx(expected, rel=0, abs=1e-12 * largest)


@pytest.mark.parametrize('name', kd.robots())
def test_shipped_robots_in_random_poses(name, rng):
    model = kd.load_robot(name).model
    assert_as_pinocchio(model, rng.uniform(-4.0, 4.0, (20, model.nq)))


@pytest.mark.parametrize('order', ['C', 'F'])
def test_slides_forks_and_skew_axes_in_tilted_gravity(tree, rng, order):
    assert_as_pinocchio(tree.model, np.asarray(rng.uniform(-3.0, 3.0, (50, tree.nv)), order=order))


@pytest.mark.parametrize('count', [0, 1, 4, 5, 9])
def test_any_number_of_poses(tree, rng, count, monkeypatch):
    monkeypatch.setattr(gravity, 'BLOCK', 4)
    assert_as_pinocchio(tree.model, rng.uniform(-3.0, 3.0, (count, tree.nv)))


def test_a_payload_counts(rng):
    robot = kd.load_robot('krang').with_payload('left_hand', 2.0, (0.1, 0.2, 0.3), np.eye(3) * 0.01)
    assert_as_pinocchio(robot.model, rng.uniform(-2.0, 2.0, (5, robot.nv)))
