"""A soft field before the joint limits: it only takes energy, so it can never kick."""

import numpy as np

from ..robot.model import Robot
from ..robot.urdf import Array
from .term import Moment, Term

ZONE = 0.2  # width of the field [rad]
TIME = 0.05  # in which it stops a joint at the limit itself [s]


class JointLimits(Term):
    """-d(q) v while moving towards a near limit; d rises from 0 at the edge to A_ii / TIME at the limit."""

    name = 'joint_limits'

    def __init__(self, robot: Robot) -> None:
        self._lower, self._upper = robot.lower, robot.upper

    def torque(self, moment: Moment) -> Array:
        towards = np.where(moment.v > 0, self._upper - moment.q, moment.q - self._lower)
        depth = np.clip(1.0 - towards / ZONE, 0.0, 1.0)
        return np.asarray(-(depth**2) * np.diag(moment.dynamics.A) / TIME * moment.v)
