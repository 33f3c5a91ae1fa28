"""simulation.launch.py: what it starts, what it tells the nodes, and that the robot is held."""

import ast
import os
import signal
import subprocess
import sys
import warnings
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from nodes.bench import BIN, Bench, Topic
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

import krang_dynamics as kd

SIMULATION = Path(__file__).resolve().parents[2] / 'launch' / 'simulation.launch.py'
RUNNER = Path(__file__).with_name('run_launch_file.py')
SENSORS = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
PATIENCE = 40.0  # a loaded machine is slow [s]

needs_launch = pytest.mark.skipif(
    find_spec('launch_ros') is None,
    reason='launch_ros is not installed; it comes with ROS 2 (ros-jazzy-launch-ros) and is not on PyPI',
)


def test_it_declares_its_arguments_with_defaults_and_descriptions():
    arguments = next(
        ast.literal_eval(node.value)
        for node in ast.parse(SIMULATION.read_text()).body
        if isinstance(node, ast.Assign) and node.targets[0].id == 'ARGUMENTS'
    )
    assert {name: default for name, (default, _) in arguments.items()} == {
        'robot': 'krang',
        'engine': 'mujoco',
        'lock_step': 'true',
        'namespace': '',
        'terms': '',
        'params_file': '',
        'wheels_locked': 'true',
        'guard': 'true',
        'auto_activate': 'true',
    }
    assert all(description for _, description in arguments.values())


# -- loaded --------------------------------------------------------------------------------------------


def load(**arguments):
    """The command lines of the nodes that would be started, by executable."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        from launch import LaunchContext
        from launch.actions import RegisterEventHandler
        from launch.launch_description_sources import AnyLaunchDescriptionSource
        from launch.utilities import perform_substitutions
        from launch_ros.actions import Node

    context = LaunchContext()
    context.launch_configurations.update(arguments)
    commands = {}

    def unfold(entities):
        for entity in entities:
            if isinstance(entity, Node):
                entity._perform_substitutions(context)
                namespace, _, name = entity.node_name.rpartition('/')
                words = {'name': f'__node:={name}', 'ns': f'__ns:={namespace or "/"}'}
                context.extend_locals({'ros_specific_arguments': words})
                commands[entity.node_executable] = [
                    perform_substitutions(context, word) for word in entity.cmd[1:]
                ]
            elif not isinstance(entity, RegisterEventHandler):
                unfold(entity.visit(context) or ())

    unfold(AnyLaunchDescriptionSource(str(SIMULATION)).get_launch_description(context).entities)
    return commands


@pytest.fixture
def ros():
    with Bench() as bench:
        yield bench


@pytest.fixture
def told(ros):
    """What real nodes make of their command lines."""
    import rclpy

    def nodes_told(**arguments):
        nodes = {
            name: rclpy.create_node(
                'unnamed',
                context=ros.context,
                cli_args=words[words.index('--ros-args') :],
                use_global_arguments=False,
                automatically_declare_parameters_from_overrides=True,
            )
            for name, words in load(**arguments).items()
        }
        for node in nodes.values():
            ros.at_end(node.destroy_node)
        return nodes

    return nodes_told


def value(node, name):
    return node.get_parameter(name).value


@needs_launch
def test_simulator_controller_and_guard_share_robot_time_and_namespace(told):
    nodes = told(robot='krang', namespace='lab')
    assert set(nodes) == {'torque_controller', 'torque_guard', 'simulator'}
    for name, node in nodes.items():
        assert node.get_fully_qualified_name() == f'/lab/{name}'
        assert value(node, 'robot') == 'krang'
        assert value(node, 'wheels_locked') is True
    for name in ('torque_controller', 'torque_guard'):
        assert value(nodes[name], 'use_sim_time') is True
    assert value(nodes['torque_controller'], 'auto_enable') is True
    simulator = nodes['simulator']
    assert value(simulator, 'engine') == 'mujoco'
    assert value(simulator, 'lock_step') is True
    assert value(simulator, 'publish_clock') is True


@needs_launch
@pytest.mark.parametrize(
    ('guard', 'topic'), [('true', '/guarded/effort_commands'), ('false', '/effort_commands')]
)
def test_the_simulator_listens_where_the_last_torques_are(told, guard, topic):
    nodes = told(guard=guard)
    assert ('torque_guard' in nodes) == (guard == 'true')
    assert nodes['simulator'].resolve_topic_name('effort_commands') == topic
    assert nodes['torque_controller'].resolve_topic_name('effort_commands') == '/effort_commands'


@needs_launch
def test_arguments_reach_the_nodes(told):
    nodes = told(
        robot='planar_2r', engine='pinocchio', lock_step='false', terms='gravity,damping', wheels_locked='0'
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
def test_terms_suit_the_robot_unless_given(told, robot, terms):
    assert value(told(robot=robot)['torque_controller'], 'terms') == terms


@needs_launch
def test_the_file_reaches_all_nodes_and_overrides_what_is_no_argument(told, tmp_path):
    path = tmp_path / 'parameters.yaml'
    path.write_text(
        '/**:\n  ros__parameters: {auto_enable: false, limits: {effort: 7.0}}\n'
        '/**/simulator:\n  ros__parameters: {faults: {lost: 0.1}, engine: nonsense}\n'
    )
    nodes = told(robot='planar_2r', params_file=str(path))
    assert value(nodes['torque_controller'], 'auto_enable') is False
    assert value(nodes['torque_guard'], 'limits.effort') == 7.0
    assert value(nodes['simulator'], 'faults.lost') == 0.1
    assert value(nodes['simulator'], 'engine') == 'mujoco'


# -- running -------------------------------------------------------------------------------------------


@pytest.fixture(scope='module')
def environment(tmp_path_factory):
    """Where launch finds the package: installed, or the executables of this virtual environment."""
    if not (BIN / 'torque_controller').exists():
        return dict(os.environ)
    prefix = tmp_path_factory.mktemp('prefix')
    index, executables = prefix / 'share/ament_index/resource_index/packages', prefix / 'lib/krang_dynamics'
    for folder in (index, executables):
        folder.mkdir(parents=True)
    (index / 'krang_dynamics').touch()
    for name in ('torque_controller', 'torque_guard', 'simulator'):
        (executables / name).symlink_to(BIN / name)
    return {**os.environ, 'AMENT_PREFIX_PATH': f'{prefix}:{os.environ.get("AMENT_PREFIX_PATH", "")}'}


class Launch:
    """simulation.launch.py in a process group of its own, which is what ^C reaches."""

    def __init__(self, bench, environment, **arguments):
        self._bench = bench
        self._log = bench.folder / 'launch.log'
        variables = {'ROS_DOMAIN_ID': str(bench.domain), 'ROS_LOG_DIR': str(bench.folder)}
        words = [f'{name}:={text}' for name, text in arguments.items()]
        with self._log.open('w') as log:
            self._process = subprocess.Popen(
                [sys.executable, str(RUNNER), str(SIMULATION), *words],
                env={**environment, **variables, 'ROS_HOME': str(bench.folder), 'PYTHONUNBUFFERED': '1'},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        bench.at_end(self.kill)

    @property
    def log(self):
        return self._log.read_text(errors='replace')

    def until(self, condition, what):
        """Wait until a condition holds; the log, if it never does."""
        try:
            self._bench.until(condition, what, PATIENCE)
        except AssertionError as error:
            raise AssertionError(f'{error}\n{self.log}') from None

    def control_c(self):
        os.killpg(self._process.pid, signal.SIGINT)

    def status(self):
        """The exit status, once everything has ended of itself."""
        self.until(lambda: self._process.poll() is not None, 'the end of the launch')
        assert 'escalating' not in self.log
        with pytest.raises(ProcessLookupError):
            os.killpg(self._process.pid, 0)
        return self._process.returncode

    def kill(self):
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@needs_launch
@pytest.mark.parametrize('guard', ['true', 'false'])
def test_the_simulated_robot_is_held_and_control_c_leaves_nothing_behind(ros, environment, guard):
    robot = kd.load_robot('planar_2r')
    states = Topic(ros, JointState, '/lab/joint_states', SENSORS)
    clock = Topic(ros, Clock, '/clock', SENSORS)
    way = 'guarded/effort_commands' if guard == 'true' else 'effort_commands'
    commands = Topic(ros, Float64MultiArray, f'/lab/{way}')
    launched = Launch(
        ros, environment, robot='planar_2r', namespace='lab', engine='pinocchio', terms='gravity', guard=guard
    )
    launched.until(lambda: clock.last and clock.last.message.clock.sec >= 3, 'two simulated seconds')
    np.testing.assert_allclose(states.last.message.position, robot.home, atol=1e-3)
    np.testing.assert_allclose(commands.last.message.data, robot.gravity_torque(robot.home), rtol=1e-3)
    launched.control_c()
    assert launched.status() == 0


@needs_launch
def test_what_cannot_be_simulated_ends_with_the_reason(ros, environment):
    launched = Launch(ros, environment, robot='planar_2r', engine='bullet', guard='false')
    assert launched.status() == 1
    assert 'bullet' in launched.log
    assert 'the simulator has ended' in launched.log
