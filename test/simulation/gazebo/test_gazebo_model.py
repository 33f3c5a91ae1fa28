"""The URDF for Gazebo: interfaces, friction, sensors, and refusals."""

from xml.etree import ElementTree

import numpy as np
import pytest
from simulation.gazebo.robots import ARM, interfaces, simulated, urdf_of

import krang_dynamics as kd
from krang_dynamics.simulation.gazebo.gazebo_model import FAST
from krang_dynamics.simulation.gazebo.gazebo_world import gazebo_world


def test_driven_joints_take_effort_and_passive_ones_have_a_state_only(robot):
    document = urdf_of(robot)
    commands, states = interfaces(document, 'command_interface'), interfaces(document, 'state_interface')
    assert list(commands) == list(states) == simulated(robot)
    for name in simulated(robot):
        is_driven = robot.config.joints[name].driven
        assert commands[name] == (['effort'] if is_driven else [])
        assert states[name] == ['position', 'velocity', *(['effort'] if is_driven else [])]
    assert document.findtext('ros2_control/hardware/plugin') == 'gz_ros2_control/GazeboSimSystem'
    assert len(document.findall('ros2_control')) == 1


def test_effort_is_bounded_by_the_urdf_and_joints_begin_at_home(robot):
    for joint in urdf_of(robot).find('ros2_control').iterfind('joint'):
        name = joint.get('name')
        bounds = [float(p.text) for p in joint.iterfind('command_interface/param')]
        peak = robot.urdf.joints[name].effort
        assert bounds == ([-peak, peak] if robot.config.joints[name].driven and np.isfinite(peak) else [])
        home = float(joint.findtext("state_interface[@name='position']/param"))
        assert home == robot.home[robot.joint_names.index(name)]


def test_the_plugin_reads_the_controllers_file_in_the_namespace(files):
    plugins = ElementTree.fromstring(files.urdf).findall('gazebo/plugin')
    assert 'old' not in [plugin.get('name') for plugin in plugins]
    control = plugins[-1]
    assert control.get('name') == 'gz_ros2_control::GazeboSimROS2ControlPlugin'
    assert control.findtext('parameters') == str(files.controllers)
    assert control.findtext('ros/namespace') == '/lab'


def test_friction_is_the_robot_s_at_rest_and_at_the_speed_limit(robot):
    document = urdf_of(robot)
    for name in simulated(robot):
        i = robot.joint_names.index(name)
        dynamics = document.find(f"joint[@name='{name}']/dynamics")
        damping, friction = float(dynamics.get('damping')), float(dynamics.get('friction'))
        speed = np.zeros(robot.nv)
        speed[i] = min(robot.velocity_limits[i], FAST)
        torque = damping * speed[i] + friction * np.sign(speed[i])
        assert torque == pytest.approx(robot.friction_torque(speed)[i], rel=1e-12)
        # A smooth sign must not become a stiction that the real joint does not have.
        assert friction == (0 if robot.friction.sign == 'smooth' else robot.friction.coulomb[i])


def test_krang_s_inertial_unit_is_mounted_as_its_file_says():
    krang = kd.load_robot('krang')
    document = urdf_of(krang, prefix='/lab')
    sensor = document.find("gazebo[@reference='base']/sensor")
    pose = [float(word) for word in sensor.findtext('pose').split()]
    assert (*pose[:3], *pose[3:]) == (0, 0, 0, *krang.config.imu.mount_rpy)
    assert sensor.findtext('topic') == '/lab/imu'
    assert sensor.findtext('imu/orientation_reference_frame/localization') == 'ENU'
    systems = [plugin.get('name') for plugin in ElementTree.fromstring(gazebo_world(krang)).iter('plugin')]
    assert 'gz::sim::systems::Imu' in systems


@pytest.mark.parametrize(
    ('old', 'new', 'words'),
    [
        ('<mass value="2"/>', '<mass value="0"/>', 'no mass'),
        ('<axis xyz="0 0.6 0.8"/>', '<axis xyz="0 0 1"/><mimic joint="turn"/>', 'mimics'),
    ],
)
def test_given_what_gazebo_would_change_without_a_word_then_it_is_refused(old, new, words):
    other = """<link name="wrist"><inertial><mass value="1"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <joint name="turn" type="continuous"><parent link="tip"/><child link="wrist"/></joint></robot>"""
    text = ARM.replace(old, new).replace('</robot>', other)
    text = text.replace('<joint name="bolt" type="fixed">', '<joint name="bolt" type="continuous">')
    robot = kd.load_robot(text)
    with pytest.raises(kd.KrangError, match=words):
        urdf_of(robot)
