"""The robot of one run: its true model, drivers and sensors, disturbed as drawn."""

from dataclasses import replace
from math import exp, inf

import numpy as np

from ...arrays import Array
from ...control.builder import gravity_of, loaded
from ...control.drivers import Drivers
from ...control.settings import Settings
from ...errors import KrangError
from ...robot.model import Robot
from ...robot.payload import Payload
from ...robot.urdf import Urdf
from ...robot.urdf_editing import UrdfDocument
from ...simulation.faults import Faults, Measurement, SensorModel
from ...simulation.pinocchio_plant import PinocchioPlant
from ...simulation.simulated_robot import Wall
from .campaign_plan import Conditions, any_pose, hands, is_passive

STEP = 4e-3  # longest step of the plant, ...
CONTACT_STEP = 2e-3  # ... and with a wall [s]
TILT, TILTED = 0.02, 0.2  # of a robot that balances: always, and in the farthest start pose [rad]
NOISY = 200.0  # acceleration by a torque noise of 1, if that is less than the effort limit [rad/s2, m/s2]
EARLIEST = 1.0  # time of a fault or push [s]
WATCHED = 3.5  # time left after it [s]


class Diverged(Exception):
    """The robot runs away so fast that its simulation ends."""


class DisturbedRobot:
    """A simulated robot that brakes hold until the first command; drivers hold the last one.

    `robot` is the model that the controller knows. Driven joints without a driver are held in their place.
    """

    def __init__(
        self, robot: Robot, drivers: Drivers, conditions: Conditions, duration: float, home: Array
    ) -> None:
        self.robot, self.drivers, self.conditions = robot, drivers, conditions
        self.commanded = np.isin(robot.joint_names, drivers.joints).astype(float)  # 1 where torque is given
        self._driven = [robot.joint_names.index(name) for name in robot.actuated_joint_names]
        self.true = true_robot(robot, conditions)
        self.begin = fault_time(conditions, duration)
        self.start = self._start_pose(home)
        has_wall = 'wall' in conditions.values
        self.plant = PinocchioPlant(
            self.true, timestep=CONTACT_STEP if has_wall else STEP, end_stops=self._end_stops()
        )
        self.plant.reset(self.start, np.zeros(robot.nv))
        self.time = 0.0
        self.is_held = True
        self.contact = 0.0  # force on the wall [N]
        self.wall = self._wall() if has_wall else None
        self.torque = robot.gravity_torque(self.start) * self.commanded  # of the motors [N m]
        self._command = np.zeros(len(drivers.names))
        self._noise = conditions.dice('torque_noise')
        self._noisiest = self.commanded * np.minimum(
            robot.effort_limits, NOISY * np.diag(robot.mass_matrix(self.start))
        )
        self._set_drivers()
        self._set_push()
        self._set_sensors()

    # -- what is drawn ---------------------------------------------------------------------------------

    def _start_pose(self, home: Array) -> Array:
        robot, share = self.robot, self.conditions.get('start')
        dice = self.conditions.dice('start')
        if robot.config.rolling:
            return home
        if is_passive(robot):  # exactly upright, it would need no control
            return home + (TILT + share * TILTED) * dice.uniform(-1, 1, robot.nv)
        pose = home + share * self.commanded * (any_pose(robot, dice) - home)
        return np.asarray(pose)

    def _end_stops(self) -> tuple[Array, Array]:
        robot = self.robot
        is_fixed = np.isin(robot.joint_names, robot.actuated_joint_names) & (self.commanded == 0)
        return np.where(is_fixed, self.start, robot.lower), np.where(is_fixed, self.start, robot.upper)

    def _hand(self, name: str) -> str:
        return _any_hand(self.robot, self.conditions.dice(f'{name} hand'))

    def _wall(self) -> Wall:
        """A wall in front of a hand, in a random direction."""
        frame, distance = self._hand('wall'), self.conditions.get('wall')
        normal = _direction(self.conditions.dice('wall'))
        place = self.robot.frame_pose(self.start, frame)[:3, 3]
        return Wall(frame, place - distance * normal, normal)

    def _set_push(self) -> None:
        size, dice = self.conditions.get('push'), self.conditions.dice('push')
        force = size * _direction(dice)
        if self.robot.config.rolling:
            force = force * (1.0, 1.0, 0.0)
        self._push = (self._hand('push'), np.concatenate([force, np.zeros(3)]))
        self._push_end = self.begin + float(dice.uniform(0.05, 0.5)) if size else -inf

    def _set_drivers(self) -> None:
        """Gain, largest torque [N m] and since when [s]."""
        values, dice = self.conditions.values, self.conditions.dice('driver')
        joint = self.robot.joint_names.index(
            self.drivers.joints[int(dice.integers(len(self.drivers.joints)))]
        )
        self._gain = np.ones(self.robot.nv)
        self._largest = np.full(self.robot.nv, inf)
        self._weak: int | None = None
        self._is_too_weak = False  # whether the weak driver was weaker than Q
        self._driver_begin = 0.0 if 'wrong_sign' in values else self.begin
        if 'wrong_sign' in values:
            self._gain[joint] = -1.0
        elif 'dead_driver' in values:
            self._gain[joint] = 0.0
        elif 'weak_driver' in values:
            self._weak = joint
            self._largest[joint] = values['weak_driver'] * self.robot.effort_limits[joint]

    def _set_sensors(self) -> None:
        values = self.conditions.values
        self._always = Faults(
            position_noise=values.get('position_noise', 0.0),
            velocity_noise=values.get('velocity_noise', 0.0),
            quantisation=values.get('quantisation', 0.0),
        )
        seed = int(self.conditions.dice('sensors').integers(2**31))
        self.sensors = SensorModel(self.robot, self._always, seed)
        dice = self.conditions.dice('sensor joint')
        self._sensor_joint = int(dice.integers(self.robot.nv))
        self._shift = values.get('jump', 0.0) * float(dice.choice([-1, 1]))

    # -- what is beyond the control of any controller --------------------------------------------------

    def beyond(self, now: float) -> str:
        """A driver that turns the other way, is dead or was weaker than Q, or a joint without new states."""
        values = self.conditions.values
        if 'wrong_sign' in values:
            return 'wrong_sign'
        if now < self.begin:
            return ''
        if 'dead_driver' in values:
            return 'dead_driver'
        if now < self.begin + values.get('frozen_sensor', 0.0):
            return 'frozen_sensor'
        if self._weak is not None and not self._is_too_weak:
            weight = abs(self.true.gravity_torque(self.plant.q)[self._weak])
            self._is_too_weak = bool(self._largest[self._weak] < weight)
        return 'weak_driver' if self._is_too_weak else ''

    # -- motion ----------------------------------------------------------------------------------------

    def receive(self, command: Array) -> None:
        """A command of the guard; it releases the brakes."""
        self._command, self.is_held = command, False

    @property
    def is_pushed(self) -> bool:
        """Whether something outside of the robot acts on it."""
        return self.contact > 0 or self.begin <= self.time < self._push_end

    def advance(self, time: float) -> None:
        """Move until a time [s]."""
        h = time - self.time
        if h <= 1e-9:
            return
        self.time = time
        if self.is_held:
            return
        if self.wall is not None:
            parts = max(1, round(h / CONTACT_STEP))
            for _ in range(parts):
                self._touch(self.wall)
                self._move(h / parts)
        else:
            self._move(h)

    def _touch(self, wall: Wall) -> None:
        wrench = wall.wrench(self.true, self.plant.q, self.plant.v)
        self.contact = float(np.linalg.norm(wrench[:3]))
        self.plant.push(wall.frame, wrench)

    def _move(self, h: float) -> None:
        frame, wrench = self._push
        if self._push_end > 0 and self.wall is None:
            self.plant.push(frame, wrench if self.begin <= self.time < self._push_end else np.zeros(6))
        self.torque = self._motor_torque(h)
        try:
            self.plant.step(self.torque[self._driven], h)
        except KrangError as error:
            raise Diverged(str(error)) from None

    def _motor_torque(self, h: float) -> Array:
        torque = self.drivers.torque(self._command, self.plant.v)
        noise, lag = self.conditions.get('torque_noise'), self.conditions.get('torque_lag')
        if noise:
            torque += noise * self._noisiest * self._noise.normal(size=len(torque))
        if lag:
            torque = torque + exp(-h / lag) * (self.torque - torque)
        if self.time >= self._driver_begin:
            torque = self._gain * np.minimum(np.maximum(torque, -self._largest), self._largest)
        return torque

    # -- sensors ---------------------------------------------------------------------------------------

    def measure(self) -> Measurement | None:
        """The measured state; None if there is none."""
        values, now, joint = self.conditions.values, self.time, self._sensor_joint
        self.sensors.faults = self._faults(now)
        measured = self.sensors.measure(Measurement(now, self.plant.q, self.plant.v, self.torque))
        if measured is None or self.begin <= now < self.begin + values.get('outage', 0.0):
            return None
        if self._shift and now >= self.begin:
            measured.q[joint] += self._shift
        return measured

    def _faults(self, now: float) -> Faults:
        values, name = self.conditions.values, (self.robot.joint_names[self._sensor_joint],)
        faults = self._always
        if self.begin <= now < self.begin + values.get('frozen_sensor', 0.0):
            faults = replace(faults, frozen=name)
        if self.begin <= now < self.begin + values.get('dead_sensor', 0.0):
            faults = replace(faults, nan=name)
        return faults


def fault_time(conditions: Conditions, duration: float) -> float:
    """When faults and pushes of a run begin [s]."""
    return float(conditions.dice('time').uniform(EARLIEST, max(EARLIEST, duration - WATCHED)))


def as_set_up(robot: Robot, settings: Settings) -> Robot:
    """The robot with the payloads and the gravity of these settings."""
    robot = loaded(settings, robot)
    return robot if settings.gravity is None else robot.with_gravity(gravity_of(settings, robot))


def true_robot(robot: Robot, conditions: Conditions) -> Robot:
    """The robot with errors of masses, inertias, friction and rotors, and with an unknown payload."""
    values = conditions.values
    if not {'mass', 'inertia', 'friction', 'rotor', 'payload'} & set(values):
        return robot
    config, urdf = robot.config, robot.urdf
    if 'mass' in values or 'inertia' in values:
        dice, document = conditions.dice('mass'), UrdfDocument(urdf.text)
        for link in urdf.links.values():
            mass = 1 + values.get('mass', 0.0) * dice.uniform(-1, 1)
            inertia = mass * (1 + values.get('inertia', 0.0) * dice.uniform(-1, 1))
            if link.mass:
                document.set_inertia(link.name, mass * link.mass, link.com, inertia * link.inertia)
        urdf = Urdf(document.text(), urdf.source)
    if 'friction' in values:
        scale, friction = values['friction'], config.friction
        viscous, coulomb = (
            {name: scale * value for name, value in part.items()}
            for part in (friction.viscous, friction.coulomb)
        )
        config = replace(config, friction=replace(friction, viscous=viscous, coulomb=coulomb))
    if 'rotor' in values:
        joints = {
            name: replace(
                joint, motor=replace(joint.motor, rotor_inertia=values['rotor'] * joint.motor.rotor_inertia)
            )
            for name, joint in config.joints.items()
        }
        config = replace(config, joints=joints)
    payloads = robot.payloads
    if 'payload' in values:
        frame = _any_hand(robot, conditions.dice('payload'))
        payloads = (*payloads, Payload(frame, values['payload'], np.zeros(3), np.zeros((3, 3))))
    return Robot(config, urdf, payloads)


def _any_hand(robot: Robot, dice: np.random.Generator) -> str:
    frames = hands(robot)
    return frames[int(dice.integers(len(frames)))]


def _direction(dice: np.random.Generator) -> Array:
    x = dice.normal(size=3)
    return np.asarray(x / np.linalg.norm(x))
