"""The controller of a recording, and which of several."""

import pytest
from bags.bagging import START, record_model

from krang_dynamics.bags.io.reader import Bag
from krang_dynamics.bags.io.writer import BagWriter, prepare
from krang_dynamics.bags.replay.recorded_controller import recorded_controller
from krang_dynamics.control.node_state import NodeState
from krang_dynamics.errors import BagError
from krang_dynamics.robot.library import load_robot
from krang_dynamics.safety.modes import Fault

pytest.importorskip('rosbags', reason='rosbags is not installed')


def state(event='mode', mode='active', fault=None, **more):
    entries = {'time': 0.0, 'step': '', 'robot': 'r', 'drivers': ('d',), 'parameters': {'a': 1}}
    limits = {'effort': [1.0]}
    return NodeState(event=event, mode=mode, fault=fault, limits=limits, **{**entries, **more}).to_json()


def write(path, *messages):
    """A bag of (topic, text), a millisecond apart."""
    text = prepare().types['std_msgs/msg/String']
    with BagWriter(path) as bag:
        for k, (topic, data) in enumerate(messages):
            bag.write_message(topic, text(data=data), START + 1_000_000 * k)
    return Bag(path)


def test_names_are_resolved_as_the_node_did(tmp_path):
    recorded = recorded_controller(write(tmp_path / 'bag', ('/left/arm/state', state())))
    assert recorded.name == '/left/arm'
    assert recorded.topic('joint_states') == '/left/joint_states'
    assert recorded.topic('~/torques') == '/left/arm/torques'
    assert recorded.states[0].state.parameters == {'a': 1}


def test_of_several_controllers_one_is_chosen(tmp_path):
    bag = write(tmp_path / 'bag', ('/a/state', state()), ('/b/state', state(mode='fault')))
    with pytest.raises(BagError, match='/a, /b'):
        recorded_controller(bag)
    assert recorded_controller(bag, 'b').states[0].state.mode == 'fault'
    with pytest.raises(BagError, match="no controller 'c'"):
        recorded_controller(bag, 'c')


def test_other_states_are_no_controllers(tmp_path):
    guard = NodeState('mode', 0.0, '', 'idle', None, 'r', ('d',), {}).to_json()
    bag = write(tmp_path / 'bag', ('/torque_guard/state', guard), ('/x/state', 'no JSON'), ('/y/state', '7'))
    assert not recorded_controller(bag).states


def test_a_fault_counts_once_until_it_is_cleared(tmp_path):
    fault = Fault('state', 'old')
    bag = write(
        tmp_path / 'bag',
        ('/c/state', state()),
        ('/c/state', state('fault', 'fault', fault)),
        ('/c/state', state('parameters', 'fault', fault)),
        ('/c/state', state('clear_fault', 'disabled')),
        ('/c/state', state('fault', 'fault', fault)),
    )
    assert [record.state.event for record in recorded_controller(bag).faults] == ['fault', 'fault']


@pytest.mark.parametrize(
    ('event', 'mode', 'driving'),
    [('mode', 'active', True), ('enable', 'ramping', False), ('activate', 'disabled', False)],
)
def test_whether_torque_was_in_flight_before(event, mode, driving, tmp_path):
    assert (
        recorded_controller(write(tmp_path / 'bag', ('/c/state', state(event, mode)))).was_driving == driving
    )


def test_commands_before_the_first_state_mean_torque_in_flight(tmp_path):
    bag = write(tmp_path / 'bag', ('/c/torques', 'any'), ('/c/state', state('fault', 'fault')))
    assert recorded_controller(bag).was_driving


def test_without_a_controller_the_joint_states_give_the_namespace(tmp_path):
    path = record_model(tmp_path / 'bag', load_robot('planar_2r'), duration=0.1)
    assert recorded_controller(Bag(path)).topic('joint_states') == '/joint_states'
