"""The files for Gazebo: parameters and robot file that ROS accepts, and Gazebo's own parser."""

import shutil
import subprocess
import sys
from collections import deque
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
import pytest
import yaml
from simulation.driving import one_joint
from simulation.gazebo.robots import interfaces, simulated, urdf_of

import krang_dynamics as kd
from krang_dynamics.control.gains import gains_problem
from krang_dynamics.simulation.gazebo.gazebo_files import (
    effort_joints,
    rotorless_bandwidth,
    write_gazebo_files,
)


def test_krang_s_base_gets_effort_only_with_locked_wheels():
    krang = kd.load_robot('krang')
    assert effort_joints(krang, True) == krang.joint_names
    assert effort_joints(krang, False) == krang.joint_names[1:]
    document = urdf_of(krang, effort_joints(krang, False))
    assert interfaces(document, 'command_interface')['base_pitch'] == []


def test_torques_are_forwarded_in_the_order_of_the_drivers(robot, files):
    parameters = yaml.safe_load(files.controllers.read_text())
    forward = parameters['/**/effort_controller']['ros__parameters']
    drivers = list(dict.fromkeys(driver.joint for driver in robot.config.actuators))
    assert forward == {'joints': drivers, 'interface_name': 'effort'}
    manager = parameters['/**/controller_manager']['ros__parameters']
    assert manager['update_rate'] == 1000
    assert manager['effort_controller']['type'] == 'forward_command_controller/ForwardCommandController'
    assert manager['joint_state_broadcaster']['type'] == 'joint_state_broadcaster/JointStateBroadcaster'


def test_ros_reads_the_parameter_files(tmp_path):
    pytest.importorskip('rclpy', reason='rclpy is not installed')
    files = write_gazebo_files(kd.load_robot('krang'), tmp_path)
    # In a separate process, because importing ROS's messages gives warnings.
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


def test_controllers_load_the_same_robot_with_one_driver_per_joint(robot, files):
    loaded = kd.load_robot(str(files.robot_file))
    assert [(a.name, a.ratio, a.sign, a.share) for a in loaded.config.actuators] == [
        (name, 1, 1, 1) for name in files.effort_joints
    ]
    v = np.ones(robot.nv)
    assert loaded.joint_names == robot.joint_names
    np.testing.assert_allclose(
        loaded.carrying(robot.payloads).mass_matrix(loaded.home), robot.mass_matrix(robot.home), atol=1e-12
    )
    np.testing.assert_array_equal(loaded.friction_torque(v), robot.friction_torque(v))
    np.testing.assert_array_equal(loaded.effort_limits, robot.effort_limits)


def nodes_of(files):
    """Parameters of the nodes, by node."""
    return {name[4:]: p['ros__parameters'] for name, p in yaml.safe_load(files.nodes.read_text()).items()}


def test_they_take_torques_and_enable_by_themselves(files):
    nodes = nodes_of(files)
    common = {'command_unit': 'torque', 'command_joints': list(files.effort_joints), 'wheels_locked': True}
    for parameters in nodes.values():
        assert {name: parameters[name] for name in common} == common
    assert nodes['torque_controller']['auto_enable']


def test_the_gains_bear_the_delay_of_gazebo_on_a_busy_machine(robot, files):
    bandwidth = nodes_of(files)['torque_controller']['gains.bandwidth']
    kp, kd_ = np.full(robot.nv, bandwidth**2), np.full(robot.nv, 2 * bandwidth)
    assert gains_problem(robot, kp, kd_, 1000.0, 2 * 0.029) is None


@pytest.mark.parametrize('delay', [5, 30])
def test_a_robot_with_the_delay_of_gazebo_moves_without_a_fault(tmp_path, delay):
    """States are late by `delay` [ms]; with the default gains the torques would swing."""
    parameters = nodes_of(write_gazebo_files(kd.load_robot('planar_2r'), tmp_path))['torque_controller']
    settings = kd.Settings.of({**parameters, 'terms': ['gravity', 'computed_torque'], 'auto_enable': False})
    robot = kd.load_robot('planar_2r')
    controller, plant, late = kd.TorqueController(robot, settings), kd.make_plant(robot, 'pinocchio'), deque()
    plant.reset(robot.home, np.zeros(2))
    goal = kd.JointTrajectory(
        robot.joint_names, np.array([0.0, 1.0]), np.array([robot.home, robot.home + 0.5])
    )
    torque = robot.gravity_torque(robot.home)
    for k in range(3000):
        t = 100 + 1e-3 * k
        late.append(kd.JointSamples(robot.joint_names, plant.q, plant.v, torque, t, t + 1e-3 * delay))
        if len(late) <= delay:
            continue
        inputs = kd.Inputs(t, t, [late.popleft()], enable=k == delay or None)
        inputs.trajectory = goal if k == delay + 1200 else None
        outputs = controller.step(inputs)
        torque = outputs.torque
        plant.step(torque, 1e-3)
    assert outputs.fault is None, outputs.fault
    np.testing.assert_allclose(plant.q, robot.home + 0.5, atol=5e-3)


def test_a_free_pendulum_starts_hanging_and_is_upright_at_home(tmp_path):
    loaded = kd.load_robot(str(write_gazebo_files(kd.load_robot('pendubot'), tmp_path).robot_file))
    robot = kd.load_robot('pendubot')
    np.testing.assert_allclose(loaded.home, [0.0, np.pi])
    hangs, upright = (robot.potential_energy(np.array([0.0, angle])) for angle in (np.pi, 0.0))
    assert loaded.potential_energy(np.zeros(2)) == pytest.approx(hangs)
    assert loaded.potential_energy(loaded.home) == pytest.approx(upright)


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
