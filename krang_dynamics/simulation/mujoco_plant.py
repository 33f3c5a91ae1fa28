"""A robot in MuJoCo: MuJoCo computes the accelerations, Runge-Kutta integrates them."""

import numpy as np

from ..arrays import Array
from ..errors import KrangError
from ..robot.model import Robot
from ..robot.urdf_editing import kinematics_xml
from .mujoco_model import MujocoModel, import_mujoco, mujoco_spec
from .plant import Plant, rk4_step


class MujocoPlant(Plant):
    """A robot on a fixed base, without contact. End stops are soft, and dry friction creeps slightly.

    MuJoCo's own Runge-Kutta keeps friction constant over a step; here each stage computes it.
    """

    name = 'mujoco'

    def __init__(
        self, robot: Robot, friction: bool = True, position_limits: bool = False, timestep: float = 1e-3
    ) -> None:
        super().__init__(robot, friction, timestep)
        if robot.config.rolling:
            raise KrangError(
                f"{robot.name} rolls on the ground; use ContactPlant: make_plant(robot, 'mujoco')"
            )
        self._mujoco = import_mujoco()
        spec = mujoco_spec(robot, kinematics_xml(robot.urdf), self._timestep, position_limits)
        self._engine = MujocoModel(spec, robot.joint_names)
        # Mimic joints included, whose positions the leaders determine.
        self._all_q, self._all_v = self._engine.indices(robot.model.names[1:])
        if self._is_dry:
            self._engine.add_dry_friction(self._friction.coulomb)

    def _advance(self, force: Array, h: float) -> None:
        if self._is_stiff:
            self._implicit_step(self._acceleration(self._q, self._v, force), h)
            return
        self._q, self._v = rk4_step(lambda q, v: self._acceleration(q, v, force), self._q, self._v, h)

    def _acceleration(self, q: Array, v: Array, force: Array) -> Array:
        engine, mujoco = self._engine, self._mujoco
        model, data = engine.model, engine.data
        joint_map = self.robot.joint_map
        data.qpos[self._all_q], data.qvel[self._all_v] = joint_map.position(q), joint_map.velocity(v)
        data.qfrc_applied[:] = 0  # also of mimic joints
        data.qfrc_applied[engine.v] = force - self._drag(q, v)
        mujoco.mj_fwdPosition(model, data)
        engine.add_pushes(self._pushes)
        mujoco.mj_forwardSkip(model, data, mujoco.mjtStage.mjSTAGE_POS, True)
        return np.array(data.qacc[engine.v])
