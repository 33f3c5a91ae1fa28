"""Friction compensation."""

from typing import TYPE_CHECKING

import numpy as np

from ...arrays import Array
from ...robot.model import Robot
from .term import Term, TermInputs, register_term

if TYPE_CHECKING:
    from ..settings import Settings

# An exact sign is smoothed over this speed, so that a joint at rest does not chatter [rad/s].
SMOOTHING_SPEED = 0.02


@register_term
class FrictionCompensation(Term):
    """Gamma_f(v), [krang] eq. 17, smooth near zero speed even if the model has the exact sign."""

    name = 'friction'
    needs_friction = True

    def __init__(self, robot: Robot) -> None:
        self._friction = robot.friction
        self._is_smooth = robot.friction.sign == 'smooth' or not robot.friction.coulomb.any()

    @classmethod
    def from_settings(cls, robot: Robot, settings: 'Settings') -> 'FrictionCompensation':
        return cls(robot)

    def torque(self, state: TermInputs) -> Array:
        if self._is_smooth:
            return state.friction
        sign = np.tanh(state.v / SMOOTHING_SPEED)
        return np.asarray(self._friction.viscous * state.v + self._friction.coulomb * sign)
