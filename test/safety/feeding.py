"""A controller that is fed by hand: one sample per step, unless a test says otherwise."""

from functools import cache

import numpy as np

import krang_dynamics as kd
from krang_dynamics.control.controller import Inputs, TorqueController
from krang_dynamics.control.settings import Settings
from krang_dynamics.safety.joint_buffer import JointSamples

START = 100.0  # steady clock at the beginning [s]
AHEAD = 1000.0  # by how much the node's clock is ahead of the steady clock [s]
PERIOD = 1e-3  # [s]

robot_named = cache(kd.load_robot)


class Fed:
    """Steps a controller at a steady period with the state that the test sets."""

    def __init__(self, name='planar_2r', terms=('gravity',), ramp_time=0.1, **settings):
        self.robot = robot_named(name)
        self.controller = TorqueController(self.robot, Settings(terms, ramp_time=ramp_time, **settings))
        self.time = START
        self.q = self.robot.home
        self.v = np.zeros(self.robot.nv)
        self.effort = np.zeros(self.robot.nv)
        self.outputs = None

    @property
    def safety(self):
        return self.controller.safety

    @property
    def clock(self):
        return self.time + AHEAD

    def sample(self, **changes):
        """What the robot would send now, or something else."""
        message = {
            'names': self.robot.joint_names,
            'position': self.q.copy(),
            'velocity': self.v.copy(),
            'effort': self.effort.copy(),
            'stamp': self.clock,
            'arrival': self.time,
        }
        return JointSamples(**{**message, **changes})

    def step(self, samples=None, dt=PERIOD, **inputs):
        """One period later: the controller gets a fresh sample, or those given."""
        self.time += dt
        samples = [self.sample()] if samples is None else samples
        self.outputs = self.controller.step(Inputs(self.time, self.clock, samples, **inputs))
        return self.outputs

    def run(self, duration, samples=None, **inputs):
        """Steps for `duration` [s] with the same inputs; all outputs."""
        return [self.step(samples, **inputs) for _ in range(round(duration / PERIOD))]

    def started(self):
        """Enabled, and past its ramp."""
        self.step(enable=True)
        self.run(self.safety.ramp_time + 2 * PERIOD)
        return self
