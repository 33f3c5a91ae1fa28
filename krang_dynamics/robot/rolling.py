"""Wheels that roll without slipping: the contact point of each has no velocity, J v = 0."""

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from ..errors import ConfigError
from .config import WheelConfig
from .urdf import Array

UP = np.array([0.0, 0.0, 1.0])  # normal of the ground, in world axes
ALIGNED = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED


class Rolling:
    """Constraint J(q) v = 0 of a set of wheels, in Pinocchio's coordinates, of full row rank.

    Each wheel gives three rows: the velocity of its contact point forwards, sideways and upwards.
    Rows that say nothing new, such as the sideways row of a second wheel on one axle, are left out.
    """

    def __init__(self, model: pin.Model, wheels: Sequence[WheelConfig]) -> None:
        self._model = model
        self._data = model.createData()
        self._frames = [model.getFrameId(w.link, pin.FrameType.BODY) for w in wheels]
        self._axles = [np.array(w.axle) / np.linalg.norm(w.axle) for w in wheels]
        self._radii = [w.radius for w in wheels]
        self._rows: Array | slice = slice(None)
        self._rows = self._independent_rows()

    def jacobian(self, q: Array) -> Array:
        """J(q), [otbot] section 5."""
        pin.computeJointJacobians(self._model, self._data, q)
        pin.updateFramePlacements(self._model, self._data)
        blocks = []
        for frame, axle, radius in zip(self._frames, self._axles, self._radii, strict=True):
            a = self._data.oMf[frame].rotation @ axle
            axes, contact = _contact(a, radius)
            J = pin.getFrameJacobian(self._model, self._data, frame, ALIGNED)
            blocks.append(axes @ (J[:3] + np.cross(J[3:], contact, axis=0)))
        return self._stack(blocks)

    def bias(self, q: Array, v: Array) -> Array:
        """Jdot(q, v) v, so that J a + Jdot v = 0 is the acceleration constraint of [otbot] section 5."""
        pin.forwardKinematics(self._model, self._data, q, v, np.zeros_like(v))
        pin.updateFramePlacements(self._model, self._data)
        blocks = []
        for frame, axle, radius in zip(self._frames, self._axles, self._radii, strict=True):
            a = self._data.oMf[frame].rotation @ axle
            velocity = pin.getFrameVelocity(self._model, self._data, frame, ALIGNED)
            acceleration = pin.getFrameClassicalAcceleration(self._model, self._data, frame, ALIGNED)
            w = velocity.angular
            axes, contact = _contact(a, radius)
            axes_rate, contact_rate = _contact_rate(a, np.cross(w, a), radius)
            slip = velocity.linear + np.cross(w, contact)
            slip_rate = (
                acceleration.linear + np.cross(acceleration.angular, contact) + np.cross(w, contact_rate)
            )
            blocks.append(axes @ slip_rate + axes_rate @ slip)
        return self._stack(blocks)

    def _stack(self, blocks: list[Array]) -> Array:
        """All forward rows, then all sideways, then all upward ones; the independent ones of them."""
        rows = np.stack(blocks, axis=1)
        return np.asarray(rows.reshape(-1, *rows.shape[2:])[self._rows])

    def _independent_rows(self) -> Array:
        """Rows that are no fixed combination of earlier rows, over a handful of configurations."""
        random = np.random.default_rng(0)
        states = random.uniform(-1, 1, (6, self._model.nq))
        with np.errstate(invalid='ignore'):
            candidates = np.hstack([self.jacobian(q) for q in states])
        if not np.isfinite(candidates).all():
            raise ConfigError('rolling: an axle stands upright; it must lie across the ground')
        scale = np.abs(candidates).max()
        kept: list[int] = []
        basis = np.empty((0, candidates.shape[1]))
        for index, row in enumerate(candidates):
            rest = row - basis.T @ (basis @ row)
            length = np.linalg.norm(rest)
            if length > 1e-9 * scale:
                kept.append(index)
                basis = np.vstack([basis, rest / length])
        return np.array(kept)


def _contact(a: Array, radius: float) -> tuple[Array, Array]:
    """Rows forward, sideways, up [world axes], and the vector from centre to contact [m].

    The contact is the lowest point of a disc whose axle a may lean.
    """
    across = np.cross(a, UP)
    forward = across / np.linalg.norm(across)
    return np.array([forward, np.cross(UP, forward), UP]), radius * np.cross(a, forward)


def _contact_rate(a: Array, a_rate: Array, radius: float) -> tuple[Array, Array]:
    """Time derivative of what _contact returns, for an axle that turns at a_rate."""
    across, across_rate = np.cross(a, UP), np.cross(a_rate, UP)
    length = np.linalg.norm(across)
    forward = across / length
    forward_rate = (across_rate - forward * (forward @ across_rate)) / length
    contact_rate = radius * (np.cross(a_rate, forward) + np.cross(a, forward_rate))
    return np.array([forward_rate, np.cross(UP, forward_rate), np.zeros(3)]), contact_rate
