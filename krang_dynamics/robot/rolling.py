"""Wheels that roll without slipping: the contact point of each has no velocity, J v = 0."""

from collections.abc import Sequence
from math import hypot

import numpy as np
import pinocchio as pin

from ..errors import ConfigError
from .config import WheelConfig
from .urdf import Array

UP = np.array([0.0, 0.0, 1.0])  # normal of the ground, in world axes
LEVEL = np.array([1.0, 1.0, 0.0])
ALIGNED = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED


class Rolling:
    """Constraint J(q) v = 0 of a set of wheels, in Pinocchio's coordinates, of full row rank.

    Each wheel gives three rows: the velocity of its contact point forwards, sideways and upwards.
    Rows that say nothing new, such as the sideways row of a second wheel on one axle, are left out.
    """

    def __init__(self, model: pin.Model, wheels: Sequence[WheelConfig]) -> None:
        self._model = model
        self._data = model.createData()
        self._still = np.zeros(model.nv)
        self._wheels = [
            (
                model.getFrameId(wheel.link, pin.FrameType.BODY),
                np.array(wheel.axle) / np.linalg.norm(wheel.axle),
                wheel.radius,
            )
            for wheel in wheels
        ]
        random = np.random.default_rng(0)
        states = random.uniform(-1, 1, (6, model.nq))
        self._rows = _independent(np.hstack([self._all_rows(q) for q in states]))
        # Forward rows keep their wheels' own spin apart. A second sideways or an upward row may
        # say the same as another one where wheels line up, so that must be looked at in every state.
        self._rows_vary = bool((self._rows >= len(wheels)).sum() > 1)

    def jacobian(self, q: Array) -> Array:
        """J(q), [otbot] section 5."""
        J = self._all_rows(q)[self._rows]
        return J[_independent(J)] if self._rows_vary else J

    def _all_rows(self, q: Array) -> Array:
        """Of every wheel the velocity forwards, then of every wheel sideways, then upwards."""
        model, data = self._model, self._data
        pin.computeJointJacobians(model, data, q)
        blocks = []
        for frame, axle, radius in self._wheels:
            a = pin.updateFramePlacement(model, data, frame).rotation @ axle
            axes, contact = _contact(a, radius)
            J = pin.getFrameJacobian(model, data, frame, ALIGNED).reshape(6, -1)
            blocks.append(axes @ (J[:3] - pin.skew(contact) @ J[3:]))
        return np.array(blocks).swapaxes(0, 1).reshape(-1, model.nv)

    def bias(self, q: Array, v: Array) -> Array:
        """Jdot(q, v) v, so that J a + Jdot v = 0: the acceleration constraint of [otbot] section 5."""
        model, data = self._model, self._data
        pin.forwardKinematics(model, data, q, v, self._still)
        blocks = []
        for frame, axle, radius in self._wheels:
            a = pin.updateFramePlacement(model, data, frame).rotation @ axle
            velocity = pin.getFrameVelocity(model, data, frame, ALIGNED)
            acceleration = pin.getFrameClassicalAcceleration(model, data, frame, ALIGNED)
            spin = pin.skew(velocity.angular)
            axes, contact = _contact(a, radius)
            axes_rate, contact_rate = _contact_rate(a, spin @ a, radius)
            slip = velocity.linear + spin @ contact
            turn = pin.skew(acceleration.angular)
            slip_rate = acceleration.linear + turn @ contact + spin @ contact_rate
            blocks.append(axes @ slip_rate + axes_rate @ slip)
        bias = np.array(blocks).T.reshape(-1)[self._rows]
        return bias[_independent(self._all_rows(q)[self._rows])] if self._rows_vary else bias


def _independent(rows: Array) -> Array:
    """Indices of the rows that are no combination of earlier ones, to 1e-9 of the largest entry."""
    smallest = 1e-9 * np.abs(rows).max()
    kept: list[int] = []
    basis = np.empty((0, rows.shape[1]))
    for index, row in enumerate(rows):
        rest = row - basis.T @ (basis @ row)
        length = np.linalg.norm(rest)
        if length > smallest:
            kept.append(index)
            basis = np.vstack([basis, rest / length])
    return np.array(kept)


def _contact(a: Array, radius: float) -> tuple[Array, Array]:
    """Rows forward, sideways, up [world axes], and the vector from centre to contact [m].

    The contact is the lowest point of a disc whose axle a (a unit vector) may lean.
    """
    level = hypot(a[0], a[1])
    if level < 1e-6:
        raise ConfigError('rolling: an axle stands upright; it must lie across the ground')
    x, y = a[0] / level, a[1] / level
    axes = np.array([[y, -x, 0.0], [x, y, 0.0], UP])
    return axes, radius * (a[2] * axes[1] - level * UP)


def _contact_rate(a: Array, a_rate: Array, radius: float) -> tuple[Array, Array]:
    """Time derivative of what _contact returns, for an axle that turns at a_rate."""
    level = hypot(a[0], a[1])
    sideways = a * LEVEL / level
    level_rate = sideways @ a_rate
    x, y, _ = sideways_rate = (a_rate * LEVEL - level_rate * sideways) / level
    contact_rate = radius * (a_rate[2] * sideways + a[2] * sideways_rate - level_rate * UP)
    return np.array([[y, -x, 0.0], [x, y, 0.0], [0.0, 0.0, 0.0]]), contact_rate
