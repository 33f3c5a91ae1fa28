"""Robots for the tests of Gazebo's files."""

from xml.etree import ElementTree

import numpy as np
from simulation.tractor import tractor

import krang_dynamics as kd
from krang_dynamics.simulation.gazebo.gazebo_files import (
    effort_joints,
)
from krang_dynamics.simulation.gazebo.gazebo_model import gazebo_urdf

# An arm whose root is not `world`, with elements of another simulator, a fixed flange and a payload.
ARM = """<robot name="arm">
  <link name="stand"/>
  <link name="upper"><inertial><origin xyz="0.1 0 0.02" rpy="0.3 0.1 0"/><mass value="2"/>
    <inertia ixx="0.02" ixy="0.001" ixz="0" iyy="0.03" iyz="0" izz="0.025"/></inertial></link>
  <link name="flange"><inertial><mass value="0.5"/>
    <inertia ixx="0.001" ixy="0" ixz="0" iyy="0.001" iyz="0" izz="0.001"/></inertial></link>
  <link name="tip"/>
  <joint name="lift" type="revolute"><parent link="stand"/><child link="upper"/>
    <origin xyz="0 0.1 0.4" rpy="0.2 0 0.5"/><axis xyz="0 0.6 0.8"/>
    <limit lower="-1" upper="2" effort="20" velocity="3"/><dynamics damping="0.7" friction="0.4"/></joint>
  <joint name="bolt" type="fixed"><parent link="upper"/><child link="flange"/>
    <origin xyz="0.3 0 0.1" rpy="0 0.4 0"/></joint>
  <joint name="end" type="fixed"><parent link="flange"/><child link="tip"/><origin xyz="0 0 0.1"/></joint>
  <ros2_control name="real" type="system"><hardware><plugin>vendor/Driver</plugin></hardware></ros2_control>
  <gazebo><plugin filename="libold.so" name="old"/></gazebo>
</robot>"""


def arm():
    return kd.load_robot(ARM).with_payload('flange', 1.5, (0.1, 0, 0.05), np.diag([0.01, 0.02, 0.015]))


MAKERS = {
    **{name: lambda name=name: kd.load_robot(name) for name in kd.robots()},
    'tractor': tractor,
    'arm': arm,
}


def urdf_of(robot, joints=None, **options):
    joints = effort_joints(robot, True) if joints is None else joints
    return ElementTree.fromstring(gazebo_urdf(robot, joints, 'controllers.yaml', **options))


def interfaces(document, kind):
    """Names by joint."""
    joints = document.find('ros2_control').iterfind('joint')
    return {joint.get('name'): [i.get('name') for i in joint.iterfind(kind)] for joint in joints}


def simulated(robot):
    """Joints that are joints in Gazebo: all but those of a base that rolls."""
    odom = robot.config.odom if robot.config.rolling else None
    planar = () if odom is None else (odom.x, odom.y, odom.heading)
    return [name for name in robot.joint_names if name not in planar]
