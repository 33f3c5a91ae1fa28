"""A robot in MuJoCo: the same links, joints, rotors and payloads, and its own kinematics."""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import KrangError
from ..robot.model import Robot

SMALLEST = 1e-12  # [kg], [kg m2]: MuJoCo refuses moving bodies with less
HARD = (0.999, 0.9999, 0.001, 0.5, 2.0)  # solimp of constraints that yield as little as solvers bear


def import_mujoco() -> ModuleType:
    """The module mujoco, which only plants that need it import."""
    try:
        import mujoco
    except ImportError:
        raise KrangError('MuJoCo is not installed; run `pip install mujoco`, or use PinocchioPlant') from None
    return mujoco


def describe(robot: Robot, urdf: str, timestep: float, position_limits: bool) -> Any:
    """MuJoCo's MjSpec of a URDF of the robot, with gravity, rotors, payloads and perhaps end stops."""
    for joint in robot.urdf.joints.values():
        if joint.mimic is not None:
            raise KrangError(
                f'joint {joint.name!r} mimics {joint.mimic.leader!r}, which the MuJoCo plant does not '
                'couple; use PinocchioPlant'
            )
    mujoco = import_mujoco()
    spec = mujoco.MjSpec.from_string(urdf)
    spec.modelname = robot.name
    spec.compiler.fusestatic = False  # frames that can be pushed stay bodies
    spec.compiler.boundmass = spec.compiler.boundinertia = SMALLEST
    spec.option.gravity = robot.config.gravity
    spec.option.timestep = timestep
    # A state that leaves all bounds is for Plant to report, not for MuJoCo to reset.
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
    _set_joints(spec, robot, position_limits)
    for payload in robot.payloads:
        body = spec.body(payload.frame)
        if body is None:  # it lies on the ground that a floating base has left
            continue
        inertia = payload.inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        body.add_body(mass=payload.mass, ipos=payload.com, fullinertia=inertia, explicitinertial=True)
    return spec


def _set_joints(spec: Any, robot: Robot, position_limits: bool) -> None:
    rotors = np.diag(robot.rotor_inertia())
    for name, lower, upper, rotor in zip(robot.joint_names, robot.lower, robot.upper, rotors, strict=True):
        joint = spec.joint(name)
        if joint is None:  # a planar joint of a base that floats
            continue
        joint.armature = rotor
        joint.limited = position_limits and bool(np.isfinite([lower, upper]).all())
        joint.range = (lower, upper) if joint.limited else (0.0, 0.0)


class MujocoModel:
    """A compiled specification with its state, `model` and `data`, asked by the robot's names."""

    def __init__(self, spec: Any, joint_names: Sequence[str]) -> None:
        self._mujoco = import_mujoco()
        try:
            self.model = spec.compile()
        except ValueError as error:
            raise KrangError(f'MuJoCo cannot build the robot: {error}') from error
        self.data = self._mujoco.MjData(self.model)
        joints = [self.model.joint(name).id for name in joint_names]
        self.q = self.model.jnt_qposadr[joints]  # where the joints are in qpos
        self.v = self.model.jnt_dofadr[joints]  # and in qvel

    def add_dry_friction(self, coulomb: Array) -> None:
        """MuJoCo's own stick and slip: F_c [N m] per joint, as hard as the timestep allows."""
        self.model.dof_frictionloss[self.v] = coulomb
        self.model.dof_solref[self.v] = 2 * self.model.opt.timestep, 1.0
        self.model.dof_solimp[self.v] = HARD

    def add_pushes(self, pushes: dict[str, Array]) -> None:
        """Add J^T f of wrenches at frames' origins to the applied forces, at the newest kinematics."""
        data = self.data
        for frame, wrench in pushes.items():
            body = self.model.body(frame).id
            self._mujoco.mj_applyFT(
                self.model, data, wrench[:3], wrench[3:], data.xpos[body], body, data.qfrc_applied
            )
