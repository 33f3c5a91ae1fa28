"""A rolling robot in MuJoCo on wheels that grip by contact and friction, without rolling constraints."""

from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import KrangError
from ..robot.model import Robot
from ..robot.urdf_editing import UrdfDocument, kinematics_xml
from .mujoco_model import HARD, MujocoModel, import_mujoco, mujoco_spec
from .planar_base import GRIP, PlanarBase, caster, ground_level
from .plant import Plant

PENETRATION = 1e-6  # [m] by which the ground is raised, so that the wheels grip from the first step


class ContactPlant(Plant):
    """A robot with `rolling` and `odom` on level ground, where its wheels can slip.

    Friction and rotor inertia of the joints x, y and heading are ignored: no motor is behind them.
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
        self._write_state()

    def reset(self, q: Array, v: Array) -> None:
        super().reset(q, v)
        self._write_state()

    def _advance(self, force: Array, h: float) -> None:
        engine, data = self._engine, self._engine.data
        engine.model.opt.timestep = h
        self._mujoco.mj_step1(engine.model, data)
        # Viscous friction is MuJoCo's damping, which is implicit in v: light wheels need that.
        coulomb = self._drag(self._q, self._v) - self._friction.viscous * self._v
        data.qfrc_applied[:] = 0
        data.qfrc_applied[engine.v] = (force - coulomb)[self._own]
        engine.add_pushes(self._pushes)
        self._mujoco.mj_step2(engine.model, data)
        self._read_state()

    def _write_state(self) -> None:
        """Put the robot on the ground in the present state."""
        engine, data = self._engine, self._engine.data
        self._mujoco.mj_resetData(engine.model, data)
        data.qpos[engine.q], data.qvel[engine.v] = self._q[self._own], self._v[self._own]
        data.qpos[self._free_q], data.qvel[self._free_v] = self._base.free_state(self._q, self._v)

    def _read_state(self) -> None:
        engine, data, planar = self._engine, self._engine.data, self._base.joints
        self._q[self._own], self._v[self._own] = data.qpos[engine.q], data.qvel[engine.v]
        self._q[planar], self._v[planar] = self._base.joint_state(
            data.qpos[self._free_q], data.qvel[self._free_v], self._q[planar[2]]
        )


def rolling_spec(robot: Robot, base: PlanarBase, timestep: float, position_limits: bool) -> Any:
    """MjSpec of the robot on level ground, on a free joint; spec.to_xml() is the MJCF file.

    Wheels are spheres, because the flat rim of a cylinder scrubs in turns.
    """
    for joint in robot.urdf.joints.values():
        if joint.mimic is not None:
            raise KrangError(
                f'joint {joint.name!r} mimics {joint.mimic.leader!r}, which the simulation of wheels on the '
                'ground does not couple; use --engine pinocchio, or lock the joint in a robot file'
            )
    document = UrdfDocument(kinematics_xml(robot.urdf))
    document.remove_links(base.removed_links)
    spec = mujoco_spec(robot, document.text(), timestep, position_limits)
    spec.body(base.link).add_freejoint(name=base.free_joint)
    mujoco = import_mujoco()
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    wheels, level = robot.config.rolling, ground_level(robot)
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=(0, 0, 1), pos=(0, 0, level + PENETRATION))
    contact = {
        'type': mujoco.mjtGeom.mjGEOM_SPHERE,
        'mass': 0.0,
        'contype': 0,  # links do not collide with each other
        'priority': 1,  # these contact parameters apply, not the mean with the ground's
        'solref': (2 * timestep, 1.0),
        'solimp': HARD,
    }
    for wheel in wheels:
        body = spec.body(wheel.link)
        body.add_geom(size=(wheel.radius, 0, 0), condim=3, friction=(GRIP, 0, 0), **contact)
    link, place = caster(robot)
    # A contact of dimension 1 has no friction: the caster only carries weight.
    spec.body(link).add_geom(size=(wheels[0].radius, 0, 0), pos=place, condim=1, **contact)
    return spec
