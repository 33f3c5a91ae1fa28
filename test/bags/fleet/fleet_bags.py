"""A generated fleet: five arms, of which two get more friction in a joint and one forgets a payload."""

from dataclasses import replace

import numpy as np
from bags.bagging import motion, torques

import krang_dynamics as kd
from krang_dynamics.bags.io.joint_state_codec import TYPE, encode
from krang_dynamics.bags.io.writer import BagWriter
from krang_dynamics.robot.model import Robot

DAY = 86_400 * 10**9  # [ns]
FIRST = 1_772_323_200 * 10**9  # 2026-03-01 [ns]
MACHINES = {
    'krang-1': 'krang',
    'krang-2': 'krang',
    'anthropomorphic-1': 'anthropomorphic',
    'planar_2r-1': 'planar_2r',
    'planar_2r-2': 'planar_2r',
}
SINCE = 0.5  # share of the recordings before the changes
NOISE = 0.2  # [N m]


def true_robot(machine, share):
    """The robot at a share of the recorded time: what the model does not know."""
    robot = kd.load_robot(MACHINES[machine])
    growth = max(0.0, share - SINCE) / (1 - SINCE)
    if machine == 'krang-2':
        return with_friction(robot, 'right_3', 1 + 0.6 * growth)
    if machine == 'anthropomorphic-1':  # its model has no friction
        return with_friction(robot, 'joint_2', 1 + growth, least=4.0)
    if machine == 'planar_2r-2' and share >= SINCE:
        return robot.with_payload('tip', 0.8, np.zeros(3), np.zeros((3, 3)))
    return robot


def with_friction(robot, joint, factor, least=0.0):
    friction = robot.config.friction
    viscous, coulomb = dict(friction.viscous), dict(friction.coulomb)
    if least:
        viscous[joint] = least * (factor - 1)
    else:
        viscous[joint], coulomb[joint] = factor * viscous[joint], factor * coulomb[joint]
    config = replace(robot.config, friction=replace(friction, viscous=viscous, coulomb=coulomb))
    return Robot(config, robot.urdf, robot.payloads)


def write_fleet(folder, per_machine, duration=10.0, rate=100.0, machines=MACHINES, first=0):
    """`per_machine` bags of every machine, one per day; each has other noise and another amplitude.

    The first one is of day `first`.
    """
    for number, machine in enumerate(machines):
        dice = np.random.default_rng([number, first])
        for k in range(per_machine):
            robot = true_robot(machine, k / per_machine)
            reach = dice.uniform(0.3, 0.4)
            t, q, v, a = motion(robot, duration, rate, reach, frequency=0.1 if robot.nv > 6 else 0.3)
            tau = torques(robot, q, v, a) + dice.normal(0, NOISE, q.shape)
            day = first + k
            write_bag(folder / machine / f'bag_{day:04d}', robot.joint_names, t, q, v, tau, FIRST + day * DAY)


def write_bag(path, names, t, q, v, tau, start):
    path.parent.mkdir(parents=True, exist_ok=True)
    with BagWriter(path) as bag:
        for stamp, *row in zip((start + t * 1e9).astype(np.int64).tolist(), q, v, tau, strict=True):
            bag.write('/joint_states', TYPE, encode(names, stamp, *row), stamp)
