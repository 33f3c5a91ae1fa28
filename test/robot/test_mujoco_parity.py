"""The same URDF in another engine: MuJoCo must find the same A, bias and inverse dynamics."""

from pathlib import Path

import numpy as np
import pytest
from tools import assert_close, states

import krang_dynamics as kd

mujoco = pytest.importorskip('mujoco')

COUNT = 200


class Engine:
    """MuJoCo's reading of a robot's URDF, asked in the robot's joint order."""

    def __init__(self, robot, urdf):
        self.model = mujoco.MjModel.from_xml_string(urdf)
        self.model.opt.gravity[:] = robot.config.gravity
        self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        joints = [mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_JOINT, n) for n in robot.joint_names]
        self.q, self.v = self.model.jnt_qposadr[joints], self.model.jnt_dofadr[joints]
        self.model.dof_armature[self.v] = np.diag(robot.rotor_inertia())
        self.data = mujoco.MjData(self.model)

    def evaluate(self, q, v, a):
        """(A, C v + Q, inverse dynamics)."""
        self.data.qpos[self.q], self.data.qvel[self.v] = q, v
        mujoco.mj_forward(self.model, self.data)
        full = np.zeros((self.model.nv, self.model.nv))
        for row, unit in zip(full, np.eye(self.model.nv), strict=True):
            mujoco.mj_mulM(self.model, self.data, row, unit)
        bias = self.data.qfrc_bias[self.v].copy()
        self.data.qacc[self.v] = a
        mujoco.mj_inverse(self.model, self.data)
        return full[np.ix_(self.v, self.v)], bias, self.data.qfrc_inverse[self.v].copy()


@pytest.mark.parametrize('name', kd.robots())
def test_mujoco_agrees(name):
    robot = kd.load_robot(name)
    engine = Engine(robot, Path(robot.urdf.source).read_text())
    q, v, a = states(COUNT, robot.nv)
    A, bias, tau = zip(*map(engine.evaluate, q, v, a), strict=True)
    assert_close([robot.mass_matrix(x) for x in q], A)
    assert_close([robot.inverse_dynamics(*x, np.zeros(robot.nv)) for x in zip(q, v, strict=True)], bias)
    assert_close([robot.inverse_dynamics(*x) for x in zip(q, v, a, strict=True)], tau)
