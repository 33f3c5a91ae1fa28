"""A robot as a MuJoCo model: the same links, joints, rotor inertia and payloads, MuJoCo's own kinematics."""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import KrangError
from ..robot.model import Robot

SMALLEST = 1e-12  # [kg], [kg m2]: MuJoCo rejects moving bodies with less
HARD = (0.999, 0.9999, 0.001, 0.5, 2.0)  # solimp of constraints, as stiff as the solver tolerates


def import_mujoco() -> ModuleType:
    """The module mujoco, imported only by the plants that need it."""
    try:
        import mujoco
    except ImportError:
        raise KrangError('MuJoCo is not installed; run `pip install mujoco`, or use PinocchioPlant') from None
    return mujoco


def mujoco_spec(robot: Robot, urdf: str, timestep: float, position_limits: bool) -> Any:
    """MjSpec of a URDF of the robot, with gravity, rotor inertia, payloads and optional end stops."""
    for joint in robot.urdf.joints.values():
        if joint.mimic is not None:
            raise KrangError(
                f'joint {joint.name!r} mimics {joint.mimic.leader!r}, which the MuJoCo plant does not '
                'couple; use PinocchioPlant'
            )
    mujoco = import_mujoco()
    spec = mujoco.MjSpec.from_string(urdf)
    spec.modelname = robot.name
    spec.compiler.fusestatic = False  # keep fixed links as bodies, so that they can be pushed
    spec.compiler.boundmass = spec.compiler.boundinertia = SMALLEST
    spec.option.gravity = robot.config.gravity
    spec.option.timestep = timestep
    # Plant reports a simulation that diverges; MuJoCo must not reset it.
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
    _set_joints(spec, robot, position_limits)
    for payload in robot.payloads:
        body = spec.body(payload.frame)
        if body is None:  # on a link below the floating base
            continue
        inertia = payload.inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        body.add_body(mass=payload.mass, ipos=payload.com, fullinertia=inertia, explicitinertial=True)
    return spec


def _set_joints(spec: Any, robot: Robot, position_limits: bool) -> None:
    rotors = np.diag(robot.rotor_inertia())
    for name, lower, upper, rotor in zip(robot.joint_names, robot.lower, robot.upper, rotors, strict=True):
        joint = spec.joint(name)
        if joint is None:  # a planar joint that the free joint replaces
            continue
        joint.armature = rotor
        joint.limited = position_limits and bool(np.isfinite([lower, upper]).all())
        joint.range = (lower, upper) if joint.limited else (0.0, 0.0)


class MujocoModel:
    """A compiled specification with its state: `model`, `data`, and the indices of the robot's joints."""

    def __init__(self, spec: Any, joint_names: Sequence[str]) -> None:
        self._mujoco = import_mujoco()
        try:
            self.model = spec.compile()
        except ValueError as error:
            raise KrangError(f'MuJoCo cannot build the robot: {error}') from error
        self.data = self._mujoco.MjData(self.model)
        joints = [self.model.joint(name).id for name in joint_names]
        self.q = self.model.jnt_qposadr[joints]  # indices in qpos
        self.v = self.model.jnt_dofadr[joints]  # indices in qvel

    def add_dry_friction(self, coulomb: Array) -> None:
        """MuJoCo's own stick-slip friction: F_c [N m] per joint, as stiff as the timestep allows."""
        self.model.dof_frictionloss[self.v] = coulomb
        self.model.dof_solref[self.v] = 2 * self.model.opt.timestep, 1.0
        self.model.dof_solimp[self.v] = HARD

    def add_pushes(self, pushes: dict[str, Array]) -> None:
        """Add J^T f of wrenches at frames' origins to the applied forces, with the latest kinematics."""
        data = self.data
        for frame, wrench in pushes.items():
            body = self.model.body(frame).id
            self._mujoco.mj_applyFT(
                self.model, data, wrench[:3], wrench[3:], data.xpos[body], body, data.qfrc_applied
            )
