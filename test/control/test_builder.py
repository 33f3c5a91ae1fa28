"""From settings to robot, drivers, stop, limits, payloads and gravity: each value at its place."""

from pathlib import Path

import numpy as np
import pytest
from harness import robot_named

import krang_dynamics as kd
from krang_dynamics.control.builder import (
    gravity_of,
    in_force,
    limits_of,
    payloads_of,
    robot_of,
    stop_of,
    with_payloads,
)
from krang_dynamics.control.controller import Inputs, TorqueController
from krang_dynamics.control.drivers import commanded_joints
from krang_dynamics.control.parameters import PARAMETERS
from krang_dynamics.control.settings import Settings
from krang_dynamics.errors import ConfigError, InputError, KrangError
from krang_dynamics.robot.payload import Payload
from krang_dynamics.safety.limits import LIMITS, Limits

SHARES = ('effort', 'effort_rate', 'velocity', 'position_margin')
PLANAR_URDF = Path(kd.__file__).parents[1] / 'urdf' / 'planar_2r.urdf'


@pytest.fixture(scope='module')
def planar():
    return robot_named('planar_2r')


def configured(robot, **settings):
    return TorqueController(robot, Settings(**settings))


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
def test_every_robot_works_with_default_settings(name):
    robot = robot_named(name)
    controller = configured(robot)
    assert controller.settings.terms == ('gravity',)
    assert controller.safety.stop == stop_of(Settings(), robot) == robot.config.stop
    for limit, expected in vars(controller.limits).items():
        np.testing.assert_array_equal(expected, getattr(Limits.of(robot), limit))
    assert controller.limits.following_error is None
    np.testing.assert_array_equal(controller.dynamics.model_gravity(), robot.config.gravity)
    assert controller.dynamics.robot.payloads == ()
    assert payloads_of(Settings()) == []


# -- drivers and stop ----------------------------------------------------------------------------------


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
    controller = configured(planar, stop_policy='hold', stop_time=1.5, stop_blind_time=0.2, stop_rate=[9, 8])
    stop = controller.safety.stop
    assert (stop.policy, stop.time, stop.blind_time) == ('hold', 1.5, 0.2)
    np.testing.assert_array_equal(controller.limits.stop_rate, [9.0, 8.0])
    np.testing.assert_array_equal(configured(planar, stop_rate=7.0).limits.stop_rate, [7.0, 7.0])


def test_krangs_base_gets_torque_only_with_its_wheels_locked():
    krang = robot_named('krang')
    with pytest.raises(KrangError, match='base_pitch'):
        commanded_joints(Settings(command_joints=('waist', 'base_pitch')), krang)
    assert 'base_pitch' not in commanded_joints(Settings(), krang)
    assert 'base_pitch' in commanded_joints(Settings(wheels_locked=True), krang)
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


def test_another_effort_limit_gives_ten_times_it_per_second_unless_a_rate_is_given(planar):
    limits = configured(planar, limits_effort=[20.0, 10.0]).limits
    np.testing.assert_array_equal(limits.effort_rate, [200.0, 100.0])
    limits = configured(planar, limits_effort=[20.0, 10.0], limits_effort_rate=5.0).limits
    np.testing.assert_array_equal(limits.effort_rate, [5.0, 5.0])


def test_the_rate_of_the_robot_file_applies_with_any_effort_limit():
    limits = configured(robot_named('pendubot'), limits_effort=[1.0, 0.0]).limits
    assert limits.effort_rate[0] == 310.0


def test_no_effort_limit_is_above_the_urdf(planar):
    limits = configured(planar, limits_effort=[1e5, 1.0]).limits
    np.testing.assert_array_equal(limits.effort, [100.0, 1.0])
    np.testing.assert_array_equal(limits.effort_rate, [1000.0, 10.0])


@pytest.mark.parametrize(
    ('before', 'after'),
    [
        ({'limits_effort': [5.0, 4.0]}, {}),
        ({'limits_effort_rate': [5.0, 4.0], 'limits_velocity': 1.0}, {'limits_effort': 9.0}),
        ({'limits_position_margin': 0.1}, {}),
        ({'limits_following_error': 0.1}, {}),
        ({'limits_following_error': 0.1}, {'limits_following_error': [0.2, 0.3]}),
    ],
)
def test_limits_depend_on_the_settings_alone_and_not_on_earlier_ones(planar, before, after):
    changed = configured(planar, **before)
    assert changed.step(Inputs(1.0, 1.0, settings=Settings(**after))).refused == []
    np.testing.assert_equal(vars(changed.limits), vars(configured(planar, **after).limits))


@pytest.mark.parametrize('name', [f'limits.{limit}' for limit in LIMITS] + ['stop.rate'])
@pytest.mark.parametrize('value', [[1.0, 2.0, 3.0], []])
def test_a_limit_of_wrong_length_is_refused_with_the_names_of_the_joints(planar, name, value):
    with pytest.raises(InputError) as refusal:
        limits_of(Settings(**{name: value}), planar, planar.joint_names)
    assert name in str(refusal.value)
    assert 'joint_1, joint_2' in str(refusal.value)


def test_a_stop_rate_of_zero_is_refused_for_a_commanded_joint(planar):
    settings = Settings(stop_rate=[5.0, 0.0])
    with pytest.raises(InputError, match=r"stop\.rate of joint 'joint_2' is 0"):
        limits_of(settings, planar, planar.joint_names)
    assert limits_of(settings, planar, ('joint_1',)).stop_rate.tolist() == [5.0, 0.0]


# -- payloads and gravity ------------------------------------------------------------------------------


def test_a_payload_with_six_numbers_has_the_full_inertia(planar):
    payloads = payloads_of(
        Settings(
            payload_tip_mass=2.0,
            payload_tip_com=[0.1, 0.2, 0.3],
            payload_tip_inertia=[0.4, 0.5, 0.6, 0.01, 0.02, 0.03],
        )
    )
    assert [(p.frame, p.mass) for p in payloads] == [('tip', 2.0)]
    np.testing.assert_array_equal(payloads[0].com, [0.1, 0.2, 0.3])
    np.testing.assert_array_equal(
        payloads[0].inertia, [[0.4, 0.01, 0.02], [0.01, 0.5, 0.03], [0.02, 0.03, 0.6]]
    )


def test_a_payload_with_three_numbers_has_principal_axes(planar):
    payloads = payloads_of(Settings(payload_tip_mass=2.0, payload_tip_inertia=[0.4, 0.5, 0.6]))
    np.testing.assert_array_equal(payloads[0].inertia, np.diag([0.4, 0.5, 0.6]))
    np.testing.assert_array_equal(payloads[0].com, np.zeros(3))


@pytest.mark.parametrize('count', [0, 1, 2, 4, 5, 7, 9])
def test_an_inertia_has_three_or_six_numbers(count):
    with pytest.raises(InputError, match=rf'payload\.tip\.inertia has {count} numbers.*xx yy zz xy xz yz'):
        payloads_of(Settings(payload_tip_mass=2.0, payload_tip_inertia=[0.1] * count))


@pytest.mark.parametrize(
    'wrong',
    [
        {'payload.tip.com': [0.0, 0.0]},
        {'payload.tip.inertia': [1.0, 1.0, 3.0]},
        {'payload.tip.inertia': [1.0, 1.0, 1.0, 5.0, 0.0, 0.0]},
        {'payload.tip.mass': -1.0},
    ],
)
def test_an_impossible_body_is_refused(wrong):
    with pytest.raises(InputError):
        payloads_of(Settings(**{'payload.tip.mass': 2.0, **wrong}))


def test_every_frame_may_have_a_payload_and_no_mass_is_none():
    settings = Settings(payload_right_hand_mass=1.5, payload_left_hand_com=[1.0, 0.0, 0.0])
    assert [(p.frame, p.mass) for p in payloads_of(settings)] == [('right_hand', 1.5)]
    both = settings.replace(payload_left_hand_mass=0.5)
    assert {(p.frame, p.mass) for p in payloads_of(both)} == {('left_hand', 0.5), ('right_hand', 1.5)}


def test_payloads_become_settings_and_come_back_and_others_are_removed():
    inertia = np.array([[0.4, 0.01, 0.02], [0.01, 0.5, 0.03], [0.02, 0.03, 0.6]])
    tool = Payload('tip', 2.0, np.array([0.1, 0.2, 0.3]), inertia)
    settings = with_payloads(Settings(payload_link_1_mass=3.0), [tool])
    (back,) = payloads_of(settings)
    assert (back.frame, back.mass, list(back.com)) == ('tip', 2.0, [0.1, 0.2, 0.3])
    np.testing.assert_array_equal(back.inertia, inertia)
    assert payloads_of(with_payloads(settings, [])) == []


def test_the_load_and_gravity_reach_the_torques(planar):
    controller = configured(
        planar,
        payload_tip_mass=2.0,
        payload_tip_com=[0.0, 0.0, 0.1],
        payload_tip_inertia=[0.1, 0.1, 0.1],
        gravity=[2.0, 0.0, -9.0],
    )
    expected = planar.with_payload('tip', 2.0, [0.0, 0.0, 0.1], np.eye(3) / 10).with_gravity([2.0, 0.0, -9.0])
    q = planar.home
    controller.dynamics.update(q, np.zeros(2))
    np.testing.assert_allclose(controller.dynamics.gravity, expected.gravity_torque(q), rtol=1e-12)
    np.testing.assert_allclose(controller.dynamics.A, expected.mass_matrix(q), rtol=1e-12)


@pytest.mark.parametrize('wrong', [[0.0, -9.81], [], [0.0, 0.0, np.nan], [20.0, 20.0, 20.0]])
def test_gravity_is_a_vector(planar, wrong):
    with pytest.raises(InputError, match='gravity'):
        gravity_of(Settings(gravity=wrong), planar)


# -- values in force -----------------------------------------------------------------------------------


def shown(controller):
    return in_force(controller.settings, controller.robot, controller.limits, controller.drivers)


@pytest.mark.parametrize('name', ['krang', 'otbot', 'pendubot', 'planar_2r'])
def test_the_values_in_force_are_valid_settings_and_change_nothing(name):
    plain = configured(robot_named(name))
    known = {parameter.name: parameter for parameter in PARAMETERS}
    assert all(known[parameter].default is None for parameter in shown(plain))  # only the robot's own values
    given = configured(plain.robot, **shown(plain))
    np.testing.assert_equal(vars(given.limits), vars(plain.limits))
    assert given.safety.stop == plain.safety.stop
    assert given.drivers.names == plain.drivers.names
    assert given.drivers.unit.name == plain.drivers.unit.name
    assert shown(given) == shown(plain)


def test_the_values_in_force_are_those_given(planar):
    stop = {'stop.policy': 'hold', 'stop.time': 1.5, 'stop.rate': [9.0, 8.0], 'stop.limit': 20.0}
    settings = {**stop, 'limits.effort': [20.0, 10.0]}
    assert shown(configured(planar, **settings)) == {
        **settings,
        'limits.effort_rate': [200.0, 100.0],
        'limits.velocity': [6.0, 6.0],
        'limits.position_margin': [0.0, 0.0],
        'stop.blind_time': 0.5,
        'stream.velocity': [5.0, 5.0],
        'stream.acceleration': [10.0, 10.0],
        'stream.jerk': [200.0, 200.0],
        'command_joints': ['joint_1', 'joint_2'],
        'command_unit': 'torque',
    }


# -- settings that do not fit together -----------------------------------------------------------------


@pytest.mark.parametrize(
    ('changes', 'word'),
    [
        ({'terms': ['gravity', 'magic']}, 'magic'),
        ({'terms': ['gravity', 'gravity']}, 'once'),
        ({'terms': []}, 'terms'),
        ({'terms': ['computed_torque'], 'gains_kp': 1.0}, 'gains.kd'),
        ({'command_joints': ['joint_7']}, 'joint_7'),
        ({'command_joints': ['joint_1', 'joint_1']}, 'twice'),
    ],
)
def test_values_that_do_not_fit_together_are_refused(planar, changes, word):
    with pytest.raises(InputError, match=word):
        configured(planar, **changes)
