"""Wheels that roll without slipping: the velocity of each contact point is zero, J v = 0."""

from collections.abc import Sequence
from math import hypot

import numpy as np
import pinocchio as pin

from ..arrays import Array
from ..errors import ConfigError
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
        self._rows = _independent(np.hstack([self._all_rows(q) for q in states]))
        # Forward rows are independent by their wheels' spin. A second sideways row or an upward row can
        # depend on another one in states where wheels line up, so those are checked in every state.
        self._rows_vary = bool((self._rows >= len(wheels)).sum() > 1)

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
            a = pin.updateFramePlacement(model, data, frame).rotation @ axle
            J = pin.getFrameJacobian(model, data, frame, ALIGNED).reshape(6, -1)
            rows[:, i] = _contact_velocity(a, radius).dot(J)
        return rows.reshape(-1, model.nv)

    def bias(self, q: Array, v: Array) -> Array:
        """Jdot(q, v) v, so that J a + Jdot v = 0: the acceleration constraint of [otbot] section 5."""
        model, data = self._model, self._data
        pin.forwardKinematics(model, data, q, v, self._still)
        blocks = []
        for frame, axle, radius in self._wheels:
            a = pin.updateFramePlacement(model, data, frame).rotation @ axle
            velocity = pin.getFrameVelocity(model, data, frame, ALIGNED)
            acceleration = pin.getFrameClassicalAcceleration(model, data, frame, ALIGNED)
            blocks.append(_contact_acceleration(a, radius, velocity, acceleration))
        bias = np.array(blocks).T.reshape(-1)[self._rows]
        return bias[_independent(self._all_rows(q)[self._rows])] if self._rows_vary else bias


def _independent(rows: Array) -> Array:
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


def _contact_velocity(a: Array, radius: float) -> Array:
    """Velocity of the contact forwards, sideways and up, from that of the wheel (linear, angular): 3 x 6.

    The contact is the lowest point of a disc whose axle a (a unit vector) may lean. Its velocity along an
    axis e is e . v + (c x e) . w, with the vector c from the centre to the contact.
    """
    ax, ay, az = a.tolist()
    level = hypot(ax, ay)
    if level < 1e-6:
        raise ConfigError('rolling: an axle is vertical; it must be parallel to the ground')
    x, y = ax / level, ay / level
    side, down = radius * az, -radius * level  # c = (side x, side y, down)
    return np.array(
        [
            [y, -x, 0.0, down * x, down * y, -side],
            [x, y, 0.0, -down * y, down * x, 0.0],
            [0.0, 0.0, 1.0, side * y, -side * x, 0.0],
        ]
    )


def _contact_acceleration(
    a: Array, radius: float, velocity: pin.Motion, acceleration: pin.Motion
) -> tuple[float, float, float]:
    """Time derivative of a contact's velocity forwards, sideways and up, at zero joint acceleration.

    Plain floats, because arrays of three numbers take ten times as long.
    """
    ax, ay, az = axle = a.tolist()
    spin, turn = velocity.angular.tolist(), acceleration.angular.tolist()
    level = hypot(ax, ay)
    x, y = ax / level, ay / level
    ax_rate, ay_rate, az_rate = _cross(spin, axle)
    level_rate = x * ax_rate + y * ay_rate
    x_rate, y_rate = (ax_rate - level_rate * x) / level, (ay_rate - level_rate * y) / level
    contact = (radius * az * x, radius * az * y, -radius * level)
    contact_rate = (
        radius * (az_rate * x + az * x_rate),
        radius * (az_rate * y + az * y_rate),
        -radius * level_rate,
    )
    slip = [u + w for u, w in zip(velocity.linear.tolist(), _cross(spin, contact), strict=True)]
    parts = (acceleration.linear.tolist(), _cross(turn, contact), _cross(spin, contact_rate))
    slip_rate = [sum(entries) for entries in zip(*parts, strict=True)]
    return (
        y * slip_rate[0] - x * slip_rate[1] + y_rate * slip[0] - x_rate * slip[1],
        x * slip_rate[0] + y * slip_rate[1] + x_rate * slip[0] + y_rate * slip[1],
        slip_rate[2],
    )


def _cross(u: Sequence[float], w: Sequence[float]) -> tuple[float, float, float]:
    return u[1] * w[2] - u[2] * w[1], u[2] * w[0] - u[0] * w[2], u[0] * w[1] - u[1] * w[0]
