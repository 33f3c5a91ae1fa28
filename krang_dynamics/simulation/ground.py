"""Support of a rolling robot on level ground, in engines with contact: its wheels and one caster."""

import numpy as np

from ..arrays import Array
from ..errors import KrangError
from ..robot.model import Robot

GRIP = 1.0  # coefficient of friction between wheel and ground: rubber on concrete
CASTER_SHARE = 0.2  # of the weight; the wheels need the rest to grip


def ground_level(robot: Robot) -> float:
    """Height of the ground in the world [m]."""
    return float(_wheel_centres(robot)[0, 2] - robot.config.rolling[0].radius)


def caster(robot: Robot) -> tuple[str, Array]:
    """The link that carries the caster, and the caster's centre in its axes [m]; it has a wheel's radius."""
    carrier = _carrier(robot)
    pose, centre = robot.frame_pose(robot.home, carrier), _caster_centre(robot, _wheel_centres(robot))
    return carrier, pose[:3, :3].T @ (centre - pose[:3, 3])


def _wheel_centres(robot: Robot) -> Array:
    """Wheel centres at home in the world [m], one row per wheel; all wheels touch the same level."""
    wheels = robot.config.rolling
    centres = np.array([robot.frame_pose(robot.home, wheel.link)[:3, 3] for wheel in wheels])
    levels = centres[:, 2] - [wheel.radius for wheel in wheels]
    if np.ptp(levels) > 1e-6:
        raise KrangError(f'{robot.name}: the wheels stand at different heights, {levels.tolist()} m')
    return centres


def _caster_centre(robot: Robot, centres: Array) -> Array:
    """Centre of the caster at home in the world [m], as high as the first wheel's.

    It is beyond the centre of mass, at the distance where it carries CASTER_SHARE of the weight.
    """
    com, wheels = robot.center_of_mass(robot.home), centres.mean(axis=0)
    caster = wheels + (com - wheels) / CASTER_SHARE
    caster[2] = centres[0, 2]
    width = np.linalg.svd((np.vstack([centres, caster]) - com)[:, :2], compute_uv=False)[-1]
    if width < robot.config.rolling[0].radius:
        raise KrangError(
            f'{robot.name} would have to balance: its centre of mass is above the line through its wheels, '
            'where one caster cannot keep it level; use --engine pinocchio'
        )
    return np.asarray(caster)


def _carrier(robot: Robot) -> str:
    """The link that carries all wheels."""
    above = {joint.child: joint for joint in robot.urdf.joints.values()}
    carriers = set()
    for wheel in robot.config.rolling:
        joint = above[wheel.link]
        while not joint.moves:
            joint = above[joint.parent]
        carriers.add(joint.parent)
    if len(carriers) > 1:
        raise KrangError(
            f'{robot.name}: the wheels are on links {", ".join(sorted(carriers))}; they must be on one link'
        )
    return carriers.pop()
