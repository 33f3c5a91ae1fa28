"""What a recording says of its controller, and which of several."""

import json

import pytest
from bags.bagging import START, record_model

from krang_dynamics.bags.io.reader import Bag
from krang_dynamics.bags.io.writer import BagWriter, prepare
from krang_dynamics.bags.replay.recorded_controller import recorded_controller
from krang_dynamics.errors import BagError
from krang_dynamics.robot.library import load_robot

pytest.importorskip('rosbags')


def state(event='mode', mode='active', fault=None, **more):
    entries = {
        'event': event,
        'mode': mode,
        'fault': fault,
        'limits': {},
        'robot': 'r',
        'parameters': {'a': 1},
    }
    return json.dumps({**entries, **more})


def write(path, *messages):
    """A bag of (topic, text), a millisecond apart."""
    text = prepare().types['std_msgs/msg/String']
    with BagWriter(path) as bag:
        for k, (topic, data) in enumerate(messages):
            bag.write_message(topic, text(data=data), START + 1_000_000 * k)
    return Bag(path)


def test_names_are_resolved_as_the_node_did(tmp_path):
    story = recorded_controller(write(tmp_path / 'bag', ('/left/arm/state', state())))
    assert story.name == '/left/arm'
    assert story.topic('joint_states') == '/left/joint_states'
    assert story.topic('~/torques') == '/left/arm/torques'
    assert story.said[0].parameters == {'a': 1}


def test_of_several_controllers_one_is_chosen(tmp_path):
    bag = write(tmp_path / 'bag', ('/a/state', state()), ('/b/state', state(mode='fault')))
    with pytest.raises(BagError, match='/a, /b'):
        recorded_controller(bag)
    assert recorded_controller(bag, 'b').said[0].mode == 'fault'
    with pytest.raises(BagError, match="no controller 'c'"):
        recorded_controller(bag, 'c')


def test_other_states_are_no_controllers(tmp_path):
    guard = json.dumps({'event': 'mode', 'mode': 'idle', 'fault': None, 'parameters': {}})
    bag = write(tmp_path / 'bag', ('/torque_guard/state', guard), ('/x/state', 'no JSON'), ('/y/state', '7'))
    assert not recorded_controller(bag).said


def test_a_fault_is_told_once_however_often_it_is_said(tmp_path):
    fault = {'kind': 'state', 'reason': 'old'}
    bag = write(
        tmp_path / 'bag',
        ('/c/state', state()),
        ('/c/state', state('fault', 'fault', fault)),
        ('/c/state', state('parameters', 'fault', fault)),
        ('/c/state', state('clear_fault', 'disabled')),
        ('/c/state', state('fault', 'fault', fault)),
    )
    assert [said.event for said in recorded_controller(bag).faults] == ['fault', 'fault']


@pytest.mark.parametrize(
    ('event', 'mode', 'driving'),
    [('mode', 'active', True), ('enable', 'ramping', False), ('activate', 'disabled', False)],
)
def test_whether_torque_was_in_flight_before(event, mode, driving, tmp_path):
    assert recorded_controller(write(tmp_path / 'bag', ('/c/state', state(event, mode)))).was_driving == driving


def test_commands_before_the_first_word_were_torque_in_flight(tmp_path):
    bag = write(tmp_path / 'bag', ('/c/torques', 'any'), ('/c/state', state('fault', 'fault')))
    assert recorded_controller(bag).was_driving


def test_without_a_controller_the_states_say_which_namespace(tmp_path):
    path = record_model(tmp_path / 'bag', load_robot('planar_2r'), duration=0.1)
    assert recorded_controller(Bag(path)).topic('joint_states') == '/joint_states'
