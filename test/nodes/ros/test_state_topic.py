"""StateTopic: the latched ~/state, whose JSON every parser can read."""

import json
import time

import numpy as np
import pytest
import rclpy
from nodes.harness import LATCHED
from rclpy.executors import SingleThreadedExecutor
from std_msgs.msg import String

from krang_dynamics.control.node_state import NodeState
from krang_dynamics.nodes.ros.state_topic import StateTopic
from krang_dynamics.safety.modes import Fault

LONG = 20.0  # deadline of events that should happen at once [s]


@pytest.fixture
def node(context):
    node = rclpy.create_node('sender', context=context)
    yield node
    node.destroy_node()


def state(**changes):
    fields = {
        'event': 'enable',
        'time': 5.0,
        'step': '0000000003.000000004',
        'mode': 'active',
        'fault': None,
        'robot': 'planar_2r',
        'drivers': ('a', 'b'),
        'parameters': {},
    }
    return NodeState(**{**fields, **changes})


def strict_json(text):
    """Standard JSON, which has neither NaN nor Infinity."""

    def refuse(word):
        raise AssertionError(f'{word} is no JSON: {text}')

    return json.loads(text, parse_constant=refuse)


def test_the_state_is_latched_for_late_subscribers(context, node):
    topic = StateTopic(node)
    assert topic.topic == '/sender/state'
    sent = state(gravity=np.array([0.0, 0.0, -9.81]))
    published = topic.publish(sent)
    received = []
    node.create_subscription(String, '/sender/state', received.append, LATCHED)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    deadline = time.monotonic() + LONG
    while not received:
        assert time.monotonic() < deadline
        executor.spin_once(0.02)
    executor.shutdown()
    assert received == [published]
    data = strict_json(published.data)
    assert (data['mode'], data['fault'], data['gravity']) == ('active', None, [0.0, 0.0, -9.81])
    assert data['drivers'] == ['a', 'b']
    assert NodeState.from_json(published.data) == state(gravity=[0.0, 0.0, -9.81])


def test_numpy_numbers_stay_numbers(node):
    values = {'effort': np.float64(2.5), 'rows': np.eye(2), 'empty': np.zeros(0)}
    data = strict_json(StateTopic(node).publish(state(parameters=values)).data)
    assert data['parameters'] == {'effort': 2.5, 'rows': [[1.0, 0.0], [0.0, 1.0]], 'empty': []}


def test_numbers_that_are_not_finite_become_null(node):
    data = strict_json(StateTopic(node).publish(state(limits={'velocity': np.array([1.0, np.inf])})).data)
    assert data['limits'] == {'velocity': [1.0, None]}


def test_a_fault_has_kind_and_reason(node):
    data = strict_json(StateTopic(node).publish(state(fault=Fault('state', 'joint_1 is old'))).data)
    assert data['fault'] == {'kind': 'state', 'reason': 'joint_1 is old'}
