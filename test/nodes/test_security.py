"""The SROS2 policies of config/security against the graph of the running nodes.

KRANG_WRITE_POLICIES=1 writes the policies of the nodes again.
"""

import os
import time
from fnmatch import fnmatch
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import pytest
import rclpy
from nodes.harness import PATIENCE, claim_domain
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.signals import SignalHandlerOptions

from krang_dynamics.nodes.simulator import SimulatorNode
from krang_dynamics.nodes.torque_controller import TorqueControllerNode
from krang_dynamics.nodes.torque_guard import TorqueGuardNode

FOLDER = Path(__file__).resolve().parents[2] / 'config' / 'security'
NODES = ('torque_controller', 'torque_guard', 'simulator')
RULES = ('topics publish', 'topics subscribe', 'services reply', 'services request')
GLOBAL = ('/rosout', '/parameter_events', '/diagnostics', '/clock')
FAMILIES = ('wrench', 'measured_wrench', 'target_pose', 'target_twist')  # one topic per frame


def policy_of(path):
    """What a file allows, by rule; every profile of it."""
    rules = {rule: set() for rule in RULES}
    for group in ElementTree.parse(path).getroot().iterfind('enclaves/enclave/profiles/profile/*'):
        for action, permission in group.attrib.items():
            assert permission == 'ALLOW'
            rules[f'{group.tag} {action}'] |= {entry.text for entry in group}
    return rules


def write_policy(name, rules):
    root = Element('policy', version='0.2.0')
    enclave = SubElement(SubElement(root, 'enclaves'), 'enclave', path=f'/{name}')
    profile = SubElement(SubElement(enclave, 'profiles'), 'profile', ns='/', node=name)
    for rule in RULES:
        tag, action = rule.split()
        if rules[rule]:
            group = SubElement(profile, tag, {action: 'ALLOW'})
            for entry in sorted(rules[rule]):
                SubElement(group, tag[:-1]).text = entry
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding='unicode')
    (FOLDER / f'{name}.policy.xml').write_text(f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n')


def relative(name, node):
    """A full name as a policy has it: private, global, of a family, or relative to the namespace."""
    if name in GLOBAL:
        return name
    if name.startswith(f'/{node}/'):
        private = name[len(node) + 1 :]
        return '~/terms/*' if private.startswith('/terms/') else f'~{private}'
    family = name.split('/')[1]
    return f'{family}/*' if family in FAMILIES else name[1:]


def graph_of(observer, node):
    """What a running node publishes, subscribes to, serves and calls."""
    found = (
        observer.get_publisher_names_and_types_by_node(node, '/'),
        observer.get_subscriber_names_and_types_by_node(node, '/'),
        observer.get_service_names_and_types_by_node(node, '/'),
        observer.get_client_names_and_types_by_node(node, '/'),
    )
    return {rule: {relative(name, node) for name, _ in rows} for rule, rows in zip(RULES, found, strict=True)}


def nodes_of(robot, terms, remap):
    """All nodes of a robot in this process, the controller configured."""
    common = f'-p robot:={robot} --log-level error {"-p use_sim_time:=true" if robot == "otbot" else ""}'
    wrench = '-p wrench.left_hand.convention:=applied_by_robot -p guard:=torque_guard -p publish_terms:=true'
    kinds = {
        TorqueControllerNode: f'{common} -p terms:={terms} {wrench if robot == "krang" else ""}',
        TorqueGuardNode: common,
        SimulatorNode: f'{common} -p engine:=pinocchio -p publish_clock:=true {remap}',
    }
    for kind, words in kinds.items():
        rclpy.init(args=['--ros-args', *words.split()], signal_handler_options=SignalHandlerOptions.NO)
        node = kind()
        if kind is TorqueControllerNode:
            assert node.trigger_configure() is TransitionCallbackReturn.SUCCESS
        yield node
        node.destroy_node()
        rclpy.shutdown()


@pytest.fixture(scope='module')
def graphs(tmp_path_factory):
    """The union of the graphs with Krang, which has an IMU, and Otbot, which has odometry."""
    union = {node: {rule: set() for rule in RULES} for node in NODES}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('ROS_HOME', str(tmp_path_factory.mktemp('home')))
        for robot, terms, remap in (
            ('krang', 'gravity,wrench,cartesian_impedance', '-r effort_commands:=guarded/effort_commands'),
            ('otbot', 'rolling_base', ''),
        ):
            domain, lock = claim_domain()  # of its own: the nodes of the other robot have the same names
            patch.setenv('ROS_DOMAIN_ID', str(domain))
            for node in nodes_of(robot, terms, remap):
                wanted = {relative(s.topic_name, node.get_name()) for s in node.subscriptions}
                deadline = time.monotonic() + PATIENCE
                while not wanted <= graph_of(node, node.get_name())['topics subscribe']:
                    assert time.monotonic() < deadline, wanted
                    time.sleep(0.05)
                for rule, names in graph_of(node, node.get_name()).items():
                    union[node.get_name()][rule] |= names
            lock.close()
    return union


@pytest.mark.parametrize('node', NODES)
def test_a_policy_is_the_graph_of_its_node(graphs, node):
    if os.environ.get('KRANG_WRITE_POLICIES'):
        write_policy(node, graphs[node])
    allowed = policy_of(FOLDER / f'{node}.policy.xml')
    for rule in RULES:
        assert not graphs[node][rule] - allowed[rule], f'{rule}: missing in the policy'
        assert not allowed[rule] - graphs[node][rule], f'{rule}: superfluous in the policy'


def interface():
    """Full names that the nodes offer to others, by rule of the other side."""
    offered = {rule: set() for rule in RULES}
    other = {
        'topics publish': 'topics subscribe',
        'topics subscribe': 'topics publish',
        'services reply': 'services request',
    }
    for node in NODES:
        for rule, names in policy_of(FOLDER / f'{node}.policy.xml').items():
            if rule in other:
                offered[other[rule]] |= {name.replace('~', node, 1) for name in names}
    return offered


@pytest.mark.parametrize('name', ['operator', 'observer'])
def test_people_get_only_what_the_nodes_offer(name):
    offered = interface()
    for rule, names in policy_of(FOLDER / f'{name}.policy.xml').items():
        for entry in names:
            is_own = entry.startswith('~') or entry in GLOBAL
            assert is_own or any(fnmatch(entry, pattern) for pattern in offered[rule]), f'{rule}: {entry}'


def test_an_observer_commands_nothing():
    rules = policy_of(FOLDER / 'observer.policy.xml')
    assert rules['topics publish'] <= set(GLOBAL)
    assert not [name for name in rules['services request'] if not name.startswith('~')]


def test_only_an_operator_may_enable_and_nobody_else_may_command():
    operator = policy_of(FOLDER / 'operator.policy.xml')
    assert 'torque_controller/enable' in operator['services request']
    assert not {'effort_commands', 'guarded/effort_commands', 'joint_states'} & operator['topics publish']
    senders = {node: policy_of(FOLDER / f'{node}.policy.xml')['topics publish'] for node in NODES}
    assert [node for node in NODES if 'effort_commands' in senders[node]] == ['torque_controller']
    assert [node for node in NODES if 'guarded/effort_commands' in senders[node]] == ['torque_guard']
