"""Parameters: valid and invalid values, what a value becomes, and the table that users rely on."""

from math import inf, nan, pi

import numpy as np
import pytest
from harness import robot_named
from hypothesis import given, settings
from hypothesis import strategies as st

import krang_dynamics as kd
from krang_dynamics.control.parameters import Parameter, for_frames, frame_of
from krang_dynamics.control.settings import Settings
from krang_dynamics.control.terms.term import registered_terms
from krang_dynamics.errors import InputError, UnknownNameError
from krang_dynamics.nodes.ros.ros_parameters import NODE_PARAMETERS

# Defaults, and whether they are live, as users know them; a default of None is the robot's own, or none.
TABLE = {
    'robot': ('', False),
    'robot_description': ('', False),
    'terms': (('gravity',), False),
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
    'limits.state_rate': (50.0, True),
    'friction.scale': (0.8, True),
    'cartesian.<frame>.stiffness': (None, True),
    'cartesian.<frame>.damping_ratio': (1.0, True),
    'cartesian.<frame>.axes': ('', True),
    'cartesian.<frame>.max_force': (None, True),
    'cartesian.<frame>.max_moment': (None, True),
    'guide.damping': (None, True),
    'limits.self_distance': (None, True),
    'estimate_payload.frame': ('', True),
    'estimate_payload.tare': (False, True),
    'nullspace.stiffness': (None, True),
    'nullspace.damping_ratio': (1.0, True),
    'nullspace.posture': (None, True),
    'stream.jerk': (None, True),
    'emergency_stop.required': (False, False),
    'ramp_time': (1.0, True),
    'stop.policy': (None, False),
    'stop.time': (None, False),
    'stop.blind_time': (None, False),
    'stop.rate': (None, False),
    'state_timeout': (0.1, True),
    'reference_timeout': (0.5, True),
    'stream.velocity': (None, True),
    'stream.acceleration': (None, True),
    'wrench_timeout': (0.1, True),
    'deadman.required': (False, False),
    'deadman.timeout': (0.2, True),
    'missing_velocity': ('error', False),
    'wrench.<frame>.convention': (None, False),
    'wrench.<frame>.max_force': (None, True),
    'wrench.<frame>.max_moment': (None, True),
    'payload.<frame>.mass': (0.0, True),
    'payload.<frame>.com': ([0.0, 0.0, 0.0], True),
    'payload.<frame>.inertia': ([0.0] * 6, True),
    'gravity': (None, True),
    'hardware_compensates_gravity': (False, False),
    'observer.gain': (25.0, True),
    'observer.contact': (5.0, True),
    'observer.collision': (30.0, True),
    'observer.reaction': ('stop', True),
    'executor': ('static', False),
    'busy_wait': (False, False),
    'thread_priority': (0, False),
    'lock_memory': (False, False),
    'cpu_affinity': (None, False),
    'publish_terms': (False, False),
}
ALL = (*Settings.parameters().values(), *NODE_PARAMETERS)
BY_NAME = {parameter.name: parameter for parameter in ALL}
NUMBER = Parameter('x', 'number', 0.0, 'a number', 'm', -2.0, 5.0)
NUMBERS = Parameter('x', 'numbers', None, 'numbers', 'm', -2.0, 5.0)
PER_JOINT = Parameter('x', 'per_joint', None, 'numbers', 'm', 0.0, 5.0)
INTEGER = Parameter('x', 'integer', 0, 'an integer', '', 0, 9)
INTEGERS = Parameter('x', 'integers', None, 'integers', '', 0, 9)
FLAG = Parameter('x', 'flag', False, 'a flag')
TEXT = Parameter('x', 'text', '', 'words')
CHOICE = Parameter('x', 'text', 'hold', 'a choice', choices=('hold', 'lower'))
NAMES = Parameter('x', 'names', None, 'names')


# -- the table -----------------------------------------------------------------------------------------


def test_names_defaults_and_liveness_are_as_documented():
    assert {name: (BY_NAME[name].default, BY_NAME[name].live) for name in TABLE} == TABLE


def test_names_and_fields_are_unique():
    assert len(BY_NAME) == len(ALL)
    assert len({parameter.attribute for parameter in ALL}) == len(ALL)


def test_every_default_is_valid_and_every_parameter_is_described():
    for parameter in ALL:
        assert parameter.checked(parameter.default) == parameter.default
        assert parameter.checked(None) is None
        assert parameter.description
        if parameter.kind in ('number', 'numbers', 'per_joint', 'integer', 'integers'):
            assert np.isfinite([parameter.low, parameter.high]).all(), parameter.name


def test_the_description_of_terms_names_all_of_them():
    assert all(term in BY_NAME['terms'].description for term in registered_terms())


@pytest.mark.parametrize(
    ('parameter', 'text'),
    [
        (NUMBER, 'a number; unit: m'),
        (PER_JOINT, "numbers; unit: m; one number for all joints, or one per joint in the robot's order"),
        (Parameter('x', 'text', 'a', 'a choice', choices=('a', 'b')), 'a choice; one of a, b'),
    ],
)
def test_the_text_for_people_has_unit_kind_and_choices(parameter, text):
    assert parameter.text == text


# -- valid values --------------------------------------------------------------------------------------


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
        (INTEGER, 9, 9),
        (INTEGERS, [0, 3], [0, 3]),
        (INTEGERS, [], []),
        (FLAG, True, True),
        (FLAG, False, False),
        (TEXT, 'anything, at all', 'anything, at all'),
        (CHOICE, 'lower', 'lower'),
        (NAMES, ['a', 'b'], ('a', 'b')),
        (NAMES, ('a',), ('a',)),
        (NAMES, 'a, b,c', ('a', 'b', 'c')),
        (NAMES, [' a', 'b '], ('a', 'b')),
        (NAMES, [], ()),
    ],
)
def test_a_valid_value_becomes_the_value_that_is_used(parameter, value, used):
    checked = parameter.checked(value)
    assert checked == used
    assert type(checked) is type(used)
    if isinstance(used, (list, tuple)):
        assert [type(entry) for entry in checked] == [type(entry) for entry in used]


# -- invalid values ------------------------------------------------------------------------------------


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
        (INTEGER, 1.0, 'one integer'),
        (INTEGER, True, 'one integer'),
        (INTEGER, '1', 'one integer'),
        (INTEGER, -1, 'within 0 .. 9'),
        (INTEGER, 10, 'within 0 .. 9'),
        (INTEGERS, 1, 'a list of integers'),
        (INTEGERS, [1.5], 'a list of integers'),
        (INTEGERS, [3, 10], 'within 0 .. 9'),
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
def test_an_invalid_value_is_refused_by_name_and_with_what_is_valid(parameter, value, word):
    with pytest.raises(InputError) as refusal:
        parameter.checked(value)
    assert str(refusal.value).startswith('x is ')
    assert word in str(refusal.value)


# What a ROS parameter can hold: one value, or a list of one type.
SCALARS = (st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.binary(min_size=1, max_size=1))
ROS_VALUES = st.none() | st.one_of(*SCALARS) | st.one_of(*(st.lists(kind, max_size=4) for kind in SCALARS))


@pytest.mark.parametrize(
    'parameter',
    [NUMBER, NUMBERS, PER_JOINT, INTEGER, INTEGERS, FLAG, TEXT, CHOICE, NAMES],
    ids=lambda p: p.kind,
)
@settings(max_examples=60, deadline=None)
@given(value=ROS_VALUES)
def test_any_value_is_used_or_refused_and_a_used_value_is_valid(parameter, value):
    try:
        used = parameter.checked(value)
    except InputError:
        return
    assert parameter.checked(used) == used
    if used is not None and parameter.kind in ('number', 'numbers', 'per_joint', 'integer', 'integers'):
        assert (np.asarray(used) >= parameter.low).all()
        assert (np.asarray(used) <= parameter.high).all()


# -- parameters of frames ------------------------------------------------------------------------------

FAMILIES = [name for name in TABLE if '<frame>' in name]


def names_of(frames):
    return {name.replace('<frame>', frame) for frame in frames for name in FAMILIES}


def found(robot, given=()):
    return [row.name for row in for_frames(Settings.parameters().values(), robot, given)]


@pytest.mark.parametrize('name', kd.robots())
def test_every_end_effector_has_its_wrench_and_its_payload(name):
    robot = robot_named(name)
    names = found(robot)
    assert set(names) == names_of(robot.config.end_effectors)
    assert len(names) == len(set(names))


def test_another_frame_that_a_given_name_contains_has_them_too():
    given = ['payload.spine.mass', 'wrench.bracket.max_force', 'wrench.left_hand.convention', 'gravity']
    frames = ['left_hand', 'right_hand', 'spine', 'bracket']
    assert set(found(robot_named('krang'), given)) == names_of(frames)


def test_names_without_a_frame_add_nothing():
    given = ['wrench_timeout', 'wrench', 'payload.', 'payload.mass', 'limits.effort', 'payloads.spine.mass']
    assert len(found(robot_named('krang'), given)) == 2 * len(FAMILIES)


def test_an_unknown_frame_is_refused_with_a_suggestion():
    with pytest.raises(UnknownNameError, match="unknown frame 'left_hnd'; did you mean 'left_hand'"):
        found(robot_named('krang'), ['payload.left_hnd.mass'])


@pytest.mark.parametrize(
    ('name', 'frame'),
    [
        ('payload.tip.mass', 'tip'),
        ('payload.a.b.mass', 'a.b'),
        ('payload.tip.com', None),
        ('payload..mass', None),
        ('payload.mass', None),
        ('mass', None),
    ],
)
def test_the_frame_in_a_name(name, frame):
    assert frame_of(BY_NAME['payload.<frame>.mass'], name) == frame
    assert frame_of(BY_NAME['gravity'], name) is None
