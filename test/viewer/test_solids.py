"""Triangles of shapes and of mesh files, in the link's axes."""

import numpy as np
import pytest
import trimesh

from krang_dynamics.robot.library import load_robot, robots
from krang_dynamics.viewer.solids import solids

BODY = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
ARM = """<robot name="arm"><link name="base"/><link name="tip">{body}{visual}</link>
<joint name="j" type="continuous"><parent link="base"/><child link="tip"/><origin xyz="0 0 1"/></joint>
</robot>"""


def arm(visual, folder=None):
    text = ARM.format(body=BODY, visual=visual)
    if folder is None:
        return load_robot(text)
    (folder / 'urdf').mkdir()
    (folder / 'urdf' / 'arm.urdf').write_text(text)
    return load_robot(folder / 'urdf' / 'arm.urdf')


def extent(solid):
    return solid.vertices.min(axis=0), solid.vertices.max(axis=0)


@pytest.mark.parametrize('name', robots())
def test_every_shipped_robot_has_solids_and_no_problems(name):
    found, problems = solids(load_robot(name))
    assert len(found) > 2
    assert problems == []


@pytest.mark.parametrize(
    ('geometry', 'half'),
    [
        ('<box size="0.2 0.4 0.6"/>', (0.1, 0.2, 0.3)),
        ('<cylinder radius="0.1" length="0.6"/>', (0.1, 0.1, 0.3)),
        ('<sphere radius="0.1"/>', (0.1, 0.1, 0.1)),
    ],
)
def test_shapes_have_their_size_and_place(geometry, half):
    visual = f'<visual><origin xyz="1 2 3"/><geometry>{geometry}</geometry></visual>'
    ((solid,), _) = solids(arm(visual))
    low, high = extent(solid)
    np.testing.assert_allclose(low, np.subtract((1, 2, 3), half), atol=2e-3)
    np.testing.assert_allclose(high, np.add((1, 2, 3), half), atol=2e-3)


def test_a_mesh_of_a_package_is_found_above_the_urdf_scaled_and_coloured(tmp_path):
    package = tmp_path / 'my_arm'
    (package / 'meshes').mkdir(parents=True)
    trimesh.creation.box((1, 2, 3)).export(package / 'meshes' / 'tip.stl')
    visual = (
        '<visual><geometry><mesh filename="package://my_arm/meshes/tip.stl" scale="0.1 0.1 0.1"/></geometry>'
        '<material name="red"><color rgba="1 0 0 1"/></material></visual>'
    )
    ((solid,), problems) = solids(arm(visual, package))
    np.testing.assert_allclose(extent(solid)[1], (0.05, 0.1, 0.15), atol=1e-6)
    assert solid.colour == (255, 0, 0)
    assert problems == []


def test_a_package_of_ros_is_found_by_its_prefix(monkeypatch, tmp_path):
    file = tmp_path / 'share' / 'my_arm' / 'tip.stl'
    file.parent.mkdir(parents=True)
    file.touch()
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    assert arm('').urdf.mesh_file('package://my_arm/tip.stl') == file


def test_a_missing_or_damaged_file_is_a_problem_and_the_rest_is_shown(tmp_path):
    (tmp_path / 'bad.stl').write_bytes(b'solid nothing')
    visual = ''.join(
        f'<visual><geometry><mesh filename="{f}"/></geometry></visual>' for f in ('no.stl', 'no.x')
    )
    found, problems = solids(arm(visual, tmp_path))
    assert len(problems) == 2
    assert 'no.stl' in problems[0]
    assert {solid.link for solid in found} == {'base', 'tip'}  # balls and sticks


@pytest.mark.parametrize('shape', ['<box size="1 2"/>', '<sphere/>', '<capsule radius="1"/>', ''])
def test_a_shape_without_a_size_is_a_problem_and_the_robot_is_loaded(shape):
    found, (problem,) = solids(arm(f'<visual><geometry>{shape}</geometry></visual>'))
    assert problem.startswith('tip: ')
    assert {solid.link for solid in found} == {'base', 'tip'}
