"""Gravity compensation."""

import numpy as np

from ...arrays import Array
from .term import Moment, Term


class Gravity(Term):
    """Q(q), [krang] eq. 5, or nothing where the hardware compensates it already."""

    name = 'gravity'

    def __init__(self, hardware_compensates: bool = False) -> None:
        self._hardware_compensates = hardware_compensates

    def torque(self, moment: Moment) -> Array:
        gravity = moment.dynamics.gravity
        return np.zeros_like(gravity) if self._hardware_compensates else gravity
