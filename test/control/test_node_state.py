"""~/state as JSON: one writer, one reader."""

import json
from math import inf, nan

import numpy as np
import pytest

from krang_dynamics.control.node_state import NodeState
from krang_dynamics.errors import InputError
from krang_dynamics.safety.modes import Fault

PLAIN = {
    'event': 'enable',
    'time': 12.5,
    'step': '7.25',
    'mode': 'ramping',
    'fault': None,
    'robot': 'planar_2r',
    'drivers': ('joint_1', 'joint_2'),
    'parameters': {'terms': ['gravity'], 'ramp_time': 1.0, 'auto_enable': False, 'gains.kp': None},
}
FULL = {
    **PLAIN,
    'fault': Fault('state', "joint 'a' is old"),
    'contact': 'contact',
    'payload': [{'frame': 'tip', 'mass': 2.0, 'com': [0.0, 0.0, 0.1]}],
    'gravity': [0.0, 0.0, -9.81],
    'limits': {'effort': [100.0, 50.0]},
    'trajectory': 1_700_000_000_123_456_789,
}


@pytest.mark.parametrize('fields', [PLAIN, FULL], ids=['plain', 'full'])
def test_what_is_written_is_read_back(fields):
    state = NodeState(**fields)
    assert NodeState.from_json(state.to_json()) == state


def test_payloads_are_read_for_their_robot_only():
    whole = {'frame': 'tip', 'mass': 2.0, 'com': [0.0, 0.0, 0.1], 'inertia': [[0.0] * 3] * 3}
    (payload,) = NodeState(**{**FULL, 'payload': [whole]}).payloads('planar_2r')
    assert (payload.frame, payload.mass, payload.com[2]) == ('tip', 2.0, 0.1)
    with pytest.raises(InputError, match="state of 'planar_2r'"):
        NodeState(**FULL).payloads('krang')
    with pytest.raises(InputError, match='payload'):
        NodeState(**FULL).payloads('planar_2r')  # it has no inertia


def test_arrays_and_tuples_become_lists():
    state = NodeState(**{**FULL, 'gravity': np.array([0.0, 1.0, -9.0]), 'limits': {'effort': np.ones(2)}})
    read = NodeState.from_json(state.to_json())
    assert read.gravity == [0.0, 1.0, -9.0]
    assert read.limits == {'effort': [1.0, 1.0]}
    assert json.loads(state.to_json())['drivers'] == ['joint_1', 'joint_2']


def test_numbers_that_are_not_finite_are_null_and_the_text_is_strict_json():
    state = NodeState(**{**PLAIN, 'gravity': [nan, inf, -inf], 'limits': {'velocity': np.array([inf, 1.0])}})

    def refuse(constant):
        raise AssertionError(f'{constant} is no JSON')

    data = json.loads(state.to_json(), parse_constant=refuse)
    assert data['gravity'] == [None, None, None]
    assert data['limits'] == {'velocity': [None, 1.0]}
    assert NodeState.from_json(state.to_json()).gravity == [None, None, None]


def test_a_value_of_another_type_is_written_as_text():
    state = NodeState(**{**PLAIN, 'parameters': {'path': PLAIN.keys}})
    assert isinstance(NodeState.from_json(state.to_json()).parameters['path'], str)


def test_entries_of_a_newer_writer_are_ignored():
    data = json.loads(NodeState(**PLAIN).to_json())
    assert NodeState.from_json(json.dumps({**data, 'temperature': 20.0})) == NodeState(**PLAIN)


@pytest.mark.parametrize(
    'text',
    [
        '',
        'enabled',
        '{',
        'null',
        '3',
        '[]',
        '[' * 100_000,
        '"text"',
        '{}',
        '{"event": "enable"}',
        json.dumps({**PLAIN, 'fault': 'broken'}),
        json.dumps({**PLAIN, 'fault': {'kind': 'state'}}),
        json.dumps({**PLAIN, 'drivers': 3}),
    ],
)
def test_any_other_text_is_none(text):
    assert NodeState.from_json(text) is None
