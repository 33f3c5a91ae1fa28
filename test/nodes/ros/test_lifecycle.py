"""Lifecycle transitions through the real services: nothing that is asked for takes the process down."""

import time

import pytest
import rclpy
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode

from krang_dynamics.nodes.ros.lifecycle import DONE, FAILED, guard_transitions

LONG = 20.0  # for what should happen at once [s]
CONFIGURE, CLEANUP, ACTIVATE, DEACTIVATE = 1, 2, 3, 4
SHUTDOWN = 5  # from unconfigured


class Clumsy(LifecycleNode):
    """Does in its transitions what the test says."""

    def __init__(self, context):
        super().__init__('clumsy', context=context)
        self.fate = {}
        self.calls = []
        guard_transitions(self)

    def _meet(self, name):
        self.calls.append(name)
        fate = self.fate.get(name, DONE)
        if isinstance(fate, Exception):
            raise fate
        return fate

    def on_configure(self, state):
        return self._meet('configure')

    def on_activate(self, state):
        return self._meet('activate')

    def on_deactivate(self, state):
        return self._meet('deactivate')

    def on_cleanup(self, state):
        return self._meet('cleanup')

    def on_error(self, state):
        return self._meet('error')


class Asking:
    """A node in an executor, and a client that asks for its transitions."""

    def __init__(self, context):
        self.node = Clumsy(context)
        self.peer = rclpy.create_node('peer', context=context)
        self.executor = SingleThreadedExecutor(context=context)
        for node in (self.node, self.peer):
            self.executor.add_node(node)
        self._change = self.peer.create_client(ChangeState, '/clumsy/change_state')
        self._get = self.peer.create_client(GetState, '/clumsy/get_state')
        assert self._change.wait_for_service(LONG)
        assert self._get.wait_for_service(LONG)

    def _ask(self, client, request):
        future = client.call_async(request)
        deadline = time.monotonic() + LONG
        while not future.done():
            assert time.monotonic() < deadline
            self.executor.spin_once(0.05)
        return future.result()

    def change(self, transition=0, label=''):
        wanted = Transition(id=transition, label=label)
        return self._ask(self._change, ChangeState.Request(transition=wanted)).success

    @property
    def state(self):
        return self._ask(self._get, GetState.Request()).current_state.label

    def end(self):
        self.executor.shutdown()
        for node in (self.node, self.peer):
            node.destroy_node()


@pytest.fixture
def asking(context):
    asking = Asking(context)
    yield asking
    asking.end()


def test_transitions_go_their_way(asking):
    for transition, state in (
        (CONFIGURE, 'inactive'),
        (ACTIVATE, 'active'),
        (DEACTIVATE, 'inactive'),
        (CLEANUP, 'unconfigured'),
    ):
        assert asking.change(transition)
        assert asking.state == state
    assert asking.node.calls == ['configure', 'activate', 'deactivate', 'cleanup']


@pytest.mark.parametrize('transition', [ACTIVATE, DEACTIVATE, CLEANUP, 99, 255])
def test_a_transition_that_does_not_exist_is_refused_and_the_node_lives_on(asking, transition, capfd):
    for _ in range(2):
        assert not asking.change(transition)
    assert asking.state == 'unconfigured'
    assert asking.node.calls == []
    assert asking.change(CONFIGURE)
    assert 'transition refused' in capfd.readouterr().err


def test_a_label_that_does_not_exist_is_refused_and_one_that_does_is_taken(asking):
    assert not asking.change(label='dance')
    assert asking.change(label='configure')
    assert asking.state == 'inactive'


def test_a_transition_that_fails_stays_where_it_was(asking):
    asking.node.fate['configure'] = FAILED
    assert not asking.change(CONFIGURE)
    assert asking.state == 'unconfigured'
    del asking.node.fate['configure']
    assert asking.change(CONFIGURE)


def test_an_exception_in_a_transition_is_logged_and_goes_to_error_processing(asking, capfd):
    asking.node.fate['configure'] = RuntimeError('the cable is loose')
    assert not asking.change(CONFIGURE)
    assert asking.node.calls == ['configure', 'error']
    assert asking.state == 'unconfigured'
    log = capfd.readouterr().err
    assert 'RuntimeError: the cable is loose' in log
    assert 'in on_configure' in log
    del asking.node.fate['configure']
    assert asking.change(CONFIGURE)


def test_an_exception_in_a_transition_of_an_active_node_is_logged_too(asking, capfd):
    asking.change(CONFIGURE)
    asking.change(ACTIVATE)
    asking.node.fate['deactivate'] = ValueError('no way back')
    assert not asking.change(DEACTIVATE)
    assert 'ValueError: no way back' in capfd.readouterr().err
    assert asking.state == 'unconfigured'  # where a handled error leads


def test_after_shutdown_nothing_more_is_done_and_nothing_breaks(asking):
    assert asking.change(SHUTDOWN)
    assert asking.state == 'finalized'
    for transition in (CONFIGURE, ACTIVATE, SHUTDOWN):
        assert not asking.change(transition)
    assert asking.state == 'finalized'
