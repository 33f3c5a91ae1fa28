"""The exact model: the robot's own equations of motion, integrated by Runge-Kutta."""

import numpy as np
import pinocchio as pin

from ..arrays import Array
from ..kernels import is_within
from ..robot.model import Robot
from .plant import Plant, rk4_step

HARDEST = 60.0  # natural frequency of an end stop and the inertia of its joint [rad/s] ...
HARDNESS = 0.25  # ... times the timestep, at most
BLOCK_PIVOTS = 20  # attempts that correct all wrong guesses at once, which is fast but may cycle
MAX_PIVOTS = 10_000  # far more than needed: rounding must not hang a simulation


class PinocchioPlant(Plant):
    """A a + C v + Q + Gamma_f + J^T lambda = E u + J_frame^T f, J v = 0.

    `end_stops` are the lowest and highest position of every joint [rad, m]; without them joints have none.
    """

    name = 'pinocchio'

    def __init__(
        self,
        robot: Robot,
        friction: bool = True,
        timestep: float = 1e-3,
        end_stops: tuple[Array, Array] | None = None,
    ) -> None:
        super().__init__(robot, friction, timestep)
        self._end_stops = end_stops
        inertia, rate = np.diag(robot.mass_matrix(robot.home)), min(HARDEST, HARDNESS / timestep)
        self._stop_stiffness, self._stop_damping = rate**2 * inertia, 2 * rate * inertia
        same_joints = tuple(robot.model.names)[1:] == robot.joint_names
        self._solve = self._articulated if same_joints and not robot.config.rolling else self._saddle
        self._data = robot.model.createData()
        self._zero = np.zeros(robot.nv)

    def reset(self, q: Array, v: Array) -> None:
        """As in Plant; a velocity that violates the rolling constraints is projected onto them."""
        super().reset(q, v)
        self._v = self._rolling_part(self._v)

    def _advance(self, force: Array, h: float) -> None:
        if self._is_dry:
            force = force - self._dry_torque(force, h)
        if self._is_stiff:
            self._implicit_step(self._acceleration(self._q, self._v, force), h)
        else:
            self._q, self._v = rk4_step(lambda q, v: self._acceleration(q, v, force), self._q, self._v, h)
        self._v = self._rolling_part(self._v)

    def _acceleration(self, q: Array, v: Array, force: Array) -> Array:
        force = force - self._drag(q, v)
        if self._end_stops is not None and not is_within(q, *self._end_stops):
            force += self._stop_torque(q, v, *self._end_stops)
        if self._pushes:
            force += self.robot.wrench_to_torque(q, self._pushes)
        return self._solve(q, v, force)

    def _stop_torque(self, q: Array, v: Array, lower: Array, upper: Array) -> Array:
        """Torque of the end stops [N m]: critically damped springs that push and never pull."""
        outside = np.minimum(q - lower, 0.0) + np.maximum(q - upper, 0.0)
        rows = outside.nonzero()[0]
        if rows.size:
            depth = outside[rows]
            torque = -self._stop_stiffness[rows] * depth - self._stop_damping[rows] * v[rows]
            outside[rows] = np.where(torque * depth < 0, torque, 0.0)
        return outside

    def _articulated(self, q: Array, v: Array, force: Array) -> Array:
        return np.asarray(pin.aba(self.robot.model, self._data, q, v, force))

    def _saddle(self, q: Array, v: Array, force: Array) -> Array:
        """a of A a + J^T lambda = force - C v - Q, J a = -Jdot v; [otbot] section 6."""
        robot = self.robot
        bias = robot.inverse_dynamics(q, v, self._zero)
        right = np.concatenate([force - bias, -robot.constraint_bias(q, v)])
        return np.linalg.solve(robot.saddle_matrix(q), right)[: robot.nv]

    def _rolling_part(self, v: Array) -> Array:
        """The velocity nearest to v in the metric A that satisfies J v = 0, which prevents drift."""
        if not self.robot.config.rolling:
            return v
        K, n = self.robot.saddle_matrix(self._q), self.robot.nv
        right = np.concatenate([self._zero, K[n:, :n] @ v])
        return v - np.linalg.solve(K, right)[:n]

    def _dry_torque(self, force: Array, h: float) -> Array:
        n = self.robot.nv
        K = self.robot.saddle_matrix(self._q)
        a = self._acceleration(self._q, self._v, force)
        if self._is_stiff:
            a = self._damped(a, h)
            K[:n, :n] += h * np.diag(self._friction.viscous)
        response = np.asarray(np.linalg.inv(K))[:n, :n]
        return dry_friction_torque(self._v, a, response, self._friction.coulomb, h)


def dry_friction_torque(v: Array, a: Array, response: Array, limit: Array, h: float) -> Array:
    """Coulomb friction f [N m] with the exact sign, constant over a step of h [s], |f| <= limit.

    With w = v + h (a - response f), the speed after the step: f = limit sign(w) where w is not 0, and a joint
    at rest stays at rest until its load exceeds the limit. `a` is the acceleration without f, `response` the
    inverse mass matrix.
    """
    f = np.zeros(len(v))
    dry = np.flatnonzero(limit)
    B = response[np.ix_(dry, dry)]
    # Rolling constraints couple joints and can make B singular; this keeps it invertible.
    B = B + 1e-12 * np.diag(np.diag(B))
    f[dry] = _complementary(B, (v / h + a)[dry], limit[dry], np.sign(v[dry]))
    return f


def _complementary(B: Array, w: Array, limit: Array, slides: Array) -> Array:
    """f of w - B f = slip, f = limit sign(slip), from the guess `slides` of sign(slip).

    Principal pivoting: solve for the joints that stick, correct wrong guesses, repeat. Correcting only the
    first wrong guess always terminates, because B is positive definite.
    """
    for attempt in range(MAX_PIVOTS):
        stuck = slides == 0
        f = limit * slides
        f[stuck] = np.linalg.solve(B[np.ix_(stuck, stuck)], (w - B @ f)[stuck])
        breaks_away = stuck & (np.abs(f) > limit)
        stops = ~stuck & (slides * (w - B @ f) < 0)
        wrong = np.flatnonzero(breaks_away | stops)
        if not len(wrong):
            break
        if attempt >= BLOCK_PIVOTS:
            wrong = wrong[:1]
        slides = slides.copy()
        slides[wrong] = np.where(breaks_away[wrong], np.sign(f[wrong]), 0)
    return np.clip(f, -limit, limit)
