"""What Gazebo is given: the robot's own numbers, in files that Gazebo's parser and ROS accept."""

import shutil
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
import pytest
import yaml
from simulation.driving import one_joint
from simulation.tractor import tractor

import krang_dynamics as kd
from krang_dynamics.simulation.gazebo.gazebo_files import (
    effort_joints,
    rotorless_bandwidth,
    write_gazebo_files,
)
from krang_dynamics.simulation.gazebo.gazebo_model import CASTER, FAST, gazebo_urdf
from krang_dynamics.simulation.gazebo.gazebo_world import gazebo_world

# An arm that does not hang on `world`, with another simulator's leavings, a fixed flange and a box in it.
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


@pytest.fixture(params=MAKERS, scope='module')
def robot(request):
    return MAKERS[request.param]()


@pytest.fixture(scope='module')
def files(robot, tmp_path_factory):
    return write_gazebo_files(robot, tmp_path_factory.mktemp(robot.name), 'lab', wheels_locked=True)


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


# -- ros2_control --------------------------------------------------------------------------------------


def test_driven_joints_take_effort_and_passive_ones_only_tell_their_state(robot):
    document = urdf_of(robot)
    commands, states = interfaces(document, 'command_interface'), interfaces(document, 'state_interface')
    assert list(commands) == list(states) == simulated(robot)
    for name in simulated(robot):
        is_driven = robot.config.joints[name].driven
        assert commands[name] == (['effort'] if is_driven else [])
        assert states[name] == ['position', 'velocity', *(['effort'] if is_driven else [])]
    assert document.findtext('ros2_control/hardware/plugin') == 'gz_ros2_control/GazeboSimSystem'
    assert len(document.findall('ros2_control')) == 1


def test_krang_s_base_gets_effort_only_with_locked_wheels():
    krang = kd.load_robot('krang')
    assert effort_joints(krang, True) == krang.joint_names
    assert effort_joints(krang, False) == krang.joint_names[1:]
    document = urdf_of(krang, effort_joints(krang, False))
    assert interfaces(document, 'command_interface')['base_pitch'] == []


def test_effort_is_bounded_by_the_urdf_and_joints_begin_at_home(robot):
    for joint in urdf_of(robot).find('ros2_control').iterfind('joint'):
        name = joint.get('name')
        bounds = [float(p.text) for p in joint.iterfind('command_interface/param')]
        peak = robot.urdf.joints[name].effort
        assert bounds == ([-peak, peak] if robot.config.joints[name].driven and np.isfinite(peak) else [])
        home = float(joint.findtext("state_interface[@name='position']/param"))
        assert home == robot.home[robot.joint_names.index(name)]


def test_torques_are_forwarded_in_the_order_of_the_drivers(robot, files):
    parameters = yaml.safe_load(files.controllers.read_text())
    forward = parameters['/**/effort_controller']['ros__parameters']
    drivers = list(dict.fromkeys(driver.joint for driver in robot.config.actuators))
    assert forward == {'joints': drivers, 'interface_name': 'effort'}
    manager = parameters['/**/controller_manager']['ros__parameters']
    assert manager['update_rate'] == 1000
    assert manager['effort_controller']['type'] == 'forward_command_controller/ForwardCommandController'
    assert manager['joint_state_broadcaster']['type'] == 'joint_state_broadcaster/JointStateBroadcaster'


def test_the_plugin_reads_the_controllers_file_in_the_namespace(files):
    plugins = ElementTree.fromstring(files.urdf).findall('gazebo/plugin')
    assert 'old' not in [plugin.get('name') for plugin in plugins]
    control = plugins[-1]
    assert control.get('name') == 'gz_ros2_control::GazeboSimROS2ControlPlugin'
    assert control.findtext('parameters') == str(files.controllers)
    assert control.findtext('ros/namespace') == '/lab'


def test_ros_reads_the_parameter_files(tmp_path):
    pytest.importorskip('rclpy', reason='rclpy is not installed')
    files = write_gazebo_files(kd.load_robot('krang'), tmp_path)
    # In a process of its own: importing ROS's messages warns.
    code = """if True:
        import sys, rclpy
        rclpy.init()
        for name, path, parameter in zip(*[iter(sys.argv[1:])] * 3):
            node = rclpy.create_node(name, namespace='lab', cli_args=['--ros-args', '--params-file', path],
                                     automatically_declare_parameters_from_overrides=True)
            print(*node.get_parameter(parameter).value)
    """
    words = [
        'effort_controller',
        files.controllers,
        'joints',
        'torque_controller',
        files.nodes,
        'command_joints',
    ]
    answer = subprocess.run(
        [sys.executable, '-c', code, *map(str, words)], capture_output=True, text=True, timeout=60
    )
    assert answer.stdout.splitlines() == [' '.join(files.effort_joints)] * 2, answer.stderr


# -- the robot that is controlled ------------------------------------------------------------------------


def test_controllers_are_told_of_the_same_robot_with_one_driver_per_joint(robot, files):
    told = kd.load_robot(str(files.robot_file))
    assert [(a.name, a.ratio, a.sign, a.share) for a in told.config.actuators] == [
        (name, 1, 1, 1) for name in files.effort_joints
    ]
    q, v = robot.home, np.ones(robot.nv)
    assert told.joint_names == robot.joint_names
    np.testing.assert_array_equal(told.carrying(robot.payloads).mass_matrix(q), robot.mass_matrix(q))
    np.testing.assert_array_equal(told.friction_torque(v), robot.friction_torque(v))
    np.testing.assert_array_equal(told.effort_limits, robot.effort_limits)


def test_they_take_torques_and_enable_by_themselves(robot, files):
    nodes = {name[4:]: p['ros__parameters'] for name, p in yaml.safe_load(files.nodes.read_text()).items()}
    common = {'command_unit': 'torque', 'command_joints': list(files.effort_joints), 'wheels_locked': True}
    assert nodes['torque_guard'] == common
    bandwidth = nodes['torque_controller'].pop('gains.bandwidth', None)
    assert (bandwidth is not None) == bool(robot.rotor_inertia().any())
    assert nodes['torque_controller'] == {**common, 'auto_enable': True}


@pytest.mark.parametrize('damping', [0.5, 20.0])
@pytest.mark.parametrize('rotor', [0.1, 5.0])
def test_a_joint_without_its_rotor_bears_the_bandwidth_but_not_four_times_that(damping, rotor):
    link, late, h = 0.05, 3, 1e-3
    spin = {'driven': True, 'motor': {'rotor_inertia': rotor}}
    robot = kd.load_robot(one_joint(inertia=link, damping=damping), joints={'spin': spin})

    def growth(bandwidth):
        """Largest factor per step of v[k+1] = (A v[k] - 2 w h (A + J) v[k - late]) / (A + h F)."""
        polynomial = np.zeros(late + 2)
        polynomial[0], polynomial[1] = link + h * damping, -link
        polynomial[-1] += 2 * bandwidth * h * (link + rotor)
        return np.abs(np.roots(polynomial)).max()

    assert growth(rotorless_bandwidth(robot)) < 1
    assert growth(4 * rotorless_bandwidth(robot)) > 1


def test_otbot_s_heading_is_that_of_the_link_whose_pose_gazebo_reports(tmp_path):
    files = write_gazebo_files(kd.load_robot('otbot'), tmp_path)
    root = ElementTree.fromstring(files.urdf).find('link').get('name')
    assert root == kd.load_robot(str(files.robot_file)).config.odom.heading_of == 'platform'
    np.testing.assert_allclose(files.pose, (0, 0, 0.1, 0, 0, 0), atol=1e-15)


# -- friction, sensors, world ------------------------------------------------------------------------------


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


# -- refused -------------------------------------------------------------------------------------------------


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


# -- Gazebo's own parser -----------------------------------------------------------------------------------

SDF = next((tool for tool in ('gz', 'ign') if shutil.which(tool)), None)
needs_parser = pytest.mark.skipif(
    SDF is None, reason="Gazebo's parser is not installed; apt install ignition-tools libsdformat-dev"
)


def sdf(flag, path):
    answer = subprocess.run([SDF, 'sdf', flag, str(path)], capture_output=True, text=True, timeout=60)
    assert answer.returncode == 0, answer.stderr
    return answer


@pytest.fixture(scope='module')
def model(files):
    """The robot as Gazebo reads it."""
    return ElementTree.fromstring(sdf('-p', files.folder / 'gazebo.urdf').stdout).find('model')


@needs_parser
def test_gazebo_s_parser_finds_the_files_valid(files):
    for name in ('gazebo.urdf', 'world.sdf'):
        answer = sdf('-k', files.folder / name)
        assert answer.stdout.strip() == 'Valid.'
        assert 'Warning' not in answer.stderr


def pose(element):
    text = '0 0 0 0 0 0' if element is None else element.text
    x, y, z, *rpy = map(float, text.split())
    return pin.SE3(pin.rpy.rpyToMatrix(*rpy), np.array([x, y, z]))


def inertia(link):
    """Of an SDF link, in its axes."""
    inertial = link.find('inertial')
    xx, xy, xz, yy, yz, zz = (
        float(inertial.findtext(f'inertia/i{key}')) for key in ('xx', 'xy', 'xz', 'yy', 'yz', 'zz')
    )
    matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    body = pin.Inertia(float(inertial.findtext('mass')), np.zeros(3), matrix)
    return pose(inertial.find('pose')).act(body)


@needs_parser
def test_masses_and_inertias_after_the_conversion_are_the_robot_s(robot, model):
    moved_by = {joint.child: joint.name for joint in robot.urdf.joints.values() if joint.moves}
    links = {link.get('name'): link for link in model.iterfind('link')}
    links.pop('stand', None)  # bolted to the ground
    total = 0.0
    for name, link in links.items():
        ours = robot.model.inertias[robot.model.getJointId(moved_by[name])]
        theirs = pose(link.find('pose')).act(inertia(link))
        total += theirs.mass
        np.testing.assert_allclose(theirs.mass, ours.mass, rtol=1e-12)
        np.testing.assert_allclose(theirs.lever, ours.lever, atol=1e-12)
        np.testing.assert_allclose(theirs.inertia, ours.inertia, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(total, robot.total_mass, rtol=1e-9)


@needs_parser
def test_joints_after_the_conversion_are_the_robot_s(robot, model):
    joints = {joint.get('name'): joint for joint in model.iterfind('joint') if joint.get('type') != 'fixed'}
    assert set(joints) == set(simulated(robot))
    for name, joint in joints.items():
        ours = robot.urdf.joints[name]
        place = robot.model.jointPlacements[robot.model.getJointId(name)]
        np.testing.assert_allclose(pose(joint.find('pose')).homogeneous, place.homogeneous, atol=1e-12)
        axis = [float(word) for word in joint.findtext('axis/xyz').split()]
        np.testing.assert_allclose(axis, ours.axis, atol=1e-12)
        for key, ours_is in (
            ('lower', ours.lower),
            ('upper', ours.upper),
            ('effort', ours.effort),
            ('velocity', ours.velocity),
        ):
            theirs = float(joint.findtext(f'axis/limit/{key}', 'inf'))
            assert theirs == pytest.approx(ours_is) if np.isfinite(ours_is) else abs(theirs) >= 1e15


@needs_parser
def test_plugins_sensors_and_grip_survive_the_conversion(robot, files, model):
    names = [plugin.get('name') for plugin in model.iterfind('plugin')]
    assert 'gz_ros2_control::GazeboSimROS2ControlPlugin' in names
    assert ('gz::sim::systems::OdometryPublisher' in names) == bool(robot.config.rolling)
    assert len(model.findall('link/sensor')) == (robot.config.imu is not None)
    grips = [float(mu.text) for mu in model.iterfind('link/collision/surface/friction/ode/mu')]
    assert sorted(grips) == ([0, *[1] * len(robot.config.rolling)] if robot.config.rolling else [])
