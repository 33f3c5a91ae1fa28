"""Stop policies: the torque that brings a robot to rest. One class is one policy."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np

from ..arrays import Array
from ..errors import UnknownNameError
from ..robot.config import StopConfig

# Rate at which motion decays [1/s]. A part that would fall at up to 1.5 g sinks at 1.5 g / RATE = 0.37 m/s;
# 0.5 m/s is promised. States and commands may be late by 0.5 / RATE = 12 ms before damping oscillates.
RATE = 40.0
SETTLE = 1.5  # longest time of damping after gravity support has ended [s]
STILL = 0.01  # below this speed the robot is at rest [rad/s]


@dataclass(slots=True)
class StopTorque:
    """What a stop can use of the present state."""

    gravity: Array  # [N m]
    v: Array  # [rad/s]
    A: Array  # mass matrix [kg m2]
    driven: Array  # 1 for joints that get torque, 0 for others

    @property
    def damping(self) -> Array:
        """-D v [N m], D = RATE A: proportional to the inertia that each motion has.

        Joints without torque are left out: braking a driven joint for their motion would move it.
        """
        return -RATE * (self.A @ (self.driven * self.v))


class StopPolicy(ABC):
    """One stop, from its beginning to its last command.

    Without a valid state the last gravity torque decays over `blind_time`, and support that has ended is
    not given again.
    """

    name: ClassVar[str]  # in the parameter stop.policy and in robot files
    is_lasting: ClassVar[bool] = False  # goes on until another request; the controller may be enabled in it

    def __init__(self, config: StopConfig, begin: float, gravity: Array) -> None:
        self.config = config
        self.begin = begin  # [s]
        self.finished = False  # whether nothing more needs to be sent
        self._support = 1.0  # share of gravity that is compensated
        self._gravity = gravity  # of the last valid state [N m]
        self._now = begin

    def torque(self, now: float, state: StopTorque | None) -> Array:
        """Torque [N m] at time `now`; sets `finished` at the end."""
        elapsed, self._now = max(0.0, now - self._now), now
        if state is None:
            self._support = max(0.0, self._support - elapsed / self.config.blind_time)
            self.finished = self._support == 0.0
            return self._support * self._gravity
        self._gravity = state.gravity
        return self._with_state(now, state)

    @abstractmethod
    def _with_state(self, now: float, state: StopTorque) -> Array:
        """Torque [N m] with a valid state."""

    def _is_at_rest(self, now: float, state: StopTorque) -> bool:
        over = now - self.begin - self.config.time
        return over >= SETTLE or bool(np.abs(state.v).max() < STILL)


PolicyType = TypeVar('PolicyType', bound=type[StopPolicy])
STOP_POLICIES: dict[str, type[StopPolicy]] = {}


def register(policy: PolicyType) -> PolicyType:
    """Class decorator: make a policy available by its name."""
    STOP_POLICIES[policy.name] = policy
    return policy


def stop_policy(name: str) -> type[StopPolicy]:
    """The policy of a name."""
    if name not in STOP_POLICIES:
        raise UnknownNameError('stop policy', name, STOP_POLICIES)
    return STOP_POLICIES[name]


@register
class Hold(StopPolicy):
    """Q - D v until another request."""

    name = 'hold'
    is_lasting = True

    def _with_state(self, now: float, state: StopTorque) -> Array:
        self.finished = self._support == 0.0 and self._is_at_rest(now, state)
        return self._support * state.gravity + state.damping


@register
class Lower(StopPolicy):
    """s Q - D v; s falls from 1 to 0 over `time`, then damping until the robot is at rest."""

    name = 'lower'

    def _with_state(self, now: float, state: StopTorque) -> Array:
        self._support = min(self._support, max(0.0, 1.0 - (now - self.begin) / self.config.time))
        self.finished = self._support == 0.0 and self._is_at_rest(now, state)
        if self.finished:
            return np.zeros_like(state.gravity)
        return self._support * state.gravity + state.damping


@register
class Zero(StopPolicy):
    """Zero torque, as fast as the stop rate allows: for robots that zero torque does not drop."""

    name = 'zero'

    def __init__(self, config: StopConfig, begin: float, gravity: Array) -> None:
        super().__init__(config, begin, gravity)
        self._support = 0.0

    def _with_state(self, now: float, state: StopTorque) -> Array:
        self.finished = True
        return np.zeros_like(state.gravity)
