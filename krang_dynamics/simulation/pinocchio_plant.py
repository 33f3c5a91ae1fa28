"""The exact model: the robot's own equations of motion, integrated by Runge-Kutta."""

import numpy as np
import pinocchio as pin

from ..arrays import Array
from ..robot.model import Robot
from .dry_friction import held_torque
from .plant import Plant
from .rk4 import rk4_step


class PinocchioPlant(Plant):
    """A a + C v + Q + Gamma_f + J^T lambda = E u + J_frame^T f, J v = 0; joints have no end stops."""

    name = 'pinocchio'

    def __init__(self, robot: Robot, friction: bool = True, timestep: float = 1e-3) -> None:
        super().__init__(robot, friction, timestep)
        same_joints = tuple(robot.model.names)[1:] == robot.joint_names
        self._solve = self._articulated if same_joints and not robot.config.rolling else self._saddle
        self._data = robot.model.createData()
        self._still = np.zeros(robot.nv)

    def reset(self, q: Array, v: Array) -> None:
        """As Plant says; wheels that slip are caught by the ground at once."""
        super().reset(q, v)
        self._v = self._rolling_part(self._v)

    def _advance(self, force: Array, h: float) -> None:
        if self._is_dry:
            force = force - self._dry_torque(force, h)
        self._q, v = rk4_step(lambda q, v: self._acceleration(q, v, force), self._q, self._v, h)
        self._v = self._rolling_part(v)

    def _acceleration(self, q: Array, v: Array, force: Array) -> Array:
        force = force - self._drag(v)
        if self._pushes:
            force += self.robot.wrench_to_torque(q, self._pushes)
        return self._solve(q, v, force)

    def _articulated(self, q: Array, v: Array, force: Array) -> Array:
        return np.asarray(pin.aba(self.robot.model, self._data, q, v, force))

    def _saddle(self, q: Array, v: Array, force: Array) -> Array:
        """a of A a + J^T lambda = force - C v - Q, J a = -Jdot v; [otbot] section 6."""
        robot = self.robot
        bias = robot.inverse_dynamics(q, v, self._still)
        right = np.concatenate([force - bias, -robot.constraint_bias(q, v)])
        return np.linalg.solve(robot.saddle_matrix(q), right)[: robot.nv]

    def _rolling_part(self, v: Array) -> Array:
        """v without what breaks J v = 0, nearest in A: no drift, and an impact where wheels slip."""
        if not self.robot.config.rolling:
            return v
        K, n = self.robot.saddle_matrix(self._q), self.robot.nv
        right = np.concatenate([self._still, K[n:, :n] @ v])
        return v - np.linalg.solve(K, right)[:n]

    def _dry_torque(self, force: Array, h: float) -> Array:
        n = self.robot.nv
        response = np.asarray(np.linalg.inv(self.robot.saddle_matrix(self._q)))[:n, :n]
        a = self._acceleration(self._q, self._v, force)
        return held_torque(self._v, a, response, self._friction.coulomb, h)
