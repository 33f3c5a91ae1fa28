"""krang replay --live: a real process, received by another."""

import pytest
from bags.bagging import START, record_model
from nodes.harness import Harness, Topic
from nodes.krang_command import Command
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from krang_dynamics.bags.io.reader import Bag
from krang_dynamics.robot.library import load_robot

pytestmark = pytest.mark.processes


@pytest.fixture
def ros():
    with Harness() as harness:
        yield harness


def test_a_bag_is_played_with_its_clock(ros, tmp_path):
    path = record_model(tmp_path / 'bag', load_robot('planar_2r'), duration=2.0, rate=100.0)
    clocks = Topic(ros, Clock, '/clock')
    states = Topic(ros, JointState, '/joint_states')
    player = Command(ros, 'replay', str(path), '--live', '--rate', '4')
    assert player.popen.wait(30) == 0, player.log
    ros.until(lambda: len(states) == 200, 'all states')
    assert 'played 200 messages' in player.log
    recorded = [m.position.tolist() for _, m in Bag(path).read('/joint_states')]
    assert [list(record.message.position) for record in states.records] == recorded
    times = [r.message.clock.sec * 10**9 + r.message.clock.nanosec for r in clocks.records]
    assert times == sorted(times)
    assert times[0] == START
    assert times[-1] == START + 1_990_000_000
    took = states.records[-1].sent - states.records[0].sent
    assert 0.45 < took < 2.0


def test_a_replay_does_not_mix_with_a_real_robot(ros, tmp_path):
    path = record_model(tmp_path / 'bag', load_robot('planar_2r'), duration=0.5)
    ros.node.create_publisher(JointState, '/joint_states', 10)
    Topic(ros, JointState, '/joint_states')
    player = Command(ros, 'replay', str(path), '--live')
    assert player.popen.wait(30) == 2
    assert 'another node publishes /joint_states' in player.log
