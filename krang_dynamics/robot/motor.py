"""From joint torque to what a motor driver takes, and back: tau = gain * command - drag * v."""

from collections.abc import Sequence

import numpy as np

from ..arrays import Array
from .config import JointConfig, Unit


class Motors:
    """The drivers of all joints; gain [N m per N m, A or V], drag [N m s/rad]; 0 where passive.

    current: tau = k_m N i. voltage: v = R / (k_t N) tau + k_v N q', [pendubot] motor equation, with
    tau the torque on the joint before its friction.
    """

    def __init__(self, joints: Sequence[JointConfig], unit: Unit) -> None:
        self.unit = unit
        pairs = [_gain_and_drag(joint, unit) for joint in joints]
        self.gain = np.array([gain for gain, _ in pairs])
        self.drag = np.array([drag for _, drag in pairs])
        # 0 instead of 1 / 0 keeps passive joints at no command.
        self._per_torque = np.array([1 / gain if gain else 0.0 for gain in self.gain])
        self._per_speed = self.drag * self._per_torque
        self._has_drag = bool(self.drag.any())

    def command(self, tau: Array, v: Array) -> Array:
        """Command [N m, A or V] that gives torque tau [N m] at speed v [rad/s]."""
        command = self._per_torque * tau
        return np.asarray(command + self._per_speed * v if self._has_drag else command)

    def torque(self, command: Array, v: Array) -> Array:
        """Torque [N m] that a command gives at speed v [rad/s]."""
        return np.asarray(self.gain * command - self.drag * v)


def _gain_and_drag(joint: JointConfig, unit: Unit) -> tuple[float, float]:
    if not joint.driven:
        return 0.0, 0.0
    if unit == 'torque':
        return 1.0, 0.0
    motor = joint.motor  # consistency.check has seen to the constants that a unit needs
    assert motor.torque_constant is not None
    if unit == 'current':
        return motor.torque_constant * motor.gear, 0.0
    assert motor.resistance is not None
    assert motor.back_emf is not None
    gain = motor.torque_constant * motor.gear / motor.resistance
    return gain, gain * motor.back_emf * motor.gear
