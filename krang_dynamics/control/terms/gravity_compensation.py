"""Gravity compensation."""

from typing import TYPE_CHECKING

import numpy as np

from ...arrays import Array
from ...robot.model import Robot
from .term import Term, TermInputs, register_term

if TYPE_CHECKING:
    from ..settings import Settings


@register_term
class GravityCompensation(Term):
    """Q(q), [krang] eq. 5; zero if the hardware compensates gravity."""

    name = 'gravity'
    compensates_gravity = True

    def __init__(self, hardware_compensates: bool = False) -> None:
        self._hardware_compensates = hardware_compensates

    @classmethod
    def from_settings(cls, robot: Robot, settings: 'Settings') -> 'GravityCompensation':
        return cls(settings.hardware_compensates_gravity)

    def torque(self, state: TermInputs) -> Array:
        gravity = state.dynamics.gravity
        return np.zeros_like(gravity) if self._hardware_compensates else gravity
