"""Identified values as a new robot: a URDF with new inertias, a robot file with new friction and motors."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pinocchio as pin

from ...arrays import Array
from ...robot.config import FrictionConfig, JointConfig, RobotConfig, Sign
from ...robot.model import Robot
from ...robot.schema import to_yaml
from ...robot.urdf import Urdf
from ...robot.urdf_editing import UrdfDocument


def with_inertias(robot: Robot, bodies: dict[str, Array]) -> Urdf:
    """The URDF with the ten inertial parameters of bodies, by the name of the joint that moves each body.

    A body is a moving link with all links fixed to it. The moving link gets the inertia of them all.
    """
    document = UrdfDocument(robot.urdf.text)
    for joint, parameters in bodies.items():
        moving, *fixed = robot.urdf.rigid_part(robot.urdf.joints[joint].child)
        body = pin.Inertia.FromDynamicParameters(parameters)
        document.set_inertia(moving, body.mass, body.lever, body.inertia)
        for link in fixed:
            document.remove_inertia(link)
    return Urdf(document.text(), robot.urdf.source)


def with_friction_and_motors(
    robot: Robot,
    viscous: Array,
    coulomb: Array,
    sign: Sign,
    rotors: Array,
    gains: Array,
    shape: Mapping[str, Mapping[str, float]] | None = None,
) -> RobotConfig:
    """The robot file with new F_v, F_c, N^2 J_m over joint_names, and torque constants times `gains`.

    `shape` has other entries of the friction by joint: width, stribeck, stribeck_speed, load, offset.
    """
    joints: dict[str, JointConfig] = {}
    for (name, joint), rotor, gain in zip(robot.config.joints.items(), rotors, gains, strict=True):
        motor = replace(joint.motor, rotor_inertia=float(rotor) / joint.motor.gear**2)
        if motor.torque_constant is not None:
            motor = replace(motor, torque_constant=motor.torque_constant * float(gain))
        joints[name] = replace(joint, motor=motor) if joint.driven else joint
    names = robot.joint_names
    dry = {name: float(x) for name, x in zip(names, coulomb, strict=True) if x > 0}
    more = {key: dict(entries) for key, entries in (shape or {}).items()}
    used = sign if dry or more.get('stribeck') or more.get('load') else None
    friction = FrictionConfig(
        {name: float(x) for name, x in zip(names, viscous, strict=True) if x > 0}, dry, used, used, **more
    )
    return replace(robot.config, joints=joints, friction=friction, rotor_inertia=True)


def robot_file(config: RobotConfig, path: Path, urdf: Path, comments: list[str]) -> str:
    """YAML text of a robot file for `path`; the path of the URDF in it is relative to that file."""
    relative = os.path.relpath(urdf.resolve(), path.resolve().parent)
    return '\n'.join([*(f'# {line}' for line in comments), to_yaml(replace(config, urdf=relative))])
