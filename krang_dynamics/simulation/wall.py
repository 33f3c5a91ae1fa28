"""A wall that a hand can lean on."""

from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from ..errors import InputError
from ..robot.model import Robot


@dataclass(frozen=True)
class Wall:
    """A plane through `point` [m]; `normal` points to where the robot is. It touches one frame only."""

    frame: str
    point: Array
    normal: Array
    stiffness: float = 2e4  # [N/m]
    damping: float = 300.0  # [N s/m]

    def __post_init__(self) -> None:
        if not np.linalg.norm(self.normal) > 0:
            raise InputError('the normal of a wall is 0; it must point towards the robot')

    def wrench(self, robot: Robot, q: Array, v: Array) -> Array:
        """(force [N], moment) of the wall on the frame's origin, world axes; it pushes and never pulls."""
        normal = self.normal / np.linalg.norm(self.normal)
        depth = normal @ (self.point - robot.frame_pose(q, self.frame)[:3, 3])
        if depth <= 0:
            return np.zeros(6)
        speed = -normal @ (robot.jacobian(q, self.frame)[:3] @ v)
        force = max(0.0, self.stiffness * depth + self.damping * speed)
        return np.concatenate([force * normal, np.zeros(3)])
