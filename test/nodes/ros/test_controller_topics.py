"""ControllerTopics with a real subscriber: commands, torques, terms, reference and external torque."""

import time

import numpy as np
import pytest
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

import krang_dynamics as kd
from krang_dynamics.bags.io.command_message import answers, step_of
from krang_dynamics.control.controller import Outputs, TorqueController
from krang_dynamics.control.settings import Settings
from krang_dynamics.nodes.ros.controller_topics import ControllerTopics
from krang_dynamics.safety.modes import Mode

LONG = 20.0  # deadline of events that should happen at once [s]
SILENCE = 0.2  # time in which no message may arrive [s]
STAMP = (1234, 567_000_001)
STEP, CLOCK = (77, 5), (1_700_000_000, 9)
TIMES = (STAMP, STEP, CLOCK)
WHEELS = ('left_wheel_motor', 'right_wheel_motor')


class Subscriber:
    """All messages by topic."""

    def __init__(self, context):
        self.node = rclpy.create_node('subscriber', context=context)
        self.executor = SingleThreadedExecutor(context=context)
        self.executor.add_node(self.node)
        self.received = {}

    def subscribe(self, kind, topic, qos=10):
        self.received[topic] = []
        self.node.create_subscription(kind, topic, self.received[topic].append, qos)

    def wait(self, condition):
        deadline = time.monotonic() + LONG
        while not condition():
            assert time.monotonic() < deadline, self.received
            self.executor.spin_once(0.02)

    def next(self, topic):
        """The only message that came on a topic, or will."""
        self.wait(lambda: self.received[topic])
        (message,) = self.received[topic]
        self.received[topic].clear()
        return message

    def idle(self):
        end = time.monotonic() + SILENCE
        while time.monotonic() < end:
            self.executor.spin_once(0.02)


@pytest.fixture(scope='module')
def krang():
    settings = Settings(
        terms=('gravity', 'damping'), wheels_locked=True, command_joints=('torso', 'base_pitch')
    )
    return TorqueController(kd.load_robot('krang'), settings)


@pytest.fixture(scope='module')
def node(context):
    node = LifecycleNode('sender', context=context)
    yield node
    node.destroy_node()


@pytest.fixture(scope='module')
def topics(node, krang):
    return ControllerTopics(node, krang, with_terms=True)


@pytest.fixture(scope='module')
def subscriber(context, topics):
    subscriber = Subscriber(context)
    subscriber.subscribe(Float64MultiArray, '/effort_commands')
    for topic in ('torques', 'terms/gravity', 'terms/damping', 'external_torques', 'reference'):
        subscriber.subscribe(JointState, f'/sender/{topic}')
    expected = [publisher for publisher in topics.publishers if publisher.topic_name in subscriber.received]
    assert len(expected) == len(subscriber.received)
    subscriber.wait(lambda: all(publisher.get_subscription_count() == 1 for publisher in expected))
    yield subscriber
    subscriber.executor.shutdown()


@pytest.fixture
def active(node, topics):
    """The publishers as they are once the node is active, and inactive again afterwards."""
    for publisher in topics.publishers:
        publisher.on_activate(None)
    yield topics
    for publisher in topics.publishers:
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


def test_nothing_is_sent_before_the_node_is_active(topics, subscriber):
    topics.send(outputs(), TIMES)
    topics.explain(outputs(), STAMP)
    subscriber.idle()
    assert not any(subscriber.received.values())


def test_the_command_names_its_drivers_in_order(active, subscriber):
    numbers = np.array([1.5, -2.5, 3.5])
    active.send(outputs(command=numbers), TIMES)
    message = subscriber.next('/effort_commands')
    assert list(message.data) == numbers.tolist()
    rows, *times = message.layout.dim
    assert (rows.label, rows.size, rows.stride) == (','.join(('torso', *WHEELS)), 3, 3)
    assert [(time.size, time.stride) for time in times] == [(1, 1)] * 3
    assert message.layout.data_offset == 0


@pytest.mark.parametrize('stamp', [(0, 0), (1, 5), (1794822969, 858534054), (2**31 - 1, 999999999)])
def test_the_command_names_the_state_that_it_answers(active, subscriber, stamp):
    active.send(outputs(), (stamp, STEP, CLOCK))
    message = subscriber.next('/effort_commands')
    assert list(message.data) == [0.0, 1.0, 2.0]
    seconds, nanoseconds = message.layout.dim[1].label.split('.')
    assert (int(seconds), int(nanoseconds)) == stamp
    assert len(nanoseconds) == 9
    assert answers(message, stamp)
    assert not answers(message, (stamp[0], stamp[1] + 1))
    assert answers(Float64MultiArray(data=[1.0]), stamp)  # a command without labels


@pytest.mark.parametrize('stamp', [(-1, 0), (-(2**31), 0), (0, 10**9), (7, 2**32 - 1)])
def test_an_invalid_stamp_does_not_change_the_numbers(active, subscriber, stamp):
    active.send(outputs(), (stamp, STEP, CLOCK))
    message = subscriber.next('/effort_commands')
    assert list(message.data) == [0.0, 1.0, 2.0]
    assert answers(message, (0, 0))


def test_the_command_has_the_times_of_its_step_and_of_the_node_clock(active, subscriber):
    active.send(outputs(), TIMES)
    message = subscriber.next('/effort_commands')
    assert step_of(message) == tuple(second * 10**9 + rest for second, rest in TIMES)
    assert [len(time.label) for time in message.layout.dim[1:]] == [20, 20, 20]


def test_no_command_is_no_message(active, subscriber):
    assert active.send(outputs(command=None, torque=None), TIMES) is None
    subscriber.idle()
    assert not any(subscriber.received.values())


def test_each_command_is_its_own_message(active, subscriber):
    sent = [active.send(outputs(command=np.full(3, float(k))), TIMES) for k in range(3)]
    assert len({bytes(data) for data in sent}) == 3
    subscriber.wait(lambda: any(list(m.data) == [2.0] * 3 for m in subscriber.received['/effort_commands']))
    subscriber.received['/effort_commands'].clear()


# -- torques, terms, reference -------------------------------------------------------------------------


def test_torques_have_names_n_m_and_the_stamp_of_the_state(active, subscriber, krang):
    out = outputs()
    active.explain(out, STAMP)
    message = subscriber.next('/sender/torques')
    assert list(message.name) == ['torso', 'base_pitch']
    assert list(message.effort) == [out.torque[2], out.torque[0]]
    assert (len(message.position), len(message.velocity)) == (0, 0)
    assert stamp_of(message) == STAMP
    for term in ('gravity', 'damping'):
        message = subscriber.next(f'/sender/terms/{term}')
        assert tuple(message.name) == krang.robot.joint_names
        assert list(message.effort) == out.terms[term].tolist()
        assert stamp_of(message) == STAMP


def test_a_term_that_was_not_evaluated_is_not_published(active, subscriber):
    active.explain(outputs(terms={'gravity': np.ones(17)}), STAMP)
    subscriber.next('/sender/terms/gravity')
    subscriber.next('/sender/torques')
    subscriber.idle()
    assert not any(subscriber.received.values())


def test_external_torques_are_published_where_they_are_estimated(active, subscriber, krang):
    active.explain(outputs(terms={}, external=np.arange(17.0)), STAMP)
    message = subscriber.next('/sender/external_torques')
    assert tuple(message.name) == krang.robot.joint_names
    assert (list(message.effort), stamp_of(message)) == (np.arange(17.0).tolist(), STAMP)
    subscriber.next('/sender/torques')


def test_the_reference_is_published_with_the_terms(active, subscriber, krang):
    desired = (np.arange(17.0), np.arange(17.0) / 2)
    active.explain(outputs(terms={}, reference=desired), STAMP)
    message = subscriber.next('/sender/reference')
    assert tuple(message.name) == krang.robot.joint_names
    assert (list(message.position), list(message.velocity)) == (desired[0].tolist(), desired[1].tolist())
    assert (len(message.effort), stamp_of(message)) == (0, STAMP)
    subscriber.next('/sender/torques')


def test_by_default_no_terms_are_published(context, krang):
    node = LifecycleNode('quiet', context=context)
    ControllerTopics(node, krang, with_terms=False)
    topics = [name for name, _ in node.get_publisher_names_and_types_by_node('quiet', '/')]
    assert {'/effort_commands', '/quiet/torques'} <= set(topics)
    assert not any('terms' in name for name in topics)
    node.destroy_node()


def test_commands_are_reliable_and_volatile(node):
    (info,) = [i for i in node.get_publishers_info_by_topic('/effort_commands') if i.node_name == 'sender']
    assert info.qos_profile.reliability.name == 'RELIABLE'
    assert info.qos_profile.durability.name == 'VOLATILE'


def test_the_recorder_gets_the_names_of_the_topics(topics):
    assert (topics.command_topic, topics.torque_topic) == ('/effort_commands', '/sender/torques')


def test_what_no_node_receives_is_encoded_for_the_flight_recorder_but_not_published(
    context, krang, monkeypatch
):
    node = LifecycleNode('unheard', context=context)
    topics = ControllerTopics(node, krang, with_terms=True)
    published = []
    for publisher in topics.publishers:
        monkeypatch.setattr(publisher, 'publish', lambda data, p=publisher: published.append(p.topic_name))
    monkeypatch.setattr(topics.publishers[0], 'get_subscription_count', lambda: 0)
    assert topics.send(outputs(), TIMES)  # also without a subscriber: a driver may be about to match
    assert topics.explain(outputs(reference=(np.zeros(17),) * 2, external=np.zeros(17)), STAMP)
    assert published == ['/effort_commands']
    node.destroy_node()
