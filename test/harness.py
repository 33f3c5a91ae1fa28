"""A controller without ROS: one Session, stepped with hand-made states or with a plant."""

from collections import deque
from functools import cache
from types import SimpleNamespace

import numpy as np

import krang_dynamics as kd
from krang_dynamics.control.dynamics import Dynamics
from krang_dynamics.control.session import Session
from krang_dynamics.control.settings import Settings
from krang_dynamics.control.terms.term import ReferencePoint, TermInputs
from krang_dynamics.safety.joint_buffer import JointSamples
from krang_dynamics.simulation.mujoco_plant import MujocoPlant
from krang_dynamics.simulation.pinocchio_plant import PinocchioPlant

START = 100.0  # steady clock at the beginning [s]
AHEAD = 1000.0  # by how much the node's clock is ahead of the steady clock [s]
PERIOD = 1e-3  # [s]
PLANTS = {'pinocchio': PinocchioPlant, 'mujoco': MujocoPlant}

robot_named = cache(kd.load_robot)


def message(value):
    """A std_msgs/Bool, as far as a controller reads it."""
    return SimpleNamespace(data=value)


class Harness:
    """Steps an active session at a steady period.

    Without a plant the test sets q, v and effort. With a plant the state is the plant's, and the plant gets
    every command; `delay` is the number of periods by which commands are late. The rate of the states is not
    checked unless the test sets limits_state_rate, so that a test may enable with its first state.
    """

    def __init__(self, robot='planar_2r', terms=('gravity',), plant=None, ramp_time=0.1, delay=0, **settings):
        self.robot = robot_named(robot) if isinstance(robot, str) else robot
        settings = {'limits_state_rate': 0.0, **settings}
        self.session = Session(self.robot, Settings(terms=terms, ramp_time=ramp_time, **settings))
        self.session.activate()
        self.controller = self.session.controller
        self.plant = plant
        self.time = START
        self.q, self.v = self.robot.home, np.zeros(self.robot.nv)
        self.effort = np.zeros(self.robot.nv)  # measured [N m]
        self.outputs = None
        self.history = []  # (time, q, v, torque or None) of every step with a plant
        self.command = np.zeros(len(self.controller.drivers.names))  # what the drivers have, in their unit
        self._late = deque([self.command] * delay)  # commands that the drivers do not have yet
        self._driven = [self.robot.joint_names.index(name) for name in self.robot.actuated_joint_names]

    @property
    def safety(self):
        return self.controller.safety

    @property
    def settings(self):
        return self.controller.settings

    @property
    def clock(self):
        return self.time + AHEAD

    @property
    def fault(self):
        """Kind of the fault, None without one."""
        return self.outputs.fault.kind if self.outputs.fault else None

    def sample(self, **changes):
        """What the robot would send now, with some fields changed."""
        fields = {
            'names': self.robot.joint_names,
            'position': self.q.copy(),
            'velocity': self.v.copy(),
            'effort': self.effort.copy(),
            'stamp': self.clock,
            'arrival': self.time,
        }
        return JointSamples(**{**fields, **changes})

    def step(
        self, samples=None, dt=PERIOD, clock=None, imu=(), odom=(), deadman=None, other_publisher=False,
        **requests,
    ):  # fmt: skip
        """One period later: a step with a fresh sample, or with those given, and with the requests."""
        self.time += dt
        if self.plant is not None:
            self.q, self.v = self.plant.q, self.plant.v
        for sample in [self.sample()] if samples is None else samples:
            self.session.take_states(sample)
        for sample in imu:
            self.session.take_imu(sample)
        for sample in odom:
            self.session.take_odom(sample)
        if deadman is not None:
            self.session.take_deadman(message(deadman))
        self.session.other_publisher = other_publisher
        self.outputs = self.session.step(self.time, self.clock if clock is None else clock, **requests)
        if self.plant is not None:
            self._move(dt)
        return self.outputs

    def _move(self, dt):
        """Give the plant the command, or the last one again."""
        if self.outputs.command is not None:
            self._late.append(self.outputs.command)
            self.command = self._late.popleft()
        self.effort = self.controller.drivers.torque(self.command, self.v)
        self.history.append((self.plant.time, self.q, self.v, self.outputs.torque))
        self.plant.step(self.effort[self._driven], dt)

    def move(self, q):
        """Put the robot elsewhere; the controller does not compare the next position with the last."""
        self.q = np.asarray(q)
        self.controller.state.jumps.reset()

    def run(self, duration, samples=None, **inputs):
        """Steps for `duration` [s] with the same inputs; all outputs."""
        return [self.step(samples, **inputs) for _ in range(round(duration / PERIOD))]

    def start(self):
        """Enable, and end the ramp."""
        self.step(enable=True)
        self.run(self.safety.ramp_time + 2 * PERIOD)
        return self

    def stop(self, longest=4.0):
        """Step until nothing is sent."""
        for _ in range(round(longest / PERIOD)):
            if self.step().torque is None:
                return self
        raise AssertionError(f'it still sends commands after {longest} s')

    def path(self):
        """Times (K,) and positions (K, n) of the plant so far."""
        return np.array([h[0] for h in self.history]), np.array([h[1] for h in self.history])


def closed_loop(plant, robot, plant_robot=None, friction=True, start=None, **settings):
    """An enabled harness on a plant of PLANTS, at home or at `start`, at rest; gravity is measured there."""
    settings = {'ramp_time': 0.0, **settings}
    robot = robot_named(robot) if isinstance(robot, str) else robot
    body = PLANTS[plant](plant_robot or robot, friction=friction)
    body.reset(robot.home if start is None else start, np.zeros(robot.nv))
    harness = Harness(robot, plant=body, **settings)
    harness.effort = robot.gravity_torque(body.q)
    harness.step(enable=True)
    return harness


def term_inputs(robot, q, v, q_d=None, v_d=None, a_d=None, effort_d=None, applied=None, time=10.0, dt=1e-3):
    """Inputs of a term in the state (q, v); the reference is the state itself where not given."""
    dynamics = Dynamics(robot, coriolis=True)
    dynamics.update(q, v)
    zero = np.zeros(robot.nv)
    given, defaults = [q_d, v_d, a_d, effort_d, applied], [q, v, zero, zero, zero]
    *reference, applied = (x if y is None else y for x, y in zip(defaults, given, strict=True))
    friction = robot.friction_torque(v)
    return TermInputs(time, dt, q, v, ReferencePoint(*reference), applied, friction, dynamics)
