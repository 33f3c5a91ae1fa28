"""Stop policies: the torque that brings a robot to rest without dropping it."""

from dataclasses import dataclass

import numpy as np

from ..robot.config import StopConfig
from ..robot.model import Robot
from ..robot.urdf import Array

HAND_SPEED = 0.45  # at which weight alone lets a point down; promised are 0.5 [m/s]
SETTLE = 1.5  # longest time that damping goes on after the weight is let down [s]
STILL = 0.01  # what counts as standing [rad/s]


@dataclass(slots=True)
class StopTorque:
    """What a stop can use of the present state: gravity torque [N m], speeds [rad/s], D [N m s/rad]."""

    gravity: Array
    v: Array
    D: Array

    @property
    def damping(self) -> Array:
        """-D v [N m]."""
        return -self.D * self.v


class Stopping:
    """One stop, from its beginning to silence.

    hold: Q - D v until told otherwise. lower: s(t) Q - D v, s from 1 to 0 over `time`, then damping
    until the robot stands. zero: none, as fast as the stop rate allows: what drove or pushed goes on no
    longer. Without a valid state: the last gravity torque, let go over `blind_time`. What has been let go
    is never taken up again.
    """

    def __init__(self, config: StopConfig, begin: float, gravity: Array) -> None:
        self._config = config
        self._begin = begin
        self._now = begin
        self._held = gravity  # what is let go
        self._share = 0.0 if config.policy == 'zero' else 1.0  # how much of it still acts
        self.finished = False

    def torque(self, now: float, state: StopTorque | None) -> Array:
        """Torque [N m] at time `now`; `finished` is set once nothing more needs to be sent."""
        self._let_go(now, blind=state is None)
        self._now = now
        if state is None or self._config.policy == 'zero':
            self.finished = self._share == 0.0
            return self._share * self._held
        self._held = state.gravity
        self.finished = self._share == 0.0 and self._stands(now, state)
        if self.finished:
            return np.zeros_like(state.gravity)
        return self._share * state.gravity + state.damping

    def _let_go(self, now: float, blind: bool) -> None:
        if blind:
            self._share = max(0.0, self._share - max(0.0, now - self._now) / self._config.blind_time)
        elif self._config.policy != 'hold':
            self._share = min(self._share, max(0.0, 1.0 - (now - self._begin) / self._config.time))

    def _stands(self, now: float, state: StopTorque) -> bool:
        over = now - self._begin - self._config.time
        return over >= SETTLE or bool(np.abs(state.v).max() < STILL)


def stop_damping(robot: Robot) -> Array:
    """D [N m s/rad] at which the robot's own weight lets no point down faster than HAND_SPEED.

    Where the weight is let down slowly, D v = Q. D is shared out by each joint's weight and reach, and
    made as large as all joints together need. Never less than what stops a joint's inertia within a
    tenth of a second.
    """
    random = np.random.default_rng(0)
    turn = np.isfinite(robot.upper - robot.lower)
    low, high = np.where(turn, robot.lower, -np.pi), np.where(turn, robot.upper, np.pi)
    weight, reach, inertia = np.zeros(robot.nv), np.zeros(robot.nv), np.full(robot.nv, np.inf)
    poses = random.uniform(low, high, (200, robot.nv))
    for q in poses:
        weight = np.maximum(weight, np.abs(robot.gravity_torque(q)))
        inertia = np.minimum(inertia, np.diag(robot.mass_matrix(q)))
        for frame in robot.frames:
            reach = np.maximum(reach, np.linalg.norm(robot.jacobian(q, frame)[:3], axis=0))
    shared = np.maximum(weight * reach, 1e-9)
    speeds = [
        float(robot.jacobian(q, frame)[2] @ (robot.gravity_torque(q) / shared))
        for q in poses
        for frame in robot.frames
    ]
    return np.maximum(shared * max(0.0, *speeds) / HAND_SPEED, 10.0 * inertia)
