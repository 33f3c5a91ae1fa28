"""Stop policies: the torque that brings a robot to rest without dropping it."""

from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from ..robot.config import StopConfig

# At which motion decays [1/s]. A part that would fall at up to 1.5 g sinks at 1.5 g / RATE = 0.37 m/s, where
# 0.5 are promised. States and commands may be late by 0.5 / RATE = 12 ms before damping begins to shake.
RATE = 40.0
SETTLE = 1.5  # longest time that damping goes on after the weight is let down [s]
STILL = 0.01  # what counts as standing [rad/s]


@dataclass(slots=True)
class StopTorque:
    """What a stop can use of the present state."""

    gravity: Array  # [N m]
    v: Array  # [rad/s]
    A: Array  # mass matrix [kg m2]
    driven: Array  # 1 for joints that get torque, 0 for others

    @property
    def damping(self) -> Array:
        """-D v [N m], D = RATE A: as strong as each motion's inertia needs, and no stronger.

        Others are left out: braking a driven joint for what a passive one does would set it in motion.
        """
        return -RATE * (self.A @ (self.driven * self.v))


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
