"""Damping near the joint limits; it only dissipates energy, so it cannot push the robot."""

from typing import TYPE_CHECKING

import numpy as np

from ...arrays import Array
from ...kernels import is_within
from ...robot.model import Robot
from .term import Term, TermInputs, register_term

if TYPE_CHECKING:
    from ..settings import Settings

ZONE = 0.2  # width of the zone before a limit [rad]
TIME = 0.05  # time constant of the damping at the limit [s]


@register_term
class JointLimits(Term):
    """-d(q) v while moving towards a near limit; d rises from 0 at the edge to A_ii / TIME at the limit."""

    name = 'joint_limits'

    def __init__(self, robot: Robot) -> None:
        self._lower, self._upper = robot.lower, robot.upper
        self._near_lower, self._near_upper = robot.lower + ZONE, robot.upper - ZONE
        self._zero = np.zeros(robot.nv)
        self._zero.flags.writeable = False  # returned at every step

    @classmethod
    def from_settings(cls, robot: Robot, settings: 'Settings') -> 'JointLimits':
        return cls(robot)

    def torque(self, state: TermInputs) -> Array:
        if is_within(state.q, self._near_lower, self._near_upper):
            return self._zero
        distance = np.where(state.v > 0, self._upper - state.q, state.q - self._lower)
        depth = np.clip(1.0 - distance / ZONE, 0.0, 1.0)
        return np.asarray(-(depth**2) * np.diag(state.dynamics.A) / TIME * state.v)
