"""Parameters on a real node: declared, checked, set together or not at all, refused with the reason."""

from math import inf, nan

import numpy as np
import pytest
import rclpy
from rclpy.parameter import Parameter as RosParameter

import krang_dynamics as kd
from krang_dynamics.control.parameters import Parameter, for_frames
from krang_dynamics.control.settings import Settings
from krang_dynamics.errors import InputError, KrangError
from krang_dynamics.nodes.ros.ros_parameters import NODE_PARAMETERS, RosParameters, unknown_parameters

ROWS = tuple(Settings.parameters().values())
ALL = (*(row for row in ROWS if '<' not in row.name), *NODE_PARAMETERS)


@pytest.fixture(scope='module')
def planar():
    return kd.load_robot('planar_2r')


@pytest.fixture
def make(context):
    """A node with parameters given at its start, and its RosParameters."""
    nodes = []

    def make(given=(), parameters=ALL):
        overrides = [RosParameter(name, value=value) for name, value in dict(given).items()]
        nodes.append(rclpy.create_node('node', context=context, parameter_overrides=overrides))
        return nodes[-1], RosParameters(nodes[-1], parameters)

    yield make
    for node in nodes:
        node.destroy_node()


@pytest.fixture
def running(make):
    """Configured: live parameters are applied, here to a list."""
    node, parameters = make()
    applied = []
    parameters.apply = lambda values: applied.append(dict(values))
    return node, parameters, applied


def set_together(node, **changes):
    messages = [RosParameter(name.replace('__', '.'), value=value) for name, value in changes.items()]
    return node.set_parameters_atomically(messages)


def value(node, name):
    found = node.get_parameter(name).value
    return found if isinstance(found, (str, bool, int, float, type(None))) else list(found)


# -- declared ------------------------------------------------------------------------------------------


def test_every_parameter_is_declared_with_default_description_and_range(make):
    node, parameters = make()
    for parameter in ALL:
        default = parameter.default
        assert value(node, parameter.name) == (list(default) if isinstance(default, tuple) else default)
        assert parameters.values[parameter.name] == parameter.default
        descriptor = node.describe_parameter(parameter.name)
        assert parameter.description in descriptor.description
        if parameter.kind in ('number', 'numbers', 'per_joint'):
            (span,) = descriptor.floating_point_range
            assert (span.from_value, span.to_value) == (parameter.low, parameter.high)
        for choice in parameter.choices:
            assert choice in descriptor.additional_constraints


def test_values_given_at_start_are_checked_and_used(make):
    given = {
        'robot': 'krang',
        'terms': ['gravity', 'damping'],
        'ramp_time': 2,
        'damping': [1, 2],
        'limits.effort': 5.0,
        'stop.policy': 'hold',
        'cpu_affinity': [0, 1],
        'lock_memory': True,
    }
    _, parameters = make(given)
    expected = {**given, 'terms': ('gravity', 'damping'), 'ramp_time': 2.0, 'damping': [1.0, 2.0]}
    assert {name: parameters.values[name] for name in given} == expected
    assert sorted(parameters.given) == sorted(given)
    assert parameters.unknown() == []


def test_names_may_be_one_text_with_commas(make):
    _, parameters = make({'terms': 'gravity, damping'})
    assert parameters.values['terms'] == ('gravity', 'damping')


@pytest.mark.parametrize(
    ('name', 'wrong'),
    [
        ('ramp_time', 'soon'),
        ('ramp_time', -1.0),
        ('ramp_time', -1),
        ('ramp_time', nan),
        ('ramp_time', inf),
        ('ramp_time', True),
        ('ramp_time', [1.0]),
        ('damping', [1.0, -1.0]),
        ('damping', 'much'),
        ('stop.policy', 'panic'),
        ('robot', 7),
        ('terms', 7),
        ('auto_enable', 'yes'),
        ('thread_priority', 100),
        ('thread_priority', 1.5),
        ('cpu_affinity', [-1]),
    ],
)
def test_a_wrong_value_at_start_is_refused_by_name(make, name, wrong):
    with pytest.raises(Exception, match=name):
        make({name: wrong})


def test_unknown_names_are_told_with_the_closest_that_exists(make):
    given = {'ramp_tim': 1.0, 'gains.bandwith': 2.0, 'colour': 'red', 'use_sim_time': False}
    _, parameters = make(given)
    sentences = dict(zip(('ramp_tim', 'gains.bandwith', 'colour'), parameters.unknown(), strict=True))
    for name, sentence in sentences.items():
        assert f"no parameter '{name}'" in sentence
    assert "did you mean 'ramp_time'?" in sentences['ramp_tim']
    assert "did you mean 'gains.bandwidth'?" in sentences['gains.bandwith']


def test_parameters_of_the_other_nodes_may_be_in_a_shared_file():
    names = ('ramp_time', 'push.frame', 'payload.tip.mass', 'controller', 'guard', 'use_sim_time')
    assert unknown_parameters(names) == []
    (sentence,) = unknown_parameters(['payload.tip.mas'])
    assert "did you mean 'payload.<frame>.mass'?" in sentence


def test_parameters_of_the_middleware_are_known(make):
    given = {'qos_overrides./clock.subscription.depth': 1, 'start_type_description_service': True}
    _, parameters = make(given)
    assert parameters.unknown() == []


# -- declared later, as those of a robot's frames are --------------------------------------------------


def test_parameters_of_frames_are_declared_once_the_robot_is_known(make, planar):
    given = {'wrench.tip.max_force': 30, 'payload.link_1.mass': 0.5}
    node, parameters = make(given)
    assert not parameters.values.keys() & given.keys()
    for _ in range(2):  # configure may come again
        parameters.declare(for_frames(ROWS, planar, parameters.given))
    assert parameters.unknown() == []
    assert parameters.values['wrench.tip.max_force'] == 30.0
    assert parameters.values['payload.link_1.mass'] == 0.5
    assert value(node, 'payload.tip.com') == [0.0, 0.0, 0.0]


def test_what_is_declared_again_keeps_its_value(make):
    node, parameters = make()
    assert set_together(node, ramp_time=0.5).successful
    parameters.declare(ALL)
    assert (parameters.values['ramp_time'], value(node, 'ramp_time')) == (0.5, 0.5)


@pytest.mark.parametrize(
    ('name', 'wrong'),
    [('wrench.tip.max_force', -1.0), ('wrench.tip.convention', 'sideways'), ('payload.tip.com', 'left')],
)
def test_a_wrong_value_of_a_frame_is_refused_however_often_configure_is_tried(make, planar, name, wrong):
    _, parameters = make({name: wrong})
    for _ in range(3):
        with pytest.raises(KrangError, match=name):
            parameters.declare(for_frames(ROWS, planar, parameters.given))


# -- set before configure ------------------------------------------------------------------------------


def test_before_configure_everything_may_be_set_if_it_is_right(make):
    node, parameters = make()
    assert set_together(node, robot='krang', ramp_time=3, terms=['gravity', 'observer']).successful
    assert parameters.values['robot'] == 'krang'
    assert parameters.values['ramp_time'] == 3.0
    assert parameters.values['terms'] == ('gravity', 'observer')
    result = set_together(node, stop__policy='panic')
    assert not result.successful
    assert 'one of hold, lower, zero' in result.reason
    assert parameters.values['stop.policy'] is None


# -- set while it runs ---------------------------------------------------------------------------------


def test_a_live_parameter_goes_through_apply_with_all_values(running):
    node, parameters, applied = running
    assert set_together(node, ramp_time=0.25).successful
    (values,) = applied
    assert values == {**{p.name: p.default for p in ALL}, 'ramp_time': 0.25}
    assert parameters.values == values
    assert value(node, 'ramp_time') == 0.25


def test_several_are_applied_together(running):
    node, _, applied = running
    result = set_together(node, gains__kp=[1.0, 2.0], gains__kd=3, damping=0.5, gravity=[0.0, 0.0, -9.0])
    assert result.successful
    (values,) = applied
    assert (values['gains.kp'], values['gains.kd'], values['damping']) == ([1.0, 2.0], 3.0, 0.5)
    assert values['gravity'] == [0.0, 0.0, -9.0]


LIVE = {p.name for p in ALL if p.live}


@pytest.mark.parametrize('name', sorted({p.name for p in ALL} - LIVE))
def test_what_is_not_live_is_refused_with_what_to_do(running, name):
    node, parameters, applied = running
    before = dict(parameters.values)
    other = {'text': 'other', 'names': ['other'], 'flag': True, 'number': 1.0, 'per_joint': 1.0}
    kind = next(p.kind for p in ALL if p.name == name)
    result = set_together(node, **{name: other.get(kind, 1)})
    assert not result.successful
    assert name in result.reason
    assert 'configured' in result.reason
    assert (applied, parameters.values) == ([], before)


def test_simulated_time_is_read_at_configure_too(running):
    node, _, applied = running
    result = set_together(node, use_sim_time=True)
    assert (result.successful, 'use_sim_time' in result.reason, applied) == (False, True, [])


@pytest.mark.parametrize(
    'wrong',
    [
        {'ramp_time': -1.0},
        {'ramp_time': 'soon'},
        {'ramp_time': nan},
        {'limits__effort': [1.0, -1.0]},
        {'observer__reaction': 'dance'},
        {'robot': 'otbot'},
        {'auto_enable': True},
    ],
)
def test_one_wrong_value_leaves_all_as_they_were(running, wrong):
    node, parameters, applied = running
    before = dict(parameters.values)
    result = set_together(node, **{'state_timeout': 0.05, 'damping': 2.0, **wrong})
    assert not result.successful
    assert next(iter(wrong)).replace('__', '.') in result.reason
    assert (applied, parameters.values) == ([], before)
    assert (value(node, 'state_timeout'), value(node, 'damping')) == (0.1, 0.0)


def test_what_cannot_be_applied_is_refused_with_the_reason_and_nothing_changes(running):
    node, parameters, _ = running
    before = dict(parameters.values)

    def refuse(values):
        raise InputError('gains.kp and gains.kd go together')

    parameters.apply = refuse
    result = set_together(node, gains__kp=1.0, ramp_time=0.5)
    assert not result.successful
    assert result.reason == 'gains.kp and gains.kd go together'
    assert parameters.values == before
    assert (value(node, 'gains.kp'), value(node, 'ramp_time')) == (None, 1.0)


def test_an_unknown_parameter_is_refused(running):
    node, parameters, applied = running
    with pytest.raises(rclpy.exceptions.ParameterNotDeclaredException):
        set_together(node, courage=1.0)
    assert 'courage' not in parameters.values
    assert applied == []


def test_after_cleanup_everything_may_be_set_again(running):
    node, parameters, applied = running
    parameters.apply = None
    assert set_together(node, robot='otbot').successful
    assert (parameters.values['robot'], applied) == ('otbot', [])


# -- what is in force ----------------------------------------------------------------------------------


def test_what_was_not_given_shows_what_is_in_force_and_still_counts_as_not_given(running):
    node, parameters, applied = running
    parameters.values['stop.policy'] = 'hold'
    parameters.show({'limits.effort': [100.0, 50.0], 'gravity': [0.0, 0.0, -9.81], 'stop.policy': 'zero'})
    assert value(node, 'limits.effort') == [100.0, 50.0]
    assert value(node, 'gravity') == [0.0, 0.0, -9.81]
    assert value(node, 'stop.policy') is None  # given otherwise: it is not shown over
    assert parameters.values['limits.effort'] is None
    assert parameters.values['gravity'] is None
    assert applied == []


def test_what_is_shown_is_checked_as_any_other_once_it_is_set(running):
    node, parameters, applied = running
    parameters.show({'limits.effort': [100.0, 50.0]})
    assert not set_together(node, limits__effort=[-1.0, 50.0]).successful
    assert not set_together(node, robot='krang').successful
    assert set_together(node, limits__effort=[5.0, 5.0]).successful
    assert applied[-1]['limits.effort'] == [5.0, 5.0]


def test_a_parameter_that_was_deleted_counts_as_not_given_and_harms_nothing(running):
    """`ros2 param delete`, and another change after it; all are still checked."""
    node, parameters, applied = running
    parameters.apply = lambda values: (
        applied.append(values),
        parameters.show({'limits.velocity': [6.0, 6.0]}),
    )
    assert set_together(node, limits__velocity=[3.0, 3.0]).successful
    node.set_parameters([RosParameter('limits.velocity', RosParameter.Type.NOT_SET)])
    assert parameters.values['limits.velocity'] is None or parameters.values['limits.velocity'] == [3.0, 3.0]
    assert set_together(node, ramp_time=0.5).successful
    assert not set_together(node, ramp_time=-1).successful
    assert not set_together(node, robot='krang').successful


def test_numbers_of_any_type_are_shown_in_values_that_can_be_written_down(make):
    node, parameters = make(parameters=[Parameter('x', 'numbers', None, 'numbers', '', -1, 1)])
    for numbers in ([1, 0], [0.5, -0.5], np.array([0.25])):
        assert set_together(node, x=list(numbers)).successful
        assert parameters.values['x'] == [float(number) for number in numbers]
        assert {type(number) for number in parameters.values['x']} == {float}
