"""Planar joints x, y and heading, and the free joint that takes their place in an engine with contact."""

from xml.etree.ElementTree import Element

import numpy as np
import pinocchio as pin

from ..arrays import Array
from ..errors import KrangError
from ..robot.model import Robot


class PlanarBase:
    """The link that the robot file's `odom` joints place on the ground.

    Its free state is MuJoCo's: position and quaternion (w first) in the world, linear velocity in
    world axes, angular velocity in the link's own.
    """

    def __init__(self, robot: Robot) -> None:
        odom = robot.config.odom
        if odom is None or not robot.config.rolling:
            raise KrangError(f'{robot.name} does not roll: that needs `rolling` and `odom` in its robot file')
        self._robot = robot
        self.link = robot.urdf.joints[odom.heading].child
        self.free_joint = f'{self.link}_free'
        names = (odom.x, odom.y, odom.heading)
        self.joints = [robot.joint_names.index(name) for name in names]
        self._refuse_company(names)

        zero = np.zeros(robot.nv)
        pose, J = robot.frame_pose(zero, self.link), robot.jacobian(zero, self.link)[:, self.joints]
        self._origin, self._rotation = pose[:2, 3], pose[:3, :3]
        self._slides, self._turn = J[:2, :2], np.sign(J[5, 2])
        if not np.allclose(J[2, :2], 0) or not np.allclose(np.abs(J[3:, 2]), (0, 0, 1)):
            raise KrangError(
                f'{robot.name}: joints {odom.x!r} and {odom.y!r} must slide {self.link!r} along the ground, '
                f'and {odom.heading!r} must turn it about the vertical'
            )

    def free_state(self, q: Array, v: Array) -> tuple[Array, Array]:
        """The free joint's 7 positions and 6 velocities in a state of the robot."""
        pose, J = self._robot.frame_pose(q, self.link), self._robot.jacobian(q, self.link)
        x, y, z, w = pin.Quaternion(pose[:3, :3]).coeffs()
        turn_rate = pose[:3, :3].T @ J[3:] @ v
        return np.array([*pose[:3, 3], w, x, y, z]), np.concatenate([J[:3] @ v, turn_rate])

    def joint_state(self, position: Array, velocity: Array, heading: float) -> tuple[Array, Array]:
        """(x, y, heading) and their rates from the free state; the turn nearest to the last `heading`."""
        w, x, y, z = position[3:]
        rotation = pin.Quaternion(w, x, y, z).matrix()
        turned = rotation @ self._rotation.T
        angle = self._turn * np.arctan2(turned[1, 0], turned[0, 0])
        angle += 2 * np.pi * np.round((heading - angle) / (2 * np.pi))
        place = np.linalg.solve(self._slides, position[:2] - self._origin)
        speed = np.linalg.solve(self._slides, velocity[:2])
        rate = self._turn * rotation[2] @ velocity[3:]
        return np.array([*place, angle]), np.array([*speed, rate])

    def cut_free(self, document: Element) -> None:
        """Leave of a URDF's links and joints only the base link and what hangs on it."""
        kept = set(self._robot.urdf.subtree(self.link))
        for element in [*document.iterfind('link'), *document.iterfind('joint')]:
            parent = element.find('parent')
            link = element.get('name') if parent is None else parent.get('link')
            if link not in kept:
                document.remove(element)

    def _refuse_company(self, names: tuple[str, str, str]) -> None:
        """What the free joint leaves out must neither be driven, nor move, nor weigh anything."""
        robot, urdf = self._robot, self._robot.urdf
        kept = set(urdf.subtree(self.link))
        if driven := set(names) & set(robot.actuated_joint_names):
            raise KrangError(f'joints {", ".join(sorted(driven))} are driven, but only wheels move a base')
        for joint in urdf.joints.values():
            if joint.moves and joint.parent not in kept and joint.name not in names:
                raise KrangError(f'joint {joint.name!r} moves beside {self.link!r}; hang it on that link')
        mass = sum(urdf.links[name].mass for name in kept)
        mass += sum(payload.mass for payload in robot.payloads if payload.frame in kept)
        if robot.total_mass - mass > 1e-9 * robot.total_mass:
            raise KrangError(
                f'{robot.name}: the links that carry {self.link!r} have mass; give it to that link'
            )
