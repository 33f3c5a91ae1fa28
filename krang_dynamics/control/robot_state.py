"""The robot as a controller or guard measures it: joint states, dynamics, and the torque of a stop."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from ..errors import InputError
from ..robot.model import Robot
from ..safety.joint_buffer import JointBuffer, JointSamples, MissingVelocity
from ..safety.stop_policies import StopTorque
from .drivers import Drivers
from .dynamics import Dynamics
from .sensors import ImuSample, ImuSource, OdomSample, OdomSource


class Measured(Protocol):
    """The part of a step's inputs that measures the robot."""

    time: float
    clock: float
    samples: Sequence[JointSamples]
    imu: Sequence[ImuSample]
    odom: Sequence[OdomSample]


class RobotState:
    """Joint states from all sensors, and the dynamics of the newest one."""

    def __init__(
        self,
        robot: Robot,
        drivers: Drivers,
        missing_velocity: MissingVelocity,
        coriolis: bool = False,
        hardware_compensates_gravity: bool = False,
    ) -> None:
        self.buffer = JointBuffer(robot.joint_names, missing_velocity)
        self.dynamics = Dynamics(robot, coriolis)
        self._coriolis = coriolis
        self._drivers = drivers
        self._imu = None if robot.config.imu is None else ImuSource(robot)
        self._odom = None if robot.config.odom is None else OdomSource(robot)
        self._driven = np.isin(robot.joint_names, drivers.joints).astype(float)
        self._hardware_compensates_gravity = hardware_compensates_gravity

    def take(self, inputs: Measured, refused: list[str]) -> float | None:
        """Merge all samples; returns the increase of the stamps [s], None without a new state."""
        buffer = self.buffer
        buffer.begin_step()
        for sample in inputs.samples:
            reason = buffer.take(self._drivers.joint_samples(sample), inputs.time, inputs.clock)
            if reason is not None:
                refused.append(reason)
        if inputs.imu or inputs.odom:
            self._take_sensors(inputs, refused)
        return buffer.increase

    def _take_sensors(self, inputs: Measured, refused: list[str]) -> None:
        """Joints, or the direction of gravity, from an IMU and from odometry."""
        try:
            for sample in self._sensor_samples(inputs):
                reason = self.buffer.take(sample, inputs.time, inputs.clock)
                if reason is not None:
                    refused.append(reason)
        except InputError as error:
            refused.append(str(error))

    def _sensor_samples(self, inputs: Measured) -> Iterator[JointSamples]:
        for unit in inputs.imu:
            if self._imu is None:
                raise InputError('imu: the robot file has no imu')
            if self._imu.feeds == 'joint':
                yield self._imu.samples(unit)
            else:
                self.dynamics.set_gravity(self._imu.gravity(unit))
        for pose in inputs.odom:
            if self._odom is None:
                raise InputError('odom: the robot file has no odom')
            yield self._odom.samples(pose, self.buffer.q, self.buffer.v)

    def carry(self, robot: Robot) -> None:
        """Use the model of a robot with another payload; gravity stays as it is."""
        gravity = self.dynamics.model_gravity()
        self.dynamics = Dynamics(robot, self._coriolis)
        self.dynamics.set_gravity(gravity)

    def stop_torque(self) -> StopTorque:
        """What a stop can use of the state that the dynamics were updated with."""
        gravity = self.dynamics.gravity
        if self._hardware_compensates_gravity:
            gravity = np.zeros_like(gravity)
        return StopTorque(gravity, self.buffer.v, self.dynamics.A, self._driven)
