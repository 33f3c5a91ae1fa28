"""krang record: a real process, whose bag is counted message by message."""

import pytest
from nodes.harness import Harness
from nodes.krang_command import Command
from rclpy.duration import Duration
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, String

from krang_dynamics.bags.io.reader import Bag
from krang_dynamics.nodes.recorder import compatible_qos

pytestmark = pytest.mark.slow

COUNT = 1500  # fewer than the recorder can keep waiting
DEEP = QoSProfile(depth=COUNT)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
BEST_EFFORT = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)


@pytest.fixture
def ros():
    with Harness() as harness:
        yield harness


def joint_state(k):
    return JointState(name=['joint_1', 'joint_2'], position=[float(k), 0.0], velocity=[0.0, 0.0])


def test_nothing_is_lost_however_topics_are_published_and_whenever_they_begin(ros, tmp_path):
    states = ros.node.create_publisher(JointState, '/joint_states', DEEP)
    said = ros.node.create_publisher(String, '/torque_controller/state', LATCHED)
    said.publish(String(data='published before the recorder started'))
    ros.node.create_publisher(String, '/chatter', DEEP).publish(String(data='not asked for'))
    recorder = Command(ros, 'record', '--out', str(tmp_path / 'bag'))
    ros.until(lambda: states.get_subscription_count() and said.get_subscription_count(), 'the recorder')
    for k in range(COUNT):
        states.publish(joint_state(k))
    late = ros.node.create_publisher(Bool, '/left/deadman', BEST_EFFORT)
    ros.until(late.get_subscription_count, 'the recorder to find a new topic')
    late.publish(Bool(data=True))
    once = ros.node.create_publisher(Bool, '/emergency_stop', 10)
    ros.until(once.get_subscription_count, 'the recorder, which listens already')
    once.publish(Bool(data=True))
    assert once.wait_for_all_acked(Duration(seconds=10))
    ros.node.destroy_publisher(once)
    states.publish(joint_state(COUNT))
    assert states.wait_for_all_acked(Duration(seconds=10))
    assert recorder.control_c() == 0, recorder.log

    bag = Bag(tmp_path / 'bag')
    assert [int(m.position[0]) for _, m in bag.read('/joint_states')] == list(range(COUNT + 1))
    assert [m.data for _, m in bag.read('/torque_controller/state')] == [
        'published before the recorder started'
    ]
    assert [m.data for _, m in bag.read('/left/deadman')] == [True]
    assert [m.data for _, m in bag.read('/emergency_stop')] == [True]
    assert '/chatter' not in bag.topics
    assert not bag.damage
    counted = sum(1 for _ in bag.messages(bag.topics))
    assert f'{counted} messages, ' in recorder.log


def test_named_topics_replace_the_default_and_no_bag_is_written_over(ros, tmp_path):
    chatter = ros.node.create_publisher(String, '/chatter', DEEP)
    ros.node.create_publisher(JointState, '/joint_states', DEEP)
    recorder = Command(ros, 'record', '--out', str(tmp_path / 'bag'), '/chat*')
    ros.until(chatter.get_subscription_count, 'the recorder')
    chatter.publish(String(data='hello'))
    assert chatter.wait_for_all_acked(Duration(seconds=5))
    assert recorder.control_c() == 0
    assert set(Bag(tmp_path / 'bag').topics) == {'/chatter'}
    again = Command(ros, 'record', '--out', str(tmp_path / 'bag'), '/chatter')
    assert again.popen.wait(30) == 2
    assert again.log.count('\n') == 1


def test_one_best_effort_publisher_makes_the_subscription_best_effort():
    both = compatible_qos([DEEP, BEST_EFFORT])
    assert both.reliability == ReliabilityPolicy.BEST_EFFORT
    assert compatible_qos([DEEP, LATCHED]).reliability == ReliabilityPolicy.RELIABLE
    assert compatible_qos([DEEP, LATCHED]).durability == DurabilityPolicy.VOLATILE
    assert compatible_qos([LATCHED]).durability == DurabilityPolicy.TRANSIENT_LOCAL
