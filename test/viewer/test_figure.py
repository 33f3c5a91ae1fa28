"""The projection: true lengths, the whole motion within the limits, the ground at the wheels."""

import numpy as np
import pytest
from simulation.driving import one_joint

import krang_dynamics as kd
from krang_dynamics.viewer.figure import Figure, circle, hull

SEEN = """<robot name="seen"><material name="green"><color rgba="0 1 0 0.5"/></material>
  <link name="stand"/>
  <link name="body"><inertial><mass value="1"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><origin xyz="1 0 0" rpy="0 0 1.5707963267948966"/><geometry><box size="4 2 1"/></geometry>
      <material name="green"/></visual>
    <visual><geometry><cylinder radius="2" length="3"/></geometry>
      <material name="own"><color rgba="1 0 0 1"/></material></visual>
    <visual><geometry><sphere radius="0.5"/></geometry></visual>
    <visual><geometry><mesh filename="x.stl"/></geometry></visual></link>
  <joint name="turn" type="continuous"><parent link="stand"/><child link="body"/></joint></robot>"""


def motion(robot):
    waves = np.sin(np.outer(np.linspace(0, 6, 100), np.linspace(1, 2, robot.nv)))
    return robot.home + 0.4 * waves


@pytest.fixture(params=kd.robots())
def robot(request):
    return kd.load_robot(request.param)


def test_everything_that_moves_stays_in_the_picture(robot):
    path = motion(robot)
    figure = Figure(robot, path)
    for q in path[::7]:
        points = np.vstack([*(outline for outline, _ in figure.polygons(q)), *figure.sticks(q)])
        assert (points > figure.low).all()
        assert (points < figure.high).all()


def test_right_up_and_the_line_of_sight_are_orthonormal(robot):
    view = Figure(robot, motion(robot)).view
    np.testing.assert_allclose(view @ view.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(view) == pytest.approx(1)
    assert view[1, 2] > 0.5  # up is up


def test_a_planar_robot_is_drawn_without_foreshortening():
    robot = kd.load_robot('planar_2r')
    figure = Figure(robot, motion(robot))
    for q in motion(robot)[::10]:
        tip = robot.frame_pose(q, 'tip')[:3, 3]
        np.testing.assert_allclose(figure.origins(q)['tip'], tip[[0, 2]], atol=1e-9)


def test_otbot_s_wheels_are_circles_with_a_spoke_that_turns_with_them():
    robot = kd.load_robot('otbot')
    figure = Figure(robot, motion(robot))
    q = robot.home
    wheel = figure.sticks(q)[-1]
    turned = q.copy()
    turned[[3, 4]] += 0.5
    across = np.linalg.norm(wheel[:, None] - wheel[None], axis=2).max()
    assert across == pytest.approx(0.2, rel=0.02)  # a circle seen obliquely keeps its diameter
    assert np.abs(figure.sticks(turned)[-1] - wheel).max() > 0.02


def test_the_ground_is_where_wheels_touch_it_and_fills_the_picture():
    robot = kd.load_robot('otbot')
    figure = Figure(robot, motion(robot))
    assert figure.ground == pytest.approx(0, abs=1e-9)
    points = np.vstack(figure.floor())
    assert (points.min(axis=0) < figure.low).all()
    assert (points.max(axis=0) > figure.high).all()


def test_a_wider_picture_shows_more_around_the_same_middle():
    robot = kd.load_robot('planar_2r')
    figure = Figure(robot, motion(robot))
    low, high = figure.low, figure.high
    figure.widen(3.0)
    size = figure.high - figure.low
    assert size[0] / size[1] == pytest.approx(3)
    assert (figure.low <= low + 1e-12).all()
    assert (figure.high >= high - 1e-12).all()
    np.testing.assert_allclose(figure.low + figure.high, low + high)


def test_near_shapes_cover_far_ones():
    sides = {'1 0 0': (-1, 0.8), '0 0 1': (1, -0.8)}  # red lies at -x +y, blue at +x -y
    boxes = ''.join(
        f'<visual><origin xyz="{x} {y} 0"/><geometry><box size="1 1 1"/></geometry>'
        f'<material name="{colour}"><color rgba="{colour} 1"/></material></visual>'
        for colour, (x, y) in sides.items()
    )
    text = one_joint().replace('<link name="rim">', f'<link name="rim">{boxes}')
    figure = Figure(kd.load_robot(text), np.zeros((1, 1)))
    nearest = max(sides, key=lambda colour: figure.view[2, :2] @ sides[colour])
    colours = [colour for _, colour in figure.polygons(np.zeros(1))]
    assert colours[-1] == tuple(map(float, nearest.split()))
    mirrored = figure.polygons(np.array([np.pi]))  # half a turn later the other one is in front
    assert mirrored[-1][1] == colours[0]


def test_hulls_of_boxes_cylinders_and_spheres_have_their_size_and_place():
    *solid, mesh = kd.load_robot(SEEN).urdf.links['body'].visuals
    assert mesh.kind == 'mesh'
    box, cylinder, sphere = map(hull, solid)
    np.testing.assert_allclose(box.min(axis=0), [0, -2, -0.5], atol=1e-12)
    np.testing.assert_allclose(box.max(axis=0), [2, 2, 0.5], atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(cylinder[:, :2], axis=1), 2)
    assert set(cylinder[:, 2]) == {-1.5, 1.5}
    np.testing.assert_allclose(np.linalg.norm(sphere, axis=1), 0.5)


def test_colours_come_from_the_visual_or_from_the_robot_s_materials():
    colours = [shape.colour for shape in kd.load_robot(SEEN).urdf.links['body'].visuals]
    assert colours == [(0, 1, 0), (1, 0, 0), None, None]


def test_a_circle_lies_across_its_axis():
    axis = np.array([1.0, 2.0, -2.0])
    rim = circle(0.3, axis)
    np.testing.assert_allclose(rim @ axis, 0, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(rim, axis=1), 0.3)
    np.testing.assert_allclose(rim[0], rim[-1], atol=1e-12)
