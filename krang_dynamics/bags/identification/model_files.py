"""Identified values as a new robot: URDF with new inertias, robot file with new friction and motors."""

import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement, TreeBuilder, XMLParser

import numpy as np
import pinocchio as pin
import yaml

from ...arrays import Array
from ...robot.config import FrictionConfig, JointConfig, RobotConfig, Sign
from ...robot.model import Robot
from ...robot.urdf import INERTIA_KEYS, Urdf


def with_inertias(robot: Robot, bodies: dict[str, Array]) -> Urdf:
    """The URDF with the ten parameters of bodies, by the name of the joint that moves them.

    Links that are fixed to a moving link cannot be told from it: their inertia goes into that link.
    """
    document = ElementTree.fromstring(
        robot.urdf.text.strip(), XMLParser(target=TreeBuilder(insert_comments=True))
    )
    links = {element.get('name'): element for element in document.iterfind('link')}
    for joint, parameters in bodies.items():
        child = robot.urdf.joints[joint].child
        for name in _rigid_part(robot.urdf, child):
            old = links[name].find('inertial')
            if old is not None:
                links[name].remove(old)
        links[child].insert(0, _inertial(parameters))
    ElementTree.indent(document)
    return Urdf(ElementTree.tostring(document, encoding='unicode') + '\n', robot.urdf.source)


def with_friction_and_motors(
    robot: Robot, viscous: Array, coulomb: Array, sign: Sign, rotors: Array, gains: Array
) -> RobotConfig:
    """The robot file with F_v, F_c, N^2 J_m over joint_names, and torque constants times `gains`."""
    joints: dict[str, JointConfig] = {}
    for (name, joint), rotor, gain in zip(robot.config.joints.items(), rotors, gains, strict=True):
        motor = replace(joint.motor, rotor_inertia=float(rotor) / joint.motor.gear**2)
        if motor.torque_constant is not None:
            motor = replace(motor, torque_constant=motor.torque_constant * float(gain))
        joints[name] = replace(joint, motor=motor) if joint.driven else joint
    names = robot.joint_names
    dry = {name: float(x) for name, x in zip(names, coulomb, strict=True) if x > 0}
    friction = FrictionConfig(
        {name: float(x) for name, x in zip(names, viscous, strict=True) if x > 0},
        dry,
        sign if dry else None,
        sign if dry else None,
    )
    return replace(robot.config, joints=joints, friction=friction, rotor_inertia=True)


def robot_file(config: RobotConfig, path: Path, urdf: Path, comments: list[str]) -> str:
    """The YAML of a robot file to be written at `path`, which names the URDF relative to itself."""
    data = _plain(asdict(config))
    data['urdf'] = os.path.relpath(urdf.resolve(), path.resolve().parent)
    body = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)
    return '\n'.join([*(f'# {line}' for line in comments), body])


def _plain(value: Any) -> Any:
    """Without entries that are unset, and with lists for tuples, as YAML writes them."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items() if entry is not None and entry != {}}
    if isinstance(value, (tuple, list)):
        return [_plain(entry) for entry in value]
    return value


def _rigid_part(urdf: Urdf, link: str) -> list[str]:
    """`link` and the links that are fixed to it."""
    part = [link]
    for name in part:
        part += [j.child for j in urdf.joints.values() if j.parent == name and j.type == 'fixed']
    return part


def _inertial(parameters: Array) -> Element:
    body = pin.Inertia.FromDynamicParameters(parameters)
    element = Element('inertial')
    SubElement(element, 'origin', xyz=' '.join(map(repr, np.asarray(body.lever).tolist())), rpy='0 0 0')
    SubElement(element, 'mass', value=repr(float(body.mass)))
    entries = zip(INERTIA_KEYS, np.asarray(body.inertia)[np.triu_indices(3)].tolist(), strict=True)
    SubElement(element, 'inertia', {key: repr(value) for key, value in entries})
    return element
