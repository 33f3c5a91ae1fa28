"""hardware.launch.py: which processes it starts, with which parameters, and how it ends."""

import ast
import os
import re
import signal
import time

import numpy as np
import pytest
import yaml
from launching import PATIENCE, ROOT, Launch, Loaded, defaults, launch_file, needs_launch, told
from lifecycle_msgs.srv import GetState
from nodes.fake_robot import FakeRobot
from nodes.harness import Topic
from rcl_interfaces.srv import GetParameters
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool

pytestmark = pytest.mark.processes

LAUNCH_FILES = sorted((ROOT / 'launch').glob('*.launch.py'))
HARDWARE = launch_file('hardware')
LONGEST_STOP = 4.0  # [s]
PATIENT_NODES = """
/**:
  ros__parameters: {state_timeout: 1.0}
/**/torque_guard:
  ros__parameters: {silence: 0.5}
/**/torque_controller:
  ros__parameters: {flight_recorder: ''}
"""

# -- without launch ------------------------------------------------------------------------------------


@pytest.mark.parametrize('path', LAUNCH_FILES, ids=lambda path: path.name)
def test_every_launch_file_compiles_and_describes_a_launch(path):
    tree = ast.parse(path.read_text())
    compile(tree, str(path), 'exec')
    assert 'generate_launch_description' in {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}


def test_hardware_declares_its_arguments_with_defaults_and_descriptions():
    assert defaults(HARDWARE) == {
        'robot': 'krang',
        'namespace': '',
        'params_file': '',
        'terms': 'gravity',
        'auto_activate': 'false',
        'guard': 'true',
        'use_sim_time': 'false',
        'log_level': 'info',
        'enclave': '',
    }


# -- loaded --------------------------------------------------------------------------------------------


def load(**arguments):
    """The nodes that the launch file would start with these arguments, by name."""
    return {node.node_name: node for node in Loaded(HARDWARE, **arguments).nodes().values()}


def parameters(node):
    """All that the launch file sets, but the name of the guard."""
    others = ('start_type_description_service', 'guard')
    return {name: p.value for name, p in node._parameters.items() if name not in others}


@needs_launch
def test_controller_and_guard_are_in_line_by_default(ros):
    nodes = load()
    assert list(nodes) == ['/torque_guard', '/torque_controller']
    for name, action in nodes.items():
        node = told(ros, action.words)
        assert node.get_fully_qualified_name() == name
        assert parameters(node) == {'robot': 'krang', 'terms': ['gravity'], 'use_sim_time': False}
        assert node.resolve_topic_name('effort_commands') == '/effort_commands'
        assert node.resolve_topic_name('guarded/effort_commands') == '/guarded/effort_commands'
        assert action.node_package == 'krang_dynamics'
        assert f'/{action.node_executable}' == name


@needs_launch
def test_only_the_controller_goes_through_a_lifecycle():
    from launch_ros.actions import LifecycleNode

    kinds = {name: isinstance(action, LifecycleNode) for name, action in load().items()}
    assert kinds == {'/torque_guard': False, '/torque_controller': True}


@needs_launch
@pytest.mark.parametrize('no', ['false', 'False', '0'])
def test_the_guard_can_be_left_out(ros, no):
    nodes = load(guard=no)
    assert list(nodes) == ['/torque_controller']
    assert told(ros, nodes['/torque_controller'].words).get_parameter_or('guard').value in (None, '')


@needs_launch
def test_the_file_of_the_bring_up_configures_controller_and_guard(ros, tmp_path):
    page = (ROOT / 'docs' / 'bring-up.md').read_text()
    (text,) = re.findall(r'```yaml\n(.*?)```', page, flags=re.DOTALL)
    file = tmp_path / 'one_joint.yaml'
    file.write_text(text)
    (command,) = re.findall(r'hardware.launch.py (params_file:=.*)', page)
    arguments = dict(word.split(':=') for word in command.split())
    nodes = load(**{**arguments, 'params_file': str(file)})
    for name in ('/torque_controller', '/torque_guard'):
        told_values = parameters(told(ros, nodes[name].words))
        for parameter, value in yaml.safe_load(text)['/**']['ros__parameters'].items():
            assert told_values[parameter] == value


@needs_launch
def test_the_controller_watches_its_guard(ros):
    node = told(ros, load()['/torque_controller'].words)
    assert node.get_parameter('guard').value == 'torque_guard'


@needs_launch
def test_a_namespace_holds_for_both_nodes_and_their_topics(ros):
    nodes = load(namespace='left/robot')
    assert list(nodes) == ['/left/robot/torque_guard', '/left/robot/torque_controller']
    for name, action in nodes.items():
        node = told(ros, action.words)
        assert node.get_fully_qualified_name() == name
        assert node.resolve_topic_name('guarded/effort_commands') == '/left/robot/guarded/effort_commands'
        assert parameters(node)['robot'] == 'krang'


@needs_launch
def test_arguments_become_parameters_of_the_right_kind(ros):
    nodes = load(robot='my robot.urdf', terms='gravity,friction', use_sim_time='true')
    for action in nodes.values():
        assert parameters(told(ros, action.words)) == {
            'robot': 'my robot.urdf',
            'terms': ['gravity', 'friction'],
            'use_sim_time': True,
        }


@needs_launch
@pytest.mark.parametrize('robot', ['', '7', 'on'])
def test_a_robot_is_text_whatever_it_looks_like(ros, robot):
    for action in load(robot=robot).values():
        assert parameters(told(ros, action.words))['robot'] == robot


@needs_launch
@pytest.mark.parametrize('namespace', ['', 'ns'])
@pytest.mark.parametrize('for_whom', ['/**', '/**/torque_controller', '{}/torque_controller'])
def test_the_file_overrides_defaults_and_arguments_override_the_file(ros, tmp_path, for_whom, namespace):
    prefix = f'/{namespace}' if namespace else ''
    path = tmp_path / 'parameters.yaml'
    path.write_text(
        f'{for_whom.format(prefix)}:\n  ros__parameters:\n'
        '    robot: otbot\n    terms: [rolling_base]\n    use_sim_time: true\n    limits: {effort: 7.0}\n'
    )
    of_file = {'robot': 'otbot', 'terms': ['rolling_base'], 'use_sim_time': True, 'limits.effort': 7.0}
    name, asked = f'{prefix}/torque_controller', {'namespace': namespace, 'params_file': str(path)}

    assert parameters(told(ros, load(**asked)[name].words)) == of_file
    # Even if the given value is the default.
    assert parameters(told(ros, load(**asked, terms='gravity')[name].words)) == {
        **of_file,
        'terms': ['gravity'],
    }
    assert parameters(told(ros, load(**asked, robot='krang', use_sim_time='false')[name].words)) == {
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
    for action in load().values():
        assert float(action.sigterm_timeout[0].text) > 4.0
        assert float(action.sigkill_timeout[0].text) > 4.0


@needs_launch
def test_the_log_level_reaches_both_nodes():
    for action in load(log_level='debug').values():
        assert action.words[action.words.index('--log-level') + 1] == 'debug'


@needs_launch
def test_every_node_gets_its_enclave():
    for name, action in load(enclave='/lab').items():
        assert action.words[action.words.index('--enclave') + 1] == f'/lab{name}'
    assert all('--enclave' not in action.words for action in load().values())


# -- running -------------------------------------------------------------------------------------------


class HardwareLaunch(Launch):
    """The launch file, and the controller that it starts."""

    def __init__(self, harness, environment, **arguments):
        super().__init__(harness, environment, HARDWARE, **arguments)
        self._namespace = f'/{arguments["namespace"]}' if 'namespace' in arguments else ''

    def pid(self, name):
        return int(re.search(rf'\[{name}-\d\]: process started with pid \[(\d+)\]', self.log)[1])

    def call(self, kind, service, **fields):
        """The answer of a service of the controller."""
        return self._harness.call(kind, f'{self._namespace}/torque_controller/{service}', PATIENCE, **fields)

    def until_state(self, label):
        """Wait for the controller, and then for a state of its lifecycle."""
        node, names = self._harness.node, ('torque_controller', self._namespace or '/')
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


@pytest.fixture
def launch(ros, environment, tmp_path):
    """Starts the launch file with arguments; it ends with the test."""
    path = tmp_path / 'patient_nodes.yaml'
    path.write_text(PATIENT_NODES)

    def start(**arguments):
        return HardwareLaunch(ros, environment, **{'robot': 'planar_2r', 'params_file': path, **arguments})

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
    assert 'torque_guard has ended, so the drivers receive no commands' in launched.log
