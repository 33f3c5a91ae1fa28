"""A soft field before the joint limits: it only takes energy, so it can never kick."""

import numpy as np

from ...arrays import Array
from ...robot.model import Robot
from .term import Moment, Term

ZONE = 0.2  # width of the field [rad]
TIME = 0.05  # in which it stops a joint at the limit itself [s]


class JointLimits(Term):
    """-d(q) v while moving towards a near limit; d rises from 0 at the edge to A_ii / TIME at the limit."""

    name = 'joint_limits'

    def __init__(self, robot: Robot) -> None:
        self._lower, self._upper = robot.lower, robot.upper
        self._near_lower, self._near_upper = robot.lower + ZONE, robot.upper - ZONE
        self._none = np.zeros(robot.nv)
        self._none.flags.writeable = False  # handed out at every step

    def torque(self, moment: Moment) -> Array:
        if not np.count_nonzero((moment.q < self._near_lower) | (moment.q > self._near_upper)):
            return self._none
        towards = np.where(moment.v > 0, self._upper - moment.q, moment.q - self._lower)
        depth = np.clip(1.0 - towards / ZONE, 0.0, 1.0)
        return np.asarray(-(depth**2) * np.diag(moment.dynamics.A) / TIME * moment.v)
