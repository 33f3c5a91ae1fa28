"""NodeBase on a real node: its time, its parameters of the process, and its warnings."""

import time

import pytest
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock

from krang_dynamics.nodes.ros import node_base
from krang_dynamics.nodes.ros.node_base import LONGEST_LINE, MOST_KINDS, WARNING_PERIOD, NodeBase
from krang_dynamics.nodes.ros.ros_parameters import NODE_PARAMETERS, RosParameters

LONG = 20.0  # deadline of events that should happen at once [s]


class MinimalNode(NodeBase, Node):
    """A node with the three duties and nothing else."""

    def watch(self):
        pass

    def report(self):
        pass

    def finish(self):
        pass


@pytest.fixture
def make(context):
    nodes = []

    def make(**parameters):
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        nodes.append(MinimalNode('clocked', context=context, parameter_overrides=overrides))
        nodes[-1].begin_time()
        return nodes[-1]

    yield make
    for node in nodes:
        node.destroy_node()


def test_the_time_is_the_steady_clock_and_the_node_clock_is_wall_time(make):
    node = make()
    for _ in range(3):
        before, wall = time.monotonic(), time.time()
        now = node.now()
        assert before <= now <= time.monotonic()
        assert wall <= node.clock_now <= time.time()
        assert before <= node.arrival(wall) <= time.monotonic()


def test_with_use_sim_time_the_time_is_that_of_the_clock_topic(make, context):
    node = make(use_sim_time=True)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    publisher = node.create_publisher(Clock, '/clock', 10)
    message = Clock()
    message.clock.sec, message.clock.nanosec = 7, 250_000_000
    deadline = time.monotonic() + LONG
    while node.now() != pytest.approx(7.25, abs=1e-6):
        assert time.monotonic() < deadline
        publisher.publish(message)
        executor.spin_once(0.05)
    assert node.clock_now == pytest.approx(7.25)
    assert node.arrival(7.26) == pytest.approx(7.26)
    assert node.now() == pytest.approx(7.26)
    assert node.clock_now == pytest.approx(7.25)
    executor.shutdown()


def test_a_state_before_the_first_clock_message_sets_the_time(make):
    """Otherwise it would be too old at the first clock message, and a simulator in lock step would wait."""
    node = make(use_sim_time=True)
    assert node.now() == 0.0
    assert node.arrival(1.0) == 1.0
    assert node.now() == 1.0


def test_refusals_are_not_logged_at_the_rate_of_the_messages(make, capfd):
    node = make()
    for k in range(100):
        node.warn_of_refusal(f'joint: reason {k}')
    node.warn_of_refusal('trajectory: another kind')
    node._warned['joint'] -= WARNING_PERIOD
    node.warn_of_refusal('joint: much later')
    time.sleep(0.05)
    lines = [line for line in capfd.readouterr().err.splitlines() if 'refused: ' in line]
    assert [line.partition('refused: ')[2] for line in lines] == [
        'joint: reason 0',
        'trajectory: another kind',
        'joint: much later',
    ]


def test_a_log_is_filled_neither_by_names_that_change_nor_by_long_ones(make, capfd, monkeypatch):
    node = make()
    monkeypatch.setattr(node_base, 'monotonic', lambda: 1000.0)  # all within a second, on any machine
    for k in range(10 * MOST_KINDS):
        node.warn_of_refusal(f"unknown joint 'joint_{k}{5000 * 'x'}': ignored")
    time.sleep(0.05)
    lines = [line for line in capfd.readouterr().err.splitlines() if 'refused: ' in line]
    assert len(lines) == MOST_KINDS
    assert max(map(len, lines)) < LONGEST_LINE + 100


# -- the process ---------------------------------------------------------------------------------------


def test_a_node_states_executor_and_real_time_settings_of_its_process(make):
    plain = make()
    plain.ros_parameters = RosParameters(plain, NODE_PARAMETERS)
    assert plain.executor_kind() == ('static', False)
    assert plain.real_time() == (0, False, [])
    tuned = make(executor='single', busy_wait=True, thread_priority=10, lock_memory=True, cpu_affinity=[1])
    tuned.ros_parameters = RosParameters(tuned, NODE_PARAMETERS)
    assert tuned.executor_kind() == ('single', True)
    assert tuned.real_time() == (10, True, [1])


@pytest.mark.parametrize('duty', ['watch', 'report', 'finish'])
def test_a_node_without_one_of_its_duties_cannot_be_made(duty):
    class Incomplete(NodeBase):
        watch = report = finish = lambda self: None

    Incomplete.__abstractmethods__ = NodeBase.__abstractmethods__ & {duty}
    assert NodeBase.__abstractmethods__ == {'watch', 'report', 'finish'}
    with pytest.raises(TypeError, match=duty):
        Incomplete()
