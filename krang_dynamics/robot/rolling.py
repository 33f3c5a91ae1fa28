"""Wheels that roll without slipping: the velocity of each contact point is zero, J v = 0."""

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from ..arrays import Array, Indices, consecutive
from ..errors import ConfigError
from ..kernels import contacts
from .config import WheelConfig


class Rolling:
    """Constraint J(q) v = 0 of a set of wheels, in Pinocchio's coordinates, of full row rank.

    Each wheel gives three rows: the velocity of its contact point forwards, sideways and upwards.
    Dependent rows, such as the sideways row of a second wheel on one axle, are omitted. The state is that
    of `data`, whose placements and world Jacobian must be up to date.
    """

    def __init__(self, model: pin.Model, data: pin.Data, wheels: Sequence[WheelConfig]) -> None:
        self._model, self._data = model, data
        self._J = data.J.reshape(6, -1)  # a view, as those of the wheels
        self._wheels = tuple(_geometry(model, data, wheel) for wheel in wheels)
        self._zero = np.zeros(model.nv)
        rows = []
        for q in np.random.default_rng(0).uniform(-1, 1, (6, model.nq)):
            self.update(q)
            rows.append(self._contacts(self._zero)[0])
        kept = _independent(np.hstack(rows))
        self._rows: Indices | slice = consecutive(kept)
        # Forward rows are independent by their wheels' spin. A second sideways row or an upward row can
        # depend on another one in states where wheels line up, so those are checked in every state.
        self._rows_vary = bool((kept >= len(wheels)).sum() > 1)

    def update(self, q: Array) -> None:
        """Bring the data up to date, where no other pass has done so."""
        pin.computeJointJacobians(self._model, self._data, q)

    def jacobian(self) -> Array:
        """J(q), [otbot] section 5."""
        return self.constraint(self._zero)[0]

    def constraint(self, v: Array) -> tuple[Array, Array]:
        """J(q) and Jdot(q, v) v, so that J a + Jdot v = 0: the constraint of [otbot] section 5."""
        J, bias = self._contacts(v)
        J, bias = J[self._rows], bias[self._rows]
        if self._rows_vary:
            kept = _independent(J)
            J, bias = J[kept], bias[kept]
        return J, bias

    def _contacts(self, v: Array) -> tuple[Array, Array]:
        """Of all contact points: rows of the velocities, and accelerations; forwards, sideways, upward."""
        try:
            return contacts(self._wheels, self._J, v)
        except ValueError as error:
            raise ConfigError(f'rolling: {error}') from None


def _geometry(model: pin.Model, data: pin.Data, wheel: WheelConfig) -> tuple[Array, Array, Array, Array]:
    """Views of rotation and translation of the joint that carries a wheel; the wheel there; its joints."""
    frame = model.frames[model.getFrameId(wheel.link, pin.FrameType.BODY)]
    axle = frame.placement.rotation @ np.array(wheel.axle) / np.linalg.norm(wheel.axle)
    placement = data.oMi[frame.parentJoint]
    in_joint = np.array([*axle, *frame.placement.translation, wheel.radius])
    return placement.rotation, placement.translation, in_joint, supporting_joints(model, frame)


def supporting_joints(model: pin.Model, frame: pin.Frame) -> Array:
    """1 for joints of Pinocchio that move a frame, 0 for others."""
    moving = np.zeros(model.nv)
    for joint in list(model.supports[frame.parentJoint])[1:]:
        moving[model.joints[joint].idx_v] = 1.0
    return moving


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
