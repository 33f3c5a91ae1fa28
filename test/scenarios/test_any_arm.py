"""The demonstration of any arm stays within the limits of its URDF; other robots are refused in words."""

import numpy as np
import pytest
from scenarios.ideal_record import ideal

import krang_dynamics as kd
from krang_dynamics.scenarios.any_arm import any_arm, hand_push, motion_within_limits
from krang_dynamics.scenarios.demonstrations import scenario_of


@pytest.fixture(scope='module')
def arm():
    return kd.load_robot('anthropomorphic', name='robbie')


def test_an_unknown_arm_holds_moves_and_is_pushed(arm):
    scenario = scenario_of(arm)
    kd.TorqueController(arm, kd.Settings(terms=scenario.terms, **scenario.controller))
    results = scenario.evaluate(ideal(arm, scenario))
    assert [result.name.partition(':')[0] for result in results] == ['hold', 'move', 'push', 'push']
    assert all(result.passed for result in results)
    assert len(scenario.events) == 2


def test_an_arm_that_drifts_fails_every_part(arm):
    scenario = scenario_of(arm)
    record = ideal(arm, scenario)
    record.q[:] += 0.2
    assert not any(result.passed for result in scenario.evaluate(record))


@pytest.mark.parametrize('name', ['anthropomorphic', 'planar_2r'])
def test_the_motion_keeps_all_limits(name):
    robot = kd.load_robot(name)
    points = motion_within_limits(robot).trajectory
    assert (np.abs(points.positions - robot.home).max(axis=0) > 0.01).all()
    assert (points.positions > robot.lower).all()
    assert (points.positions < robot.upper).all()
    assert (np.abs(points.velocities) <= 0.51 * robot.velocity_limits).all()
    rows = zip(points.positions, points.velocities, points.accelerations, strict=True)
    torques = np.array([robot.inverse_dynamics(*row) for row in rows])
    assert (np.abs(torques) <= 0.9 * robot.effort_limits).all()


def test_the_push_is_at_the_hand_and_small(arm):
    frame, force = hand_push(arm)
    assert frame == 'tool'
    assert 0 < np.linalg.norm(force) <= 20
    torque = arm.jacobian(arm.home, frame)[:3].T @ force
    assert (np.abs(torque) <= 0.051 * arm.effort_limits).all()


def test_the_hand_is_pushed_and_not_a_light_finger(arm):
    hand = (
        '<link name="tcp"/><joint name="fixed" type="fixed"><parent link="tool"/><child link="tcp"/></joint>'
        '<link name="finger"><inertial><mass value="0.01"/><inertia ixx="1e-6" iyy="1e-6" izz="1e-6" ixy="0" '
        'ixz="0" iyz="0"/></inertial></link><joint name="grip" type="prismatic"><parent link="tool"/>'
        '<child link="finger"/><limit lower="0" upper="0.04" effort="20" velocity="0.2"/></joint></robot>'
    )
    gripper = kd.load_robot(arm.urdf.text.decode().replace('</robot>', hand))
    assert set(gripper.config.end_effectors) == {'tcp', 'finger'}
    assert hand_push(gripper)[0] == 'tcp'


@pytest.mark.parametrize(
    ('robot', 'words'),
    [
        ('otbot', 'otbot: it rolls'),
        ('pendubot', "joint 'pendulum' is not driven"),
    ],
)
def test_other_robots_are_refused_with_the_reason(robot, words):
    with pytest.raises(kd.KrangError, match=words):
        any_arm(kd.load_robot(robot))


def test_an_arm_that_cannot_carry_itself_is_refused_by_joint(arm):
    heavy = arm.with_payload('tool', 50.0)
    with pytest.raises(kd.KrangError, match=r'against gravity at home.*krang new'):
        any_arm(heavy)
