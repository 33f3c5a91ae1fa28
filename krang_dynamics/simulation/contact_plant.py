"""A rolling robot on real wheels: MuJoCo's contact and friction hold it, no constraint does."""

import numpy as np

from ..arrays import Array
from ..robot.model import Robot
from .mujoco_model import MujocoModel, import_mujoco
from .planar_base import PlanarBase
from .plant import Plant
from .rolling_mjcf import rolling_spec


class ContactPlant(Plant):
    """A robot with `rolling` and `odom` on level ground, where its wheels can slip.

    Friction and rotors of x, y and heading, which stand for no machine, are left out.
    """

    name = 'mujoco'

    def __init__(
        self, robot: Robot, friction: bool = True, position_limits: bool = False, timestep: float = 1e-3
    ) -> None:
        super().__init__(robot, friction, timestep)
        self._mujoco = import_mujoco()
        self._base = PlanarBase(robot)
        self.frames = tuple(robot.urdf.subtree(self._base.link))
        spec = rolling_spec(robot, self._base, self._timestep, position_limits)
        self._own = np.array([i for i in range(robot.nv) if i not in self._base.joints])
        self._engine = engine = MujocoModel(spec, [robot.joint_names[i] for i in self._own])
        free = engine.model.joint(self._base.free_joint)
        self._free_q = slice(free.qposadr[0], free.qposadr[0] + 7)
        self._free_v = slice(free.dofadr[0], free.dofadr[0] + 6)
        engine.model.dof_damping[engine.v] = self._friction.viscous[self._own]
        if self._is_dry:
            engine.add_dry_friction(self._friction.coulomb[self._own])
        self._place()

    def reset(self, q: Array, v: Array) -> None:
        super().reset(q, v)
        self._place()

    def _place(self) -> None:
        """Put the wheels on the ground in the present state."""
        engine, data = self._engine, self._engine.data
        self._mujoco.mj_resetData(engine.model, data)
        data.qpos[engine.q], data.qvel[engine.v] = self._q[self._own], self._v[self._own]
        data.qpos[self._free_q], data.qvel[self._free_v] = self._base.free_state(self._q, self._v)

    def _advance(self, force: Array, h: float) -> None:
        engine, data = self._engine, self._engine.data
        engine.model.opt.timestep = h
        self._mujoco.mj_step1(engine.model, data)
        # Viscous friction is MuJoCo's damping, implicit in v: light wheels need that.
        coulomb = self._drag(self._v) - self._friction.viscous * self._v
        data.qfrc_applied[:] = 0
        data.qfrc_applied[engine.v] = (force - coulomb)[self._own]
        engine.add_pushes(self._pushes)
        self._mujoco.mj_step2(engine.model, data)
        self._read()

    def _read(self) -> None:
        engine, data, planar = self._engine, self._engine.data, self._base.joints
        self._q[self._own], self._v[self._own] = data.qpos[engine.q], data.qvel[engine.v]
        self._q[planar], self._v[planar] = self._base.joint_state(
            data.qpos[self._free_q], data.qvel[self._free_v], self._q[planar[2]]
        )
