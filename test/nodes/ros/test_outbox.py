"""What a controller publishes, heard by a real subscriber: commands, torques, terms, and its state."""

import json
import time

import numpy as np
import pytest
import rclpy
from nodes.bench import LATCHED
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

import krang_dynamics as kd
from krang_dynamics.control.controller import Outputs, TorqueController
from krang_dynamics.control.settings import Settings
from krang_dynamics.nodes.ros.command_message import answers
from krang_dynamics.nodes.ros.flight_recorder import FlightRecorder
from krang_dynamics.nodes.ros.outbox import Outbox
from krang_dynamics.nodes.ros.state_topic import StateTopic
from krang_dynamics.safety.modes import Mode

LONG = 20.0  # for what should happen at once [s]
SILENCE = 0.2  # in which nothing should happen [s]
STAMP = (1234, 567_000_001)
WHEELS = ('left_wheel_motor', 'right_wheel_motor')


class Listener:
    """All messages by topic."""

    def __init__(self, context):
        self.node = rclpy.create_node('listener', context=context)
        self.executor = SingleThreadedExecutor(context=context)
        self.executor.add_node(self.node)
        self.heard = {}

    def listen(self, kind, topic, qos=10):
        self.heard[topic] = []
        self.node.create_subscription(kind, topic, self.heard[topic].append, qos)

    def wait(self, condition):
        deadline = time.monotonic() + LONG
        while not condition():
            assert time.monotonic() < deadline, self.heard
            self.executor.spin_once(0.02)

    def next(self, topic):
        """The only message that came on a topic, or will."""
        self.wait(lambda: self.heard[topic])
        (message,) = self.heard[topic]
        self.heard[topic].clear()
        return message

    def idle(self):
        end = time.monotonic() + SILENCE
        while time.monotonic() < end:
            self.executor.spin_once(0.02)


@pytest.fixture(scope='module')
def krang():
    settings = Settings(('gravity', 'damping'), wheels_locked=True, command_joints=('torso', 'base_pitch'))
    return TorqueController(kd.load_robot('krang'), settings)


@pytest.fixture(scope='module')
def node(context):
    node = LifecycleNode('sender', context=context)
    yield node
    node.destroy_node()


@pytest.fixture(scope='module')
def outbox(node, krang):
    return Outbox(node, krang, with_terms=True)


@pytest.fixture(scope='module')
def listener(context, outbox):
    listener = Listener(context)
    listener.listen(Float64MultiArray, '/effort_commands')
    for topic in ('torques', 'terms/gravity', 'terms/damping', 'external_torques', 'reference'):
        listener.listen(JointState, f'/sender/{topic}')
    heard = [publisher for publisher in outbox.publishers if publisher.topic_name in listener.heard]
    assert len(heard) == len(listener.heard)
    listener.wait(lambda: all(publisher.get_subscription_count() == 1 for publisher in heard))
    yield listener
    listener.executor.shutdown()


@pytest.fixture
def active(node, outbox):
    """The publishers as they are once the node is active, and inactive again afterwards."""
    for publisher in outbox.publishers:
        publisher.on_activate(None)
    yield outbox
    for publisher in outbox.publishers:
        publisher.on_deactivate(None)


def outputs(**changes):
    torque = np.linspace(-3.0, 3.0, 17)
    terms = {'gravity': torque + 1.0, 'damping': torque - 1.0}
    return Outputs(
        Mode.ACTIVE, None, **{'torque': torque, 'command': np.arange(3.0), 'terms': terms, **changes}
    )


def stamp_of(message):
    return message.header.stamp.sec, message.header.stamp.nanosec


# -- commands ------------------------------------------------------------------------------------------


def test_nothing_is_sent_before_the_node_is_active(outbox, listener):
    outbox.send(outputs(), STAMP)
    outbox.tell(outputs(), STAMP)
    listener.idle()
    assert not any(listener.heard.values())


def test_the_command_says_in_which_order_its_numbers_are(active, listener):
    numbers = np.array([1.5, -2.5, 3.5])
    active.send(outputs(command=numbers), STAMP)
    message = listener.next('/effort_commands')
    assert list(message.data) == numbers.tolist()
    rows, columns = message.layout.dim
    assert (rows.label, rows.size, rows.stride) == (','.join(('torso', *WHEELS)), 3, 3)
    assert (columns.size, columns.stride) == (1, 1)
    assert message.layout.data_offset == 0


@pytest.mark.parametrize('stamp', [(0, 0), (1, 5), (1794822969, 858534054), (2**31 - 1, 999999999)])
def test_the_command_says_which_state_it_answers(active, listener, stamp):
    active.send(outputs(), stamp)
    message = listener.next('/effort_commands')
    assert list(message.data) == [0.0, 1.0, 2.0]
    seconds, nanoseconds = message.layout.dim[1].label.split('.')
    assert (int(seconds), int(nanoseconds)) == stamp
    assert len(nanoseconds) == 9
    assert answers(message, stamp)
    assert not answers(message, (stamp[0], stamp[1] + 1))
    assert answers(Float64MultiArray(data=[1.0]), stamp)  # of somebody who does not say


@pytest.mark.parametrize('stamp', [(-1, 0), (-(2**31), 0), (0, 10**9), (7, 2**32 - 1)])
def test_a_stamp_that_is_no_time_does_not_touch_the_numbers(active, listener, stamp):
    active.send(outputs(), stamp)
    message = listener.next('/effort_commands')
    assert list(message.data) == [0.0, 1.0, 2.0]
    assert answers(message, (0, 0))


def test_no_command_is_no_message(active, listener):
    assert active.send(outputs(command=None, torque=None), STAMP) is None
    listener.idle()
    assert not any(listener.heard.values())


def test_each_command_is_its_own_message(active, listener):
    sent = [active.send(outputs(command=np.full(3, float(k))), STAMP) for k in range(3)]
    assert len({bytes(data) for data in sent}) == 3
    listener.wait(lambda: any(list(m.data) == [2.0] * 3 for m in listener.heard['/effort_commands']))
    listener.heard['/effort_commands'].clear()


# -- what is said about them ---------------------------------------------------------------------------


def test_torques_have_names_n_m_and_the_stamp_of_the_state(active, listener, krang):
    out = outputs()
    active.tell(out, STAMP)
    message = listener.next('/sender/torques')
    assert list(message.name) == ['torso', 'base_pitch']
    assert list(message.effort) == [out.torque[2], out.torque[0]]
    assert (len(message.position), len(message.velocity)) == (0, 0)
    assert stamp_of(message) == STAMP
    for term in ('gravity', 'damping'):
        message = listener.next(f'/sender/terms/{term}')
        assert tuple(message.name) == krang.robot.joint_names
        assert list(message.effort) == out.terms[term].tolist()
        assert stamp_of(message) == STAMP


def test_a_term_that_was_not_evaluated_is_not_published(active, listener):
    active.tell(outputs(terms={'gravity': np.ones(17)}), STAMP)
    listener.next('/sender/terms/gravity')
    listener.next('/sender/torques')
    listener.idle()
    assert not any(listener.heard.values())


def test_external_torques_are_published_where_they_are_observed(active, listener, krang):
    active.tell(outputs(terms={}, external=np.arange(17.0)), STAMP)
    message = listener.next('/sender/external_torques')
    assert tuple(message.name) == krang.robot.joint_names
    assert (list(message.effort), stamp_of(message)) == (np.arange(17.0).tolist(), STAMP)
    listener.next('/sender/torques')


def test_the_reference_is_published_with_the_terms(active, listener, krang):
    desired = (np.arange(17.0), np.arange(17.0) / 2)
    active.tell(outputs(terms={}, reference=desired), STAMP)
    message = listener.next('/sender/reference')
    assert tuple(message.name) == krang.robot.joint_names
    assert (list(message.position), list(message.velocity)) == (desired[0].tolist(), desired[1].tolist())
    assert (len(message.effort), stamp_of(message)) == (0, STAMP)
    listener.next('/sender/torques')


def test_without_being_asked_no_terms_are_published(context, krang):
    node = LifecycleNode('quiet', context=context)
    Outbox(node, krang, with_terms=False)
    topics = [name for name, _ in node.get_publisher_names_and_types_by_node('quiet', '/')]
    assert {'/effort_commands', '/quiet/torques'} <= set(topics)
    assert not any('terms' in name for name in topics)
    node.destroy_node()


def test_commands_are_reliable_and_only_the_newest_counts(node):
    (info,) = [i for i in node.get_publishers_info_by_topic('/effort_commands') if i.node_name == 'sender']
    assert info.qos_profile.reliability.name == 'RELIABLE'
    assert info.qos_profile.durability.name == 'VOLATILE'


def test_the_recorder_learns_the_types(outbox, tmp_path):
    recorder = FlightRecorder(tmp_path, 'x')
    outbox.announce(recorder)
    assert recorder._types['/effort_commands'] == 'std_msgs/msg/Float64MultiArray'
    assert recorder._types['/sender/torques'] == 'sensor_msgs/msg/JointState'


# -- ~/state -------------------------------------------------------------------------------------------


def strictly(text):
    """JSON as every reader takes it: NaN and Infinity are none."""

    def refuse(word):
        raise AssertionError(f'{word} is no JSON: {text}')

    return json.loads(text, parse_constant=refuse)


def test_the_state_is_latched_and_reaches_those_who_come_late(context, listener):
    node = rclpy.create_node('teller', context=context)
    state = StateTopic(node)
    assert state.topic == '/teller/state'
    told = state.publish(mode='active', fault=None, gravity=np.array([0.0, 0.0, -9.81]), drivers=('a', 'b'))
    listener.listen(String, '/teller/state', LATCHED)
    message = listener.next('/teller/state')
    assert message == told
    assert strictly(message.data) == {
        'mode': 'active',
        'fault': None,
        'gravity': [0.0, 0.0, -9.81],
        'drivers': ['a', 'b'],
    }
    node.destroy_node()


def test_numbers_of_numpy_stay_numbers_in_the_state(context):
    node = rclpy.create_node('counter', context=context)
    told = strictly(StateTopic(node).publish(effort=np.float64(2.5), rows=np.eye(2), empty=np.zeros(0)).data)
    assert told == {'effort': 2.5, 'rows': [[1.0, 0.0], [0.0, 1.0]], 'empty': []}
    node.destroy_node()


def test_the_state_is_json_though_a_number_is_not_finite(context):
    node = rclpy.create_node('limiter', context=context)
    data = strictly(StateTopic(node).publish(limits={'velocity': np.array([1.0, np.inf])}).data)
    assert data['limits'] == {'velocity': [1.0, None]}
    node.destroy_node()
