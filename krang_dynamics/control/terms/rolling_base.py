"""Rolling base: a platform follows (x, y, heading) on wheels that cannot move sideways."""

import numpy as np

from ...arrays import Array
from ...errors import InputError
from ...robot.model import Robot
from .term import Moment, Term

KP, KD = 6.4, 8.8  # published gains: poles at -0.8 and -8 [1/s2], [1/s]


class RollingBase(Term):
    """Computed torque in task space through the rolling constraints, [otbot] section 8.

    The passive joints are the task; J a + Jdot v = 0 gives the wheels' accelerations, and the inverse
    dynamics their torques, friction included.
    """

    name = 'rolling_base'

    def __init__(self, robot: Robot, kp: float = KP, kd: float = KD) -> None:
        self.kp, self.kd = kp, kd
        driven = np.array([robot.config.joints[name].driven for name in robot.joint_names])
        self._task, self._motors = np.flatnonzero(~driven), np.flatnonzero(driven)
        rows = len(robot.constraint_jacobian(robot.home))
        if not rows or rows != len(self._motors) or rows != len(self._task):
            raise InputError(
                f'{robot.name} is no rolling base: it needs as many constraints as motors and passive joints'
            )

    def torque(self, moment: Moment) -> Array:
        task, robot = self._task, moment.dynamics.robot
        a = np.zeros(robot.nv)
        a[task] = (
            moment.a_d[task]
            + self.kd * (moment.v_d[task] - moment.v[task])
            + self.kp * (moment.q_d[task] - moment.q[task])
        )
        J, bias = robot.constraint_jacobian(moment.q), robot.constraint_bias(moment.q, moment.v)
        a[self._motors] = -np.linalg.solve(J[:, self._motors], J[:, task] @ a[task] + bias)
        torque = np.zeros(robot.nv)
        torque[self._motors] = robot.motor_torque(moment.q, moment.v, a, friction=True)
        return torque
