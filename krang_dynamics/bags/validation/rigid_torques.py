"""Torques of the rigid bodies along a motion: many states in one call, without rotors and friction."""

from typing import Any

import numpy as np
import pinocchio as pin

from ...arrays import Array
from ...kernels import rigid_torques


class RigidTorques:
    """Q and A a + C v + Q of a Pinocchio model whose joints turn about an axis or slide along it.

    The recursion of Newton and Euler, in frames that are turned so that the axis of each joint is z.
    """

    def __init__(self, model: Any) -> None:
        data = model.createData()
        self._gravity = model.gravity.linear.copy()
        joints = range(1, model.njoints)
        axes = [np.asarray(data.joints[i].S).ravel() for i in joints]
        self._parents = np.array([model.parents[i] for i in joints], dtype=np.intp)  # 0 is the root
        self._slides = np.array([not axis[3:].any() for axis in axes], dtype=bool)
        turned = [np.eye(3), *(_to_z(axis[:3] if not axis[3:].any() else axis[3:]) for axis in axes)]
        self._bodies = np.zeros((len(axes), 22))
        for i in joints:
            body, placement, R = model.inertias[i], model.jointPlacements[i], turned[i]
            in_parent = turned[model.parents[i]]
            lever = pin.skew(body.lever)
            inertia = body.inertia - body.mass * lever @ lever  # about the origin of the frame
            self._bodies[i - 1] = np.concatenate(
                [
                    (R @ placement.rotation.T @ in_parent.T).ravel(),
                    in_parent @ placement.translation,
                    [body.mass],
                    body.mass * (R @ body.lever),
                    (R @ inertia @ R.T)[np.triu_indices(3)],
                ]
            )

    def __call__(self, q: Array, v: Array, a: Array) -> tuple[Array, Array]:
        """Q and A a + C v + Q, each (K, n) [N m], of states (K, n) of Pinocchio's joints."""
        q, v, a = (np.ascontiguousarray(x.T) for x in (q, v, a))
        gravity, rigid = rigid_torques(q, v, a, self._parents, self._slides, self._bodies, self._gravity)
        return gravity.T, rigid.T


def _to_z(axis: Array) -> Array:
    """A rotation that turns this direction to z."""
    z = axis / np.linalg.norm(axis)
    x = np.cross(np.eye(3)[int(np.abs(z).argmin())], z)
    x /= np.linalg.norm(x)
    return np.array([x, np.cross(z, x), z])
