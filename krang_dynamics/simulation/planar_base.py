"""A rolling robot on level ground, in engines with contact: its free base, wheels and caster."""

import numpy as np
import pinocchio as pin

from ..arrays import Array
from ..errors import KrangError
from ..robot.model import Robot

GRIP = 1.0  # coefficient of friction between wheel and ground: rubber on concrete
CASTER_SHARE = 0.2  # of the weight; the wheels need the rest to grip


class PlanarBase:
    """The link that the `odom` joints of the robot file move over the ground.

    Its free state is that of MuJoCo: position and quaternion (w first) in the world, linear velocity in
    world axes, angular velocity in the link's axes.
    """

    def __init__(self, robot: Robot) -> None:
        odom = robot.config.odom
        if odom is None or not robot.config.rolling:
            raise KrangError(f'{robot.name} does not roll: its robot file needs `rolling` and `odom`')
        self._robot = robot
        self.link = robot.urdf.joints[odom.heading].child
        self.free_joint = f'{self.link}_free'
        names = (odom.x, odom.y, odom.heading)
        self.joints = [robot.joint_names.index(name) for name in names]
        kept = set(robot.urdf.subtree(self.link))
        self.removed_links = [name for name in robot.urdf.links if name not in kept]
        self._check(names, kept)

        zero = np.zeros(robot.nv)
        pose, J = robot.frame_pose(zero, self.link), robot.jacobian(zero, self.link)[:, self.joints]
        self._origin, self._rotation = pose[:2, 3], pose[:3, :3]
        self._slides, self._turn = J[:2, :2], np.sign(J[5, 2])
        if not np.allclose(J[2, :2], 0) or not np.allclose(np.abs(J[3:, 2]), (0, 0, 1)):
            raise KrangError(
                f'{robot.name}: joints {odom.x!r} and {odom.y!r} must move {self.link!r} along the ground, '
                f'and {odom.heading!r} must turn it about the vertical'
            )

    def free_state(self, q: Array, v: Array) -> tuple[Array, Array]:
        """The free joint's 7 positions and 6 velocities in a state of the robot."""
        pose, J = self._robot.frame_pose(q, self.link), self._robot.jacobian(q, self.link)
        x, y, z, w = pin.Quaternion(pose[:3, :3]).coeffs()
        turn_rate = pose[:3, :3].T @ J[3:] @ v
        return np.array([*pose[:3, 3], w, x, y, z]), np.concatenate([J[:3] @ v, turn_rate])

    def joint_state(self, position: Array, velocity: Array, heading: float) -> tuple[Array, Array]:
        """(x, y, heading) and their rates from the free state; the angle is the one nearest to `heading`."""
        w, x, y, z = position[3:]
        rotation = pin.Quaternion(w, x, y, z).matrix()
        turned = rotation @ self._rotation.T
        angle = self._turn * np.arctan2(turned[1, 0], turned[0, 0])
        angle += 2 * np.pi * np.round((heading - angle) / (2 * np.pi))
        position_xy = np.linalg.solve(self._slides, position[:2] - self._origin)
        speed = np.linalg.solve(self._slides, velocity[:2])
        rate = self._turn * rotation[2] @ velocity[3:]
        return np.array([*position_xy, angle]), np.array([*speed, rate])

    def _check(self, names: tuple[str, str, str], kept: set[str]) -> None:
        """What the free joint replaces must not be driven, have other joints, or have mass."""
        robot, urdf = self._robot, self._robot.urdf
        if driven := set(names) & set(robot.actuated_joint_names):
            raise KrangError(
                f'joints {", ".join(sorted(driven))} are driven, but only wheels move a base; '
                'write driven: false'
            )
        for joint in urdf.joints.values():
            if joint.moves and joint.parent not in kept and joint.name not in names:
                raise KrangError(f'joint {joint.name!r} is not attached to {self.link!r}; attach it there')
        mass = sum(urdf.links[name].mass for name in kept)
        mass += sum(payload.mass for payload in robot.payloads if payload.frame in kept)
        if robot.total_mass - mass > 1e-9 * robot.total_mass:
            raise KrangError(
                f'{robot.name}: the links below {self.link!r} have mass; move that mass to {self.link!r}'
            )


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
