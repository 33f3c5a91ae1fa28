"""Masses from poses at rest: balanced ones of Krang, and torques of an arm."""

import numpy as np
import pinocchio as pin
import pytest
from scipy.optimize import brentq

import krang_dynamics as kd
from krang_dynamics.bags.identification.model_files import with_inertias
from krang_dynamics.bags.identification.static_fit import (
    Poses,
    StaticUnknowns,
    balance_angle,
    identify_static,
)
from krang_dynamics.robot.model import Robot


def with_wrong_masses(robot, seed):
    """Masses up to 20 % off, total mass kept."""
    random = np.random.default_rng(seed)
    bodies = {robot.model.names[i]: robot.model.inertias[i] for i in range(1, robot.model.njoints)}
    factors = 1 + random.uniform(-0.2, 0.2, len(bodies))
    factors *= robot.total_mass / sum(f * b.mass for f, b in zip(factors, bodies.values(), strict=True))
    return Robot(
        robot.config,
        with_inertias(
            robot,
            {
                name: pin.Inertia(f * b.mass, b.lever, f * b.inertia).toDynamicParameters()
                for (name, b), f in zip(bodies.items(), factors, strict=True)
            },
        ),
    )


def balanced_poses(robot, count, seed=1):
    """Random poses whose base_pitch balances the robot."""
    random, poses = np.random.default_rng(seed), []
    while len(poses) < count:
        q = robot.home + random.uniform(-0.8, 0.8, robot.nv)
        q[1] = np.clip(q[1], 0.1, 2.8)

        def torque(pitch, q=q):
            return robot.gravity_torque(np.array([pitch, *q[1:]]))[0]

        if torque(-1.5) * torque(1.5) < 0:
            q[0] = brentq(torque, -1.5, 1.5)
            poses.append(q)
    return np.array(poses)


@pytest.mark.parametrize('seed', [3, 4])
def test_krang_balances_on_held_out_poses_after_balanced_ones(seed):
    """Masses 20 % off, inertial unit 1.3 degrees off: balance angle below 0.4 degrees."""
    true = kd.load_robot('krang')
    wrong = with_wrong_masses(true, seed)
    q = balanced_poses(true, 60)
    measured = q.copy()
    measured[:, 0] -= np.radians(1.3)
    poses = Poses(measured, np.full(q.shape, np.nan))
    found = identify_static(wrong, poses, StaticUnknowns(('base_pitch',)), 'base_pitch')
    assert found.angle is not None
    assert np.degrees(found.angle[1]) < 0.4 < np.degrees(found.angle[0])
    assert found.robot.total_mass == pytest.approx(true.total_mass, rel=0.03)
    height = [robot.center_of_mass(robot.home)[2] for robot in (found.robot, wrong)]
    assert height[0] == pytest.approx(height[1], rel=0.03)
    assert 'balance angle' in found.text()


def test_measured_torques_of_some_joints_give_masses_and_gravity():
    arm = kd.load_robot('anthropomorphic')
    tilted = arm.with_gravity((0.5, 0.0, -9.797))
    random = np.random.default_rng(1)
    q = arm.home + random.uniform(-1, 1, (40, 6))
    tau = np.array([tilted.gravity_torque(x) for x in q]) + 0.01 * random.normal(size=q.shape)
    tau[:, 2] = np.nan  # was not measured
    found = identify_static(arm, Poses(q, tau), StaticUnknowns(gravity=True))
    assert found.robot.config.gravity == pytest.approx((0.5, 0.0, -9.797), abs=0.05)
    assert 'joint_3' not in found.torque
    before, after = found.torque['joint_2']
    assert after < 0.2 * before
    assert not found.is_worse()


def test_the_balance_angle_is_that_of_the_centre_of_mass():
    krang = kd.load_robot('krang')
    x, _, z = krang.center_of_mass(krang.home + 0.05)
    assert abs(balance_angle(krang, 'base_pitch', krang.home + 0.05)) == pytest.approx(
        abs(np.arctan2(x, z)), rel=1e-6
    )


def test_poses_without_any_torque_are_refused():
    arm = kd.load_robot('anthropomorphic')
    with pytest.raises(kd.KrangError, match='--balanced'):
        identify_static(arm, Poses(arm.home[None], np.full((1, 6), np.nan)), StaticUnknowns())
