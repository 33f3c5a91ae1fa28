"""Gravity torque of many poses at once, joint by joint instead of pose by pose."""

from typing import Any

import numpy as np

from ...arrays import Array

BLOCK = 4000  # poses whose vectors stay in the cache of a processor
Z = np.array([[0.0], [0.0], [1.0]])


class GravityTorques:
    """Q(q) of a Pinocchio model whose joints turn about an axis or slide along it.

    Gravity is the same for all bodies: it is expressed in the frame of each joint on the way to the hands,
    and on the way back the first mass moment of all that a joint carries is added up. Frames are turned so
    that the axis of each joint is z.
    """

    def __init__(self, model: Any) -> None:
        data = model.createData()
        self._gravity = model.gravity.linear.copy()
        self._parents = list(model.parents)
        count = len(self._parents)
        self._slides = [False] * count
        self._carried = [0.0] * count  # mass of each body and all that follow it [kg]
        self._moments = [np.zeros((3, 1)) for _ in range(count)]  # of each body [kg m]
        self._rotations = [np.eye(3) for _ in range(count)]  # from the parent's frame
        self._origins = [np.zeros((3, 1)) for _ in range(count)]  # in the parent's frame [m]
        turned = [np.eye(3) for _ in range(count)]  # from Pinocchio's frame of a joint to ours
        for i in range(1, count):
            parent, placement = self._parents[i], model.jointPlacements[i]
            axis = np.asarray(data.joints[i].S).ravel()
            self._slides[i] = not axis[3:].any()
            turned[i] = _to_z(axis[:3] if self._slides[i] else axis[3:])
            self._rotations[i] = turned[i] @ placement.rotation.T @ turned[parent].T
            self._origins[i] = (turned[parent] @ placement.translation)[:, None]
            body = model.inertias[i]
            self._carried[i] = float(body.mass)
            self._moments[i] = body.mass * (turned[i] @ body.lever)[:, None]
        for i in reversed(range(1, count)):
            self._carried[self._parents[i]] += self._carried[i]

    def __call__(self, q: Array) -> Array:
        """Q (K, n) [N m] of poses q (K, n) of Pinocchio's joints."""
        torque = np.empty(q.shape, order='F')
        for begin in range(0, len(q), BLOCK):
            self._fill(torque[begin : begin + BLOCK], q[begin : begin + BLOCK])
        return torque

    def _fill(self, torque: Array, q: Array) -> None:
        cos, sin = np.cos(q.T), np.sin(q.T)
        down = [np.tile(self._gravity[:, None], len(q))]  # in the frame of each joint [m/s2]
        for i in range(1, len(self._parents)):
            g = self._rotations[i] @ down[self._parents[i]]
            if not self._slides[i]:
                g[:2] = _turned(g, cos[i - 1], -sin[i - 1])
            down.append(g)
        moments: list[Array] = self._moments.copy()
        for i in reversed(range(1, len(self._parents))):
            h, g, mass = moments[i], down[i], self._carried[i]
            if self._slides[i]:
                torque[:, i - 1] = -mass * g[2]
                h = h + Z * (mass * q[:, i - 1])
            else:
                torque[:, i - 1] = h[1] * g[0] - h[0] * g[1]
                h = np.stack([*_turned(h, cos[i - 1], sin[i - 1]), np.broadcast_to(h[2], len(q))])
            parent = self._parents[i]
            moments[parent] = moments[parent] + (self._rotations[i].T @ h + mass * self._origins[i])


def _turned(x: Array, cos: Array, sin: Array) -> tuple[Array, Array]:
    """The first two coordinates of vectors (3, K) that are turned about z."""
    return cos * x[0] - sin * x[1], sin * x[0] + cos * x[1]


def _to_z(axis: Array) -> Array:
    """A rotation that turns this direction to z."""
    z = axis / np.linalg.norm(axis)
    x = np.cross(np.eye(3)[int(np.abs(z).argmin())], z)
    x /= np.linalg.norm(x)
    return np.array([x, np.cross(z, x), z])
