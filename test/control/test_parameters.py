"""Parameters: what a value may be, what it becomes, and the table that users rely on."""

from functools import cache
from math import inf, nan, pi

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import krang_dynamics as kd
from krang_dynamics.control.parameters import OF_FRAME, PARAMETERS, Parameter, frame_parameters
from krang_dynamics.control.settings import TERMS, Settings
from krang_dynamics.errors import InputError, UnknownNameError
from krang_dynamics.nodes.ros.node_parameters import NODE_PARAMETERS

# Defaults, and whether they are live, as users know them; a default of None is the robot's own, or none.
TABLE = {
    'robot': ('', False),
    'robot_description': ('', False),
    'terms': (['gravity'], False),
    'command_joints': (None, False),
    'command_unit': (None, False),
    'auto_enable': (False, False),
    'gains.bandwidth': (10 * pi, True),
    'gains.damping_ratio': (1.0, True),
    'gains.kp': (None, True),
    'gains.kd': (None, True),
    'damping': (0.0, True),
    'limits.effort': (None, True),
    'limits.effort_rate': (None, True),
    'limits.velocity': (None, True),
    'limits.position_margin': (None, True),
    'limits.following_error': (None, True),
    'ramp_time': (1.0, True),
    'stop.policy': (None, False),
    'stop.time': (None, False),
    'stop.blind_time': (None, False),
    'stop.rate': (None, False),
    'state_timeout': (0.1, True),
    'reference_timeout': (None, True),
    'wrench_timeout': (0.1, True),
    'deadman.required': (False, False),
    'deadman.timeout': (0.2, True),
    'missing_velocity': ('error', False),
    'wrench.{}.convention': (None, False),
    'wrench.{}.max_force': (None, True),
    'wrench.{}.max_moment': (None, True),
    'payload.{}.mass': (0.0, True),
    'payload.{}.com': ([0.0, 0.0, 0.0], True),
    'payload.{}.inertia': ([0.0] * 6, True),
    'gravity': (None, True),
    'hardware_compensates_gravity': (False, False),
    'observer.gain': (25.0, True),
    'observer.contact': (5.0, True),
    'observer.collision': (30.0, True),
    'observer.reaction': ('none', True),
    'executor': ('static', False),
    'thread_priority': (0, False),
    'lock_memory': (False, False),
    'cpu_affinity': (None, False),
    'publish_terms': (False, False),
}
robot_named = cache(kd.load_robot)
ALL = (*PARAMETERS, *OF_FRAME, *NODE_PARAMETERS)
BY_NAME = {parameter.name: parameter for parameter in ALL}
NUMBER = Parameter('x', 'number', 0.0, 'a number', -2.0, 5.0)
NUMBERS = Parameter('x', 'numbers', None, 'numbers', -2.0, 5.0)
PER_JOINT = Parameter('x', 'per_joint', None, 'numbers', 0.0, 5.0)
WHOLE = Parameter('x', 'whole', 0, 'a whole number', 0, 9)
WHOLES = Parameter('x', 'wholes', None, 'whole numbers', 0, 9)
FLAG = Parameter('x', 'flag', False, 'a flag')
TEXT = Parameter('x', 'text', '', 'words')
CHOICE = Parameter('x', 'text', 'hold', 'a choice', choices=('hold', 'lower'))
NAMES = Parameter('x', 'names', None, 'names')


# -- the table -----------------------------------------------------------------------------------------


@pytest.mark.parametrize('name', TABLE)
def test_name_default_and_liveness_are_as_documented(name):
    default, live = TABLE[name]
    assert BY_NAME[name].default == default
    assert BY_NAME[name].live is live


def test_names_are_given_once():
    assert len(BY_NAME) == len(ALL)


@pytest.mark.parametrize('parameter', ALL, ids=lambda parameter: parameter.name)
def test_each_default_is_a_value_that_may_be_given_and_each_parameter_is_described(parameter):
    assert parameter.checked(parameter.default) == parameter.default
    assert parameter.description
    if parameter.kind in ('number', 'numbers', 'per_joint', 'whole', 'wholes'):
        assert np.isfinite([parameter.low, parameter.high]).all()


def test_defaults_are_those_of_a_controller_made_without_parameters():
    settings = Settings(('gravity',))
    assert BY_NAME['gains.bandwidth'].default == settings.bandwidth
    assert BY_NAME['gains.damping_ratio'].default == settings.damping_ratio
    assert BY_NAME['damping'].default == settings.damping
    assert BY_NAME['deadman.timeout'].default == settings.deadman_timeout
    for name in ('ramp_time', 'state_timeout', 'reference_timeout', 'wrench_timeout', 'missing_velocity'):
        assert BY_NAME[name].default == getattr(settings, name)
    for name in ('gain', 'contact', 'collision', 'reaction'):
        assert BY_NAME[f'observer.{name}'].default == getattr(settings.observer, name)


def test_the_description_of_terms_names_them_all():
    assert all(term in BY_NAME['terms'].description for term in TERMS)


# -- values that are taken -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('parameter', 'value', 'used'),
    [
        (NUMBER, 1.5, 1.5),
        (NUMBER, 1, 1.0),
        (NUMBER, -2, -2.0),
        (NUMBER, np.float64(5.0), 5.0),
        (NUMBERS, [1, 2], [1.0, 2.0]),
        (NUMBERS, (0.5, -0.5), [0.5, -0.5]),
        (NUMBERS, np.array([1.0]), [1.0]),
        (NUMBERS, [], []),
        (PER_JOINT, 3, 3.0),
        (PER_JOINT, [3, 4.5], [3.0, 4.5]),
        (WHOLE, 9, 9),
        (WHOLES, [0, 3], [0, 3]),
        (WHOLES, [], []),
        (FLAG, True, True),
        (FLAG, False, False),
        (TEXT, 'anything, at all', 'anything, at all'),
        (CHOICE, 'lower', 'lower'),
        (NAMES, ['a', 'b'], ['a', 'b']),
        (NAMES, ('a',), ['a']),
        (NAMES, 'a, b,c', ['a', 'b', 'c']),
        (NAMES, [' a', 'b '], ['a', 'b']),
        (NAMES, [], []),
    ],
)
def test_a_right_value_becomes_what_is_used(parameter, value, used):
    checked = parameter.checked(value)
    assert checked == used
    assert type(checked) is type(used)
    if isinstance(used, list):
        assert [type(entry) for entry in checked] == [type(entry) for entry in used]


@pytest.mark.parametrize('parameter', ALL, ids=lambda parameter: parameter.name)
def test_none_stays_none(parameter):
    assert parameter.checked(None) is None


# -- values that are refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('parameter', 'value', 'word'),
    [
        (NUMBER, 'soon', 'one number'),
        (NUMBER, '1.0', 'one number'),
        (NUMBER, True, 'one number'),
        (NUMBER, [1.0], 'one number'),
        (NUMBER, 1j, 'one number'),
        (NUMBER, 10**400, 'one number'),
        (NUMBER, nan, 'within -2 .. 5'),
        (NUMBER, inf, 'within -2 .. 5'),
        (NUMBER, -inf, 'within -2 .. 5'),
        (NUMBER, 5.0000001, 'within -2 .. 5'),
        (NUMBER, -3, 'within -2 .. 5'),
        (NUMBERS, 1.0, 'a list of numbers'),
        (NUMBERS, [1.0, 'a'], 'a list of numbers'),
        (NUMBERS, [True, False], 'a list of numbers'),
        (NUMBERS, [[1.0, 2.0]], 'a list of numbers'),
        (NUMBERS, [[1.0], [1.0, 2.0]], 'a list of numbers'),
        (NUMBERS, ['a'], 'a list of numbers'),
        (NUMBERS, [1.0, nan], 'within -2 .. 5'),
        (NUMBERS, [1.0, 9.0], 'within -2 .. 5'),
        (PER_JOINT, 'much', 'one number for all joints, or one per joint'),
        (PER_JOINT, [[1.0]], 'one number for all joints, or one per joint'),
        (PER_JOINT, [1.0, -1.0], 'within 0 .. 5'),
        (PER_JOINT, nan, 'within 0 .. 5'),
        (WHOLE, 1.0, 'one whole number'),
        (WHOLE, True, 'one whole number'),
        (WHOLE, '1', 'one whole number'),
        (WHOLE, -1, 'within 0 .. 9'),
        (WHOLE, 10, 'within 0 .. 9'),
        (WHOLES, 1, 'a list of whole numbers'),
        (WHOLES, [1.5], 'a list of whole numbers'),
        (WHOLES, [3, 10], 'within 0 .. 9'),
        (FLAG, 1, 'true or false'),
        (FLAG, 'true', 'true or false'),
        (FLAG, [True], 'true or false'),
        (TEXT, 1, 'text'),
        (TEXT, ['a'], 'text'),
        (CHOICE, 'panic', 'one of hold, lower'),
        (CHOICE, 'Hold', 'one of hold, lower'),
        (CHOICE, '', 'one of hold, lower'),
        (NAMES, 7, 'names'),
        (NAMES, [1, 2], 'a list of names'),
        (NAMES, ['a', 1], 'a list of names'),
        (NAMES, b'ab', 'a list of names'),
    ],
)
def test_a_wrong_value_is_refused_by_name_and_with_what_is_right(parameter, value, word):
    with pytest.raises(InputError) as refusal:
        parameter.checked(value)
    assert str(refusal.value).startswith('x is ')
    assert word in str(refusal.value)


# What a ROS parameter can hold: one value, or a list of one type.
SCALARS = (st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.binary(min_size=1, max_size=1))
ROS_VALUES = st.none() | st.one_of(*SCALARS) | st.one_of(*(st.lists(kind, max_size=4) for kind in SCALARS))


@pytest.mark.parametrize(
    'parameter', [NUMBER, NUMBERS, PER_JOINT, WHOLE, WHOLES, FLAG, TEXT, CHOICE, NAMES], ids=lambda p: p.kind
)
@settings(max_examples=60, deadline=None)
@given(value=ROS_VALUES)
def test_whatever_is_given_is_used_or_refused_and_what_is_used_stays_as_it_is(parameter, value):
    try:
        used = parameter.checked(value)
    except InputError:
        return
    assert parameter.checked(used) == used
    if used is not None and parameter.kind in ('number', 'numbers', 'per_joint', 'whole', 'wholes'):
        assert (np.asarray(used) >= parameter.low).all()
        assert (np.asarray(used) <= parameter.high).all()


# -- parameters of frames ------------------------------------------------------------------------------

KINDS = [
    'wrench.{}.convention',
    'wrench.{}.max_force',
    'wrench.{}.max_moment',
    'payload.{}.mass',
    'payload.{}.com',
    'payload.{}.inertia',
]


def names_of(frames):
    return [kind.format(frame) for frame in frames for kind in KINDS]


@pytest.mark.parametrize('name', kd.robots())
def test_every_end_effector_has_its_wrench_and_its_payload(name):
    robot = robot_named(name)
    found = [parameter.name for parameter in frame_parameters(robot, [])]
    assert found == names_of(robot.config.end_effectors)


def test_another_frame_that_is_spoken_of_has_them_too():
    krang = robot_named('krang')
    given = ['payload.spine.mass', 'wrench.bracket.max_force', 'wrench.left_hand.convention', 'gravity']
    found = [parameter.name for parameter in frame_parameters(krang, given)]
    assert found == names_of(['left_hand', 'right_hand', 'spine', 'bracket'])


def test_names_that_speak_of_no_frame_add_nothing():
    krang = robot_named('krang')
    given = ['wrench_timeout', 'wrench', 'payload.', 'payload.mass', 'limits.effort', 'payloads.spine.mass']
    assert len(frame_parameters(krang, given)) == 2 * len(KINDS)


def test_a_frame_that_does_not_exist_is_refused_with_one_that_does():
    with pytest.raises(UnknownNameError, match="unknown frame 'left_hnd'; did you mean 'left_hand'"):
        frame_parameters(robot_named('krang'), ['payload.left_hnd.mass'])
