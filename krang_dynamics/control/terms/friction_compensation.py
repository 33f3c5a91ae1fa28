"""Friction compensation."""

import numpy as np

from ...arrays import Array
from ...robot.model import Robot
from .term import Moment, Term

STICTION = (
    0.02  # speed over which an exact sign is smoothed, so that a joint at rest does not chatter [rad/s]
)


class Friction(Term):
    """Gamma_f(v), [krang] eq. 17, smooth near zero speed whatever sign the model has."""

    name = 'friction'

    def __init__(self, robot: Robot) -> None:
        self._friction = robot.friction
        self._smooth = robot.friction.sign == 'smooth' or not robot.friction.coulomb.any()

    def torque(self, moment: Moment) -> Array:
        if self._smooth:
            return moment.friction
        sign = np.tanh(moment.v / STICTION)
        return np.asarray(self._friction.viscous * moment.v + self._friction.coulomb * sign)
