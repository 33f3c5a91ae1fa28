"""The robot as a controller or guard sees it: joint states, weight, and the torque of a stop."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..arrays import Array, array
from ..errors import InputError
from ..robot.model import Robot
from ..robot.payload import Payload
from ..safety.joint_buffer import JointBuffer, JointSamples
from ..safety.stop_policies import StopTorque
from .drivers import Drivers
from .dynamics import Dynamics
from .sensors import ImuSample, ImuSource, OdomSample, OdomSource
from .settings import Settings

LARGEST_GRAVITY = 30.0  # more is no measurement, and would throw the arm up [m/s2]


class Measured(Protocol):
    """What a step brings of the robot's state."""

    time: float
    clock: float
    samples: Sequence[JointSamples]
    imu: Sequence[ImuSample]
    odom: Sequence[OdomSample]


@dataclass(frozen=True)
class Load:
    """What weighs on the robot: bodies that it carries, None where they stay, and gravity [m/s2]."""

    robot: Robot | None
    gravity: Array


class RobotState:
    """Joint states from whatever measures them, and the dynamics of the newest one."""

    def __init__(self, robot: Robot, settings: Settings, drivers: Drivers, coriolis: bool = False) -> None:
        self.buffer = JointBuffer(robot.joint_names, settings.missing_velocity)
        self.dynamics = Dynamics(robot, coriolis)
        self._robot = robot
        self._coriolis = coriolis
        self._drivers = drivers
        self._imu = None if robot.config.imu is None else ImuSource(robot)
        self._odom = None if robot.config.odom is None else OdomSource(robot)
        self._driven = np.isin(robot.joint_names, drivers.joints).astype(float)
        self._is_weightless = settings.hardware_compensates_gravity  # for the motors

    # -- states ----------------------------------------------------------------------------------------

    def take(self, inputs: Measured, refused: list[str]) -> float | None:
        """Merge all that has come; how far the stamps went on [s], None without a new state."""
        buffer = self.buffer
        buffer.begin_step()
        for sample in inputs.samples:
            reason = buffer.take(self._drivers.joint_samples(sample), inputs.time, inputs.clock)
            if reason is not None:
                refused.append(reason)
        if inputs.imu or inputs.odom:
            self._sense(inputs, refused)
        return buffer.went_on

    def _sense(self, inputs: Measured, refused: list[str]) -> None:
        """Joints, or the direction of gravity, from an inertial unit and from odometry."""
        try:
            for sample in self._sensed(inputs):
                reason = self.buffer.take(sample, inputs.time, inputs.clock)
                if reason is not None:
                    refused.append(reason)
        except InputError as error:
            refused.append(str(error))

    def _sensed(self, inputs: Measured) -> Iterator[JointSamples]:
        for unit in inputs.imu:
            if self._imu is None:
                raise InputError('imu: the robot file speaks of none')
            if self._imu.feeds == 'joint':
                yield self._imu.samples(unit)
            else:
                self.dynamics.set_gravity(self._imu.gravity(unit))
        for pose in inputs.odom:
            if self._odom is None:
                raise InputError('odom: the robot file speaks of none')
            yield self._odom.samples(pose, self.buffer.q, self.buffer.v)

    # -- weight ----------------------------------------------------------------------------------------

    def load(self, payloads: Sequence[Payload] | None, gravity: Array | None) -> Load:
        """A load that can be carried, or KrangError; None leaves payloads or gravity as they are."""
        robot = None if payloads is None else self._robot.carrying(payloads)
        return Load(robot, self.dynamics.model_gravity() if gravity is None else _checked(gravity))

    def carry(self, load: Load) -> None:
        """From now on; without a payload the torques are those of before, to the last bit."""
        if load.robot is not None:
            self.dynamics = Dynamics(load.robot, self._coriolis)
        self.dynamics.set_gravity(load.gravity)

    def stop_torque(self) -> StopTorque:
        """What a stop can use of the state that the dynamics were updated with."""
        gravity = self.dynamics.gravity
        if self._is_weightless:
            gravity = np.zeros_like(gravity)
        return StopTorque(gravity, self.buffer.v, self.dynamics.A, self._driven)


def _checked(gravity: Array) -> Array:
    """Gravity [m/s2] that can be meant."""
    gravity = array('gravity', gravity, (3,))
    size = float(np.linalg.norm(gravity))
    if size > LARGEST_GRAVITY:
        raise InputError(f'gravity is {size:.4g} m/s2; at most {LARGEST_GRAVITY:g} can be meant')
    return gravity
