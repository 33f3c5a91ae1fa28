"""Torques that the model predicts for a motion, in four levels from gravity alone to the full model."""

import numpy as np

from ...arrays import Array
from ...robot.model import Robot
from .filtering import FilteredMotion
from .rigid_torques import RigidTorques

LEVELS = ('gravity', 'inverse_dynamics', 'rotor', 'friction')


class Predictor:
    """Evaluates a robot along motions, without the input checks of the single-state functions of Robot."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self._rigid = RigidTorques(robot.model)
        self._rotors = robot.rotor_inertia()

    def torques(self, motion: FilteredMotion) -> dict[str, Array]:
        """By level: Q; A a + C v + Q without rotor inertia; with it; with friction. Each (K, n) [N m]."""
        joints, q, v, a = self.robot.joint_map, motion.q, motion.v, motion.a
        if not joints.is_identity:
            q, v, a = q @ joints.G.T + joints.offset, v @ joints.G.T, a @ joints.G.T
        gravity, rigid = (np.asfortranarray(joints.force(tau)) for tau in self._rigid(q, v, a))
        rotor = rigid + (self._rotors @ motion.a.T).T
        levels = (gravity, rigid, rotor, rotor + self.robot.friction.torque(motion.v, gravity))
        return dict(zip(LEVELS, self._at_motors(motion.q, levels), strict=True))

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
