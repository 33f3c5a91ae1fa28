"""Mimic joints: they are part of the joint that they follow."""

import numpy as np
import pytest
from robot.urdf_text import (
    BALL,
    BOB,
    EXACT,
    SLOPE,
    Bare,
    assert_robots_agree,
    assert_same_physics,
    dynamics,
    inertial,
    jacobian_of_pose,
    joint,
    link,
    mimic,
    urdf,
)

import krang_dynamics as kd

GRIPPER = (
    link('palm', BALL),
    link('finger', BOB),
    link('thumb', BALL),
    link('tip', BOB),
    link('rack', BALL),
    joint('lead', 'revolute', 'palm', 'finger', xyz=(0.1, 0, 0), axis=(0, 1, 0)),
)
FOLLOWERS = {
    'thumb': ('continuous', 'palm', 'thumb', 'lead', -0.7, 0.3),
    'tip': ('revolute', 'thumb', 'tip', 'thumb', 1.5, -0.2),
    'rack': ('prismatic', 'tip', 'rack', 'tip', -0.4, 0.1),
}
FOLDED = {
    'thumb': ('lead', -0.7, 0.3),
    'tip': ('lead', 1.5 * -0.7, 1.5 * 0.3 - 0.2),
    'rack': ('lead', -0.4 * 1.5 * -0.7, -0.4 * (1.5 * 0.3 - 0.2) + 0.1),
}


def gripper(reverse=False, **content):
    followers = [
        joint(
            f'{name}_joint',
            kind,
            parent,
            child,
            mimic(leader if leader == 'lead' else f'{leader}_joint', multiplier, offset),
            content.get(name, ''),
            xyz=(0, 0.1, -0.3),
            axis=(0, 1, 0),
        )
        for name, (kind, parent, child, leader, multiplier, offset) in FOLLOWERS.items()
    ]
    elements = [*GRIPPER, *followers]
    return urdf(*(reversed(elements) if reverse else elements))


@pytest.mark.parametrize('reverse', [False, True], ids=['leader first', 'followers first'])
def test_mimic_of_a_mimic_folds_into_its_leader(rng, reverse):
    text = gripper(reverse)
    robot = kd.load_robot(text)
    assert robot.joint_names == ('lead',)
    assert_same_physics(
        robot, Bare(text, robot, {f'{name}_joint': fold for name, fold in FOLDED.items()}), rng
    )


def test_offset_of_a_mimic_shows_in_the_pose():
    text = urdf(
        link('base'),
        link('a', BOB),
        link('b', BOB),
        joint('lead', 'revolute', 'base', 'a'),
        joint('follow', 'prismatic', 'base', 'b', mimic('lead', -2.0, 0.5)),
    )
    np.testing.assert_allclose(kd.load_robot(text).frame_pose([0.1], 'b')[2, 3], 0.3, **EXACT)


def test_jacobian_of_a_follower_passes_finite_differences(rng):
    robot = kd.load_robot(gripper())
    q = rng.uniform(-1, 1, 1)
    for frame in ('thumb', 'tip', 'rack'):
        np.testing.assert_allclose(robot.jacobian(q, frame), jacobian_of_pose(robot, q, frame), **SLOPE)


def test_friction_of_a_follower_loads_its_leader():
    robot = kd.load_robot(gripper(thumb=dynamics(2.0, 3.0), rack=dynamics(5.0, 7.0)))
    thumb, rack = FOLDED['thumb'][1], FOLDED['rack'][1]
    for v in (-1.3, 0.4):
        expected = (2 * thumb**2 + 5 * rack**2) * v + (3 * abs(thumb) + 7 * abs(rack)) * np.sign(v)
        np.testing.assert_allclose(robot.friction_torque([v]), [expected], **EXACT)


def test_payload_reaches_the_leader_through_its_follower(rng):
    robot = kd.load_robot(gripper())
    loaded = robot.with_payload('rack', 2.0, (0.1, 0.2, 0.3), np.diag([0.1, 0.2, 0.25]))
    extra = (
        link('load', inertial(2.0, (0.1, 0.2, 0.3), np.diag([0.1, 0.2, 0.25]))),
        joint('weld', 'fixed', 'rack', 'load'),
    )
    welded = kd.load_robot(gripper().replace('</robot>', ''.join(extra) + '</robot>'))
    assert_robots_agree(loaded, welded, rng)
