"""The machine around a plant: drivers that hold the last command, sensors, pushes, a wall."""

from math import inf
from typing import Protocol
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

from ..arrays import Array, array
from ..errors import ConfigError, InputError, UnknownNameError
from ..robot.model import Robot
from ..robot.payload import Payload
from ..robot.urdf import Urdf
from .engines import make_plant
from .faults import Faults, Measurement, Sensors
from .wall import Wall


class Drivers(Protocol):
    """Between the commands of motor drivers and joint torque."""

    names: tuple[str, ...]

    def command(self, torque: Array, v: Array) -> Array: ...

    def torque(self, command: Array, v: Array) -> Array: ...


class SimulatedRobot:
    """A simulated robot behind the same numbers as a real one: drivers' commands in, measurements out.

    `robot` is what everybody believes it to be; masses and payload may be others in truth.
    """

    def __init__(self, robot: Robot, drivers: Drivers, engine: str, period: float = 1e-3) -> None:
        self.robot = robot
        self.drivers = drivers
        self.period = period  # of one step [s]
        self.sensors = Sensors(robot)
        self._engine = engine
        self._plant = make_plant(robot, engine)
        self._truth: tuple[float, tuple[Payload, ...]] = (1.0, ())
        self._time_before = 0.0  # of plants that were replaced [s]
        self._command = self._holding(robot.home)  # what the drivers hold
        self._parts = {a.name: (robot.joint_names.index(a.joint), a.share) for a in robot.config.actuators}
        self._driven = [robot.joint_names.index(name) for name in robot.actuated_joint_names]
        self._push: tuple[str, Array, float] | None = None  # frame, wrench, and when it ends [s]
        self._wall: Wall | None = None
        self._touched: set[str] = set()  # frames on which something acted in the last step

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return self._time_before + self._plant.time

    @property
    def q(self) -> Array:
        return self._plant.q

    @property
    def v(self) -> Array:
        return self._plant.v

    def start_at(self, q: Array) -> None:
        """Stand still at q [rad] and time 0, held against gravity as by a controller before."""
        self._plant.reset(q, np.zeros(self.robot.nv))
        self._command = self._holding(q)
        self._time_before = 0.0

    def _holding(self, q: Array) -> Array:
        return self.drivers.command(self.robot.gravity_torque(q), np.zeros(self.robot.nv))

    # -- what acts on it -------------------------------------------------------------------------------

    def hear(self, command: Array) -> None:
        """A command for the drivers, which they hold until the next; InputError where it is none."""
        self._command = array('command', command, (len(self.drivers.names),)).copy()

    def push(self, frame: str, wrench: Array, duration: float = inf) -> None:
        """(force [N], moment [N m]) on a frame, world axes, for a time [s]; it ends the push before."""
        if frame not in self._plant.frames:
            raise UnknownNameError('frame', frame, self._plant.frames)
        self._push = (frame, array('wrench', wrench, (6,)).copy(), self.time + duration)

    def let_go(self) -> None:
        """End the push."""
        self._push = None

    def lean_on(self, wall: Wall | None) -> None:
        """From now on there is this wall, or none."""
        if wall is not None and wall.frame not in self._plant.frames:
            raise UnknownNameError('frame', wall.frame, self._plant.frames)
        self._wall = wall

    def be(self, mass_factor: float, payloads: tuple[Payload, ...]) -> None:
        """From now on every mass is so many times what is believed, and these bodies are carried."""
        if mass_factor == self._truth[0] and _are_same(payloads, self._truth[1]):
            return
        truth = Robot(self.robot.config, _scaled(self.robot.urdf, mass_factor), payloads)
        plant = make_plant(truth, self._engine)
        plant.reset(self._plant.q, self._plant.v)
        self._time_before = self.time
        self._plant, self._truth = plant, (mass_factor, payloads)

    def suffer(self, faults: Faults) -> None:
        """From now on sensors and drivers have these faults."""
        faults.check(self.robot, self.drivers.names)
        self.sensors.faults = faults

    # -- one period ------------------------------------------------------------------------------------

    def step(self) -> None:
        """Move on by one period under the command that the drivers hold."""
        touched = {*([self._push[0]] if self._push else []), *([self._wall.frame] if self._wall else [])}
        for frame in touched | self._touched:
            self._plant.push(frame, self.external_wrench(frame))
        self._touched = touched
        self._plant.step(self.effort()[self._driven], self.period)
        if self._push is not None and self._push[2] <= self.time + 1e-9:
            self._push = None

    def effort(self) -> Array:
        """Torque of the motors over the robot's joints [N m]; a dead driver neither drives nor brakes."""
        torque = self.drivers.torque(self._command, self._plant.v)
        alive = np.ones(self.robot.nv)  # part of each joint's torque
        for name in self.sensors.faults.dead_drivers:
            row, share = self._parts[name]
            alive[row] -= share
        return alive * torque

    def external_wrench(self, frame: str) -> Array:
        """(force [N], moment [N m]) of push and wall on a frame's origin, world axes."""
        wrench = np.zeros(6)
        if self._push is not None and self._push[0] == frame:
            wrench += self._push[1]
        if self._wall is not None and self._wall.frame == frame:
            wrench += self._wall.wrench(self.robot, self._plant.q, self._plant.v)
        return wrench

    # -- what is measured ------------------------------------------------------------------------------

    def measure(self) -> Measurement | None:
        """Joint sensors; None where the message is lost."""
        return self.sensors.measure(Measurement(self.time, self._plant.q, self._plant.v, self.effort()))

    def measured_wrench(self, frame: str) -> Array:
        """(force [N], moment [N m]) of the surroundings on a frame, in its own axes."""
        wrench = self.external_wrench(frame)
        if not wrench.any():
            return wrench
        rotation = self.robot.frame_pose(self._plant.q, frame)[:3, :3]
        return np.concatenate([rotation.T @ wrench[:3], rotation.T @ wrench[3:]])

    def imu(self) -> tuple[Array, Array]:
        """Orientation (x y z w, world with z up from unit) and rate [rad/s] in the unit's axes."""
        config = self.robot.config.imu
        if config is None:
            raise ConfigError(f'{self.robot.name} has no inertial unit')
        rotation, twist = self._motion(config.link)
        rotation = rotation @ pin.rpy.rpyToMatrix(*config.mount_rpy)
        up = -np.array(self.robot.config.gravity)
        upright = pin.Quaternion.FromTwoVectors(up, np.array([0.0, 0.0, 1.0])).matrix()
        return _quaternion(upright @ rotation), rotation.T @ twist[3:]

    def odometry(self) -> tuple[Array, Array, Array]:
        """Position [m], orientation (x y z w) and twist in its own axes, of the link that odometry sees."""
        config = self.robot.config.odom
        if config is None:
            raise ConfigError(f'{self.robot.name} has no odometry')
        rotation, twist = self._motion(config.heading_of)
        place = self.robot.frame_pose(self._plant.q, config.heading_of)[:3, 3]
        return place, _quaternion(rotation), np.concatenate([rotation.T @ twist[:3], rotation.T @ twist[3:]])

    def _motion(self, link: str) -> tuple[Array, Array]:
        """Rotation to the world, and twist in world axes, of a link."""
        q, v = self._plant.q, self._plant.v
        return self.robot.frame_pose(q, link)[:3, :3], self.robot.jacobian(q, link) @ v


def _are_same(some: tuple[Payload, ...], others: tuple[Payload, ...]) -> bool:
    """Whether the same bodies are carried."""

    def numbers(payload: Payload) -> tuple[object, ...]:
        return payload.frame, payload.mass, payload.com.tolist(), payload.inertia.tolist()

    return [*map(numbers, some)] == [*map(numbers, others)]


def _scaled(urdf: Urdf, factor: float) -> Urdf:
    """The same robot with every mass and inertia so many times as large."""
    if factor <= 0:
        raise InputError(f'mass factor is {factor}; it must be positive')
    document = ElementTree.fromstring(urdf.text)
    for inertial in document.iter('inertial'):
        for element in (*inertial.iter('mass'), *inertial.iter('inertia')):
            for key, value in element.attrib.items():
                element.set(key, repr(float(value) * factor))
    return Urdf(ElementTree.tostring(document, encoding='unicode'))


def _quaternion(rotation: Array) -> Array:
    return np.array(pin.Quaternion(rotation).coeffs())
