"""Rolling base: a platform follows (x, y, heading) on wheels that cannot move sideways."""

from typing import TYPE_CHECKING

import numpy as np

from ...arrays import Array
from ...errors import InputError
from ...robot.model import Robot
from .term import Term, TermInputs, register_term

if TYPE_CHECKING:
    from ..settings import Settings

KP, KD = 6.4, 8.8  # published gains: poles at -0.8 and -8 [1/s2], [1/s]


@register_term
class RollingBase(Term):
    """Computed torque in task space through the rolling constraints, [otbot] section 8.

    The passive joints are the task; J a + Jdot v = 0 gives the wheels' accelerations, and the inverse
    dynamics their torques, friction included.
    """

    name = 'rolling_base'
    follows_reference = True

    def __init__(self, robot: Robot, kp: float = KP, kd: float = KD) -> None:
        self.kp, self.kd = kp, kd
        driven = np.array([robot.config.joints[name].driven for name in robot.joint_names])
        self.followed = ~driven
        self._task, self._motors = np.flatnonzero(~driven), np.flatnonzero(driven)
        rows = len(robot.constraint_jacobian(robot.home))
        if not rows or rows != len(self._motors) or rows != len(self._task):
            raise InputError(
                f'{robot.name} is not a rolling base: '
                'it needs equally many constraints, motors and passive joints'
            )

    @classmethod
    def from_settings(cls, robot: Robot, settings: 'Settings') -> 'RollingBase':
        return cls(robot)

    def torque(self, state: TermInputs) -> Array:
        task, motors, robot, reference = self._task, self._motors, state.dynamics.robot, state.reference
        wanted = reference.a + self.kd * (reference.v - state.v) + self.kp * (reference.q - state.q)
        a, torque = np.zeros((2, robot.nv))
        a[task] = wanted[task]
        J, bias = robot.constraint_jacobian(state.q), robot.constraint_bias(state.q, state.v)
        a[motors] = -np.linalg.solve(J[:, motors], J.dot(a) + bias)
        torque[motors] = robot.motor_torque(state.q, state.v, a, friction=True)
        return torque
