"""The SROS2 policies of config/security against the graph of the running nodes.

KRANG_WRITE_POLICIES=1 writes the policies again.
"""

import os
import time
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import numpy as np
import pytest
import rclpy
from nodes.harness import LATCHED, PATIENCE, claim_domain
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import String

from krang_dynamics.bags.replay.recorded_controller import RecordedController
from krang_dynamics.control.node_state import NodeState
from krang_dynamics.control.reference.trajectory import JointTrajectory
from krang_dynamics.errors import KrangError
from krang_dynamics.nodes import controller_client, robot_watch
from krang_dynamics.nodes.bag_player import BagPlayer
from krang_dynamics.nodes.controller_client import ControllerClient
from krang_dynamics.nodes.motion_sender import MotionSender
from krang_dynamics.nodes.recorder import DEFAULT, Recorder
from krang_dynamics.nodes.robot_watch import RobotWatch
from krang_dynamics.nodes.simulator import SimulatorNode
from krang_dynamics.nodes.torque_controller import TorqueControllerNode
from krang_dynamics.nodes.torque_guard import TorqueGuardNode
from krang_dynamics.robot.library import load_robot

pytest.importorskip('rosbags', reason='rosbags is not installed')

FOLDER = Path(__file__).resolve().parents[2] / 'config' / 'security'
NODES = ('torque_controller', 'torque_guard', 'simulator')
COMMAND_LINE = '_ros2cli_*'  # the nodes of `ros2`, whose names go on with what they do
WATCHING = ('recorder', 'page', 'page_requests', COMMAND_LINE)
PROFILES = {  # of the enclaves, by file
    **{node: (node,) for node in NODES},
    'player': ('player',),
    'observer': WATCHING,
    'operator': ('motion_sender', 'controller_client', *WATCHING),
}
RULES = (
    *('topics publish', 'topics subscribe', 'services reply', 'services request'),
    *('actions execute', 'actions call'),
)
GLOBAL = ('/rosout', '/parameter_events', '/diagnostics', '/clock', '/tf', '/tf_static')
FAMILIES = ('wrench', 'measured_wrench', 'target_pose', 'target_twist')  # one topic per frame
COMMANDS = {'deadman', 'emergency_stop', 'joint_trajectory', 'target_pose/*', 'target_twist/*', 'wrench/*'}
DESCRIPTION = {'topics subscribe': {'robot_description'}}  # if the parameter robot_description names it
OPTIONAL = {  # names that exist only with a parameter, or where tf2_ros or control_msgs is installed
    'torque_controller': {
        'topics publish': {'joint_trajectory'},
        'topics subscribe': {'/tf', '/tf_static', *DESCRIPTION['topics subscribe']},
        'services reply': {'tf2_frames'},
        'actions execute': {'~/follow_joint_trajectory'},
    },
    'torque_guard': DESCRIPTION,
    'simulator': DESCRIPTION,
    'motion_sender': DESCRIPTION,
}


# -- policies ----------------------------------------------------------------------------------------------


def policy_of(name, path=None):
    """What a file allows, by node and rule."""
    (enclave,) = ElementTree.parse(FOLDER / f'{name}.policy.xml').getroot().iterfind('enclaves/enclave')
    assert enclave.get('path') == (path or f'/{name}')
    allowed = {}
    for profile in enclave.iterfind('profiles/profile'):
        assert profile.get('ns') == '/'
        rules = allowed[profile.get('node')] = {rule: set() for rule in RULES}
        for group in profile:
            ((action, permission),) = group.attrib.items()
            names = [entry.text for entry in group]
            assert permission == 'ALLOW'
            assert len(set(names)) == len(names)
            rules[f'{group.tag} {action}'] |= set(names)
    return allowed


def write_policy(name, allowed):
    root = Element('policy', version='0.2.0')
    enclave = SubElement(SubElement(root, 'enclaves'), 'enclave', path=f'/{name}')
    profiles = SubElement(enclave, 'profiles')
    for node in PROFILES[name]:
        profile = SubElement(profiles, 'profile', ns='/', node=node)
        for rule, names in allowed[node].items():
            tag, action = rule.split()
            group = SubElement(profile, tag, {action: 'ALLOW'}) if names else None
            for entry in sorted(names):
                SubElement(group, tag[:-1]).text = entry
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding='unicode')
    (FOLDER / f'{name}.policy.xml').write_text(f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n')


# -- graphs ------------------------------------------------------------------------------------------------


def relative(name, node):
    """A full name as a policy has it: private, global, of a family, or relative to the namespace."""
    if name in GLOBAL:
        return name
    family, is_one, _ = name.partition('/terms/')
    if is_one:
        name = f'{family}/terms/*'
    if name.startswith(f'/{node}/'):
        return f'~{name[len(node) + 1 :]}'
    family = name.split('/')[1]
    return f'{family}/*' if family in FAMILIES else name[1:]


def rows_of(observer, node):
    """Names and types that a running node publishes, subscribes to, serves and calls."""
    return {
        'topics publish': observer.get_publisher_names_and_types_by_node(node, '/'),
        'topics subscribe': observer.get_subscriber_names_and_types_by_node(node, '/'),
        'services reply': observer.get_service_names_and_types_by_node(node, '/'),
        'services request': observer.get_client_names_and_types_by_node(node, '/'),
    }


def graph_of(observer, node):
    """The same as a policy has it, without the topics and services that an action consists of."""
    found = {rule: set() for rule in RULES}
    for rule, rows in rows_of(observer, node).items():
        for name, _ in rows:
            action, is_action, _ = name.partition('/_action/')
            found['actions execute' if is_action else rule].add(relative(action, node))
    return found


def union(*graphs):
    return {rule: set().union(*(graph.get(rule, ()) for graph in graphs)) for rule in RULES}


def init(words=''):
    rclpy.init(args=['--ros-args', *words.split()], signal_handler_options=SignalHandlerOptions.NO)


@contextmanager
def own_domain(patch):
    """Nodes of the same name in other tests are not found."""
    domain, lock = claim_domain()
    patch.setenv('ROS_DOMAIN_ID', str(domain))
    yield
    lock.close()


def until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_complete(node):
    """Whether the graph has what the node subscribes to."""
    rows = node.get_subscriber_names_and_types_by_node(node.get_name(), '/')
    return {subscription.topic_name for subscription in node.subscriptions} <= {name for name, _ in rows}


# -- the nodes of a robot ----------------------------------------------------------------------------------

# Krang has an IMU, Otbot has odometry. Commands are remapped as by the launch files.
GUARDED, REPLAYED = (f'-r effort_commands:={name}/effort_commands' for name in ('guarded', 'replay'))
WORDS = {
    'krang': {
        TorqueControllerNode: '-p terms:=gravity,wrench,cartesian_impedance -p publish_terms:=true '
        '-p wrench.left_hand.convention:=applied_by_robot -p guard:=torque_guard',
        TorqueGuardNode: '',
        SimulatorNode: f'-p engine:=pinocchio -p publish_clock:=true {GUARDED}',
    },
    'otbot': {
        TorqueControllerNode: f'-p terms:=rolling_base -p use_sim_time:=true {REPLAYED}',
        TorqueGuardNode: '-p use_sim_time:=true',
        SimulatorNode: '-p use_sim_time:=true -p engine:=pinocchio -p publish_clock:=true',
    },
}


def nodes_of(robot):
    """One after the other, the controller configured."""
    for kind, words in WORDS[robot].items():
        init(f'-p robot:={robot} --log-level error {words}')
        node = kind()
        if kind is TorqueControllerNode:
            assert node.trigger_configure() is TransitionCallbackReturn.SUCCESS
        until(lambda node=node: is_complete(node))
        yield node
        node.destroy_node()
        rclpy.shutdown()


@pytest.fixture(scope='module')
def robot_graphs(tmp_path_factory):
    """Graphs by node, and the types of all topics by full name."""
    graphs, types = {node: {} for node in NODES}, {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('ROS_HOME', str(tmp_path_factory.mktemp('home')))
        for robot in WORDS:
            with own_domain(patch):
                for node in nodes_of(robot):
                    name = node.get_name()
                    graphs[name] = union(graphs[name], graph_of(node, name), OPTIONAL[name])
                    rows = rows_of(node, name)
                    types |= {topic: type_ for topic, (type_,) in rows['topics publish']}
                    types |= {topic: type_ for topic, (type_,) in rows['topics subscribe']}
    return graphs, types


# -- the nodes of people -----------------------------------------------------------------------------------


def message_class(type_):
    package, _, name = type_.replace('/', '.').rpartition('.')
    return getattr(import_module(package), name)


def idle_robot(types):
    """A node with all topics of a robot."""
    node = rclpy.create_node('robot')
    state = NodeState('', 0.0, '', 'active', None, 'krang', (), {'terms': ['gravity']}).to_json()
    for topic, type_ in types.items():
        if topic in ('/parameter_events', '/rosout'):
            continue
        publisher = node.create_publisher(message_class(type_), topic, LATCHED)
        if topic.endswith('/state'):
            publisher.publish(String(data=state))
        if topic.startswith('/target_pose/'):
            node.create_subscription(message_class(type_), topic, lambda _: None, 1)
    return node


def motion_sender():
    """krang send, krang play."""
    node = rclpy.create_node('motion_sender')
    sender = MotionSender(node, JointTrajectory(('a',), np.zeros(1), np.zeros((1, 1))), None)
    with pytest.raises(KrangError):  # the idle robot does not subscribe to the motion
        sender.wait(1.0)
    return [node]


def client(patch):
    """krang teach, krang payload; nobody answers."""
    patch.setattr(controller_client, 'TIMEOUT', 1.0)
    node = rclpy.create_node('controller_client')
    found = ControllerClient(node, None)
    patch.setattr(node, 'destroy_client', lambda _: None)
    for request in (lambda: found.trigger('estimate_payload'), lambda: found.set_parameters({'a': 1})):
        with pytest.raises(KrangError, match='did not respond'):
            request()
    return [node]


def page(patch, is_operated):
    """krang view, with each button pressed once if an operator has opened the page."""
    patch.setattr(robot_watch, 'init', lambda _: None)
    watch = RobotWatch(load_robot('krang'))
    until(lambda: (seen := watch.poll()).controller is not None and seen.guard is not None)
    if is_operated:
        watch.operate()
        until(lambda: watch.poll() and watch.hands)
        watch.enable(True, print)
        watch.clear_fault(print)
        watch.release(print)
        watch.set_parameters({'a': 1}, print)
        watch.poll()
    return [watch._watcher, watch._asker]


def player(types):
    """krang replay --live, of a recording with all topics."""
    node = rclpy.create_node('player')
    topics = {name: SimpleNamespace(type=type_) for name, type_ in types.items()}
    bag = SimpleNamespace(topics=topics, messages=lambda _: iter(()))
    BagPlayer(bag, RecordedController('/torque_controller', '', ()), node, 1.0)
    return [node]


@pytest.fixture(scope='module')
def graphs(robot_graphs, tmp_path_factory):
    """What each file should allow, by node."""
    expected, types = robot_graphs
    enclaves = {node: {node: expected[node]} for node in NODES}
    with pytest.MonkeyPatch.context() as patch, own_domain(patch):
        init()
        robot = idle_robot(types)
        until(lambda: set(types) <= {name for name, _ in robot.get_topic_names_and_types()})

        def add(name, nodes):
            for node in nodes:
                until(lambda node=node: is_complete(node))
                graph = union(graph_of(robot, node.get_name()), OPTIONAL.get(node.get_name(), {}))
                enclaves.setdefault(name, {})[node.get_name()] = graph

        shared = [Recorder(DEFAULT, str(tmp_path_factory.mktemp('bags') / 'bag'))]
        shared += [rclpy.create_node('_ros2cli_1')]
        for name in ('observer', 'operator'):
            add(name, shared)
            nodes = page(patch, name == 'operator')
            add(name, nodes)
            for node in nodes:
                node.destroy_node()
        add('operator', [*motion_sender(), *client(patch)])
        add('player', player(types))
        shared[0].finish()
        rclpy.shutdown()
    for name in ('observer', 'operator'):
        line = union(enclaves[name].pop('_ros2cli_1'), by_hand(name, expected))
        enclaves[name][COMMAND_LINE] = line
    return enclaves


def by_hand(name, robot):
    """What `ros2` may do: read everything, and an operator may also command the controller."""
    allowed = {'topics subscribe': set(GLOBAL)}
    for node in NODES:
        for rule in ('topics publish', 'topics subscribe'):
            allowed['topics subscribe'] |= {entry.replace('~', node, 1) for entry in robot[node][rule]}
    if name == 'operator':
        allowed['topics publish'] = COMMANDS
        services = {entry for entry in robot['torque_controller']['services reply'] if entry[0] == '~'}
        allowed['services request'] = {
            *(f'torque_controller{entry[1:]}' for entry in services),
            'torque_guard/clear_fault',
            'torque_guard/release',
        }
        allowed['actions call'] = {'torque_controller/follow_joint_trajectory'}
    return allowed


# -- what they allow ---------------------------------------------------------------------------------------


@pytest.mark.parametrize('name', PROFILES)
def test_a_policy_is_the_graph_of_its_nodes(graphs, name):
    if os.environ.get('KRANG_WRITE_POLICIES'):
        write_policy(name, graphs[name])
    allowed = policy_of(name)
    assert tuple(allowed) == PROFILES[name]
    for node in PROFILES[name]:
        for rule in RULES:
            used, named = graphs[name][node][rule], allowed[node][rule]
            assert not used - named, f'{node}: {rule}: missing in the policy'
            assert not named - used, f'{node}: {rule}: superfluous in the policy'


def test_the_launch_may_change_the_state_of_the_controller_alone():
    """launch_ros has a node in the enclave / for the transitions of lifecycle nodes."""
    (rules,) = policy_of('launch', '/').values()
    assert rules['topics publish'] <= set(GLOBAL)
    assert rules['topics subscribe'] == {'torque_controller/transition_event'}
    assert rules['services request'] == {'torque_controller/change_state'}


def test_an_observer_commands_nothing():
    for rules in policy_of('observer').values():
        assert rules['topics publish'] <= set(GLOBAL)
        assert not rules['services request'] | rules['actions call']


def test_only_an_operator_may_enable_and_nobody_else_may_command():
    operator = union(*policy_of('operator').values())
    assert 'torque_controller/enable' in operator['services request']
    assert not {'effort_commands', 'guarded/effort_commands', 'joint_states'} & operator['topics publish']
    senders = {name: union(*policy_of(name).values())['topics publish'] for name in PROFILES}
    for topic, sender in (
        ('effort_commands', 'torque_controller'),
        ('guarded/effort_commands', 'torque_guard'),
    ):
        assert [name for name in PROFILES if topic in senders[name]] == [sender]
