"""Distance between links, against closed forms on shapes of known size."""

import numpy as np
import pytest
from scipy.optimize import least_squares

import krang_dynamics as kd
from krang_dynamics.errors import KrangError
from krang_dynamics.robot.self_distance import SelfDistance


def slider(shape, other='<sphere radius="0.1"/>'):
    """Two bodies on slides along x that start 1 m apart, each on its own carriage."""

    def link(name, geometry):
        inertia = '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
        inertial = f'<inertial><mass value="1"/>{inertia}</inertial>'
        return f'<link name="{name}">{inertial}<collision><geometry>{geometry}</geometry></collision></link>'

    def slide(name, child, x):
        limit = '<limit lower="-2" upper="2" effort="1" velocity="1"/><axis xyz="1 0 0"/>'
        return (
            f'<joint name="{name}" type="prismatic"><parent link="world"/><child link="{child}"/>'
            f'<origin xyz="{x} 0 0"/>{limit}</joint>'
        )

    links = '<link name="world"/>' + link('a', shape) + link('b', other)
    return f'<robot name="slides">{links}{slide("one", "a", 0)}{slide("two", "b", 1)}</robot>'


def cube_mesh(path, size):
    """An STL file of a cube about the origin."""
    corners = size / 2 * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    lines = ['solid cube']
    for a, b, c, d in quads:
        for triangle in ((a, b, c), (a, c, d)):
            vertices = ''.join('vertex {} {} {}\n'.format(*corners[i]) for i in triangle)
            lines.append(f'facet normal 0 0 0\nouter loop\n{vertices}endloop\nendfacet')
    path.write_text('\n'.join([*lines, 'endsolid cube']))


@pytest.mark.parametrize(
    ('shape', 'half'),
    [
        ('<sphere radius="0.2"/>', 0.2),
        ('<box size="0.3 1 1"/>', 0.15),
        ('<cylinder radius="0.25" length="1"/>', 0.25),
    ],
)
def test_primitives_have_their_distance_and_overlap(shape, half):
    distance = SelfDistance(kd.load_robot(slider(shape)))
    assert distance.minimum(np.zeros(2)) == (pytest.approx(0.9 - half, abs=1e-6), ('a', 'b'))
    assert distance.minimum(np.array([0.95 - half, 0]))[0] == pytest.approx(-0.05, abs=1e-5)
    path = np.column_stack([np.linspace(0, 0.5, 6), np.zeros(6)])
    assert distance.along(path)[0] == 5


def test_a_mesh_is_found_beside_its_urdf(tmp_path):
    (tmp_path / 'my_robot' / 'urdf').mkdir(parents=True)
    cube_mesh(tmp_path / 'my_robot' / 'cube.stl', 0.4)
    urdf = tmp_path / 'my_robot' / 'urdf' / 'robot.urdf'
    for name in ('package://my_robot/cube.stl', '../cube.stl', f'file://{tmp_path}/my_robot/cube.stl'):
        urdf.write_text(slider(f'<mesh filename="{name}"/>'))
        assert SelfDistance(kd.load_robot(urdf)).minimum(np.zeros(2))[0] == pytest.approx(0.7, abs=1e-6)
    urdf.write_text(slider('<mesh filename="package://my_robot/none.stl"/>'))
    with pytest.raises(KrangError, match=r'none\.stl is not found'):
        SelfDistance(kd.load_robot(urdf))


@pytest.mark.parametrize('name', kd.robots())
def test_shipped_robots_are_clear_of_themselves_at_home(name):
    robot = kd.load_robot(name)
    distance = SelfDistance(robot)
    assert distance.minimum(robot.home)[0] > 0
    assert not set(distance.pairs) & set(distance.excluded)


def test_krang_with_its_hands_in_one_place_overlaps_there():
    krang = kd.load_robot('krang')

    def gap(q):
        return (krang.frame_pose(q, 'left_hand') - krang.frame_pose(q, 'right_hand'))[:3, 3]

    q = least_squares(gap, krang.home).x
    assert np.linalg.norm(gap(q)) < 1e-6
    assert SelfDistance(krang).minimum(q)[0] < -0.02
