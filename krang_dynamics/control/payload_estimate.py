"""A payload's mass and centre of mass from the effort that holds the robot at rest."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pinocchio as pin

from ..arrays import Array, Indices, joint_vector
from ..errors import InputError, UnknownNameError
from ..robot.model import Robot

if TYPE_CHECKING:
    from .controller import TorqueController

FEWEST = 3  # poses that determine mass and centre of mass
REST = 0.01  # largest speed of a joint at rest [rad/s]
NOISE = 0.2  # assumed deviation of the measured effort [N m]
MODEL = 0.05  # assumed relative deviation of the model's masses, which a tare removes
SAME = 0.02  # difference of poses that count as one [rad, m]
ALIGNED = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED


@dataclass(frozen=True)
class PayloadEstimate:
    """Mass [kg] and centre of mass [m] in the axes of the frame, with standard deviations."""

    frame: str
    mass: float
    com: Array
    mass_deviation: float
    com_deviation: Array
    poses: int

    def __str__(self) -> str:
        centre = ', '.join(f'{x:.3f} +- {d:.3f}' for x, d in zip(self.com, self.com_deviation, strict=True))
        return (
            f'{self.frame}: {self.mass:.3f} +- {self.mass_deviation:.3f} kg, centre of mass ({centre}) m, '
            f'from {self.poses} poses'
        )


@dataclass
class PayloadEstimator:
    """Collects resting poses, and fits m and m c: effort - Q(q) = Y(q) (m, m c).

    The gravity of a point mass at the frame is linear in them. `tare` keeps what was measured without a
    payload; the same poses then need no exact model. Dry friction of either sign is averaged by approaching
    each pose from both sides.
    """

    robot: Robot  # without the payload
    frame: str
    poses: list[Array] = field(default_factory=list)
    efforts: list[Array] = field(default_factory=list)  # without the model's gravity [N m]
    empty: list[tuple[Array, Array]] = field(default_factory=list)  # the same of the tare

    def __post_init__(self) -> None:
        if self.frame not in self.robot.frames:
            raise UnknownNameError('frame', self.frame, self.robot.frames)

    def add(self, q: Array, v: Array, effort: Array) -> None:
        """A resting pose: q [rad], v [rad/s], effort [N m] or NaN; InputError if it moves."""
        names, shape = self.robot.joint_names, (self.robot.nv,)
        q, v = joint_vector('q', q, names, shape), joint_vector('v', v, names, shape)
        if np.shape(effort) != shape or not np.isfinite(effort).any():
            raise InputError('the joint states have no effort; the payload is estimated from it')
        if np.abs(v).max() > REST:
            joint = names[int(np.argmax(np.abs(v)))]
            raise InputError(f'joint {joint!r} moves at {np.abs(v).max():.3f} rad/s; wait until it rests')
        self.poses.append(q.copy())
        self.efforts.append(effort - self.robot.gravity_torque(q))

    def tare(self) -> None:
        """Take the poses so far as those without a payload."""
        if not self.poses:
            raise InputError('there are no poses yet; add them without a payload first')
        self.empty = list(zip(self.poses, self.efforts, strict=True))
        self.poses, self.efforts = [], []

    def estimate(self) -> PayloadEstimate:
        """Weighted least squares over all poses; InputError with fewer than three."""
        if len(self.poses) < FEWEST:
            raise InputError(f'{len(self.poses)} of at least {FEWEST} different resting poses are there')
        all_efforts = [*self.efforts, *(effort for _, effort in self.empty)]
        rows = np.flatnonzero(np.isfinite(all_efforts).all(axis=0))
        Y = np.concatenate([self._regressor(q)[rows] for q in self.poses])
        measured = [effort - self._tared(q) for q, effort in zip(self.poses, self.efforts, strict=True)]
        y = np.concatenate([x[rows] for x in measured])
        L = np.linalg.cholesky(self._covariance(rows))
        W = np.linalg.solve(L, Y)
        if np.linalg.matrix_rank(W, tol=1e-6 * np.abs(W).max(initial=0.0)) < 4:
            raise InputError(
                'the poses are too similar to tell the centre of mass; turn the hand between them'
            )
        covariance = np.linalg.inv(W.T @ W)
        p = covariance @ W.T @ np.linalg.solve(L, y)
        mass = float(p[0])
        if mass <= 0:
            raise InputError(f'the estimated mass is {mass:.3f} kg; is there a payload?')
        com = p[1:] / mass
        slope = np.hstack([-com[:, None], np.eye(3)]) / mass  # of the centre with respect to (m, m c)
        spread = np.sqrt(np.diag(slope @ covariance @ slope.T))
        return PayloadEstimate(
            self.frame, mass, com, float(np.sqrt(covariance[0, 0])), spread, len(self.poses)
        )

    def _regressor(self, q: Array) -> Array:
        """Gravity torque [N m] per m and m c of a point mass at the frame, (n, 4)."""
        gravity = np.array(self.robot.config.gravity)
        T, J = self.robot.frame_pose(q, self.frame), self.robot.jacobian(q, self.frame)
        columns = [-J[:3].T @ gravity]
        columns += [-J[3:].T @ np.cross(axis, gravity) for axis in T[:3, :3].T]
        return np.column_stack(columns)

    def _tared(self, q: Array) -> Array:
        """The mean of what was measured without a payload in the nearest pose; zero without a tare."""
        if not self.empty:
            return np.zeros(self.robot.nv)
        distances = np.array([np.abs(pose - q).max() for pose, _ in self.empty])
        near = distances <= distances.min() + SAME
        return np.mean(
            [effort for (_, effort), is_near in zip(self.empty, near, strict=True) if is_near], axis=0
        )

    def _covariance(self, rows: Indices) -> Array:
        """Of all measurements [N2 m2]: noise, twice after a tare; without one the errors of all masses."""
        count = len(self.poses) * len(rows)
        if self.empty:
            return 2 * NOISE**2 * np.eye(count)
        weights = np.concatenate([self._weights(q)[rows] for q in self.poses])
        return NOISE**2 * np.eye(count) + MODEL**2 * weights @ weights.T

    def _weights(self, q: Array) -> Array:
        """Gravity torque [N m] of every body of the model by itself, (n, bodies)."""
        model, data, fold = self.robot.model, self.robot.data, self.robot.joint_map
        pin.computeJointJacobians(model, data, fold.position(q))
        columns = []
        for joint in range(1, model.njoints):
            body = model.inertias[joint]
            J = fold.columns(pin.getJointJacobian(model, data, joint, ALIGNED).reshape(6, -1))
            weight = body.mass * model.gravity.linear
            moment = np.cross(data.oMi[joint].rotation @ body.lever, weight)
            columns.append(-J[:3].T @ weight - J[3:].T @ moment)
        return np.column_stack(columns)


class PayloadMeasurement:
    """The measurement of a running controller: one pose per call, with or without the payload."""

    def __init__(self) -> None:
        self._estimator: PayloadEstimator | None = None
        self._is_taring = False

    def begin(self, controller: 'TorqueController') -> PayloadEstimator:
        """Begin anew if the parameters name another frame or begin a tare; for every change of them."""
        robot, settings, was_taring = controller.robot, controller.settings, self._is_taring
        frame = settings.estimate_payload_frame or next(iter(robot.config.end_effectors), '')
        estimator, self._is_taring = self._estimator, settings.estimate_payload_tare
        if estimator is None or estimator.frame != frame or (self._is_taring and not was_taring):
            self._estimator = estimator = PayloadEstimator(robot, frame)
        elif was_taring and not self._is_taring and estimator.poses:
            estimator.tare()
        return estimator

    def add(self, controller: 'TorqueController') -> str:
        """Add the present pose of a controller; the estimate as text, or how many poses are missing."""
        estimator, buffer = self.begin(controller), controller.state.buffer
        estimator.add(buffer.q, buffer.v, buffer.effort)
        if self._is_taring:
            return f'{estimator.frame}: {len(estimator.poses)} poses of the empty hand'
        if len(estimator.poses) < FEWEST:
            return f'{estimator.frame}: {len(estimator.poses)} of at least {FEWEST} poses'
        return str(estimator.estimate())
