"""A controller and a plant in one loop, at the controller's rate, with the time of the plant."""

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from krang_dynamics.control.controller import Inputs
from krang_dynamics.safety.joint_buffer import JointSamples

START = 100.0  # clocks never start at zero


@dataclass
class Loop:
    """Steps a controller on a plant; every command is kept with its time."""

    controller: object
    plant: object
    dt: float = 1e-3
    history: list = field(default_factory=list)  # (time, q, v, torque or None, mode)
    outputs: object = None

    def __post_init__(self):
        robot = self.controller.robot
        self.robot = robot
        self._driven = [robot.joint_names.index(name) for name in robot.actuated_joint_names]
        self.command = np.zeros(len(self.controller.drivers.names))  # what the drivers hold, in their unit
        self.effort = np.zeros(robot.nv)  # what is measured [N m]
        self.on_the_way = deque()  # commands that the drivers do not have yet

    @property
    def now(self):
        return START + self.plant.time

    def sample(self):
        return JointSamples(
            self.robot.joint_names, self.plant.q, self.plant.v, self.effort.copy(), self.now, self.now
        )

    def step(self, with_state=True, **inputs):
        """One period: the controller sees the state, the plant gets the command, or keeps the last."""
        samples = [self.sample()] if with_state else []
        self.outputs = self.controller.step(Inputs(self.now, self.now, samples, **inputs))
        if self.outputs.command is not None:
            self.on_the_way.append(self.outputs.command)
            self.command = self.on_the_way.popleft()
        self.effort = self.controller.drivers.torque(self.command, self.plant.v)
        self.history.append(
            (self.plant.time, self.plant.q, self.plant.v, self.outputs.torque, self.outputs.mode)
        )
        self.plant.step(self.effort[self._driven], self.dt)
        return self.outputs

    def run(self, duration, **inputs):
        """Steps for `duration` [s]; `inputs` go with the first one."""
        for k in range(round(duration / self.dt)):
            self.step(**(inputs if k == 0 else {}))
        return self.outputs

    def path(self):
        """Times (K,) and positions (K, n) so far."""
        return np.array([h[0] for h in self.history]), np.array([h[1] for h in self.history])
