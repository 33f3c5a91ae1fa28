"""The controller node in the test's own process: switches, names of topics, parameters that read back."""

import os
import time

import pytest
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import Bool

import krang_dynamics as kd
from krang_dynamics.control.messages import topic_word
from krang_dynamics.nodes.torque_controller import TorqueControllerNode

PATIENCE = 10.0  # [s]
QOS = {
    'latched': QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL),
    'reliable': QoSProfile(depth=1),
    'best effort': QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT),
}


@pytest.fixture
def ros(monkeypatch):
    """rclpy in a domain of this process."""
    monkeypatch.setenv('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    rclpy.init(domain_id=120 + os.getpid() % 80)
    executor = SingleThreadedExecutor()
    yield executor
    for node in executor.get_nodes():
        node.destroy_node()
    rclpy.shutdown()


def controller(ros, **parameters):
    """An unconfigured node."""
    given = {'robot': 'planar_2r', 'flight_recorder': '', **parameters}
    node = TorqueControllerNode()
    node.set_parameters([Parameter(name, value=value) for name, value in given.items()])
    ros.add_node(node)
    return node


def until(ros, condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        ros.spin_once(timeout_sec=0.05)


def test_any_name_becomes_a_word_of_a_topic():
    assert [topic_word(name) for name in ('tip', 'left-hand', 'tool 1.0', '2nd')] == [
        'tip', 'left_hand', 'tool_1_0', '_2nd',
    ]  # fmt: skip


@pytest.mark.parametrize('kind', QOS)
def test_an_emergency_stop_is_received_from_every_kind_of_publisher(ros, kind):
    """A latched press from before configure counts; other presses count while configured."""
    other = rclpy.create_node('switch')
    ros.add_node(other)
    switch = other.create_publisher(Bool, 'emergency_stop', QOS[kind])
    switch.publish(Bool(data=True))
    node = controller(ros)
    node.trigger_configure()
    node.trigger_activate()
    if kind != 'latched':
        until(ros, lambda: switch.get_subscription_count() >= 1)
        switch.publish(Bool(data=True))
    until(ros, lambda: node.session.controller.safety.fault is not None)
    assert node.session.controller.safety.fault.kind == 'emergency_stop'


def test_a_link_with_a_hyphen_has_a_wrench_topic(ros):
    urdf = kd.load_robot('planar_2r').urdf.text
    urdf = (urdf.decode() if isinstance(urdf, bytes) else urdf).replace('"tip"', '"tool-tip"')
    node = controller(ros, robot='', robot_description=urdf, terms=['wrench'])
    node.declare_parameter('wrench.tool-tip.convention', 'applied_by_robot')
    node.trigger_configure()
    assert '/wrench/tool_tip' in {name for name, _ in node.get_topic_names_and_types()}


def test_a_failed_configure_leaves_nothing_behind(ros, monkeypatch):
    node = controller(ros)
    before = [len(list(node.subscriptions)), len(list(node.publishers))]
    monkeypatch.setattr('krang_dynamics.nodes.ros.qos.STOP_BUTTONS', (None,))
    node.trigger_configure()
    assert [len(list(node.subscriptions)), len(list(node.publishers))] == before
    assert node._session is None


def test_an_effort_limit_above_the_urdf_reads_back_as_it_is_in_force(ros):
    node = controller(ros, **{'limits.effort': 5000.0})
    node.trigger_configure()
    assert list(node.get_parameter('limits.effort').value) == [100.0, 50.0]
    node.trigger_activate()
    assert node.set_parameters([Parameter('limits.effort', value=[7000.0, 3.0])])[0].successful
    assert list(node.get_parameter('limits.effort').value) == [100.0, 3.0]
    assert node.set_parameters([Parameter('ramp_time', value=0.3)])[0].successful
    assert node.session.controller.limits.effort.tolist() == [100.0, 3.0]
