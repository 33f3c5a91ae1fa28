"""The exact model: the robot's own equations of motion, integrated by Runge-Kutta."""

import numpy as np
import pinocchio as pin

from ..arrays import Array
from ..kernels import constrained, end_stop_torque, solved
from ..robot.model import Robot
from ..robot.rolling import Rolling
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
        inertia, rate = np.diag(robot.mass_matrix(robot.home)), min(HARDEST, HARDNESS / timestep)
        # Critically damped.
        self._end_stops = None if end_stops is None else (*end_stops, rate**2 * inertia, 2 * rate * inertia)
        same_joints = tuple(robot.model.names)[1:] == robot.joint_names
        self._solve = self._articulated if same_joints and not robot.config.rolling else self._saddle
        self._data = robot.model.createData()
        wheels = robot.config.rolling
        self._rolling = Rolling(robot.model, self._data, wheels) if wheels else None
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
        if self._end_stops is not None:
            force += end_stop_torque(q, v, *self._end_stops)
        for frame, wrench in self._pushes.items():
            force += wrench.dot(self.robot.jacobian(q, frame))
        return self._solve(q, v, force)

    def _articulated(self, q: Array, v: Array, force: Array) -> Array:
        return np.asarray(pin.aba(self.robot.model, self._data, q, v, force))

    def _saddle(self, q: Array, v: Array, force: Array) -> Array:
        """a of A a + J^T lambda = force - C v - Q, J a = -Jdot v; [otbot] section 6."""
        joints, data = self.robot.joint_map, self._data
        q, v = joints.position(q), joints.velocity(v)
        pin.computeAllTerms(self.robot.model, data, q, v)
        A, force = joints.matrix(data.M), force - joints.force(data.nle)
        if self._rolling is None:
            return solved(A, force)
        J, bias = self._rolling.constraint(v)
        return constrained(A, joints.columns(J), force, -bias)

    def _rolling_part(self, v: Array) -> Array:
        """The velocity nearest to v in the metric A that satisfies J v = 0, which prevents drift."""
        if self._rolling is None:
            return v
        A, J = self.robot.mass_matrix(self._q), self.robot.constraint_jacobian(self._q)
        return v - constrained(A, J, self._zero, J.dot(v))

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
