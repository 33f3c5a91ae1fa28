"""Replay a fault: a recording passes through the controller again, also with another limit.

On a robot the node writes the ten seconds before every fault as a bag. Here the example records one: a
simulated robot under gravity compensation is pushed until its speed limit stops it.
"""

import tempfile
from pathlib import Path

import numpy as np

import krang_dynamics as kd
from krang_dynamics.bags.io.joint_state_codec import TYPE, encode
from krang_dynamics.bags.io.reader import Bag
from krang_dynamics.bags.io.writer import BagWriter
from krang_dynamics.bags.replay.replayer import replay

RATE = 500.0  # of the control loop [Hz]
PUSH = [0.0, 0.0, 40.0, 0.0, 0.0, 0.0]  # on the tool from 1 s on, world axes [N, N m]
START = 1_700_000_000_000_000_000  # of the recording [ns]
LIMIT, LOWER_LIMIT = 1.0, 0.3  # speed of every joint [rad/s]
TERMS = ('gravity', 'damping')

robot = kd.load_robot('planar_2r')
hand = robot.config.end_effectors[0]


def record(path):
    """Run the controller on a simulated robot and write the joint states; return the fault."""
    plant = kd.make_plant(robot, 'pinocchio')
    controller = kd.TorqueController(robot, kd.Settings(terms=TERMS))
    effort = robot.gravity_torque(plant.q)  # measured torque [N m]
    with BagWriter(path) as bag:
        for k in range(round(2.0 * RATE)):
            stamp = START + round(k * 1e9 / RATE)
            now = stamp * 1e-9
            bag.write(
                '/joint_states', TYPE, encode(robot.joint_names, stamp, plant.q, plant.v, effort), stamp
            )
            state = kd.JointSamples(robot.joint_names, plant.q, plant.v, effort, now, now)
            first = {'enable': True, 'limits': {'velocity': np.full(robot.nv, LIMIT)}} if k == 0 else {}
            outputs = controller.step(kd.Inputs(now, now, [state], **first))
            effort = np.zeros(robot.nv) if outputs.torque is None else outputs.torque
            plant.push(hand, PUSH if k >= RATE and not outputs.fault else np.zeros(6))
            plant.step(effort, 1 / RATE)
    return outputs.fault


with tempfile.TemporaryDirectory() as folder:
    bag = Path(folder, 'bag')
    print(f'recorded: {record(bag)}')
    for limit in (LIMIT, LOWER_LIMIT):
        result = replay(Bag(bag), robot, {'terms': ','.join(TERMS), 'limits.velocity': limit}, enable_at=0.0)
        for time, fault in result.faults:
            print(f'replayed with limits.velocity = {limit} rad/s: fault after {time:.3f} s, {fault}')
