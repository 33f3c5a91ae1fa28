"""From parameter values to settings, limits, payloads and gravity: each value at its place."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import krang_dynamics as kd
from krang_dynamics.control.builder import (
    gravity_of,
    in_force,
    limits_of,
    payloads_of,
    per_joint,
    robot_of,
    settings_of,
)
from krang_dynamics.control.controller import Inputs, TorqueController
from krang_dynamics.control.guard import GuardSettings
from krang_dynamics.control.parameters import PARAMETERS, frame_parameters
from krang_dynamics.control.settings import Settings
from krang_dynamics.errors import ConfigError, InputError, KrangError

robot_named = cache(kd.load_robot)
SHARES = ('effort', 'effort_rate', 'velocity', 'position_margin')
PLANAR_URDF = Path(kd.__file__).parents[1] / 'urdf' / 'planar_2r.urdf'


@pytest.fixture(scope='module')
def planar():
    return robot_named('planar_2r')


def values_of(robot, **changes):
    """All parameters of a node of this robot at their defaults, but for some."""
    values = {p.name: p.default for p in (*PARAMETERS, *frame_parameters(robot, []))}
    return {**values, **{name.replace('__', '.'): value for name, value in changes.items()}}


def configured(robot, **changes):
    """A controller as a node makes it."""
    values = values_of(robot, **changes)
    controller = TorqueController(robot, settings_of(values, robot, Settings))
    controller.limits.set(robot, **limits_of(values, robot))
    load = Inputs(0.0, 0.0, gravity=gravity_of(values, robot), payloads=payloads_of(values))
    assert controller.step(load).refused == []
    return controller


# -- the robot -----------------------------------------------------------------------------------------


def test_the_robot_is_the_one_named():
    assert robot_of({'robot': 'otbot'}).name == 'otbot'
    assert robot_of({'robot': str(PLANAR_URDF), 'robot_description': ''}).joint_names == (
        'joint_1',
        'joint_2',
    )


def test_the_robot_is_the_one_described():
    text = PLANAR_URDF.read_text()
    by_parameter = robot_of({'robot': '', 'robot_description': text})
    by_topic = robot_of({'robot': '', 'robot_description': 'some_topic'}, text)
    assert by_parameter.joint_names == by_topic.joint_names == ('joint_1', 'joint_2')


@pytest.mark.parametrize(
    ('values', 'description'),
    [
        ({}, ''),
        ({'robot': '', 'robot_description': ''}, ''),
        ({'robot': None}, ''),
        ({'robot': 'krang', 'robot_description': '<robot/>'}, ''),
        ({'robot': 'krang'}, '<robot/>'),
    ],
)
def test_no_robot_or_two_of_them_are_refused(values, description):
    with pytest.raises(ConfigError, match='either robot or robot_description'):
        robot_of(values, description)


def test_an_unknown_robot_is_refused_by_name():
    with pytest.raises(KrangError, match='crane'):
        robot_of({'robot': 'crane'})


# -- defaults ------------------------------------------------------------------------------------------


@pytest.mark.parametrize('name', kd.robots())
def test_every_robot_can_be_configured_with_nothing_but_its_name(name):
    robot = robot_named(name)
    controller, bare = configured(robot), TorqueController(robot, Settings(('gravity',)))
    assert controller.settings.terms == ('gravity',)
    assert controller.drivers.names == bare.drivers.names
    assert controller.safety.stop == robot.config.stop
    for limit in SHARES:
        np.testing.assert_array_equal(getattr(controller.limits, limit), getattr(bare.limits, limit))
    assert controller.limits.following_error is None
    np.testing.assert_array_equal(controller.dynamics.model_gravity(), robot.config.gravity)
    assert controller.dynamics.robot.payloads == ()


@pytest.mark.parametrize('name', kd.robots())
def test_default_settings_are_those_of_a_controller_without_parameters(name):
    robot = robot_named(name)
    settings, bare = settings_of(values_of(robot), robot, Settings), Settings(('gravity',))
    np.testing.assert_array_equal(settings.gains(robot), bare.gains(robot))
    np.testing.assert_array_equal(settings.damping, np.zeros(robot.nv))
    settings.damping = bare.damping
    assert settings == bare


def test_values_that_are_not_there_count_as_their_defaults(planar):
    assert settings_of({'terms': ['gravity']}, planar, Settings) == Settings(('gravity',))
    assert payloads_of({}) == []
    np.testing.assert_array_equal(gravity_of({}, planar), planar.config.gravity)
    np.testing.assert_array_equal(limits_of({}, planar)['effort'], [100.0, 50.0])


# -- each to its place ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('name', 'value', 'setting', 'expected'),
    [
        ('terms', ['damping', 'gravity'], 'terms', ('damping', 'gravity')),
        ('command_joints', ['joint_2'], 'command_joints', ('joint_2',)),
        ('command_unit', 'current', 'command_unit', 'current'),
        ('wheels_locked', True, 'wheels_locked', True),
        ('gains__bandwidth', 12.5, 'bandwidth', 12.5),
        ('gains__damping_ratio', 0.7, 'damping_ratio', 0.7),
        ('gains__kp', [3.0, 4.0], 'kp', [3.0, 4.0]),
        ('gains__kp', 3.0, 'kp', [3.0, 3.0]),
        ('gains__kd', [3.0, 4.0], 'kd', [3.0, 4.0]),
        ('damping', 2.0, 'damping', [2.0, 2.0]),
        ('damping', [2.0, 1.0], 'damping', [2.0, 1.0]),
        ('ramp_time', 0.25, 'ramp_time', 0.25),
        ('stop__policy', 'hold', 'stop_policy', 'hold'),
        ('stop__time', 1.5, 'stop_time', 1.5),
        ('stop__blind_time', 0.75, 'stop_blind_time', 0.75),
        ('stop__rate', [9.0, 8.0], 'stop_rate', [9.0, 8.0]),
        ('state_timeout', 0.05, 'state_timeout', 0.05),
        ('reference_timeout', 0.3, 'reference_timeout', 0.3),
        ('wrench_timeout', 0.4, 'wrench_timeout', 0.4),
        ('deadman__required', True, 'deadman_required', True),
        ('deadman__timeout', 0.6, 'deadman_timeout', 0.6),
        ('missing_velocity', 'differentiate', 'missing_velocity', 'differentiate'),
        ('hardware_compensates_gravity', True, 'hardware_compensates_gravity', True),
    ],
)
@pytest.mark.parametrize('kind', [Settings, GuardSettings])
def test_a_parameter_becomes_its_setting_and_no_other(planar, name, value, setting, expected, kind):
    usual = vars(settings_of(values_of(planar), planar, kind))
    changed = vars(settings_of(values_of(planar, **{name: value}), planar, kind))
    np.testing.assert_array_equal(changed.pop(setting), expected)
    usual.pop(setting)
    np.testing.assert_equal(changed, usual)


@pytest.mark.parametrize(
    ('name', 'value'), [('gain', 10.0), ('contact', 1.0), ('collision', 9.0), ('reaction', 'stop')]
)
def test_a_parameter_of_the_observer_reaches_it_alone(planar, name, value):
    usual = vars(settings_of(values_of(planar), planar, Settings).observer)
    changed = settings_of(values_of(planar, **{f'observer.{name}': value}), planar, Settings).observer
    assert vars(changed) == {**usual, name: value}


def test_a_guards_own_setting_reaches_it(planar):
    assert settings_of({**values_of(planar), 'silence': 0.02}, planar, GuardSettings).silence == 0.02
    assert settings_of(values_of(planar), planar, GuardSettings).silence == 0.05


def test_command_joints_reach_the_drivers(planar):
    assert configured(planar, command_joints=['joint_2', 'joint_1']).drivers.names == ('joint_2', 'joint_1')


@pytest.mark.parametrize(
    ('unit', 'used', 'per_torque'),
    [
        (None, 'current', 1 / (0.0314 * 596)),
        ('current', 'current', 1 / (0.0314 * 596)),
        ('torque', 'torque', 1.0),
    ],
)
def test_the_unit_of_commands_may_be_another_than_the_robots(unit, used, per_torque):
    drivers = configured(robot_named('krang'), command_unit=unit, command_joints=['torso']).drivers
    assert drivers.unit.name == used
    torque = np.full(17, 3.0)
    np.testing.assert_allclose(drivers.command(torque, np.zeros(17)), [3.0 * per_torque], rtol=1e-12)


def test_stop_parameters_reach_the_stop(planar):
    controller = configured(
        planar, stop__policy='hold', stop__time=1.5, stop__blind_time=0.2, stop__rate=[9, 8]
    )
    stop = controller.safety.stop
    assert (stop.policy, stop.time, stop.blind_time) == ('hold', 1.5, 0.2)
    np.testing.assert_array_equal(controller.limits.stop_rate, [9.0, 8.0])
    np.testing.assert_array_equal(configured(planar, stop__rate=7.0).limits.stop_rate, [7.0, 7.0])


def test_krangs_base_gets_torque_with_its_wheels_locked():
    krang = robot_named('krang')
    assert configured(krang, wheels_locked=True).drivers.names[:2] == (
        'left_wheel_motor',
        'right_wheel_motor',
    )
    assert 'base_pitch' not in configured(krang).command_joints


# -- limits --------------------------------------------------------------------------------------------


@pytest.mark.parametrize('name', [*SHARES, 'following_error'])
@pytest.mark.parametrize(('value', 'expected'), [(0.2, [0.2, 0.2]), ([0.3, 0.4], [0.3, 0.4])])
def test_a_limit_reaches_the_limits(planar, name, value, expected):
    limits = configured(planar, **{f'limits.{name}': value}).limits
    np.testing.assert_array_equal(getattr(limits, name), expected)


def test_another_effort_limit_brings_ten_of_it_per_second_unless_a_rate_is_given(planar):
    limits = configured(planar, limits__effort=[20.0, 10.0]).limits
    np.testing.assert_array_equal(limits.effort_rate, [200.0, 100.0])
    limits = configured(planar, limits__effort=[20.0, 10.0], limits__effort_rate=5.0).limits
    np.testing.assert_array_equal(limits.effort_rate, [5.0, 5.0])


def test_the_rate_of_the_robot_file_counts_whatever_the_effort_limit_is():
    pendubot = robot_named('pendubot')
    assert limits_of({'limits.effort': [1.0, 0.0]}, pendubot)['effort_rate'][0] == 310.0


def test_no_effort_limit_is_above_the_urdf(planar):
    limits = configured(planar, limits__effort=[1e5, 1.0]).limits
    np.testing.assert_array_equal(limits.effort, [100.0, 1.0])
    np.testing.assert_array_equal(limits.effort_rate, [1000.0, 10.0])


@pytest.mark.parametrize(
    ('before', 'after'),
    [
        ({'limits__effort': [5.0, 4.0]}, {}),
        ({'limits__effort_rate': [5.0, 4.0], 'limits__velocity': 1.0}, {'limits__effort': 9.0}),
        ({'limits__position_margin': 0.1}, {}),
        ({'limits__following_error': 0.1}, {}),
        ({'limits__following_error': 0.1}, {'limits__following_error': [0.2, 0.3]}),
    ],
)
def test_limits_depend_on_the_values_alone_and_not_on_those_before(planar, before, after):
    changed = configured(planar, **before)
    assert changed.step(Inputs(1.0, 1.0, limits=limits_of(values_of(planar, **after), planar))).refused == []
    fresh = configured(planar, **after)
    for name in (*SHARES, 'following_error', 'stop_rate'):
        np.testing.assert_array_equal(getattr(changed.limits, name), getattr(fresh.limits, name))


# -- one number per joint ------------------------------------------------------------------------------


PER_JOINT = ['gains.kp', 'gains.kd', 'damping', 'stop.rate', *(f'limits.{x}' for x in SHARES)]


@pytest.mark.parametrize('name', [*PER_JOINT, 'limits.following_error'])
@pytest.mark.parametrize('value', [[1.0, 2.0, 3.0], []])
def test_a_list_of_wrong_length_is_refused_with_the_names_of_the_joints(planar, name, value):
    make = limits_of if name.startswith('limits') else lambda v, robot: settings_of(v, robot, Settings)
    with pytest.raises(InputError) as refusal:
        make(values_of(planar, **{name: value}), planar)
    assert name in str(refusal.value)
    assert 'joint_1, joint_2' in str(refusal.value)


def test_a_list_of_one_is_too_short_for_two_joints(planar):
    with pytest.raises(InputError, match='joint_1, joint_2'):
        per_joint('limits.effort', [1.0], planar)


def test_one_number_is_for_all_joints_and_a_robot_of_one_joint_takes_either():
    krang = robot_named('krang')
    np.testing.assert_array_equal(per_joint('x', 3, krang), np.full(17, 3.0))
    np.testing.assert_array_equal(per_joint('x', range(17), krang), np.arange(17.0))
    pole = robot_named(
        '<robot name="pole"><link name="floor"/><link name="rod"><inertial><origin xyz="0 0 1"/>'
        '<mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="hinge" type="revolute"><parent link="floor"/><child link="rod"/><axis xyz="1 0 0"/>'
        '<limit lower="-1" upper="1" effort="9" velocity="9"/></joint></robot>'
    )
    for value in (2.0, [2.0]):
        np.testing.assert_array_equal(per_joint('x', value, pole), [2.0])


# -- wrenches ------------------------------------------------------------------------------------------


def test_wrenches_have_convention_and_norms(planar):
    changes = {'terms': ['wrench'], 'wrench.tip.convention': 'applied_on_robot', 'wrench.tip.max_force': 30.0}
    wrenches = settings_of(values_of(planar, **changes), planar, Settings).wrenches
    assert list(wrenches) == ['tip']
    tip = wrenches['tip']
    assert (tip.convention, tip.max_force, tip.max_moment) == ('applied_on_robot', 30.0, np.inf)


def test_each_hand_has_its_own():
    krang = robot_named('krang')
    changes = {
        'terms': ['wrench'],
        'wrench.left_hand.convention': 'applied_on_robot',
        'wrench.right_hand.convention': 'applied_by_robot',
        'wrench.right_hand.max_moment': 2.0,
    }
    wrenches = settings_of(values_of(krang, **changes), krang, Settings).wrenches
    assert {name: w.convention for name, w in wrenches.items()} == {
        'left_hand': 'applied_on_robot',
        'right_hand': 'applied_by_robot',
    }
    assert [w.max_moment for w in wrenches.values()] == [np.inf, 2.0]


@pytest.mark.parametrize('name', ['planar_2r', 'krang'])
def test_the_term_wrench_without_a_convention_is_refused_with_its_name(name):
    robot = robot_named(name)
    values = values_of(robot, terms=['gravity', 'wrench'])
    with pytest.raises(
        ConfigError, match=rf'wrench\.{robot.config.end_effectors[0]}\.convention .*no default'
    ):
        settings_of(values, robot, Settings)
    with pytest.raises(ConfigError, match=r'wrench\.<frame>\.convention'):
        settings_of({'terms': ['wrench']}, robot, Settings)


def test_without_the_term_no_convention_is_needed(planar):
    assert settings_of(values_of(planar), planar, Settings).wrenches == {}


# -- payloads and gravity ------------------------------------------------------------------------------


def test_a_payload_with_six_numbers_has_the_full_inertia(planar):
    payloads = payloads_of(
        values_of(
            planar,
            payload__tip__mass=2.0,
            payload__tip__com=[0.1, 0.2, 0.3],
            payload__tip__inertia=[0.4, 0.5, 0.6, 0.01, 0.02, 0.03],
        )
    )
    assert [(p.frame, p.mass) for p in payloads] == [('tip', 2.0)]
    np.testing.assert_array_equal(payloads[0].com, [0.1, 0.2, 0.3])
    np.testing.assert_array_equal(
        payloads[0].inertia, [[0.4, 0.01, 0.02], [0.01, 0.5, 0.03], [0.02, 0.03, 0.6]]
    )


def test_a_payload_with_three_numbers_has_principal_axes(planar):
    payloads = payloads_of({'payload.tip.mass': 2.0, 'payload.tip.inertia': [0.4, 0.5, 0.6]})
    np.testing.assert_array_equal(payloads[0].inertia, np.diag([0.4, 0.5, 0.6]))
    np.testing.assert_array_equal(payloads[0].com, np.zeros(3))


@pytest.mark.parametrize('count', [0, 1, 2, 4, 5, 7, 9])
def test_another_number_of_numbers_is_no_inertia(count):
    with pytest.raises(InputError, match=rf'payload\.tip\.inertia has {count} numbers.*xx yy zz xy xz yz'):
        payloads_of({'payload.tip.mass': 2.0, 'payload.tip.inertia': [0.1] * count})


@pytest.mark.parametrize(
    'wrong',
    [
        {'payload.tip.com': [0.0, 0.0]},
        {'payload.tip.inertia': [1.0, 1.0, 3.0]},
        {'payload.tip.inertia': [1.0, 1.0, 1.0, 5.0, 0.0, 0.0]},
        {'payload.tip.mass': -1.0},
    ],
)
def test_a_body_that_cannot_be_is_refused(wrong):
    with pytest.raises(InputError):
        payloads_of({'payload.tip.mass': 2.0, **wrong})


def test_every_frame_may_carry_and_no_mass_is_no_payload():
    krang = robot_named('krang')
    values = values_of(krang, payload__right_hand__mass=1.5, payload__left_hand__com=[1.0, 0.0, 0.0])
    assert [(p.frame, p.mass) for p in payloads_of(values)] == [('right_hand', 1.5)]
    values['payload.left_hand.mass'] = 0.5
    assert [(p.frame, p.mass) for p in payloads_of(values)] == [('left_hand', 0.5), ('right_hand', 1.5)]


def test_the_load_and_gravity_reach_the_torques(planar):
    controller = configured(
        planar,
        payload__tip__mass=2.0,
        payload__tip__com=[0.0, 0.0, 0.1],
        payload__tip__inertia=[0.1, 0.1, 0.1],
        gravity=[2.0, 0.0, -9.0],
    )
    expected = planar.with_payload('tip', 2.0, [0.0, 0.0, 0.1], np.eye(3) / 10).with_gravity([2.0, 0.0, -9.0])
    q = planar.home
    controller.dynamics.update(q, np.zeros(2))
    np.testing.assert_allclose(controller.dynamics.gravity, expected.gravity_torque(q), rtol=1e-12)
    np.testing.assert_allclose(controller.dynamics.A, expected.mass_matrix(q), rtol=1e-12)


@pytest.mark.parametrize('wrong', [[0.0, -9.81], [], [0.0, 0.0, np.nan]])
def test_gravity_is_a_vector(planar, wrong):
    with pytest.raises(InputError, match='gravity'):
        gravity_of({'gravity': wrong}, planar)


# -- what is in force ----------------------------------------------------------------------------------


@pytest.mark.parametrize('name', ['krang', 'otbot', 'pendubot', 'planar_2r'])
def test_what_is_in_force_may_be_given_and_changes_nothing(name):
    robot = robot_named(name)
    plain = TorqueController(robot, Settings(('gravity',)))
    shown = in_force(robot, plain.settings, plain.limits, plain.dynamics.model_gravity())
    known = {parameter.name: parameter for parameter in PARAMETERS}
    for parameter, value in shown.items():
        assert known[parameter].default is None  # only what the robot decides needs to be shown
        assert known[parameter].checked(value) == value
    given = configured(robot, **shown)
    np.testing.assert_equal(vars(given.limits), vars(plain.limits))
    assert given.safety.stop == plain.safety.stop
    np.testing.assert_array_equal(given.dynamics.model_gravity(), plain.dynamics.model_gravity())


def test_what_is_in_force_is_what_was_given(planar):
    controller = configured(
        planar,
        stop__policy='hold',
        stop__time=1.5,
        stop__rate=[9.0, 8.0],
        limits__effort=[20.0, 10.0],
        gravity=[1.0, 0.0, -9.0],
    )
    gravity = controller.dynamics.model_gravity()
    assert in_force(planar, controller.settings, controller.limits, gravity) == {
        'limits.effort': [20.0, 10.0],
        'limits.effort_rate': [200.0, 100.0],
        'limits.velocity': [6.0, 6.0],
        'limits.position_margin': [0.0, 0.0],
        'stop.policy': 'hold',
        'stop.time': 1.5,
        'stop.blind_time': 0.5,
        'stop.rate': [9.0, 8.0],
        'command_unit': 'torque',
        'gravity': [1.0, 0.0, -9.0],
    }


# -- what does not fit together ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('changes', 'word'),
    [
        ({'terms': ['gravity', 'magic']}, 'magic'),
        ({'terms': ['gravity', 'gravity']}, 'once'),
        ({'terms': []}, 'terms'),
        ({'terms': ['computed_torque'], 'gains__kp': 1.0}, 'gains.kd'),
        ({'command_joints': ['joint_7']}, 'joint_7'),
        ({'command_joints': ['joint_1', 'joint_1']}, 'twice'),
    ],
)
def test_values_that_do_not_fit_together_are_refused(planar, changes, word):
    with pytest.raises(InputError, match=word):
        configured(planar, **changes)
