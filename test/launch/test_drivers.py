"""docs/drivers.md and config/ros2_control: what is said to the drivers is what they are told to expect."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import rclpy
import yaml
from nodes.harness import Controller, Guard, Harness, Topic
from rclpy.qos import QoSProfile, qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

import krang_dynamics as kd
from krang_dynamics.control.drivers import Drivers, commanded_joints
from krang_dynamics.control.settings import Settings

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / 'docs' / 'drivers.md'
FILES = ROOT / 'config' / 'ros2_control'
ROBOTS = ('anthropomorphic', 'krang', 'otbot', 'pendubot', 'planar_2r')


# -- ros2_control --------------------------------------------------------------------------------------


@pytest.fixture(scope='module')
def context():
    with Harness() as harness:
        yield harness.context


def node_of_file(context, name, robot, namespace=''):
    """A real node of that name that has read the robot's file, and its parameters."""
    remap = ['-r', f'__ns:=/{namespace}'] if namespace else []
    node = rclpy.create_node(
        name,
        context=context,
        cli_args=['--ros-args', *remap, '--params-file', str(FILES / f'{robot}.yaml')],
        use_global_arguments=False,
        automatically_declare_parameters_from_overrides=True,
    )
    return node, {name: parameter.value for name, parameter in node._parameters.items()}


def test_every_shipped_robot_has_a_file():
    assert {path.stem for path in FILES.iterdir()} == set(ROBOTS)
    variants = set(kd.robots()) - set(ROBOTS)
    assert all(any(name.startswith(f'{robot}_') for robot in ROBOTS) for name in variants)


@pytest.mark.parametrize('namespace', ['', 'left'])
@pytest.mark.parametrize('robot', ROBOTS)
def test_the_joints_are_the_drivers_in_the_order_of_a_command(context, robot, namespace):
    model = kd.load_robot(robot)
    joints = commanded_joints(Settings(), model)
    _, of_controller = node_of_file(context, 'effort_controller', robot, namespace)
    assert tuple(of_controller['joints']) == Drivers(model, joints).names
    assert of_controller['joints'] == [
        actuator.name for actuator in model.config.actuators if actuator.only_if is None
    ]
    assert of_controller['interface_name'] == 'effort'


@pytest.mark.parametrize('robot', ROBOTS)
def test_both_nodes_speak_newton_metres_of_the_same_robot(context, robot):
    for name in ('torque_controller', 'torque_guard'):
        _, values = node_of_file(context, name, robot)
        assert (values['robot'], values['command_unit']) == (robot, 'torque')
        assert kd.load_robot(robot, command_unit='torque').config.command_unit == 'torque'


@pytest.mark.parametrize('namespace', ['', 'left'])
@pytest.mark.parametrize('robot', ROBOTS)
def test_the_effort_controller_listens_to_the_guard(context, robot, namespace):
    _, of_manager = node_of_file(context, 'controller_manager', robot, namespace)
    assert of_manager['joint_state_broadcaster.type'] == 'joint_state_broadcaster/JointStateBroadcaster'
    assert of_manager['effort_controller.type'] == 'forward_command_controller/ForwardCommandController'
    assert of_manager['enforce_command_limits'] is True

    # The manager makes the controller's node with these words.
    node = rclpy.create_node(
        'effort_controller',
        context=context,
        namespace=namespace,
        cli_args=of_manager['effort_controller.node_options_args'],
        use_global_arguments=False,
    )
    prefix = f'/{namespace}' if namespace else ''
    assert node.resolve_topic_name('~/commands') == f'{prefix}/guarded/effort_commands'


def test_the_files_differ_in_the_robot_alone():
    def common(path):
        content = yaml.safe_load(path.read_text())
        del content['/**/effort_controller']['ros__parameters']['joints']
        for name in ('/**/torque_controller', '/**/torque_guard'):
            assert content[name]['ros__parameters'].pop('robot') == path.stem
        return content

    first, *others = map(common, sorted(FILES.iterdir()))
    assert all(content == first for content in others)


# -- the driver of the document ------------------------------------------------------------------------


@pytest.fixture
def harness():
    with Harness() as harness:
        yield harness


@pytest.fixture
def driver(harness):
    """The document's code as a process, and what its joints say."""
    (code,) = re.findall(r'```python\n(.*?)```', DOCUMENT.read_text(), flags=re.DOTALL)
    states = Topic(harness, JointState, 'joint_states', qos_profile_sensor_data)
    log = harness.folder / 'driver.log'
    environment = {**os.environ, 'ROS_DOMAIN_ID': str(harness.domain), 'ROS_LOG_DIR': str(harness.folder)}
    with log.open('w') as output:
        process = subprocess.Popen(
            [sys.executable, '-c', code], env=environment, stdout=output, stderr=output
        )
    harness.until(lambda: len(states), 'joint states of the driver')
    yield states, log
    assert process.poll() is None, log.read_text()
    process.kill()
    process.wait()


def command(names, data):
    message = Float64MultiArray(data=data)
    message.layout.dim = [MultiArrayDimension(label=','.join(names), size=len(data), stride=len(data))]
    return message


def test_the_driver_takes_commands_and_brakes_when_they_end(harness, driver):
    states, log = driver
    commands = harness.node.create_publisher(
        Float64MultiArray, 'guarded/effort_commands', QoSProfile(depth=1)
    )
    harness.until(commands.get_subscription_count, 'the driver to listen')

    commands.publish(command(['joint_2', 'joint_1'], [9.0, 9.0]))
    commands.publish(Float64MultiArray(data=[9.0, 9.0]))
    harness.until(lambda: 'refused' in log.read_text(), 'the driver to refuse another order')
    commands.publish(command(['joint_1', 'joint_2'], [1.5, -2.5]))
    harness.until(lambda: any(states.last.message.effort), 'the driver to take the command')
    assert states.last.message.effort.tolist() == [1.5, -2.5]
    harness.until(lambda: not any(states.last.message.effort), 'the watchdog')
    assert all(9.0 not in record.message.effort for record in states.records)

    message = states.last.message
    assert list(message.name) == ['joint_1', 'joint_2']
    assert abs(time.time() - message.header.stamp.sec - 1e-9 * message.header.stamp.nanosec) < 1.0


def test_controller_and_guard_hold_the_robot_through_the_driver(harness, driver):
    states, _ = driver
    patient = {'robot': 'planar_2r', 'state_timeout': 1.0}  # a loaded machine is slow
    Guard(harness, silence=0.5, **patient)
    Controller(harness, ramp_time=0.1, flight_recorder='', **patient).activate().drive()
    robot = kd.load_robot('planar_2r')
    weight = robot.gravity_torque(np.array(states.last.message.position))
    harness.until(
        lambda: np.allclose(states.last.message.effort, weight, rtol=1e-9), 'torque to hold the robot'
    )
