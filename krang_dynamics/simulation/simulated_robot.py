"""A plant with everything around it: drivers that hold the last command, sensors, pushes, a wall."""

from dataclasses import dataclass
from math import inf

import numpy as np
import pinocchio as pin

from ..arrays import Array, array
from ..control.drivers import Drivers
from ..errors import ConfigError, InputError, UnknownNameError
from ..robot.model import Robot
from ..robot.payload import Payload
from ..robot.urdf import Urdf
from ..robot.urdf_editing import UrdfDocument
from . import make_plant
from .faults import Faults, Measurement, SensorModel


@dataclass(frozen=True)
class Wall:
    """A compliant plane through `point` [m] in the world; `normal` points towards the robot.

    It acts on one frame only.
    """

    frame: str
    point: Array
    normal: Array
    stiffness: float = 2e4  # [N/m]
    damping: float = 300.0  # [N s/m]

    def __post_init__(self) -> None:
        if not np.linalg.norm(self.normal) > 0:
            raise InputError('the normal of a wall is 0; it must point towards the robot')

    def wrench(self, robot: Robot, q: Array, v: Array) -> Array:
        """(force [N], moment) of the wall at the frame's origin, world axes; it pushes and never pulls."""
        normal = self.normal / np.linalg.norm(self.normal)
        depth = normal @ (self.point - robot.frame_pose(q, self.frame)[:3, 3])
        if depth <= 0:
            return np.zeros(6)
        speed = -normal @ (robot.jacobian(q, self.frame)[:3] @ v)
        force = max(0.0, self.stiffness * depth + self.damping * speed)
        return np.concatenate([force * normal, np.zeros(3)])


class SimulatedRobot:
    """A simulated robot with the interface of a real one: drivers' commands in, measurements out.

    `robot` is the nominal model. The true masses and payloads may differ from it, see set_load().
    """

    def __init__(self, robot: Robot, drivers: Drivers, engine: str, period: float = 1e-3) -> None:
        self.robot = robot
        self.drivers = drivers
        self.period = period  # of one step [s]
        self.sensors = SensorModel(robot)
        self._engine = engine
        self._plant = make_plant(robot, engine)
        self._load: tuple[float, tuple[Payload, ...]] = (1.0, ())
        self._time_before = 0.0  # simulated by earlier plants [s]
        self._command = self._holding(robot.home)  # the last one, which the drivers hold
        self._shares = {a.name: (robot.joint_names.index(a.joint), a.share) for a in robot.config.actuators}
        self._driven = [robot.joint_names.index(name) for name in robot.actuated_joint_names]
        self._push: tuple[str, Array, float, float] | None = None  # frame, wrench, begin and end [s]
        self._wall: Wall | None = None
        self._touched: set[str] = set()  # frames with a wrench in the last step
        self.is_held = False  # by brakes, which prevent all motion

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
        """Start at rest at q [rad] and time 0; the drivers hold the torque of gravity."""
        self._rest(q, 0.0)

    def reset(self, q: Array) -> None:
        """Move to q [rad] at rest, held, without a push; time continues."""
        self._push = None
        self._rest(q, self.time)
        self.is_held = True

    def hold(self) -> None:
        """Engage brakes until the next command; the drivers then give the torque of gravity."""
        self._rest(self._plant.q, self.time)
        self.is_held = True

    def _rest(self, q: Array, time: float) -> None:
        self._plant.reset(q, np.zeros(self.robot.nv))
        self._time_before = time
        self._command = self._holding(q)

    def _holding(self, q: Array) -> Array:
        return self.drivers.command(self.robot.gravity_torque(q), np.zeros(self.robot.nv))

    # -- inputs ----------------------------------------------------------------------------------------

    def receive_command(self, command: Array) -> None:
        """Set the command of the drivers, which they hold until the next one."""
        self._command = array('command', command, (len(self.drivers.names),)).copy()
        self.is_held = False

    def push(self, frame: str, wrench: Array, duration: float = inf, start: float = 0.0) -> None:
        """Apply (force [N], moment [N m]) to a frame, world axes, for a time [s]; replaces the last push.

        It begins at the simulated time `start` [s], at once if that is over.
        """
        if frame not in self._plant.frames:
            raise UnknownNameError('frame', frame, self._plant.frames)
        begin = max(self.time, start)
        self._push = (frame, array('wrench', wrench, (6,)).copy(), begin, begin + duration)

    def end_push(self) -> None:
        """End the present push."""
        self._push = None

    def set_wall(self, wall: Wall | None) -> None:
        """Put up a wall, or remove it."""
        if wall is not None and wall.frame not in self._plant.frames:
            raise UnknownNameError('frame', wall.frame, self._plant.frames)
        self._wall = wall

    def set_load(self, mass_factor: float, payloads: tuple[Payload, ...]) -> None:
        """Set the true model: masses and inertias relative to the nominal ones, and payloads."""
        if mass_factor == self._load[0] and _are_same(payloads, self._load[1]):
            return
        loaded = Robot(self.robot.config, _scaled(self.robot.urdf, mass_factor), payloads)
        plant = make_plant(loaded, self._engine)
        plant.reset(self._plant.q, self._plant.v)
        self._time_before = self.time
        self._plant, self._load = plant, (mass_factor, payloads)

    def set_faults(self, faults: Faults) -> None:
        """Set the faults of sensors and drivers."""
        faults.check(self.robot, self.drivers.names)
        self.sensors.faults = faults

    # -- one period ------------------------------------------------------------------------------------

    def step(self) -> None:
        """Advance by one period under the command that the drivers hold, or under brakes."""
        if self.is_held:
            self._time_before += self.period
            return
        touched = {*([self._push[0]] if self._push else []), *([self._wall.frame] if self._wall else [])}
        for frame in touched | self._touched:
            self._plant.push(frame, self.external_wrench(frame))
        self._touched = touched
        self._plant.step(self.effort()[self._driven], self.period)
        if self._push is not None and self._push[3] <= self.time + 1e-9:
            self._push = None

    def effort(self) -> Array:
        """Torque of the motors over the robot's joints [N m]; a dead driver gives none."""
        torque = self.drivers.torque(self._command, self._plant.v)
        alive = np.ones(self.robot.nv)  # fraction of each joint's torque
        for name in self.sensors.faults.dead_drivers:
            row, share = self._shares[name]
            alive[row] -= share
        return alive * torque

    def external_wrench(self, frame: str) -> Array:
        """(force [N], moment [N m]) of push and wall at a frame's origin, world axes."""
        wrench = np.zeros(6)
        if self._push is not None and self._push[0] == frame and self._push[2] <= self.time + 1e-9:
            wrench += self._push[1]
        if self._wall is not None and self._wall.frame == frame:
            wrench += self._wall.wrench(self.robot, self._plant.q, self._plant.v)
        return wrench

    # -- outputs ---------------------------------------------------------------------------------------

    def measure(self) -> Measurement | None:
        """The measured joint state; None if it is lost."""
        return self.sensors.measure(Measurement(self.time, self._plant.q, self._plant.v, self.effort()))

    def measured_wrench(self, frame: str) -> Array:
        """(force [N], moment [N m]) of the environment on a frame, in the frame's axes."""
        wrench = self.external_wrench(frame)
        if not wrench.any():
            return wrench
        rotation = self.robot.frame_pose(self._plant.q, frame)[:3, :3]
        return np.concatenate([rotation.T @ wrench[:3], rotation.T @ wrench[3:]])

    def imu(self) -> tuple[Array, Array]:
        """Orientation of the IMU (x y z w) in a world with z up, and rate [rad/s] in the IMU's axes."""
        config = self.robot.config.imu
        if config is None:
            raise ConfigError(f'{self.robot.name} has no `imu` in its robot file')
        rotation, twist = self._motion(config.link)
        rotation = rotation @ pin.rpy.rpyToMatrix(*config.mount_rpy)
        up = -np.array(self.robot.config.gravity)
        upright = pin.Quaternion.FromTwoVectors(up, np.array([0.0, 0.0, 1.0])).matrix()
        return _quaternion(upright @ rotation), rotation.T @ twist[3:]

    def odometry(self) -> tuple[Array, Array, Array]:
        """Position [m], orientation (x y z w) and twist in its own axes, of the link `odom.heading_of`."""
        config = self.robot.config.odom
        if config is None:
            raise ConfigError(f'{self.robot.name} has no `odom` in its robot file')
        rotation, twist = self._motion(config.heading_of)
        place = self.robot.frame_pose(self._plant.q, config.heading_of)[:3, 3]
        return place, _quaternion(rotation), np.concatenate([rotation.T @ twist[:3], rotation.T @ twist[3:]])

    def _motion(self, link: str) -> tuple[Array, Array]:
        """Rotation to the world, and twist in world axes, of a link."""
        q, v = self._plant.q, self._plant.v
        return self.robot.frame_pose(q, link)[:3, :3], self.robot.jacobian(q, link) @ v


def _are_same(some: tuple[Payload, ...], others: tuple[Payload, ...]) -> bool:
    """Whether two lists of payloads are equal."""

    def numbers(payload: Payload) -> tuple[object, ...]:
        return payload.frame, payload.mass, payload.com.tolist(), payload.inertia.tolist()

    return [*map(numbers, some)] == [*map(numbers, others)]


def _scaled(urdf: Urdf, factor: float) -> Urdf:
    """The URDF with all masses and inertias multiplied by a factor."""
    if factor <= 0:
        raise InputError(f'mass factor is {factor}; it must be positive')
    document = UrdfDocument(urdf.text)
    document.scale_masses(factor)
    return Urdf(document.text(), urdf.source)


def _quaternion(rotation: Array) -> Array:
    return np.array(pin.Quaternion(rotation).coeffs())


def default_terms(robot: Robot) -> str:
    """Names of the control terms that suit a robot, separated by commas."""
    if robot.config.rolling:
        return 'rolling_base'
    is_driven = all(joint.driven for joint in robot.config.joints.values())
    return 'gravity,friction,computed_torque' if is_driven else 'balance'
