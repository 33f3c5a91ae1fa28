"""Inverse dynamics of Krang by every library that is installed, in one run, at the same states.

Rotor inertia is left out: not every library has it. A library that differs by more than 1e-9 of the largest
torque is reported with its difference.
"""

import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pinocchio as pin
from timing import median_costs, ratio

import krang_dynamics as kd

TOLERANCE, STATES = 1e-9, 20


def run():
    robot = kd.load_robot('krang', rotor_inertia=False)
    peers = dict(installed(robot))
    states = np.random.default_rng(0).uniform(-1, 1, (STATES, 3, robot.nv))
    expected = np.array([robot.inverse_dynamics(*state) for state in states])
    # Joint order and type of the arguments are prepared: they are no part of a library's cost.
    prepared = [(call, [convert(x) for x in states[0]]) for call, convert, _ in peers.values()]
    calls = [lambda call=call, state=state: call(*state) for call, state in prepared]
    costs = median_costs(*calls, rounds=3000)
    for (name, (call, convert, back)), cost in zip(peers.items(), costs, strict=True):
        torque = np.array([np.array(call(*map(convert, state)))[back] for state in states])
        difference = np.abs(torque - expected).max() / np.abs(expected).max()
        agrees = 'agrees' if difference <= TOLERANCE else 'DIFFERS'
        yield {'figure': name, 'us': cost, 'difference': difference, 'agreement': agrees}
    cost = dict(zip(peers, costs, strict=True))
    best = min(cost[name] for name in cost if not name.startswith('krang'))
    yield ratio('compiled inverse dynamics / best peer', cost['krang_dynamics compiled'], best, 0.7)


def installed(robot):
    """Name and (inverse dynamics, conversion of its arguments, order of its result) of every library."""
    model, data = robot.model, robot.model.createData()
    everything = slice(None)
    yield 'krang_dynamics', (robot.inverse_dynamics, np.array, everything)
    yield 'krang_dynamics compiled', (robot.compiled().inverse_dynamics, np.array, everything)
    yield 'Pinocchio', (lambda q, v, a: pin.rnea(model, data, q, v, a), np.array, everything)
    with tempfile.TemporaryDirectory() as folder:
        urdf = Path(folder) / 'robot.urdf'
        text = robot.urdf.text
        urdf.write_bytes(text if isinstance(text, bytes) else text.encode())
        for module, (name, peer) in PEERS.items():
            if find_spec(module) is not None:
                yield name, peer(robot, str(urdf))


def mujoco(robot, urdf):
    import mujoco

    model = mujoco.MjModel.from_xml_path(urdf)
    model.opt.gravity = robot.config.gravity
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT  # inverse dynamics of the robot alone
    data = mujoco.MjData(model)
    order = [model.joint(name).dofadr[0] for name in robot.joint_names]
    place = np.argsort(order)

    def torque(q, v, a):
        data.qpos[:], data.qvel[:], data.qacc[:] = q, v, a
        mujoco.mj_inverse(model, data)
        return data.qfrc_inverse

    return torque, lambda x: x[place], order


def pybullet(robot, urdf):
    import pybullet

    client = pybullet.connect(pybullet.DIRECT)
    pybullet.setGravity(*robot.config.gravity, physicsClientId=client)
    flags = pybullet.URDF_USE_INERTIA_FROM_FILE
    body = pybullet.loadURDF(urdf, useFixedBase=True, flags=flags, physicsClientId=client)
    count = pybullet.getNumJoints(body, client)
    joints = [pybullet.getJointInfo(body, i, client) for i in range(count)]
    for info in joints:
        if robot.urdf.links[info[12].decode()].mass == 0:  # PyBullet gives a link without inertia 1 kg
            zero = (0.0, 0.0, 0.0)
            pybullet.changeDynamics(body, info[0], mass=0, localInertiaDiagonal=zero, physicsClientId=client)
    names = [info[1].decode() for info in joints if info[2] != pybullet.JOINT_FIXED]
    order = [robot.joint_names.index(name) for name in names]
    back = np.argsort(order)

    def torque(q, v, a):
        return pybullet.calculateInverseDynamics(body, q, v, a, physicsClientId=client)

    return torque, lambda x: x[order].tolist(), back


def drake(robot, urdf):
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant
    from pydrake.multibody.tree import MultibodyForces

    plant = MultibodyPlant(0.0)
    (index,) = Parser(plant).AddModels(urdf)
    root = robot.urdf.root
    if root != 'world':
        plant.WeldFrames(plant.world_frame(), plant.GetFrameByName(root))
    plant.mutable_gravity_field().set_gravity_vector(np.array(robot.config.gravity))
    plant.Finalize()
    context = plant.CreateDefaultContext()
    order = [plant.GetJointByName(name, index).velocity_start() for name in robot.joint_names]
    place = np.argsort(order)
    forces = MultibodyForces(plant)

    def torque(q, v, a):
        plant.SetPositions(context, q)
        plant.SetVelocities(context, v)
        plant.CalcForceElementsContribution(context, forces)
        return plant.CalcInverseDynamics(context, a, forces)

    return torque, lambda x: x[place], order


def dart(robot, urdf):
    import dartpy

    loader = getattr(dartpy, 'utils', dartpy)
    skeleton = loader.DartLoader().parseSkeleton(urdf)
    skeleton.setGravity(np.array(robot.config.gravity))
    for link in robot.urdf.links.values():
        if link.mass == 0 and skeleton.getBodyNode(link.name):  # DART gives a link without inertia 1 kg
            zero = np.zeros((3, 3))
            skeleton.getBodyNode(link.name).setInertia(dartpy.dynamics.Inertia(1e-15, np.zeros(3), zero))
    order = [skeleton.getJoint(name).getIndexInSkeleton(0) for name in robot.joint_names]
    place = np.argsort(order)

    def torque(q, v, a):
        skeleton.setPositions(q)
        skeleton.setVelocities(v)
        skeleton.setAccelerations(a)
        skeleton.computeInverseDynamics()
        return skeleton.getForces()

    return torque, lambda x: x[place], order


PEERS = {
    'mujoco': ('MuJoCo', mujoco),
    'pybullet': ('PyBullet', pybullet),
    'pydrake': ('Drake', drake),
    'dartpy': ('DART', dart),
}
