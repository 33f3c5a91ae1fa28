"""Conversion between joints and motor drivers, as the robot file's `actuators` describe it."""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from math import isclose, nan
from typing import TYPE_CHECKING

import numpy as np

from .. import kernels
from ..arrays import Array, Indices, is_finite
from ..errors import InputError, UnknownNameError
from ..robot.config import ActuatorConfig, Unit
from ..robot.model import Robot
from ..robot.motor import Motors
from ..safety.joint_buffer import MOST_LISTS, JointSamples

if TYPE_CHECKING:
    from .settings import Settings


class Drivers:
    """The drivers of the commanded joints; `names` is their order in a command.

    An entry of command_joints is a joint, meaning all its drivers, or a driver. A name that is both means
    the joint. The unit is the robot's unless another is given.
    """

    def __init__(self, robot: Robot, command_joints: Sequence[str], unit: Unit | None = None) -> None:
        chosen = _chosen(robot.config.actuators, command_joints)
        self.names = tuple(actuator.name for actuator in chosen)
        self.joints = tuple(dict.fromkeys(actuator.joint for actuator in chosen))
        self._reader = _Reader(robot)
        self.are_joints = self._reader.is_identity  # then messages need no conversion
        joints = robot.config.joints
        motors = Motors(joints, unit or robot.config.command_unit)
        self.unit = motors.unit
        # Each driver gives tau = gain * command - drag * v at the joint.
        self._rows = np.array([robot.joint_names.index(a.joint) for a in chosen], dtype=np.intp)
        gain = np.array([a.sign * self.unit.gain(joints[a.joint].motor, a.ratio) for a in chosen])
        drag = motors.drag[self._rows]
        self._per_torque = np.array([a.share for a in chosen]) / gain
        self._per_speed = drag * (1 / gain)  # speed is not shared
        self._gain = np.zeros((robot.nv, len(chosen)))
        self._gain[self._rows, np.arange(len(chosen))] = gain
        self._drag = np.bincount(self._rows, drag, robot.nv)
        limit = np.array([self.unit.limit(joints[a.joint].motor) for a in chosen])
        self.is_limited = bool(np.isfinite(limit).any())
        self._limit = limit

    def command(self, torque: Array, v: Array) -> Array:
        """Command in `unit` over `names` for torque [N m] and v [rad/s] over the robot's joints."""
        return kernels.command(torque, v, self._rows, self._per_torque, self._per_speed, self._limit)

    def torque(self, command: Array, v: Array) -> Array:
        """Torque [N m] over the robot's joints that a command over `names` gives; 0 at all others."""
        return np.asarray(self._gain.dot(self._possible(command)) - self._drag * v)

    def joint_samples(self, sample: JointSamples) -> JointSamples:
        """A message by drivers' names as one by joints': q = sign * q_driver / ratio + offset.

        Effort is N m at the driver's shaft. Other names stay unchanged, and so does a message with a
        repeated name or with fields of wrong lengths, which the JointBuffer refuses.
        """
        return self._reader.joint_samples(sample)

    def _possible(self, command: Array) -> Array:
        """Within the unit's limit; 0 in place of numbers that are not finite."""
        if not is_finite(command):
            command = np.where(np.isfinite(command), command, 0.0)
        if not self.is_limited:
            return command
        return np.minimum(np.maximum(command, -self._limit), self._limit)


@dataclass(frozen=True)
class _Translation:
    """How to convert a message with drivers' names into one with joints' names."""

    names: tuple[str, ...]
    rows: Indices
    scale: Array  # joint turns per driver turn, signed
    offset: Array  # [rad] or [m]
    effort_rows: Indices  # all drivers of the first joint, then all of the second, ...
    effort_scale: Array  # NaN where one of a joint's drivers is missing
    effort_start: Indices  # where each joint's drivers begin

    def is_identity(self, names: tuple[str, ...]) -> bool:
        plain = (self.scale == 1).all() and (self.offset == 0).all() and (self.effort_scale == 1).all()
        return bool(plain) and self.names == names


def drivers_of(settings: 'Settings', robot: Robot) -> Drivers:
    """The drivers of the commanded joints, in the order and unit of the settings."""
    return Drivers(robot, commanded_joints(settings, robot), settings.command_unit)


def commanded_joints(settings: 'Settings', robot: Robot) -> tuple[str, ...]:
    """Joints or drivers that get torque: those of command_joints, or all driven ones whose only_if holds."""
    ready = {
        a.joint for a in robot.config.actuators if a.only_if is None or getattr(settings, a.only_if, False)
    }
    available = tuple(name for name in robot.actuated_joint_names if name in ready)
    if settings.command_joints is None and available:
        return available
    if not settings.command_joints:
        raise InputError(
            f'command_joints: no joint gets torque; possible are {", ".join(available) or "none"}'
        )
    joint_of = {a.name: a.joint for a in robot.config.actuators}
    for name in settings.command_joints:
        if name not in available and joint_of.get(name) not in available:
            raise InputError(f'command_joints: {name!r} gets no torque; possible are {", ".join(available)}')
    return tuple(settings.command_joints)


class _Reader:
    """Converts drivers' messages; the conversion is computed once for each list of names."""

    def __init__(self, robot: Robot) -> None:
        config = robot.config
        self._actuators = {actuator.name: actuator for actuator in config.actuators}
        self._joints = config.joints
        self._translations: dict[tuple[str, ...], _Translation | None] = {}
        self._names: Sequence[str] = ()  # of the last message, and its conversion
        self._translation: _Translation | None = None
        # If the message of all drivers needs no conversion, no other does.
        self.is_identity = self._translate(tuple(self._actuators)) is None

    def joint_samples(self, sample: JointSamples) -> JointSamples:
        if self.is_identity:
            return sample
        if sample.names is not self._names or not isinstance(sample.names, tuple):
            self._names, self._translation = sample.names, self._find(tuple(sample.names))
        new, count = self._translation, len(sample.names)
        position, velocity, effort = sample.position, sample.velocity, sample.effort
        if new is None or len(position) != count:
            return sample
        if len(velocity) not in (0, count) or len(effort) not in (0, count):
            return sample
        if len(velocity):
            velocity = velocity[new.rows] * new.scale
        if len(effort):
            effort = np.add.reduceat(effort[new.effort_rows] * new.effort_scale, new.effort_start)
        position = position[new.rows] * new.scale + new.offset
        return JointSamples(new.names, position, velocity, effort, sample.stamp, sample.arrival)

    def _find(self, names: tuple[str, ...]) -> _Translation | None:
        if names not in self._translations:
            if len(self._translations) >= MOST_LISTS:  # more than any set of publishers has
                self._translations.clear()
            self._translations[names] = self._translate(names)
        return self._translations[names]

    def _translate(self, names: tuple[str, ...]) -> _Translation | None:
        """The conversion of a message with these names; None if it needs none."""
        places = {name: i for i, name in enumerate(names)}
        if len(places) < len(names):
            return None
        groups = [group for name in names if (group := self._group(name, places))]
        first = [group[0] for group in groups]
        drivers = [actuator for group in groups for actuator in group]
        translation = _Translation(
            tuple(actuator.joint for actuator in first),
            np.array([places[a.name] for a in first], dtype=np.intp),
            np.array([a.sign / a.ratio for a in first]),
            np.array([a.offset for a in first]),
            np.array([places[a.name] for a in drivers], dtype=np.intp),
            np.array([scale for group in groups for scale in _effort_scales(group)]),
            np.cumsum([0, *map(len, groups)], dtype=np.intp)[:-1],
        )
        return None if translation.is_identity(names) else translation

    def _group(self, name: str, names: Container[str]) -> list[ActuatorConfig]:
        """All drivers of the joint of which `name` is the first driver in the message; else none."""
        actuator = self._actuators.get(name)
        unchanged = [ActuatorConfig(name, name)]
        if actuator is None:
            return unchanged
        if self._joints[actuator.joint].state != 'joint_states':
            # The joint's state has another source; an unknown name is ignored later.
            return [] if name in self._joints else unchanged
        present = [a for a in self._actuators.values() if a.joint == actuator.joint and a.name in names]
        return present if present[0] is actuator else []


def _effort_scales(group: Sequence[ActuatorConfig]) -> list[float]:
    """Torque at the joint per torque of each driver; NaN where the shares do not add up to 1."""
    is_whole = isclose(sum(actuator.share for actuator in group), 1.0)
    return [actuator.sign * actuator.ratio if is_whole else nan for actuator in group]


def _chosen(actuators: Sequence[ActuatorConfig], command_joints: Sequence[str]) -> list[ActuatorConfig]:
    """The drivers of command_joints, in its order; all of a joint or none."""
    by_name = {actuator.name: actuator for actuator in actuators}
    chosen: list[ActuatorConfig] = []
    for entry in command_joints:
        of_joint = [actuator for actuator in actuators if actuator.joint == entry]
        if not of_joint and entry not in by_name:
            valid = dict.fromkeys([*(actuator.joint for actuator in actuators), *by_name])
            raise UnknownNameError('driven joint or driver in command_joints:', entry, valid)
        for actuator in of_joint or [by_name[entry]]:
            if actuator in chosen:
                raise InputError(
                    f'command_joints: {entry!r} occurs twice; name each joint once, or each of its drivers'
                )
            chosen.append(actuator)
    for actuator in actuators:
        if actuator not in chosen and any(other.joint == actuator.joint for other in chosen):
            raise InputError(
                f'command_joints: driver {actuator.name!r} is missing; joint {actuator.joint!r} needs all '
                'of its drivers'
            )
    return chosen
