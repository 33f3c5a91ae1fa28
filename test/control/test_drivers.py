"""Joints and the drivers that move them: order, unit, sign, ratio, shares, and messages by drivers' names."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from harness import robot_named
from reference import pendubot
from tools import states

import krang_dynamics as kd
from krang_dynamics.control.drivers import Drivers
from krang_dynamics.errors import InputError
from krang_dynamics.safety.joint_buffer import MOST_LISTS, JointBuffer, JointSamples

NOW, CLOCK = 10.0, 1000.0  # steady, and the node's [s]
ARMS = tuple(f'{side}_{i}' for side in ('left', 'right') for i in range(1, 8))
WHEELS = ('left_wheel_motor', 'right_wheel_motor')
MOTOR = {'gear': 20.0, 'torque_constant': 0.05, 'back_emf': 0.04, 'resistance': 2.0, 'supply': 24.0}

# joint_1 has two unlike motors, joint_2 one that turns the other way, behind a gear that its driver ignores.
TWINS = [
    {'name': 'm1', 'joint': 'joint_1', 'ratio': 30.0, 'share': 0.75, 'offset': 0.25},
    {'name': 'm2', 'joint': 'joint_2', 'ratio': 4.0, 'sign': -1, 'offset': -0.5},
    {'name': 'm3', 'joint': 'joint_1', 'ratio': 10.0, 'share': 0.25, 'sign': -1},
]


def arm_with_motors(unit='torque', **overrides):
    joint = {'driven': True, 'motor': MOTOR}
    joints = {'joint_1': joint, 'joint_2': joint}
    return kd.load_robot(
        'planar_2r', **{'actuators': TWINS, 'command_unit': unit, 'joints': joints, **overrides}
    )


def message(names, position, velocity=None, effort=(), stamp=CLOCK):
    velocity = np.zeros(len(position)) if velocity is None else velocity
    return JointSamples(names, np.array(position), np.array(velocity), np.array(effort), stamp, NOW)


def reason(robot, sample):
    """Why the buffer refuses a message that was translated by the drivers."""
    return JointBuffer(robot.joint_names).take(sample, NOW, CLOCK)


# -- which drivers, in which order ---------------------------------------------------------------------


def test_the_command_has_every_driver_of_every_joint_in_the_order_given():
    krang = robot_named('krang')
    assert Drivers(krang, ('waist', 'torso', *ARMS)).names == ('waist', 'torso', *ARMS)
    locked = Drivers(krang, ('torso', 'base_pitch', 'waist'))
    assert locked.names == ('torso', *WHEELS, 'waist')
    assert locked.joints == ('torso', 'base_pitch', 'waist')
    assert Drivers(krang, ()).names == ()


def test_drivers_may_be_named_themselves_in_their_own_order():
    drivers = Drivers(arm_with_motors(), ('m3', 'joint_2', 'm1'))
    assert drivers.names == ('m3', 'm2', 'm1')
    assert drivers.joints == ('joint_1', 'joint_2')


def test_a_name_that_is_a_joint_and_another_joints_driver_means_the_joint():
    crossed = [{'name': 'joint_1', 'joint': 'joint_2'}, {'name': 'joint_2', 'joint': 'joint_1'}]
    drivers = Drivers(arm_with_motors(actuators=crossed), ('joint_1', 'joint_2'))
    assert drivers.names == ('joint_2', 'joint_1')
    assert drivers.joints == ('joint_1', 'joint_2')


@pytest.mark.parametrize(
    ('names', 'words'),
    [
        (('joint_3',), "'joint_3'; did you mean .* Valid: joint_1, joint_2, m1, m2, m3"),
        (('joint_1', 'joint_1'), "'joint_1' occurs twice"),
        (('m2', 'm2'), "'m2' occurs twice"),
        (('joint_1', 'm3'), "'m3' occurs twice"),
        (('m2', 'joint_2'), "'joint_2' occurs twice"),
        (('m1', 'm2'), "'m3' is missing; joint 'joint_1' needs all"),
    ],
)
def test_an_invalid_list_is_refused_with_what_is_possible(names, words):
    with pytest.raises(InputError, match=words):
        Drivers(arm_with_motors(), names)


def test_passive_joints_have_no_driver():
    with pytest.raises(InputError, match='Valid: right_wheel, left_wheel, pivot'):
        Drivers(robot_named('otbot'), ('alpha',))


# -- commands ------------------------------------------------------------------------------------------


def test_krang_takes_current_and_each_wheel_motor_half():
    krang = robot_named('krang')
    torque = np.linspace(-40, 40, 17)
    command = Drivers(krang, ('left_5', 'base_pitch', 'torso')).command(torque, np.zeros(17))
    half = torque[0] / 2 / (0.0847 * 15)
    np.testing.assert_allclose(
        command, [torque[7] / (0.016 * 552), half, half, torque[2] / (0.0314 * 596)], rtol=1e-14
    )


@pytest.mark.parametrize('name', kd.robots())
def test_one_driver_per_joint_is_what_the_robot_itself_commands(name):
    robot = robot_named(name)
    joints = tuple(a.joint for a in robot.config.actuators if a.name == a.joint)[::-1]
    rows = [robot.joint_names.index(joint) for joint in joints]
    torque, v = states(1, robot.nv, parts=2, reach=0.5)[:, 0]
    np.testing.assert_array_equal(
        Drivers(robot, joints).command(torque, v), robot.motors.command(torque, v)[rows]
    )


def test_drivers_that_take_torque_give_the_power_of_the_joints():
    drivers = Drivers(arm_with_motors(), ('m3', 'm1', 'joint_2'))
    torque, v = np.array([12.0, -5.0]), np.array([0.7, 1.1])
    command = drivers.command(torque, v)
    shaft_speed = np.array([-10.0 * v[0], 30.0 * v[0], -4.0 * v[1]])
    np.testing.assert_allclose(command * shaft_speed, [0.25 * 12 * 0.7, 0.75 * 12 * 0.7, -5 * 1.1])


def test_volts_against_the_speed_are_not_shared():
    drivers = Drivers(arm_with_motors('voltage'), ('m1', 'm2', 'm3'))
    torque, v = np.array([2.0, 1.0]), np.array([3.0, -4.0])
    volts = 2.0 / (0.05 * 20.0) * torque  # R / (k_t N) tau
    back = 0.04 * 20.0 * v  # k_v N v
    expected = [0.75 * volts[0] + back[0], -(volts[1] + back[1]), -(0.25 * volts[0] + back[0])]
    np.testing.assert_allclose(drivers.command(torque, v), expected, rtol=1e-14)


def test_the_pendubots_volts_are_its_motor_equation_within_the_supply():
    drivers = Drivers(robot_named('pendubot'), ('arm',))
    v = np.array([3.0, 1.0])
    assert drivers.command(np.array([0.2, 0.0]), v)[0] == pytest.approx(pendubot.volts(0.2, v), rel=1e-14)
    assert drivers.command(np.array([-9.0, 0.0]), v).tolist() == [-15.0]
    limit = drivers.torque(np.array([15.0]), v)
    np.testing.assert_array_equal(drivers.torque(np.array([99.0]), v), limit)
    assert drivers.command(limit, v)[0] == pytest.approx(15.0, rel=1e-14)


@pytest.mark.parametrize('unit', ['torque', 'current', 'voltage'])
@pytest.mark.parametrize('order', list(itertools.permutations(('m1', 'm2', 'm3'))))
def test_torque_undoes_command(unit, order):
    drivers = Drivers(arm_with_motors(unit), order)
    for torque, v in states(10, 2, parts=2).swapaxes(0, 1):
        np.testing.assert_allclose(drivers.torque(drivers.command(torque, v), v), torque, atol=1e-13)


def test_joints_that_are_not_commanded_get_nothing():
    krang = robot_named('krang')
    drivers = Drivers(krang, ('waist', *ARMS))
    torque = np.linspace(1, 2, 17)
    given = drivers.torque(drivers.command(torque, np.ones(17)), np.ones(17))
    np.testing.assert_allclose(given[3:], torque[3:], rtol=1e-14)
    assert given[[0, 2]].tolist() == [0.0, 0.0]


@pytest.mark.parametrize('unit', ['torque', 'current', 'voltage'])
@pytest.mark.parametrize('invalid', [np.nan, np.inf, -np.inf, 1e308])
@np.errstate(all='ignore')
def test_a_command_is_always_finite_and_an_invalid_torque_at_one_joint_changes_no_other(unit, invalid):
    drivers = Drivers(arm_with_motors(unit), ('joint_1', 'joint_2'))
    good = drivers.command(np.array([1.0, 2.0]), np.zeros(2))
    bad = drivers.command(np.array([invalid, 2.0]), np.array([-invalid, 0.0]))
    assert np.isfinite(bad).all()
    assert bad[2] == good[2]
    given = drivers.torque(np.array([np.nan, invalid, good[2]]), np.zeros(2))
    assert given[1] == pytest.approx(2.0)


# -- states --------------------------------------------------------------------------------------------


def test_a_message_by_drivers_becomes_one_by_joints():
    robot = arm_with_motors()
    sample = message(
        ('m2', 'lamp', 'm3', 'm1'), [2.0, 7.0, 9.0, 15.0], [4.0, 7.0, 9.0, 30.0], [3.0, 7.0, 5.0, 2.0]
    )
    joints = Drivers(robot, ('joint_1',)).joint_samples(sample)
    assert joints.names == ('joint_2', 'lamp', 'joint_1')
    assert joints.position.tolist() == [-2.0 / 4 - 0.5, 7.0, 15.0 / 30 + 0.25]
    assert joints.velocity.tolist() == [-4.0 / 4, 7.0, 30.0 / 30]
    assert joints.effort.tolist() == [-3.0 * 4, 7.0, 2.0 * 30 - 5.0 * 10]
    assert (joints.stamp, joints.arrival) == (CLOCK, NOW)
    buffer = JointBuffer(robot.joint_names)
    assert buffer.take(joints, NOW, CLOCK) is None
    assert buffer.q.tolist() == [0.75, -1.0]
    assert buffer.extra == {'lamp'}


def test_commanded_and_reported_torque_agree():
    """A driver that gives the commanded torque reports it."""
    drivers = Drivers(arm_with_motors(), ('m2', 'm3', 'm1'))
    torque, v = np.array([12.0, -5.0]), np.array([0.7, 1.1])
    command = drivers.command(torque, v)
    reported = drivers.joint_samples(message(drivers.names, np.zeros(3), effort=command))
    assert reported.names == ('joint_2', 'joint_1')
    np.testing.assert_allclose(reported.effort, torque[::-1], rtol=1e-14)


def test_velocity_and_effort_may_be_empty_and_nan_stays_with_its_joint():
    drivers = Drivers(arm_with_motors(), ())
    bare = drivers.joint_samples(message(('m1', 'm2', 'm3'), np.zeros(3), velocity=()))
    assert (len(bare.velocity), len(bare.effort)) == (0, 0)
    gaps = drivers.joint_samples(
        message(('m1', 'm2', 'm3'), [np.nan, 4, 0], [np.nan, 4, 0], [1.0, 1.0, np.nan])
    )
    np.testing.assert_array_equal(gaps.position, [np.nan, -1.5])
    np.testing.assert_array_equal(gaps.velocity, [np.nan, -1.0])
    np.testing.assert_array_equal(gaps.effort, [np.nan, -4.0])


def test_with_a_driver_missing_the_joint_is_known_but_not_its_effort():
    joints = Drivers(arm_with_motors(), ()).joint_samples(
        message(('m3', 'm2'), [10.0, 0.0], effort=[1.0, 1.0])
    )
    assert joints.names == ('joint_1', 'joint_2')
    assert joints.position.tolist() == [-1.0, -0.5]
    np.testing.assert_array_equal(joints.effort, [np.nan, -4.0])


def test_names_of_joints_stay_as_they_are():
    sample = message(('joint_2', 'joint_1'), [1.0, 2.0])
    assert Drivers(arm_with_motors(), ()).joint_samples(sample) is sample


@pytest.mark.parametrize(
    ('names', 'words'),
    [
        (('joint_1', 'm1', 'm2'), "'joint_1' occurs twice"),
        (('m3', 'joint_1'), "'joint_1' occurs twice"),
        (('m1', 'm2', 'm1'), "'m1' occurs twice"),
        (('m1', 'm3', 'm3'), "'m3' occurs twice"),
        (('lamp', 'lamp', 'm1'), "'lamp' occurs twice"),
    ],
)
def test_a_joint_that_comes_twice_is_refused(names, words):
    sample = message(names, np.zeros(len(names)))
    assert words in reason(arm_with_motors(), Drivers(arm_with_motors(), ()).joint_samples(sample))


@pytest.mark.parametrize('field', ['position', 'velocity', 'effort'])
@pytest.mark.parametrize('length', [1, 2, 4])
def test_fields_of_wrong_length_are_still_refused(field, length):
    sample = message(('m1', 'm2', 'm3'), np.zeros(3), effort=np.zeros(3))
    sample = replace(sample, **{field: np.zeros(length)})
    assert f'{length} ' in reason(arm_with_motors(), Drivers(arm_with_motors(), ()).joint_samples(sample))


@pytest.mark.parametrize('name', kd.robots())
def test_where_drivers_have_the_names_of_joints_the_message_itself_is_returned(name):
    robot = robot_named(name)
    drivers = Drivers(robot, ())
    for names in (robot.joint_names, robot.actuated_joint_names, ('lamp',)):
        sample = message(names, np.zeros(len(names)))
        assert drivers.joint_samples(sample) is sample


def test_the_wheel_motors_of_krang_do_not_feed_what_the_inertial_unit_feeds():
    krang = robot_named('krang')
    names = (*krang.joint_names[1:], *WHEELS)
    sample = Drivers(krang, ('base_pitch',)).joint_samples(message(names, np.ones(18)))
    buffer = JointBuffer(krang.joint_names)
    assert buffer.take(sample, NOW, CLOCK) is None
    assert buffer.q.tolist() == [0.0, *[1.0] * 16]
    assert buffer.extra == set(WHEELS)


def test_an_encoder_named_like_a_joint_that_the_inertial_unit_feeds_is_dropped():
    joints = {'joint_1': {'driven': True, 'state': 'imu'}, 'joint_2': {'driven': True}}
    plain = [{'name': 'joint_1', 'joint': 'joint_1'}, {'name': 'joint_2', 'joint': 'joint_2'}]
    imu = {'link': 'link_1', 'mount_rpy': [0.0, 0.0, 0.0], 'feeds': 'joint'}
    drivers = Drivers(arm_with_motors(joints=joints, actuators=plain, imu=imu), ('joint_1',))
    sample = drivers.joint_samples(message(('joint_1', 'joint_2'), [1.0, 2.0], effort=[3.0, 4.0]))
    assert sample.names == ('joint_2',)
    assert (sample.position.tolist(), sample.effort.tolist()) == ([2.0], [4.0])
    alone = drivers.joint_samples(message(('joint_1',), [1.0], effort=[3.0]))
    assert (alone.names, len(alone.position), len(alone.effort)) == ((), 0, 0)


def test_names_of_messages_may_change_at_any_time():
    drivers, names = Drivers(arm_with_motors(), ()), ['m1', 'm2']
    first = drivers.joint_samples(message(names, [30.0, 4.0]))
    names.reverse()
    second = drivers.joint_samples(message(names, [4.0, 30.0]))
    assert first.names == second.names[::-1] == ('joint_1', 'joint_2')
    assert first.position.tolist() == second.position.tolist()[::-1] == [1.25, -1.5]
    for i in range(3 * MOST_LISTS):
        drivers.joint_samples(message(('m1', f'invalid_{i}'), np.zeros(2)))
    assert len(drivers._reader._translations) <= MOST_LISTS
    assert drivers.joint_samples(message(('m1', 'm2'), [30.0, 4.0])).position.tolist() == [1.25, -1.5]
