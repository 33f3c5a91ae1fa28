"""robot_description: text as it is, or from a latched topic, or an error that names the topic."""

import threading
import time

import pytest
import rclpy
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String

from krang_dynamics.errors import ConfigError
from krang_dynamics.nodes.ros import description as module
from krang_dynamics.nodes.ros.description import description_of

URDF = '<robot name="r"><link name="l"/></robot>'
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


@pytest.fixture
def node(context):
    node = rclpy.create_node('controller', namespace='/arm', context=context)
    yield node
    node.destroy_node()


@pytest.fixture
def publisher(context):
    node = rclpy.create_node('robot_state_publisher', namespace='/arm', context=context)
    yield node.create_publisher(String, 'robot_description', LATCHED)
    node.destroy_node()


@pytest.mark.parametrize('text', ['', URDF, '<?xml version="1.0"?>\n' + URDF])
def test_text_is_the_description_and_nobody_waits(node, text):
    begin = time.monotonic()
    assert description_of(node, text) == text
    assert time.monotonic() - begin < 1.0


def test_a_latched_topic_is_heard_though_it_was_published_before(node, publisher):
    publisher.publish(String(data=URDF))
    assert description_of(node, 'robot_description') == URDF
    assert description_of(node, '/arm/robot_description') == URDF


def test_a_topic_that_is_published_later_is_waited_for(node, publisher):
    later = threading.Timer(0.3, lambda: publisher.publish(String(data=URDF)))
    later.start()
    begin = time.monotonic()
    assert description_of(node, 'robot_description') == URDF
    assert time.monotonic() - begin < module.PATIENCE
    later.join()


def test_a_topic_that_nobody_publishes_is_an_error_that_names_it(node, monkeypatch):
    monkeypatch.setattr(module, 'PATIENCE', 0.2)
    begin = time.monotonic()
    with pytest.raises(ConfigError, match=r'/arm/some_topic within 0\.2 s'):
        description_of(node, 'some_topic')
    assert 0.2 <= time.monotonic() - begin < 2.0


def test_no_subscription_is_left_behind(node, publisher):
    before = len(list(node.subscriptions))
    publisher.publish(String(data=URDF))
    description_of(node, 'robot_description')
    assert len(list(node.subscriptions)) == before


def test_what_is_neither_text_nor_the_name_of_a_topic_is_an_error_of_ours(node, monkeypatch):
    monkeypatch.setattr(module, 'PATIENCE', 0.05)
    for name in ('krang.urdf', 'two words', '7up', 'a//b'):
        with pytest.raises(ConfigError, match='robot_description'):
            description_of(node, name)
