"""Units of motor drivers, and the conversion between joint torque and drivers' commands."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from ..arrays import Array
from ..errors import ConfigError, UnknownNameError
from .config import JointConfig, MotorConfig


@dataclass(frozen=True)
class DriverUnit:
    """A unit of drivers' commands: tau = gain * command - drag * v, tau [N m] and v [rad/s] at the joint.

    `gain` gets the motor and the driver's turns per joint turn.
    """

    name: str  # in command_unit
    symbol: str
    constants: tuple[str, ...]  # entries of `motor` that every driven joint must have
    gain: Callable[[MotorConfig, float], float]
    drag: Callable[[MotorConfig], float] = lambda motor: 0.0  # [N m s/rad]
    limit: Callable[[MotorConfig], float] = lambda motor: inf  # largest command


def _voltage_gain(motor: MotorConfig, ratio: float = 1.0) -> float:
    return motor.constant('torque_constant') * motor.gear / motor.constant('resistance')


# To add a unit, add an object here. `voltage` is the motor equation of [pendubot],
# V = R / (k_t N) tau + k_v N v, where tau is the torque on the joint before its friction.
UNITS: dict[str, DriverUnit] = {
    unit.name: unit
    for unit in (
        DriverUnit('torque', 'N m', (), gain=lambda motor, ratio: ratio),  # at the driver's shaft
        DriverUnit(
            'current',
            'A',
            ('torque_constant',),
            gain=lambda motor, ratio: motor.constant('torque_constant') * motor.gear,
        ),
        DriverUnit(
            'voltage',
            'V',
            ('torque_constant', 'back_emf', 'resistance', 'supply'),
            gain=_voltage_gain,
            drag=lambda motor: _voltage_gain(motor) * motor.constant('back_emf') * motor.gear,
            limit=lambda motor: motor.constant('supply'),
        ),
    )
}


def driver_unit(name: str, joints: Mapping[str, JointConfig]) -> DriverUnit:
    """The unit of that name, if the motors of all driven joints declare the constants that it needs."""
    if name not in UNITS:
        raise UnknownNameError('unit of drivers', name, UNITS)
    unit = UNITS[name]
    for joint_name, joint in joints.items():
        for constant in unit.constants if joint.driven else ():
            if getattr(joint.motor, constant) is None:
                raise ConfigError(f'joints.{joint_name}.motor.{constant} is missing; {name} commands need it')
    return unit


class Motors:
    """Gain [N m per unit of the command] and drag [N m s/rad] of all joints; 0 for passive joints."""

    def __init__(self, joints: Mapping[str, JointConfig], unit: str) -> None:
        self.unit = driver_unit(unit, joints)
        self.gain = np.array([self.unit.gain(j.motor, 1.0) if j.driven else 0.0 for j in joints.values()])
        self.drag = np.array([self.unit.drag(j.motor) if j.driven else 0.0 for j in joints.values()])
        # 0 instead of 1 / 0 keeps the command of passive joints at 0.
        self._per_torque = np.array([1 / gain if gain else 0.0 for gain in self.gain])
        self._per_speed = self.drag * self._per_torque
        self._has_drag = bool(self.drag.any())

    def command(self, tau: Array, v: Array) -> Array:
        """Command in the drivers' unit that gives torque tau [N m] at speed v [rad/s]."""
        command = self._per_torque * tau
        return np.asarray(command + self._per_speed * v if self._has_drag else command)

    def torque(self, command: Array, v: Array) -> Array:
        """Torque [N m] that a command gives at speed v [rad/s]."""
        return np.asarray(self.gain * command - self.drag * v)
