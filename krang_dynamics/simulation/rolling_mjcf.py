"""A rolling robot for MuJoCo: on a free joint, with wheels that touch the ground, and one caster."""

from typing import Any
from xml.etree import ElementTree

import numpy as np

from ..errors import KrangError
from ..robot.model import Robot
from ..robot.urdf import Array
from .mujoco_model import HARD, describe, import_mujoco
from .planar_base import PlanarBase

GRIP = 1.0  # coefficient of friction between wheel and ground: rubber on concrete
CASTER_SHARE = 0.2  # of the weight; what is not on the wheels does not help them to grip
TOUCH = 1e-6  # [m] that the ground is raised, so that wheels grip from the first step on


def rolling_spec(robot: Robot, base: PlanarBase, timestep: float, position_limits: bool) -> Any:
    """MjSpec of the robot on level ground; spec.to_xml() is the MJCF file.

    Wheels are spheres, since the flat rim of a cylinder scrubs in turns.
    """
    spec = describe(robot, _base_urdf(robot, base), timestep, position_limits)
    spec.body(base.link).add_freejoint(name=base.free_joint)
    mujoco = import_mujoco()
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    wheels, centres = robot.config.rolling, _wheel_centres(robot)
    level = centres[0, 2] - wheels[0].radius
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=(0, 0, 1), pos=(0, 0, level + TOUCH))
    touching = {
        'type': mujoco.mjtGeom.mjGEOM_SPHERE,
        'mass': 0.0,
        'contype': 0,  # links do not touch each other
        'priority': 1,  # contact is as said here, not the mean with the ground's
        'solref': (2 * timestep, 1.0),
        'solimp': HARD,
    }
    for wheel in wheels:
        body = spec.body(wheel.link)
        body.add_geom(size=(wheel.radius, 0, 0), condim=3, friction=(GRIP, 0, 0), **touching)
    carrier = _carrier(robot)
    pose, caster = robot.frame_pose(robot.home, carrier), _caster(robot, centres)
    place = pose[:3, :3].T @ (caster - pose[:3, 3])
    # Of dimension 1: it only bears weight, without friction.
    spec.body(carrier).add_geom(size=(wheels[0].radius, 0, 0), pos=place, condim=1, **touching)
    return spec


def _base_urdf(robot: Robot, base: PlanarBase) -> str:
    """The robot's URDF from the base link on, without the planar joints."""
    document = ElementTree.fromstring(robot.urdf.kinematics_xml())
    kept = set(robot.urdf.subtree(base.link))
    for element in list(document):
        parent = element.find('parent')
        link = element.get('name') if parent is None else parent.get('link')
        if link not in kept:
            document.remove(element)
    return ElementTree.tostring(document, encoding='unicode')


def _wheel_centres(robot: Robot) -> Array:
    """Centres at home in the world [m], one row per wheel, all standing on one level."""
    wheels = robot.config.rolling
    centres = np.array([robot.frame_pose(robot.home, wheel.link)[:3, 3] for wheel in wheels])
    levels = centres[:, 2] - [wheel.radius for wheel in wheels]
    if np.ptp(levels) > 1e-6:
        raise KrangError(f'{robot.name}: the wheels stand at different heights, {levels.tolist()} m')
    return centres


def _caster(robot: Robot, centres: Array) -> Array:
    """Centre of the caster at home in the world [m], as high as the first wheel's.

    It stands beyond the centre of mass, so far that the wheels share the rest of the weight equally.
    """
    com, wheels = robot.center_of_mass(robot.home), centres.mean(axis=0)
    caster = wheels + (com - wheels) / CASTER_SHARE
    caster[2] = centres[0, 2]
    width = np.linalg.svd((np.vstack([centres, caster]) - com)[:, :2], compute_uv=False)[-1]
    if width < robot.config.rolling[0].radius:
        raise KrangError(
            f'{robot.name} would have to balance: its centre of mass is over the line of its wheels, '
            'where one caster cannot hold it level; use PinocchioPlant'
        )
    return np.asarray(caster)


def _carrier(robot: Robot) -> str:
    """The link in which all wheels turn."""
    above = {joint.child: joint for joint in robot.urdf.joints.values()}
    carriers = set()
    for wheel in robot.config.rolling:
        joint = above[wheel.link]
        while not joint.moves:
            joint = above[joint.parent]
        carriers.add(joint.parent)
    if len(carriers) > 1:
        raise KrangError(
            f'{robot.name}: the wheels turn in {", ".join(sorted(carriers))}; it must be one link'
        )
    return carriers.pop()
