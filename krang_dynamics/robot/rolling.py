"""Wheels that roll without slipping: the velocity of each contact point is zero, J v = 0."""

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from ..arrays import Array, Indices, consecutive
from ..errors import ConfigError
from ..kernels import contact_bias, contact_rows
from .config import WheelConfig

ALIGNED = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED


class Rolling:
    """Constraint J(q) v = 0 of a set of wheels, in Pinocchio's coordinates, of full row rank.

    Each wheel gives three rows: the velocity of its contact point forwards, sideways and upwards.
    Dependent rows, such as the sideways row of a second wheel on one axle, are omitted.
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
        self._last: tuple[bytes, Array] = (b'', self._still)  # q as bytes, and J there
        random = np.random.default_rng(0)
        states = random.uniform(-1, 1, (6, model.nq))
        rows = _independent(np.hstack([self._all_rows(q) for q in states]))
        self._rows = consecutive(rows)
        # Forward rows are independent by their wheels' spin. A second sideways row or an upward row can
        # depend on another one in states where wheels line up, so those are checked in every state.
        self._rows_vary = bool((rows >= len(wheels)).sum() > 1)

    def jacobian(self, q: Array) -> Array:
        """J(q), [otbot] section 5."""
        # Terms, observer and motor torques of one step need it at the same q.
        if q.tobytes() != self._last[0]:
            J = self._all_rows(q)[self._rows]
            self._last = q.tobytes(), J[_independent(J)] if self._rows_vary else J
        return self._last[1].copy()

    def _all_rows(self, q: Array) -> Array:
        """Forward velocities of all contact points, then sideways, then upward."""
        model, data = self._model, self._data
        pin.computeJointJacobians(model, data, q)
        rows = np.empty((3, len(self._wheels), model.nv))
        for i, (frame, axle, radius) in enumerate(self._wheels):
            rotation = pin.updateFramePlacement(model, data, frame).rotation
            J = pin.getFrameJacobian(model, data, frame, ALIGNED).reshape(6, -1)
            try:
                rows[:, i] = contact_rows(rotation, axle, radius, J)
            except ValueError as error:
                raise ConfigError(f'rolling: {error}') from None
        return rows.reshape(-1, model.nv)

    def bias(self, q: Array, v: Array) -> Array:
        """Jdot(q, v) v, so that J a + Jdot v = 0: the acceleration constraint of [otbot] section 5."""
        model, data = self._model, self._data
        pin.forwardKinematics(model, data, q, v, self._still)
        blocks = np.empty((3, len(self._wheels)))
        for i, (frame, axle, radius) in enumerate(self._wheels):
            rotation = pin.updateFramePlacement(model, data, frame).rotation
            velocity = pin.getFrameVelocity(model, data, frame, ALIGNED).vector
            acceleration = pin.getFrameClassicalAcceleration(model, data, frame, ALIGNED).vector
            blocks[:, i] = contact_bias(rotation, axle, radius, velocity, acceleration)
        bias = blocks.reshape(-1)[self._rows]
        return bias[_independent(self._all_rows(q)[self._rows])] if self._rows_vary else bias


def _independent(rows: Array) -> Indices:
    """Indices of the rows that are linearly independent of earlier ones, to 1e-9 of the largest entry."""
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
