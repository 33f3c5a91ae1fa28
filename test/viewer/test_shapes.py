"""Shapes of a URDF: size, place and colour."""

import numpy as np

import krang_dynamics as kd
from krang_dynamics.viewer.shapes import circle, shapes

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


def test_boxes_cylinders_and_spheres_have_their_size_and_place():
    box, cylinder, sphere = shapes(kd.load_robot(SEEN))
    np.testing.assert_allclose(box.corners.min(axis=0), [0, -2, -0.5], atol=1e-12)
    np.testing.assert_allclose(box.corners.max(axis=0), [2, 2, 0.5], atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(cylinder.corners[:, :2], axis=1), 2)
    assert set(cylinder.corners[:, 2]) == {-1.5, 1.5}
    np.testing.assert_allclose(np.linalg.norm(sphere.corners, axis=1), 0.5)


def test_colours_come_from_the_visual_or_from_the_robot_s_materials():
    box, cylinder, sphere = shapes(kd.load_robot(SEEN))
    assert (box.colour, cylinder.colour) == ((0, 1, 0), (1, 0, 0))
    assert len(sphere.colour) == 3


def test_a_circle_lies_across_its_axis():
    axis = np.array([1.0, 2.0, -2.0])
    rim = circle(0.3, axis)
    np.testing.assert_allclose(rim @ axis, 0, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(rim, axis=1), 0.3)
    np.testing.assert_allclose(rim[0], rim[-1], atol=1e-12)
