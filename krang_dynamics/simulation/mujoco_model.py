"""A robot as a MuJoCo model: the same links, joints, rotor inertia and payloads, MuJoCo's own kinematics."""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ..arrays import Array, Indices
from ..errors import KrangError
from ..robot.model import Robot
from ..robot.plausibility import inertia_problems, plausible_inertia
from ..robot.urdf_editing import UrdfDocument

SMALLEST = 1e-12  # [kg], [kg m2]: MuJoCo rejects moving bodies with less
TOLERANCE = 1e-5  # relative error of an inertia that is corrected without notice: rounding in URDFs
HARDEST = 0.9999  # MuJoCo's largest impedance of a constraint
HARD = (0.999, HARDEST, 0.001, 0.5, 2.0)  # solimp of constraints, as stiff as the solver tolerates


def import_mujoco() -> ModuleType:
    """The module mujoco, imported only by the plants that need it."""
    try:
        import mujoco
    except ImportError:
        raise KrangError('MuJoCo is not installed; pip install mujoco, or use --engine pinocchio') from None
    return mujoco


def mujoco_spec(robot: Robot, urdf: str, timestep: float, position_limits: bool) -> Any:
    """MjSpec of a URDF of the robot, with gravity, rotor inertia, payloads and optional end stops.

    Joints that mimic others are coupled to them by equality constraints.
    """
    mujoco = import_mujoco()
    spec = mujoco.MjSpec.from_string(_with_rigid_parts(urdf, robot))
    spec.modelname = robot.name
    spec.compiler.fusestatic = False  # keep fixed links as bodies, so that they can be pushed
    spec.compiler.boundmass = spec.compiler.boundinertia = SMALLEST
    spec.option.gravity = robot.config.gravity
    spec.option.timestep = timestep
    # Plant reports a simulation that diverges; MuJoCo must not reset it.
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
    _set_joints(spec, robot, position_limits)
    _couple_mimics(spec, robot, timestep)
    return spec


def _with_rigid_parts(urdf: str, robot: Robot) -> str:
    """The URDF with the inertia of each rigid part, payloads included, on the link that its joint moves.

    MuJoCo refuses links whose own inertia is implausible, also where the part as a whole has a plausible one.
    """
    document = UrdfDocument(urdf)
    for link in document.links:
        document.remove_inertia(link)
    for joint in robot.urdf.joints.values():
        if not joint.moves or joint.child not in document.links:
            continue
        body = robot.model.inertias[robot.model.getJointId(joint.name)]
        inertia, largest = plausible_inertia(body.inertia), np.abs(body.inertia).max()
        if largest < SMALLEST:
            inertia = np.zeros((3, 3))
        elif np.abs(inertia - body.inertia).max() > TOLERANCE * largest:
            problems = inertia_problems(robot.urdf, robot.urdf.rigid_part(joint.child))
            raise KrangError(f'MuJoCo cannot build the robot: {"; ".join(problems)}')
        if body.mass or inertia.any():
            document.set_inertia(joint.child, body.mass, body.lever, inertia)
    return document.text()


def _couple_mimics(spec: Any, robot: Robot, timestep: float) -> None:
    mujoco = import_mujoco()
    for joint in robot.urdf.joints.values():
        if joint.mimic is None:
            continue
        leader, multiplier, offset = robot.urdf.leader(joint.name)
        spec.joint(joint.name).limited = False  # the limits of its leader include its own
        equality = spec.add_equality(
            type=mujoco.mjtEq.mjEQ_JOINT,
            objtype=mujoco.mjtObj.mjOBJ_JOINT,
            name1=joint.name,
            name2=leader,
            solref=(2 * timestep, 1.0),
            solimp=(HARDEST, HARDEST, *HARD[2:]),  # the positions fit exactly, where HARD is softest
        )
        equality.data[:2] = offset, multiplier


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
        self.q, self.v = self.indices(joint_names)

    def indices(self, joint_names: Sequence[str]) -> tuple[Indices, Indices]:
        """Where joints are in qpos and in qvel."""
        joints = [self.model.joint(name).id for name in joint_names]
        return self.model.jnt_qposadr[joints], self.model.jnt_dofadr[joints]

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
