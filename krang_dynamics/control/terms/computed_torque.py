"""Computed torque: the robot follows its reference as a unit mass on a spring and damper would."""

import numpy as np

from ...arrays import Array
from ...robot.model import Robot
from .term import Moment, Term


class ComputedTorque(Term):
    """A (a_d + Kd (v_d - v) + Kp (q_d - q)) + C v + Q + feed-forward effort.

    Where another part of the sum or the hardware gives Q, it is left out here, so that gravity counts once.
    """

    name = 'computed_torque'

    def __init__(self, robot: Robot, kp: Array, kd: Array, with_gravity: bool) -> None:
        self.kp = kp  # [1/s2]
        self.kd = kd  # [1/s]
        self._with_gravity = with_gravity
        turns = [robot.urdf.joints[name].type == 'continuous' for name in robot.joint_names]
        self._turns = np.array(turns) if any(turns) else None

    def adopt(self, other: Term) -> None:
        assert isinstance(other, ComputedTorque)
        self.kp, self.kd = other.kp, other.kd

    def torque(self, moment: Moment) -> Array:
        dynamics = moment.dynamics
        error = moment.q_d - moment.q
        if self._turns is not None:  # the short way round
            error = np.where(self._turns, np.remainder(error + np.pi, 2 * np.pi) - np.pi, error)
        error *= self.kp
        a = moment.v_d - moment.v
        a *= self.kd
        a += error
        a += moment.a_d
        torque = dynamics.A.dot(a)
        torque += dynamics.bias
        torque += moment.effort_d
        if not self._with_gravity:
            torque -= dynamics.gravity
        return torque
