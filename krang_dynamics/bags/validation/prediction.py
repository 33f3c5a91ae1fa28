"""Torques that the model predicts for a motion, in four levels from gravity alone to the full model."""

import numpy as np
import pinocchio as pin

from ...arrays import Array
from ...robot.model import Robot
from .filtering import FilteredMotion
from .gravity import GravityTorques

LEVELS = ('gravity', 'inverse_dynamics', 'rotor', 'friction')


class Predictor:
    """Evaluates a robot along motions, without the input checks of the single-state functions of Robot."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self._model, self._data = robot.model, robot.model.createData()
        # Pinocchio can be built without it; one thread, because processes share the cores already.
        self._pool = pin.ModelPool(self._model, 1) if hasattr(pin, 'rneaInParallel') else None
        self._gravity = GravityTorques(robot.model)
        self._rotors = robot.rotor_inertia()

    def torques(self, motion: FilteredMotion) -> dict[str, Array]:
        """By level: Q; A a + C v + Q without rotor inertia; with it; with friction. Each (K, n) [N m]."""
        joints = self.robot.joint_map
        # Pinocchio takes one sample after the other; everything else is faster one joint after the other.
        q, v, a = (np.ascontiguousarray(x) for x in (motion.q, motion.v, motion.a))
        if not joints.is_identity:
            q, v, a = q @ joints.G.T + joints.offset, v @ joints.G.T, a @ joints.G.T
        gravity = np.asfortranarray(joints.force(self._gravity(np.asfortranarray(q))))
        rotor = np.asfortranarray(joints.force(self._rnea(q, v, a)))
        rigid = rotor - (self._rotors @ motion.a.T).T
        levels = (gravity, rigid, rotor, rotor + self.robot.friction.torque(motion.v, gravity))
        return dict(zip(LEVELS, self._at_motors(motion.q, levels), strict=True))

    def _rnea(self, q: Array, v: Array, a: Array) -> Array:
        """Inverse dynamics (K, n) [N m] of Pinocchio's joints."""
        if self._pool is not None:
            return np.asarray(pin.rneaInParallel(1, self._pool, q.T, v.T, a.T)).reshape(q.shape[::-1]).T
        rows = zip(q, v, a, strict=True)
        return np.array([pin.rnea(self._model, self._data, *row) for row in rows]).reshape(q.shape)

    def _at_motors(self, q: Array, levels: tuple[Array, ...]) -> tuple[Array, ...]:
        """Of a rolling robot the motor torques: u of [E -J^T] (u, lambda) = tau, 0 at passive joints."""
        robot = self.robot
        if not robot.config.rolling:
            return levels
        E = robot.actuation_matrix()
        motors = tuple(np.zeros_like(level) for level in levels)
        for k, x in enumerate(q):
            columns = np.hstack([E, -robot.constraint_jacobian(x).T])
            loads = np.column_stack([level[k] for level in levels])
            u = np.linalg.lstsq(columns, loads, rcond=None)[0][: E.shape[1]]
            for torque, load in zip(motors, u.T, strict=True):
                torque[k] = E @ load
        return motors
