"""The start-up report: states, drivers and limits of every joint, gravity and stop."""

import re

import pytest
from harness import robot_named

import krang_dynamics as kd
from krang_dynamics.control.controller import TorqueController
from krang_dynamics.control.settings import Settings
from krang_dynamics.control.startup_report import startup_report

COLUMNS = ('joint', 'state from', 'driver', 'effort limit [N m]', 'set by', 'rate [N m/s]')


def report(name='krang', terms=('gravity',), **settings):
    return startup_report(TorqueController(robot_named(name), Settings(terms=terms, **settings)))


def rows(lines):
    """The table by joint, each row by column."""
    head = next(i for i, line in enumerate(lines) if line.startswith('joint '))
    assert re.split(r'  +', lines[head]) == list(COLUMNS)
    body = [re.split(r'  +', line) for line in lines[head + 2 :]]
    return {cells[0]: dict(zip(COLUMNS, cells, strict=True)) for cells in body if len(cells) == len(COLUMNS)}


@pytest.mark.parametrize('name', kd.robots())
def test_every_joint_has_a_row_in_the_robots_order(name):
    robot = robot_named(name)
    table = rows(report(name))
    assert tuple(table) == robot.joint_names
    for joint, row in table.items():
        assert row['state from'] == robot.config.joints[joint].state


@pytest.mark.parametrize('name', ['krang', 'pendubot', 'otbot'])
def test_the_numbers_are_the_limits_in_force(name):
    controller = TorqueController(robot_named(name), Settings())
    for i, (joint, row) in enumerate(rows(startup_report(controller)).items()):
        is_commanded = joint in controller.command_joints
        effort = controller.limits.effort[i] if is_commanded else 0.0
        assert float(row['effort limit [N m]']) == pytest.approx(effort, rel=1e-3)
        assert float(row['rate [N m/s]']) == pytest.approx(controller.limits.effort_rate[i], rel=1e-3)


def test_it_lists_the_drivers_of_a_joint_and_joints_without_torque():
    free, locked = rows(report('krang')), rows(report('krang', wheels_locked=True))
    assert (free['base_pitch']['driver'], free['base_pitch']['set by']) == ('none', 'not commanded')
    assert locked['base_pitch']['driver'] == 'left_wheel_motor + right_wheel_motor'
    assert locked['base_pitch']['effort limit [N m]'] == '54'
    assert free['left_5']['driver'] == 'left_5'
    assert rows(report('otbot'))['alpha']['driver'] == 'none'


def test_it_names_the_effort_limit_in_force():
    table = rows(report('krang', wheels_locked=True, limits_effort=[3.0, 432.0, 372.0, *[1e4] * 14]))
    assert (table['base_pitch']['effort limit [N m]'], table['base_pitch']['set by']) == (
        '3',
        'limits.effort',
    )
    assert (table['waist']['effort limit [N m]'], table['waist']['set by']) == ('432', 'robot file')
    assert (table['torso']['effort limit [N m]'], table['torso']['set by']) == ('372', 'URDF')
    assert (table['left_1']['effort limit [N m]'], table['left_1']['set by']) == ('372', 'URDF')


def test_a_robot_without_a_file_has_the_limits_of_its_urdf():
    urdf = (
        '<robot name="pole"><link name="floor"/><link name="rod"><inertial><origin xyz="0 0 1"/>'
        '<mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="hinge" type="revolute"><parent link="floor"/><child link="rod"/><axis xyz="1 0 0"/>'
        '<limit lower="-1" upper="1" effort="9" velocity="9"/></joint></robot>'
    )
    hinge = rows(report(urdf))['hinge']
    assert (hinge['effort limit [N m]'], hinge['set by'], hinge['rate [N m/s]']) == ('9', 'URDF', '90')


@pytest.mark.parametrize(
    ('name', 'settings', 'words'),
    [
        ('planar_2r', {}, '2 numbers in N m, in the order joint_1, joint_2'),
        ('planar_2r', {'command_joints': ('joint_2', 'joint_1')}, 'in N m, in the order joint_2, joint_1'),
        ('pendubot', {}, 'in V, in the order arm'),
        ('krang', {}, '16 numbers in A, in the order waist, torso, left_1'),
        (
            'krang',
            {'wheels_locked': True},
            '18 numbers in A, in the order left_wheel_motor, right_wheel_motor',
        ),
    ],
)
def test_it_gives_size_order_and_unit_of_the_command(name, settings, words):
    assert sum(words in line for line in report(name, **settings)) == 1


def test_it_names_the_robot_and_its_terms():
    lines = report('krang', terms=('gravity', 'damping', 'observer'))
    assert lines[0] == 'krang: gravity + damping + observer'


@pytest.mark.parametrize(
    ('terms', 'by_hardware', 'word'),
    [
        (('gravity',), False, 'compensated here; the hardware must not'),
        (('computed_torque',), False, 'compensated here; the hardware must not'),
        (('gravity', 'computed_torque'), True, 'compensated by the HARDWARE'),
        (('damping',), True, 'compensated by the HARDWARE'),
        (('damping', 'friction'), False, 'NOT compensated'),
    ],
)
def test_it_names_what_compensates_gravity(terms, by_hardware, word):
    lines = report('anthropomorphic', terms, hardware_compensates_gravity=by_hardware)
    (line,) = [line for line in lines if line.startswith('gravity:')]
    assert word in line


def test_it_gives_the_stop_policy_and_times():
    assert 'stop policy: lower, 2 s; without a valid state 0.5 s' in report('planar_2r')
    lines = report('planar_2r', stop_policy='hold', stop_time=1.5, stop_blind_time=0.25)
    assert 'stop policy: hold, 1.5 s; without a valid state 0.25 s' in lines


@pytest.mark.parametrize(('settings', 'warning'), [
    ({'terms': ('friction',), 'friction_scale': 1.0}, 'WARNING: friction.scale is 1, above 0.8'),
    ({'terms': ('computed_torque',), 'gains_bandwidth': 70.0}, 'WARNING: the rate of the states is'),
    ({'terms': ('friction', 'computed_torque')}, None),
])  # fmt: skip
def test_it_warns_of_friction_compensation_and_of_fast_gains(settings, warning):
    found = [line for line in report(**settings) if 'WARNING' in line]
    assert [line.startswith(warning) for line in found] == ([True] if warning else [])


def test_it_gives_the_lowest_rate_at_which_the_gains_are_stable():
    line = next(line for line in report(terms=('computed_torque',)) if line.startswith('gains'))
    assert line == 'gains: stable with states above 36 Hz, or 71 Hz with a delay of 10 ms'
