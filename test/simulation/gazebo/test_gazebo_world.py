"""The world for Gazebo: gravity, step, and ground under the wheels."""

from xml.etree import ElementTree

import numpy as np
import pytest
from simulation.gazebo.robots import MAKERS, urdf_of
from simulation.tractor import tractor

import krang_dynamics as kd
from krang_dynamics.simulation.gazebo.gazebo_model import CASTER
from krang_dynamics.simulation.gazebo.gazebo_world import gazebo_world


def test_the_world_has_the_robot_s_gravity_and_a_step_of_a_millisecond():
    tilted = kd.load_robot('planar_2r', gravity=(0.5, -0.25, -9.7))
    world = ElementTree.fromstring(gazebo_world(tilted)).find('world')
    assert [float(word) for word in world.findtext('gravity').split()] == [0.5, -0.25, -9.7]
    assert float(world.findtext('physics/max_step_size')) == 0.001
    assert world.find('model') is None  # nothing that an arm on a fixed base could hit


@pytest.mark.parametrize('make', [MAKERS['otbot'], tractor], ids=['otbot', 'tractor'])
def test_wheels_and_caster_stand_on_the_ground(make):
    robot = make()
    document = urdf_of(robot)
    ground = ElementTree.fromstring(gazebo_world(robot)).findtext('world/model/pose')
    level = float(ground.split()[2])
    joint = document.find(f"joint[@name='{CASTER}_fixed']")
    place = np.array([float(word) for word in joint.find('origin').get('xyz').split()])
    carrier = robot.frame_pose(robot.home, joint.find('parent').get('link'))
    centres = {CASTER: carrier[:3, :3] @ place + carrier[:3, 3]}
    for wheel in robot.config.rolling:
        centres[wheel.link] = robot.frame_pose(robot.home, wheel.link)[:3, 3]
    for name, centre in centres.items():
        (sphere,) = document.iterfind(f"link[@name='{name}']/collision/geometry/sphere")
        assert centre[2] - float(sphere.get('radius')) == pytest.approx(level, abs=1e-12)
        grip = document.find(f"gazebo[@reference='{name}']")
        assert float(grip.findtext('mu1')) == float(grip.findtext('mu2')) == (0 if name == CASTER else 1)
