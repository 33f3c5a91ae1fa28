"""The static executor serves what rclpy's own serves, and survives what nodes do meanwhile."""

import gc
import os
import random
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest
import rclpy
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.srv import GetParameters
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup, ReentrantCallbackGroup
from rclpy.context import Context
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Int64
from std_srvs.srv import Trigger

from krang_dynamics.errors import InputError
from krang_dynamics.nodes.ros import executor as module
from krang_dynamics.nodes.ros.executor import ENDLESS, KINDS, StaticExecutor, drain, make_executor

LONG = 10.0  # for what should happen at once [s]
SILENCE = 0.3  # in which nothing should happen [s]
DEPTH = 10
NAMESPACE = f'process_{os.getpid()}'  # two test runs may draw the same domain
pytestmark = pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning")  # of rosidl's parser
ALL = pytest.mark.parametrize('kind', ['static', 'busy', 'single'])
POLLING_TOO = pytest.mark.parametrize('kind', ['static', 'busy'])


@pytest.fixture
def context():
    context = Context()
    rclpy.init(
        context=context, domain_id=random.randint(1, 101), signal_handler_options=SignalHandlerOptions.NO
    )
    yield context
    context.try_shutdown()


@pytest.fixture
def node(context):
    node = rclpy.create_node('node', context=context, namespace=NAMESPACE)
    yield node
    node.destroy_node()


@pytest.fixture
def peer(context):
    """Sends and asks; no executor spins it."""
    node = rclpy.create_node('peer', context=context, namespace=NAMESPACE)
    yield node
    node.destroy_node()


@pytest.fixture
def kind():
    return 'static'


@pytest.fixture
def executor(context, node, kind):
    executor = new_executor(kind, context, node)
    yield executor
    executor.shutdown()


def new_executor(kind, context, node):
    busy = kind == 'busy'
    executor = make_executor('static' if busy else kind, context, node.get_logger(), busy_wait=busy)
    executor.add_node(node)
    return executor


def wait_until(condition):
    deadline = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def spin_until(executor, condition):
    deadline = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < deadline
        executor.spin_once(0.1)


def spin_for(executor, duration):
    """The number of turns that it took."""
    deadline, turns = time.monotonic() + duration, 0
    while time.monotonic() < deadline:
        executor.spin_once(0.02)
        turns += 1
    return turns


def topic(node, peer, name, callback, qos=DEPTH, **options):
    """A subscription and a publisher that know of each other."""
    subscription = node.create_subscription(Int64, name, callback, qos, **options)
    publisher = peer.create_publisher(Int64, name, qos)
    wait_until(lambda: publisher.get_subscription_count() and subscription.get_publisher_count())
    return subscription, publisher


def service(node, peer, callback, name='ask', **options):
    served = node.create_service(Trigger, name, callback, **options)
    client = peer.create_client(Trigger, name)
    assert client.wait_for_service(LONG)
    return served, client


def send(publisher, *values):
    for value in values:
        publisher.publish(Int64(data=value))
    time.sleep(0.1)  # until they are in the queue


def answer(client, executor, request=None):
    """The reply to a request, from a peer that has no executor."""
    client.call_async(request or client.srv_type.Request())
    replies = []

    def reply():
        with client.handle:
            header, response = client.handle.take_response(client.srv_type.Response)
        if header is not None:
            replies.append(response)
        return replies

    spin_until(executor, reply)
    return replies[0]


@ALL
def test_messages_are_heard_in_the_order_in_which_they_were_sent(executor, node, peer):
    received = {'a': [], 'b': []}
    publishers = [
        topic(node, peer, name, lambda message, name=name: received[name].append(message.data), 100)[1]
        for name in received
    ]
    for value in range(80):
        publishers[value % 2].publish(Int64(data=value))
    spin_until(executor, lambda: sum(map(len, received.values())) == 80)
    assert received == {'a': list(range(0, 80, 2)), 'b': list(range(1, 80, 2))}


@ALL
def test_a_callback_of_two_arguments_gets_the_message_info(executor, node, peer):
    received = []
    publisher = topic(node, peer, 'a', lambda message, info: received.append((message.data, info)))[1]
    before = time.time_ns()
    send(publisher, 7)
    spin_until(executor, lambda: received)
    (value, info), *_ = received
    assert value == 7
    assert before <= info['source_timestamp'] <= info['received_timestamp'] <= time.time_ns()


@ALL
def test_a_raw_subscription_gets_bytes(executor, node, peer):
    received = []
    publisher = topic(node, peer, 'a', received.append, raw=True)[1]
    send(publisher, 258)
    spin_until(executor, lambda: received)
    assert received == [bytes([0, 1, 0, 0]) + (258).to_bytes(8, 'little')]


@pytest.mark.processes
def test_joint_states_of_another_process_arrive_whole(executor, node, context):
    received = []
    node.create_subscription(JointState, 'joint_states', received.append, DEPTH)
    code = (
        'import rclpy, time\n'
        'from sensor_msgs.msg import JointState\n'
        f'rclpy.init(domain_id={context.get_domain_id()})\n'
        f"node = rclpy.create_node('driver', namespace='{NAMESPACE}')\n"
        "publisher = node.create_publisher(JointState, 'joint_states', 10)\n"
        'while not publisher.get_subscription_count(): time.sleep(0.01)\n'
        "names = [f'joint_{i}' for i in range(17)]\n"
        'for k in range(5):\n'
        '    publisher.publish(JointState(name=names, position=[k + i / 17 for i in range(17)]))\n'
        'publisher.wait_for_all_acked()\n'
    )
    with subprocess.Popen([sys.executable, '-c', code]) as driver:
        spin_until(executor, lambda: len(received) == 5)
        assert driver.wait(LONG) == 0
    assert [list(message.position) for message in received] == [
        [k + i / 17 for i in range(17)] for k in range(5)
    ]
    assert received[0].name == [f'joint_{i}' for i in range(17)]


def test_one_turn_serves_all_messages_first_then_services_then_timers(executor, node, peer):
    calls = []
    timer = node.create_timer(0.01, lambda: calls.append('timer'))

    def reply(request, response):
        calls.append('service')
        return response

    client = service(node, peer, reply)[1]
    second = topic(node, peer, 'second', lambda message: calls.append(f'second {message.data}'))[1]
    third = topic(node, peer, 'third', lambda message: calls.append(f'third {message.data}'))[1]
    executor.spin_once(0)
    calls.clear()
    client.call_async(Trigger.Request())
    send(third, 1)
    send(second, 1, 2)
    executor.spin_once(0)
    assert calls == ['second 1', 'second 2', 'third 1', 'service', 'timer']
    timer.cancel()


@POLLING_TOO
def test_a_turn_takes_no_more_than_the_depth_so_timers_and_services_live_through_a_flood(
    executor, node, peer
):
    calls = []

    def slow(message):
        calls.append('message')
        time.sleep(0.001)

    publisher = topic(node, peer, 'flood', slow)[1]
    node.create_timer(0.001, lambda: calls.append('timer'))
    client = service(node, peer, lambda request, response: response)[1]
    stop = threading.Event()

    def flood():
        while not stop.is_set():
            publisher.publish(Int64())
            time.sleep(0.0001)

    thread = threading.Thread(target=flood)
    thread.start()
    try:
        spin_for(executor, SILENCE)
        answer(client, executor)
        spin_for(executor, SILENCE)
    finally:
        stop.set()
        thread.join()
    runs = ' '.join(calls).split('timer')
    assert len(runs) > 10
    assert calls.count('message') > 100
    assert max(run.count('message') for run in runs) <= 2 * DEPTH


def test_a_queue_without_depth_is_heard_whole(executor, node, peer):
    received = []
    endless = QoSProfile(history=HistoryPolicy.KEEP_ALL)
    publisher = topic(node, peer, 'a', lambda message: received.append(message.data), endless)[1]
    send(publisher, *range(ENDLESS + 20))
    executor.spin_once(LONG)
    assert received == list(range(ENDLESS))
    executor.spin_once(LONG)
    assert received == list(range(ENDLESS + 20))


@ALL
def test_services_and_clients_of_one_node_talk_to_each_other(executor, node):
    def reply(request, response):
        response.success, response.message = True, 'here'
        return response

    node.create_service(Trigger, 'ask', reply)
    client = node.create_client(Trigger, 'ask')
    assert client.wait_for_service(LONG)
    future = client.call_async(Trigger.Request())
    rclpy.spin_until_future_complete(node, future, executor, LONG)
    assert future.result().message == 'here'
    future = client.call_async(Trigger.Request())
    spin_until(executor, future.done)
    assert future.result().success


@ALL
def test_a_guard_condition_calls_once_per_trigger(executor, node):
    calls = []
    guard = node.create_guard_condition(lambda: calls.append('guard'))
    spin_for(executor, 0.05)
    assert calls == []
    for count in (1, 2):
        guard.trigger()
        spin_for(executor, 0.05)
        assert len(calls) == count


@pytest.mark.slow
@POLLING_TOO
def test_what_is_created_later_is_served_and_what_is_destroyed_is_gone(executor, node, peer):
    received = []
    for round in range(3):
        subscription, publisher = topic(node, peer, 'late', lambda message: received.append(message.data))
        timer = node.create_timer(0.01, lambda: received.append('timer'))
        send(publisher, round)
        spin_until(executor, lambda: {0, 'timer'} <= {0 if x == round else x for x in received})  # noqa: B023
        node.destroy_subscription(subscription)
        node.destroy_timer(timer)
        received.clear()
        executor.spin_once(0)
        wait_until(lambda: publisher.get_subscription_count() == 0)  # noqa: B023
        send(publisher, 99)
        spin_for(executor, 0.05)
        assert received == []
        peer.destroy_publisher(publisher)


def test_the_wait_set_is_built_when_the_node_changes_and_only_then(executor, node, peer, monkeypatch):
    builds = []
    build = module._Prebuilt.__init__
    monkeypatch.setattr(
        module._Prebuilt, '__init__', lambda self, *args: (builds.append(1), build(self, *args))[1]
    )
    publisher = topic(node, peer, 'a', lambda message: None)[1]
    client = service(node, peer, lambda request, response: response)[1]
    node.create_timer(0.01, lambda: None)
    executor.spin_once(0)
    assert len(builds) == 1
    for _ in range(10):
        publisher.publish(Int64())
        executor.spin_once(0.05)
    answer(client, executor)
    assert len(builds) == 1
    node.create_timer(1.0, lambda: None)
    node.create_timer(1.0, lambda: None)
    spin_for(executor, 0.05)
    assert len(builds) == 2


@POLLING_TOO
def test_a_callback_may_destroy_all_that_its_turn_has_still_to_serve(executor, node, peer):
    calls = []

    def destroy(message):
        for subscription in (first, second):
            node.destroy_subscription(subscription)
        node.destroy_service(served)
        node.destroy_timer(timer)
        node.destroy_guard_condition(guard)
        node.destroy_publisher(deaf)

    first, publisher = topic(node, peer, 'first', destroy)
    second, other = topic(node, peer, 'second', lambda message: calls.append('second'))
    served, client = service(node, peer, lambda request, response: calls.append('service'))
    timer = node.create_timer(0.01, lambda: calls.append('timer'))
    guard = node.create_guard_condition(lambda: calls.append('guard'))
    deaf = node.create_publisher(
        Int64, 'events', QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
    )
    peer.create_subscription(Int64, 'events', lambda message: None, DEPTH)  # its event is ready, too
    executor.spin_once(0)
    calls.clear()
    client.call_async(Trigger.Request())
    guard.trigger()
    send(other, 1)
    send(publisher, 1, 2)
    executor.spin_once(0)
    spin_for(executor, 0.05)
    assert calls == []
    wait_until(lambda: not publisher.get_subscription_count())


@POLLING_TOO
def test_a_node_may_be_destroyed_by_its_own_callback(executor, node, peer):
    received = []

    def destroy(message):
        received.append(message.data)
        node.destroy_node()

    publisher = topic(node, peer, 'a', destroy)[1]
    node.create_timer(0.01, lambda: None)
    send(publisher, 1, 2)
    spin_until(executor, lambda: received)
    spin_for(executor, 0.05)
    assert received == [1]


@POLLING_TOO
def test_a_removed_node_is_left_alone(executor, node, peer):
    received = []
    publisher = topic(node, peer, 'a', received.append)[1]
    executor.spin_once(0)
    executor.remove_node(node)
    send(publisher, 1)
    spin_for(executor, 0.05)
    assert received == []
    assert executor.add_node(node)
    spin_until(executor, lambda: received)


class SimulatedRobot(LifecycleNode):
    """Has a subscription and a timer while configured."""

    def __init__(self, context):
        super().__init__('machine', context=context, namespace=NAMESPACE)
        self.received, self.ticks = [], 0

    def on_configure(self, state):
        self.subscription = self.create_subscription(Int64, 'a', self.hear, DEPTH)
        self.timer = self.create_timer(0.01, self.tick)
        return TransitionCallbackReturn.SUCCESS

    def on_cleanup(self, state):
        self.destroy_subscription(self.subscription)
        self.destroy_timer(self.timer)
        return TransitionCallbackReturn.SUCCESS

    def hear(self, message):
        self.received.append(message.data)

    def tick(self):
        self.ticks += 1


@ALL
def test_a_lifecycle_node_goes_through_its_transitions(context, peer, kind):
    machine = SimulatedRobot(context)
    executor = new_executor(kind, context, machine)
    client = peer.create_client(ChangeState, 'machine/change_state')
    parameters = peer.create_client(GetParameters, 'machine/get_parameters')
    publisher = peer.create_publisher(Int64, 'a', DEPTH)
    assert client.wait_for_service(LONG)
    assert parameters.wait_for_service(LONG)

    def go(transition):
        request = ChangeState.Request(transition=Transition(id=transition))
        assert answer(client, executor, request).success

    for round in range(3):
        go(Transition.TRANSITION_CONFIGURE)
        go(Transition.TRANSITION_ACTIVATE)
        wait_until(lambda: publisher.get_subscription_count() == 1)
        ticks = machine.ticks
        send(publisher, round)
        spin_until(executor, lambda: machine.received and machine.ticks > ticks)  # noqa: B023
        assert machine.received == [round]
        reply = answer(parameters, executor, GetParameters.Request(names=['use_sim_time']))
        assert reply.values[0].bool_value is False
        go(Transition.TRANSITION_DEACTIVATE)
        go(Transition.TRANSITION_CLEANUP)
        spin_for(executor, 0.05)
        ticks = machine.ticks
        wait_until(lambda: publisher.get_subscription_count() == 0)
        spin_for(executor, 0.05)
        assert machine.ticks == ticks
        machine.received.clear()
    executor.shutdown()
    machine.destroy_node()


@ALL
def test_an_exception_leaves_spin_once_and_the_executor_goes_on(executor, node, peer):
    received, asked, ticked = [], [], []

    def hear(message):
        received.append(message.data)
        if message.data < 0:
            raise RuntimeError('in a subscription')

    def reply(request, response):
        asked.append(1)
        if len(asked) == 1:
            raise RuntimeError('in a service')
        return response

    def tick():
        ticked.append(1)
        if len(ticked) == 1:
            raise RuntimeError('in a timer')

    publisher = topic(node, peer, 'a', hear)[1]
    client = service(node, peer, reply)[1]
    spin_for(executor, 0.05)
    send(publisher, -1, 2)
    with pytest.raises(RuntimeError, match='in a subscription'):
        spin_until(executor, lambda: False)
    spin_until(executor, lambda: received == [-1, 2])
    client.call_async(Trigger.Request())
    with pytest.raises(RuntimeError, match='in a service'):
        spin_until(executor, lambda: False)
    answer(client, executor)
    node.create_timer(0.01, tick)
    with pytest.raises(RuntimeError, match='in a timer'):
        spin_until(executor, lambda: False)
    spin_until(executor, lambda: len(ticked) > 2)


@ALL
def test_an_exception_in_a_task_leaves_spin_once(executor):
    async def fail():
        raise RuntimeError('in a task')

    executor.create_task(fail)
    with pytest.raises(RuntimeError, match='in a task'):
        executor.spin_once(0)
    done = executor.create_task(lambda: 5)
    spin_until(executor, done.done)
    assert done.result() == 5


@ALL
def test_spin_once_does_not_wait_when_a_task_has_ended(executor):
    gate = Future()

    async def wait():
        await gate

    task = executor.create_task(wait)
    spin_for(executor, 0.05)
    gate.set_result(None)
    begin = time.monotonic()
    executor.spin_once(LONG)
    assert task.done()
    assert time.monotonic() - begin < LONG / 2


def test_busy_waiting_ends_with_the_stream_of_messages(context, node, peer, monkeypatch):
    executor = new_executor('busy', context, node)
    polls, poll = [], executor._poll
    monkeypatch.setattr(executor, '_poll', lambda wait_set: (polls.append(1), poll(wait_set)))
    received, publisher = [], topic(node, peer, 'a', lambda message: received.append(message.data))[1]
    send(publisher, 1)
    spin_until(executor, lambda: received)
    assert not polls
    executor.spin_once(0.02)
    assert polls
    time.sleep(module.STREAM)
    polls.clear()
    spin_for(executor, SILENCE)
    assert not polls
    send(publisher, 2)
    spin_until(executor, lambda: received == [1, 2])
    executor.shutdown()


@ALL
def test_spin_once_waits_for_its_timeout_and_not_longer(executor):
    spin_for(executor, 0.05)
    begin = time.monotonic()
    executor.spin_once(0.2)
    assert 0.19 < time.monotonic() - begin < 1.0


def after(delay, act):
    thread = threading.Timer(delay, act)
    thread.start()
    return thread


def test_wake_from_another_thread_ends_the_wait(executor):
    spin_for(executor, 0.05)
    begin = time.monotonic()
    thread = after(0.2, executor.wake)
    executor.spin_once(LONG)
    assert 0.15 < time.monotonic() - begin < LONG / 2
    thread.join()


def test_a_subscription_made_in_another_thread_is_heard_in_the_same_wait(executor, node, peer):
    received = []
    publisher = peer.create_publisher(Int64, 'a', DEPTH)
    spin_for(executor, 0.05)

    def make():
        node.create_subscription(Int64, 'a', received.append, DEPTH)
        wait_until(publisher.get_subscription_count)
        publisher.publish(Int64())

    thread = after(0.1, make)
    begin = time.monotonic()
    while not received:
        executor.spin_once(LONG)
    assert time.monotonic() - begin < LONG / 2
    thread.join()


@ALL
def test_shutdown_from_another_thread_ends_the_wait_for_good(executor, node):
    spin_for(executor, 0.05)
    thread = after(0.2, executor.shutdown)
    begin = time.monotonic()
    executor.spin_once(LONG)
    executor.spin_once(LONG)
    assert 0.15 < time.monotonic() - begin < LONG / 2
    thread.join()


@POLLING_TOO
def test_a_callback_may_shut_the_executor_down(executor, node, peer):
    received = []

    def hear(message):
        received.append(message.data)
        executor.shutdown()

    publisher = topic(node, peer, 'a', hear)[1]
    node.create_timer(0.01, lambda: received.append('timer'))
    executor.spin_once(0)
    received.clear()
    send(publisher, 1, 2)
    executor.spin_once(0)
    executor.spin_once(0)
    assert received == [1]


@ALL
def test_the_end_of_the_context_ends_the_spin(executor, context):
    spin_for(executor, 0.05)
    thread = after(0.2, context.shutdown)
    begin = time.monotonic()
    with pytest.raises(ExternalShutdownException):
        executor.spin_once(LONG)
    assert 0.15 < time.monotonic() - begin < LONG / 2
    thread.join()


def test_handles_live_no_longer_than_the_executor_needs_them(executor, node, peer):
    subscription, publisher = topic(node, peer, 'a', lambda message: None)
    executor.spin_once(0)
    node.destroy_subscription(subscription)  # outside any turn: gone at once
    wait_until(lambda: publisher.get_subscription_count() == 0)
    publisher = topic(node, peer, 'b', lambda message: None)[1]
    executor.spin_once(0)
    executor.shutdown()
    node.destroy_node()
    wait_until(lambda: publisher.get_subscription_count() == 0)


@ALL
def test_a_cancelled_timer_is_silent_until_it_is_reset(executor, node):
    ticks = []

    def tick():
        ticks.append(1)
        timer.cancel()

    timer = node.create_timer(0.01, tick)
    spin_for(executor, 0.1)
    assert len(ticks) == 1
    timer.reset()
    spin_for(executor, 0.1)
    assert len(ticks) == 2


@pytest.mark.skipif(not hasattr(rclpy.timer, 'TimerInfo'), reason='timers have no info before Kilted')
@ALL
def test_a_timer_callback_gets_its_info_where_it_asks_for_it(executor, node):
    infos = []

    def tick(info: 'rclpy.timer.TimerInfo'):
        infos.append(info)

    tick.__annotations__['info'] = rclpy.timer.TimerInfo
    node.create_timer(0.01, tick)
    spin_until(executor, lambda: len(infos) == 3)
    assert infos[0].expected_call_time <= infos[0].actual_call_time


@ALL
def test_a_service_may_await_the_answer_of_another(executor, node, peer):
    group = ReentrantCallbackGroup()
    inner = node.create_client(Trigger, 'inner', callback_group=group)

    def answer_inner(request, response):
        response.message = 'from inside'
        return response

    async def reply(request, response):
        response.message = (await inner.call_async(Trigger.Request())).message
        return response

    node.create_service(Trigger, 'inner', answer_inner, callback_group=group)
    client = service(node, peer, reply, callback_group=group)[1]
    assert inner.wait_for_service(LONG)
    assert answer(client, executor).message == 'from inside'


@ALL
def test_a_coroutine_keeps_its_callback_group_until_it_ends(executor, node, peer):
    calls, gate = [], Future()
    group = MutuallyExclusiveCallbackGroup()

    async def hear(message):
        calls.append(f'begin {message.data}')
        if message.data == 1:
            await gate
        calls.append(f'end {message.data}')

    publisher = topic(node, peer, 'a', hear, callback_group=group)[1]
    other = topic(node, peer, 'b', lambda message: calls.append('other'), callback_group=group)[1]
    free = topic(node, peer, 'c', lambda message: calls.append('free'))[1]
    guard = node.create_guard_condition(lambda: calls.append('guard'), group)
    guard.trigger()
    send(publisher, 1, 2)
    spin_until(executor, lambda: calls == ['begin 1'])
    send(other, 1)
    send(free, 1)
    spin_until(executor, lambda: calls == ['begin 1', 'free'])
    spin_for(executor, module.STREAM)  # after messages an executor may poll
    assert spin_for(executor, SILENCE) < 50  # it waits, it does not whirl
    assert calls == ['begin 1', 'free']
    gate.set_result(None)
    spin_until(executor, lambda: len(calls) == 7)
    assert calls[2] == 'end 1'
    assert set(calls[3:]) == {'begin 2', 'end 2', 'other', 'guard'}


@ALL
def test_a_future_of_another_thread_ends_spin_until_future_complete(executor, node):
    future = Future()
    thread = after(0.2, lambda: future.set_result('done'))
    begin = time.monotonic()
    rclpy.spin_until_future_complete(node, future, executor, LONG)
    assert future.result() == 'done'
    assert time.monotonic() - begin < LONG / 2
    thread.join()


@POLLING_TOO
def test_a_callback_may_spin_the_executor(executor, node, peer):
    calls = []

    def hear(message):
        calls.append(message.data)
        if message.data == 1:
            node.destroy_subscription(last)
            executor.spin_once(0)

    publisher = topic(node, peer, 'first', hear)[1]
    second = topic(node, peer, 'second', lambda message: calls.append('second'))[1]
    last, third = topic(node, peer, 'last', lambda message: calls.append('last'))
    send(third, 1)
    send(second, 1)
    send(publisher, 1, 2, 3)
    executor.spin_once(LONG)
    spin_for(executor, 0.05)
    assert calls == [1, 2, 3, 'second']


@POLLING_TOO
def test_a_callback_may_cancel_a_timer_that_is_due(executor, node, peer):
    ticks = []
    timer = node.create_timer(0.01, lambda: ticks.append(1))
    publisher = topic(node, peer, 'a', lambda message: timer.cancel())[1]
    executor.spin_once(0)
    ticks.clear()
    send(publisher, 1)
    executor.spin_once(0)
    spin_for(executor, 0.05)
    assert ticks == []


@POLLING_TOO
@pytest.mark.parametrize('flood', [False, True], ids=['at rest', 'in a flood of messages'])
def test_events_are_served(executor, node, peer, flood):
    events = []
    again = topic(node, peer, 'again', lambda message: again.publish(message))[1]  # always one to hear
    if flood:
        again.publish(Int64())
    events_of = SubscriptionEventCallbacks(incompatible_qos=events.append)
    spin_for(executor, 0.05)
    node.create_subscription(Int64, 'a', lambda message: None, DEPTH, event_callbacks=events_of)
    peer.create_publisher(Int64, 'a', QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT))
    spin_until(executor, lambda: events)
    spin_for(executor, 0.05)
    assert [event.total_count for event in events] == [1]


def test_events_find_their_subscription_after_rclpy_has_waited_on_some_of_them(executor, node, peer):
    first, second, gate = [], [], Future()

    async def hear(message):
        await gate

    def listen(name, events, **options):
        matched = SubscriptionEventCallbacks(matched=events.append, use_default_callbacks=False)
        node.create_subscription(Int64, name, lambda message: None, DEPTH, event_callbacks=matched, **options)

    listen('first', first)
    listen('second', second, callback_group=ReentrantCallbackGroup())
    publisher = topic(node, peer, 'a', hear)[1]
    spin_for(executor, 0.05)
    send(publisher, 1)
    executor.spin_until_future_complete(Future(), SILENCE)  # without those of the coroutine's group
    gate.set_result(None)
    peer.create_publisher(Int64, 'second', DEPTH)
    spin_until(executor, lambda: second)
    spin_for(executor, 0.05)
    assert (len(first), len(second)) == (0, 1)


@pytest.mark.slow
@POLLING_TOO
def test_a_node_may_change_in_other_threads_while_it_is_spun(executor, node, peer):
    received, publisher = [], peer.create_publisher(Int64, 'a', DEPTH)
    deadline = time.monotonic() + 2.0

    def flood():
        while time.monotonic() < deadline:
            publisher.publish(Int64())
            time.sleep(0.0005)

    def churn():
        while time.monotonic() < deadline:
            subscription = node.create_subscription(Int64, 'a', received.append, DEPTH)
            timer = node.create_timer(0.001, lambda: None)
            guard = node.create_guard_condition(lambda: None)
            guard.trigger()
            time.sleep(0.01)
            node.destroy_guard_condition(guard)
            node.destroy_timer(timer)
            node.destroy_subscription(subscription)

    threads = [threading.Thread(target=work) for work in (flood, churn, churn)]
    for thread in threads:
        thread.start()
    while time.monotonic() < deadline:
        executor.spin_once(0.05)
    for thread in threads:
        thread.join()
    assert received
    executor.spin_once(0)
    wait_until(lambda: publisher.get_subscription_count() == 0)


def test_turns_leave_nothing_to_the_garbage_collector(executor, node, peer):
    publisher = topic(node, peer, 'a', lambda message: None)[1]
    node.create_timer(0.001, lambda: None)
    spin_for(executor, 0.05)
    gc.collect()
    gc.disable()
    try:
        for _ in range(200):
            publisher.publish(Int64())
            executor.spin_once(0.1)
        assert gc.collect() == 0
    finally:
        gc.enable()


@ALL
def test_drain_hears_messages_and_the_clock_from_inside_a_service(executor, node, peer):
    received, seen = [], []

    def blocks(request, response):
        send(publisher, *range(DEPTH + 5))
        clock.publish(Clock(clock=rclpy.time.Time(seconds=1234).to_msg()))
        time.sleep(0.1)
        assert received == []
        drain(node)
        seen.extend(received)
        response.success = node.get_clock().now().nanoseconds == 1234 * 10**9
        return response

    publisher = topic(node, peer, 'a', lambda message: received.append(message.data))[1]
    node.set_parameters([Parameter('use_sim_time', value=True)])
    clock = peer.create_publisher(Clock, '/clock', 1)
    wait_until(lambda: clock.get_subscription_count())
    client = service(node, peer, blocks)[1]
    assert answer(client, executor).success
    assert seen == list(range(5, DEPTH + 5))
    spin_for(executor, 0.05)
    assert received == seen  # nothing twice


def test_drain_gives_the_info_and_passes_over_what_a_callback_destroys(node, peer):
    received = []

    def hear(message, info):
        received.append(info['source_timestamp'])
        node.destroy_subscription(second)

    publisher = topic(node, peer, 'first', hear)[1]
    second, other = topic(node, peer, 'second', received.append)
    send(publisher, 1)
    send(other, 1)
    drain(node)
    assert len(received) == 1
    assert received[0] > 0


def test_drain_leaves_a_coroutine_to_the_executor(executor, node, peer):
    received = []

    async def hear(message):
        received.append(message.data)

    publisher = topic(node, peer, 'a', hear)[1]
    send(publisher, 1)
    drain(node)
    spin_until(executor, lambda: received == [1])


def test_single_and_static_are_what_they_are_called(context, node):
    assert type(make_executor('single', context, node.get_logger())) is SingleThreadedExecutor
    assert type(make_executor('static', context, node.get_logger())) is StaticExecutor


@pytest.mark.parametrize('kind', ['', 'Static', 'multi'])
def test_an_unknown_kind_is_refused_with_the_valid_ones(context, node, kind):
    with pytest.raises(InputError, match=', '.join(KINDS)):
        make_executor(kind, context, node.get_logger())


def test_another_rclpy_gets_its_own_executor_with_a_warning(context, node, peer, capfd, monkeypatch):
    monkeypatch.setattr(module, '_rclpy', SimpleNamespace())
    executor = make_executor('static', context, node.get_logger())
    assert type(executor) is SingleThreadedExecutor
    assert "executor 'static' does not work with this rclpy" in capfd.readouterr().err
    assert_hears(executor, node, peer)


def test_a_wait_set_that_cannot_be_built_gives_way_to_rclpy(executor, node, peer, capfd, monkeypatch):
    def refuse(*args):
        raise TypeError('incompatible constructor arguments')

    monkeypatch.setattr(module, '_rclpy', SimpleNamespace(WaitSet=refuse))
    assert_hears(executor, node, peer)
    warnings = capfd.readouterr().err
    assert warnings.count("executor 'static' does not work with this rclpy") == 1
    assert 'incompatible constructor arguments' in warnings


def test_a_take_of_another_signature_gives_way_to_rclpy(executor, node, peer, capfd, monkeypatch):
    def refuse(handle, message_type, raw):
        monkeypatch.undo()
        raise TypeError('incompatible function arguments')

    monkeypatch.setattr(module._rclpy.Subscription, 'take_message', refuse)
    assert_hears(executor, node, peer)
    assert capfd.readouterr().err.count("executor 'static' does not work with this rclpy") == 1


def assert_hears(executor, node, peer):
    received = []
    executor.add_node(node)
    publisher = topic(node, peer, 'a', lambda message: received.append(message.data))[1]
    send(publisher, 1, 2, 3)
    spin_until(executor, lambda: received == [1, 2, 3])
    executor.shutdown()


def test_the_events_executor_comes_with_a_warning(context, node, capfd):
    executor = make_executor('events', context, node.get_logger())
    assert not isinstance(executor, SingleThreadedExecutor)
    assert 'hangs in some of its builds' in capfd.readouterr().err
    executor.shutdown()


def test_without_an_events_executor_there_is_the_single_one(context, node, capfd, monkeypatch):
    monkeypatch.setitem(sys.modules, 'rclpy.experimental.events_executor', None)
    assert type(make_executor('events', context, node.get_logger())) is SingleThreadedExecutor
    assert "executor 'events' does not work with this rclpy" in capfd.readouterr().err
