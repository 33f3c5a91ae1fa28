"""A rolling robot for MuJoCo: on a free joint, with wheels that touch the ground, and one caster."""

from typing import Any
from xml.etree import ElementTree

from ..robot.model import Robot
from .ground import GRIP, caster, ground_level
from .mujoco_model import HARD, describe, import_mujoco
from .planar_base import PlanarBase

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
    wheels, level = robot.config.rolling, ground_level(robot)
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
    link, place = caster(robot)
    # Of dimension 1: it only bears weight, without friction.
    spec.body(link).add_geom(size=(wheels[0].radius, 0, 0), pos=place, condim=1, **touching)
    return spec


def _base_urdf(robot: Robot, base: PlanarBase) -> str:
    document = ElementTree.fromstring(robot.urdf.kinematics_xml())
    base.cut_free(document)
    return ElementTree.tostring(document, encoding='unicode')
