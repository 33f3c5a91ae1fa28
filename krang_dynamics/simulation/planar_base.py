"""Planar joints x, y and heading, and the free joint that replaces them in an engine with contact."""

import numpy as np
import pinocchio as pin

from ..arrays import Array
from ..errors import KrangError
from ..robot.model import Robot


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
            raise KrangError(f'joints {", ".join(sorted(driven))} are driven, but only wheels move a base')
        for joint in urdf.joints.values():
            if joint.moves and joint.parent not in kept and joint.name not in names:
                raise KrangError(f'joint {joint.name!r} is not attached to {self.link!r}; attach it there')
        mass = sum(urdf.links[name].mass for name in kept)
        mass += sum(payload.mass for payload in robot.payloads if payload.frame in kept)
        if robot.total_mass - mass > 1e-9 * robot.total_mass:
            raise KrangError(
                f'{robot.name}: the links below {self.link!r} have mass; move that mass to {self.link!r}'
            )
