"""hardware.launch.py: what it starts, what it tells the nodes, and how it ends."""

import ast
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from lifecycle_msgs.srv import GetState
from nodes.bench import BIN, Bench, Topic
from nodes.fake_robot import FakeRobot
from rcl_interfaces.srv import GetParameters
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool

ROOT = Path(__file__).resolve().parents[2]
LAUNCH_FILES = sorted((ROOT / 'launch').glob('*.launch.py'))
HARDWARE = ROOT / 'launch' / 'hardware.launch.py'
RUNNER = Path(__file__).with_name('run_launch_file.py')
PATIENCE = 40.0  # a loaded machine is slow [s]
LONGEST_STOP = 4.0  # [s]
PATIENT_NODES = """
/**:
  ros__parameters: {state_timeout: 1.0}
/**/torque_guard:
  ros__parameters: {silence: 0.5}
/**/torque_controller:
  ros__parameters: {flight_recorder: ''}
"""

needs_launch = pytest.mark.skipif(
    find_spec('launch_ros') is None,
    reason='launch_ros is not installed; it comes with ROS 2 (ros-jazzy-launch-ros) and is not on PyPI',
)


# -- without launch ------------------------------------------------------------------------------------


@pytest.mark.parametrize('path', LAUNCH_FILES, ids=lambda path: path.name)
def test_every_launch_file_compiles_and_describes_a_launch(path):
    tree = ast.parse(path.read_text())
    compile(tree, str(path), 'exec')
    assert 'generate_launch_description' in {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}


def test_hardware_declares_its_arguments_with_defaults_and_descriptions():
    arguments = next(
        ast.literal_eval(node.value)
        for node in ast.parse(HARDWARE.read_text()).body
        if isinstance(node, ast.Assign) and node.targets[0].id == 'ARGUMENTS'
    )
    assert {name: default for name, (default, _) in arguments.items()} == {
        'robot': 'krang',
        'namespace': '',
        'params_file': '',
        'terms': 'gravity',
        'auto_activate': 'false',
        'guard': 'true',
        'use_sim_time': 'false',
        'log_level': 'info',
    }
    assert all(description for _, description in arguments.values())


# -- loaded --------------------------------------------------------------------------------------------


def load(**arguments):
    """The nodes that the launch file would start with these arguments, by name, and how they are told."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        from launch import LaunchContext
        from launch.actions import DeclareLaunchArgument, OpaqueFunction
        from launch.launch_description_sources import AnyLaunchDescriptionSource
        from launch_ros.actions import Node

    context = LaunchContext()
    context.launch_configurations.update(arguments)
    entities = AnyLaunchDescriptionSource(str(HARDWARE)).get_launch_description(context).entities
    made = [
        action
        for entity in entities
        if isinstance(entity, DeclareLaunchArgument | OpaqueFunction)
        for action in entity.visit(context) or ()
    ]
    nodes = [action for action in made if isinstance(action, Node)]
    for node in nodes:
        node._perform_substitutions(context)
    return {node.node_name: (node, _command_line(node, context)) for node in nodes}


def _command_line(node, context):
    """All words after the executable."""
    from launch.utilities import perform_substitutions

    namespace, _, name = node.node_name.rpartition('/')
    words = {'name': f'__node:={name}', 'ns': f'__ns:={namespace or "/"}'}
    context.extend_locals({'ros_specific_arguments': words})
    return [perform_substitutions(context, word) for word in node.cmd[1:]]


@pytest.fixture
def ros():
    with Bench() as bench:
        yield bench


@pytest.fixture
def told(ros):
    """What a real node makes of its command line: its name, its parameters, and its way of naming topics."""
    import rclpy

    def node_told(command_line):
        node = rclpy.create_node(
            'unnamed',
            context=ros.context,
            cli_args=command_line,
            use_global_arguments=False,
            automatically_declare_parameters_from_overrides=True,
        )
        ros.at_end(node.destroy_node)
        return node

    return node_told


def parameters(node):
    return {name: p.value for name, p in node._parameters.items() if name != 'start_type_description_service'}


@needs_launch
def test_controller_and_guard_are_in_line_by_default(told):
    nodes = load()
    assert list(nodes) == ['/torque_guard', '/torque_controller']
    for name, (action, command_line) in nodes.items():
        node = told(command_line)
        assert node.get_fully_qualified_name() == name
        assert parameters(node) == {'robot': 'krang', 'terms': ['gravity'], 'use_sim_time': False}
        assert node.resolve_topic_name('effort_commands') == '/effort_commands'
        assert node.resolve_topic_name('guarded/effort_commands') == '/guarded/effort_commands'
        assert action.node_package == 'krang_dynamics'
        assert f'/{action.node_executable}' == name


@needs_launch
def test_only_the_controller_goes_through_a_lifecycle():
    from launch_ros.actions import LifecycleNode

    kinds = {name: isinstance(action, LifecycleNode) for name, (action, _) in load().items()}
    assert kinds == {'/torque_guard': False, '/torque_controller': True}


@needs_launch
@pytest.mark.parametrize('no', ['false', 'False', '0'])
def test_the_guard_can_be_left_out(no):
    assert list(load(guard=no)) == ['/torque_controller']


@needs_launch
def test_a_namespace_holds_for_both_nodes_and_their_topics(told):
    nodes = load(namespace='left/robot')
    assert list(nodes) == ['/left/robot/torque_guard', '/left/robot/torque_controller']
    for name, (_, command_line) in nodes.items():
        node = told(command_line)
        assert node.get_fully_qualified_name() == name
        assert node.resolve_topic_name('guarded/effort_commands') == '/left/robot/guarded/effort_commands'
        assert parameters(node)['robot'] == 'krang'


@needs_launch
def test_arguments_become_parameters_of_the_right_kind(told):
    for _, command_line in load(
        robot='my robot.urdf', terms='gravity,friction', use_sim_time='true'
    ).values():
        assert parameters(told(command_line)) == {
            'robot': 'my robot.urdf',
            'terms': ['gravity', 'friction'],
            'use_sim_time': True,
        }


@needs_launch
@pytest.mark.parametrize('robot', ['', '7', 'on'])
def test_a_robot_is_text_whatever_it_looks_like(told, robot):
    for _, command_line in load(robot=robot).values():
        assert parameters(told(command_line))['robot'] == robot


@needs_launch
@pytest.mark.parametrize('namespace', ['', 'ns'])
@pytest.mark.parametrize('for_whom', ['/**', '/**/torque_controller', '{}/torque_controller'])
def test_the_file_overrides_defaults_and_arguments_override_the_file(told, tmp_path, for_whom, namespace):
    prefix = f'/{namespace}' if namespace else ''
    path = tmp_path / 'parameters.yaml'
    path.write_text(
        f'{for_whom.format(prefix)}:\n  ros__parameters:\n'
        '    robot: otbot\n    terms: [rolling_base]\n    use_sim_time: true\n    limits: {effort: 7.0}\n'
    )
    of_file = {'robot': 'otbot', 'terms': ['rolling_base'], 'use_sim_time': True, 'limits.effort': 7.0}
    name, asked = f'{prefix}/torque_controller', {'namespace': namespace, 'params_file': str(path)}

    assert parameters(told(load(**asked)[name][1])) == of_file
    # Even where it is the default that is asked for.
    assert parameters(told(load(**asked, terms='gravity')[name][1])) == {**of_file, 'terms': ['gravity']}
    assert parameters(told(load(**asked, robot='krang', use_sim_time='false')[name][1])) == {
        **of_file,
        'robot': 'krang',
        'use_sim_time': False,
    }


@needs_launch
def test_a_file_that_is_not_there_is_an_error():
    with pytest.raises(FileNotFoundError, match=r"params_file: there is no file 'missing\.yaml'"):
        load(params_file='missing.yaml')


@needs_launch
def test_launch_waits_longer_than_the_longest_stop():
    for action, _ in load().values():
        assert float(action.sigterm_timeout[0].text) > 4.0
        assert float(action.sigkill_timeout[0].text) > 4.0


@needs_launch
def test_the_log_level_reaches_both_nodes():
    for _, command_line in load(log_level='debug').values():
        assert command_line[command_line.index('--log-level') + 1] == 'debug'


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
    for name in ('torque_controller', 'torque_guard'):
        (executables / name).symlink_to(BIN / name)
    return {**os.environ, 'AMENT_PREFIX_PATH': f'{prefix}:{os.environ.get("AMENT_PREFIX_PATH", "")}'}


class Launch:
    """hardware.launch.py in a process group of its own, which is what ^C reaches."""

    def __init__(self, bench, environment, arguments):
        self._bench = bench
        self._log = bench.folder / 'launch.log'
        with self._log.open('w') as log:
            self._process = subprocess.Popen(
                [sys.executable, str(RUNNER), str(HARDWARE), *(f'{k}:={v}' for k, v in arguments.items())],
                env={
                    **environment,
                    'ROS_DOMAIN_ID': str(bench.domain),
                    'ROS_LOG_DIR': str(bench.folder),
                    'PYTHONUNBUFFERED': '1',
                },
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._namespace = f'/{arguments["namespace"]}' if 'namespace' in arguments else ''

    @property
    def log(self):
        return self._log.read_text(errors='replace')

    def pid(self, name):
        return int(re.search(rf'\[{name}-\d\]: process started with pid \[(\d+)\]', self.log)[1])

    def until(self, condition, what):
        """Wait until a condition holds; the log, if it never does."""
        try:
            self._bench.until(condition, what, PATIENCE)
        except AssertionError as error:
            raise AssertionError(f'{error}\n{self.log}') from None

    def call(self, kind, service, **fields):
        """The answer of a service of the controller."""
        return self._bench.call(kind, f'{self._namespace}/torque_controller/{service}', PATIENCE, **fields)

    def until_state(self, label):
        """Wait for the controller, and then for a state of its lifecycle."""
        node, names = self._bench.node, ('torque_controller', self._namespace or '/')
        self.until(lambda: names in node.get_node_names_and_namespaces(), 'the controller')
        self.until(
            lambda: self.call(GetState, 'get_state').current_state.label == label,
            f'the controller to be {label}',
        )

    def drive(self, robot, passed):
        """Activate and enable it, and wait until the drivers get the torque that holds the robot."""
        self.until_state('active')
        assert not passed.records
        self.until(lambda: self.call(SetBool, 'enable', data=True).success, 'enable')
        weight = pytest.approx(robot.model.gravity_torque(robot.q), rel=1e-9)
        self.until(
            lambda: passed.last and passed.last.message.data.tolist() == weight, 'the robot to be held'
        )

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


@pytest.fixture
def launch(ros, environment, tmp_path):
    """Starts the launch file with arguments; whatever is left of it ends with the test."""
    path = tmp_path / 'patient_nodes.yaml'
    path.write_text(PATIENT_NODES)

    def start(**arguments):
        launched = Launch(ros, environment, {'robot': 'planar_2r', 'params_file': path, **arguments})
        ros.at_end(launched.kill)
        return launched

    return start


@needs_launch
def test_the_controller_is_configured_and_waits_to_be_activated(launch):
    launched = launch(guard='false', terms='gravity,damping')
    launched.until_state('inactive')
    answer = launched.call(GetParameters, 'get_parameters', names=['robot', 'terms'])
    assert answer.values[0].string_value == 'planar_2r'
    assert answer.values[1].string_array_value == ['gravity', 'damping']
    launched.control_c()
    assert launched.status() == 0
    assert 'torque_guard' not in launched.log


@needs_launch
def test_control_c_lets_the_robot_down_and_leaves_nothing_behind(ros, launch):
    robot = FakeRobot(ros, 'planar_2r', namespace='/left')
    passed = Topic(ros, Float64MultiArray, '/left/guarded/effort_commands')
    launched = launch(namespace='left', auto_activate='true')
    launched.drive(robot, passed)

    begin = time.time()
    launched.control_c()
    assert launched.status() == 0
    launched.until(lambda: not any(passed.last.message.data), 'a last command of zeros')
    part = [record.message.data / robot.model.gravity_torque(robot.q) for record in passed.since(begin)]
    assert (np.abs(part) <= 1 + 1e-9).all()
    between = (np.array(part) > 0.1) & (np.array(part) < 0.9)
    assert (np.count_nonzero(between, axis=0) > 20).all(), 'it is let down, not dropped'
    assert passed.last.sent - begin < LONGEST_STOP


@needs_launch
@pytest.mark.parametrize(
    ('arguments', 'reason'),
    [
        ({'terms': 'wrench'}, r'wrench\..*\.convention must be applied_by_robot or applied_on_robot'),
        ({'terms': 'gravitation'}, 'gravitation'),
        ({'robot': 'krank'}, "'krank'.*krang"),
    ],
)
def test_what_cannot_be_configured_ends_with_the_reason(launch, arguments, reason):
    launched = launch(**arguments)
    assert launched.status() == 1
    assert re.search(reason, launched.log)
    assert re.search('torque_controller could not be configured|torque_guard has ended', launched.log)


@needs_launch
def test_the_guard_outlives_a_controller_that_dies_and_lets_the_robot_down(ros, launch):
    robot = FakeRobot(ros, 'planar_2r')
    passed = Topic(ros, Float64MultiArray, '/guarded/effort_commands')
    launched = launch(auto_activate='true')
    launched.drive(robot, passed)

    os.kill(launched.pid('torque_controller'), signal.SIGKILL)
    launched.until(lambda: not any(passed.last.message.data), 'the robot to be let down')
    os.kill(launched.pid('torque_guard'), 0)
    launched.control_c()
    assert launched.status() == 0


@needs_launch
def test_the_end_of_the_guard_is_the_end_of_all(launch):
    launched = launch()
    launched.until_state('inactive')
    os.kill(launched.pid('torque_guard'), signal.SIGKILL)
    assert launched.status() == 1
    assert 'torque_guard has ended, so no command reaches the drivers' in launched.log
