"""Mapping between the robot's joints and Pinocchio's: their order, and mimic joints."""

from collections.abc import Sequence

import numpy as np

from ..arrays import Array
from ..kernels import folded, unfolded
from .urdf import Urdf


class JointMap:
    """q_model = G q + offset, with one column of G per joint and one row per Pinocchio joint.

    G is constant: forces transform by G^T f, mass and Coriolis matrices by G^T A G.
    """

    def __init__(self, urdf: Urdf, names: Sequence[str], model_names: Sequence[str]) -> None:
        self.G = np.zeros((len(model_names), len(names)))
        self.offset = np.zeros(len(model_names))
        self.leaders = np.zeros(len(model_names), dtype=np.intp)  # G has one number in each row ...
        self.multipliers = np.zeros(len(model_names))  # ... which is this one
        for row, name in enumerate(model_names):
            leader, multiplier, offset = urdf.leader(name)
            column = list(names).index(leader)
            self.G[row, column] = multiplier
            self.leaders[row], self.multipliers[row], self.offset[row] = column, multiplier, offset
        self._still = np.zeros(len(model_names))
        self.is_identity = np.array_equal(self.G, np.eye(len(names)))

    # dot() of small arrays takes half the time of @.

    def position(self, q: Array) -> Array:
        return q if self.is_identity else self.G.dot(q) + self.offset

    def velocity(self, v: Array) -> Array:
        return v if self.is_identity else self.G.dot(v)

    def force(self, tau: Array) -> Array:
        return tau if self.is_identity else tau.dot(self.G)

    def matrix(self, A: Array) -> Array:
        return A if self.is_identity else self.G.T.dot(A).dot(self.G)

    def state(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Position and velocity of Pinocchio's joints, from contiguous arrays."""
        leaders, multipliers = self.leaders, self.multipliers
        return unfolded(leaders, multipliers, q, self.offset), unfolded(leaders, multipliers, v, self._still)

    def equations(self, M: Array, nle: Array, g: Array, A: Array, bias: Array) -> Array:
        """A and C v + Q of the robot's joints, in place, and Q, a new array, from those of Pinocchio's."""
        return folded(self.leaders, self.multipliers, M, nle, g, A, bias)

    def columns(self, J: Array) -> Array:
        return J if self.is_identity else J.dot(self.G)
