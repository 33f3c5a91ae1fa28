"""simulation.launch.py: which processes it starts, with which parameters, and that the robot is held."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from launching import Launch, Loaded, defaults, launch_file, needs_launch, told
from nodes.harness import Topic
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

import krang_dynamics as kd

pytestmark = pytest.mark.processes

SIMULATION = launch_file('simulation')
SENSORS = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)


def test_it_declares_its_arguments_with_defaults_and_descriptions():
    assert defaults(SIMULATION) == {
        'robot': 'krang',
        'engine': 'auto',
        'lock_step': 'true',
        'namespace': '',
        'terms': '',
        'params_file': '',
        'wheels_locked': 'true',
        'guard': 'true',
        'auto_activate': 'true',
        'rviz': 'false',
        'enclave': '',
    }


# -- loaded --------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def index(monkeypatch, tmp_path):
    """The package index of a sourced ROS 2, or an empty one."""
    monkeypatch.setenv('AMENT_PREFIX_PATH', os.environ.get('AMENT_PREFIX_PATH') or str(tmp_path))


def nodes_told(ros, **arguments):
    """What real nodes make of their command lines, by executable."""
    loaded = Loaded(SIMULATION, **arguments).nodes()
    return {name: told(ros, node.words) for name, node in loaded.items()}


def value(node, name):
    return node.get_parameter(name).value


@needs_launch
def test_simulator_controller_and_guard_share_robot_time_and_namespace(ros):
    nodes = nodes_told(ros, robot='krang', namespace='lab')
    assert set(nodes) == {'torque_controller', 'torque_guard', 'simulator'}
    for name, node in nodes.items():
        assert node.get_fully_qualified_name() == f'/lab/{name}'
        assert value(node, 'robot') == 'krang'
        assert value(node, 'wheels_locked') is True
    for name in ('torque_controller', 'torque_guard'):
        assert value(nodes[name], 'use_sim_time') is True
    assert value(nodes['torque_controller'], 'auto_enable') is True
    simulator = nodes['simulator']
    assert value(simulator, 'engine') == 'auto'
    assert value(simulator, 'lock_step') is True
    assert value(simulator, 'publish_clock') is True


@needs_launch
@pytest.mark.parametrize(
    ('guard', 'topic'), [('true', '/guarded/effort_commands'), ('false', '/effort_commands')]
)
def test_the_simulator_listens_where_the_last_torques_are(ros, guard, topic):
    nodes = nodes_told(ros, guard=guard)
    assert ('torque_guard' in nodes) == (guard == 'true')
    assert nodes['simulator'].resolve_topic_name('effort_commands') == topic
    assert nodes['torque_controller'].resolve_topic_name('effort_commands') == '/effort_commands'


@needs_launch
def test_arguments_reach_the_nodes(ros):
    nodes = nodes_told(
        ros,
        robot='planar_2r',
        engine='pinocchio',
        lock_step='false',
        terms='gravity,damping',
        wheels_locked='0',
    )
    assert value(nodes['simulator'], 'engine') == 'pinocchio'
    assert value(nodes['simulator'], 'lock_step') is False
    assert value(nodes['simulator'], 'wheels_locked') is False
    assert value(nodes['torque_controller'], 'terms') == ['gravity', 'damping']


@needs_launch
@pytest.mark.parametrize(
    ('robot', 'terms'),
    [
        ('krang', ['gravity', 'friction', 'computed_torque']),
        ('otbot', ['rolling_base']),
        ('pendubot', ['balance']),
    ],
)
def test_terms_suit_the_robot_unless_given(ros, robot, terms):
    assert value(nodes_told(ros, robot=robot)['torque_controller'], 'terms') == terms


@needs_launch
def test_the_file_reaches_all_nodes_and_overrides_what_is_no_argument(ros, tmp_path):
    path = tmp_path / 'parameters.yaml'
    path.write_text(
        '/**:\n  ros__parameters: {auto_enable: false, limits: {effort: 7.0}}\n'
        '/**/simulator:\n  ros__parameters: {faults: {lost: 0.1}, engine: nonsense}\n'
    )
    nodes = nodes_told(ros, robot='planar_2r', params_file=str(path))
    assert value(nodes['torque_controller'], 'auto_enable') is False
    assert value(nodes['torque_guard'], 'limits.effort') == 7.0
    assert value(nodes['simulator'], 'faults.lost') == 0.1
    assert value(nodes['simulator'], 'engine') == 'auto'


@needs_launch
def test_description_frames_and_rviz_are_there_where_they_are_installed(ros, tmp_path, monkeypatch):
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    assert not {'robot_state_publisher', 'rviz2'} & set(nodes_told(ros, rviz='true'))
    index = tmp_path / 'share/ament_index/resource_index/packages'
    index.mkdir(parents=True)
    for name in ('robot_state_publisher', 'rviz2'):
        (index / name).touch()
    assert 'rviz2' not in nodes_told(ros, robot='krang')
    loaded = Loaded(SIMULATION, robot='krang', namespace='lab', rviz='true').nodes()
    frames = told(ros, loaded['robot_state_publisher'].words)
    assert value(frames, 'robot_description') == kd.load_robot('krang').urdf.text.decode()
    assert frames.resolve_topic_name('joint_states') == '/lab/simulator/truth'
    _, file, _, root, *_ = loaded['rviz2'].words
    assert yaml.safe_load(Path(file).read_text())['Visualization Manager']['Displays']
    assert root == kd.load_robot('krang').urdf.root


# -- running -------------------------------------------------------------------------------------------


@needs_launch
@pytest.mark.parametrize('guard', ['true', 'false'])
def test_the_simulated_robot_is_held_and_control_c_leaves_nothing_behind(ros, environment, guard):
    robot = kd.load_robot('planar_2r')
    states = Topic(ros, JointState, '/lab/joint_states', SENSORS)
    clock = Topic(ros, Clock, '/clock', SENSORS)
    way = 'guarded/effort_commands' if guard == 'true' else 'effort_commands'
    commands = Topic(ros, Float64MultiArray, f'/lab/{way}')
    launched = Launch(
        ros,
        environment,
        SIMULATION,
        robot='planar_2r',
        namespace='lab',
        engine='pinocchio',
        terms='gravity',
        guard=guard,
    )
    launched.until(lambda: clock.last and clock.last.message.clock.sec >= 3, 'two simulated seconds')
    np.testing.assert_allclose(states.last.message.position, robot.home, atol=1e-3)
    np.testing.assert_allclose(commands.last.message.data, robot.gravity_torque(robot.home), rtol=1e-3)
    launched.control_c()
    assert launched.status() == 0
    assert not re.search(r'\bfault', launched.log)
    assert 'waiting to enable' not in launched.log
    assert not list(ros.folder.glob('flights/*'))


@needs_launch
def test_what_cannot_be_simulated_ends_with_the_reason(ros, environment):
    launched = Launch(ros, environment, SIMULATION, robot='planar_2r', engine='bullet', guard='false')
    assert launched.status() == 1
    assert 'bullet' in launched.log
    assert 'the simulator has ended' in launched.log
