"""Rolling base: a platform follows (x, y, heading) on wheels that cannot move sideways."""

from typing import TYPE_CHECKING

import numpy as np

from ...arrays import Array, consecutive
from ...errors import InputError
from ...kernels import feedback, solved
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
    needs_friction = True

    def __init__(self, robot: Robot, kp: float = KP, kd: float = KD) -> None:
        self._kp, self._kd = np.full(robot.nv, kp), np.full(robot.nv, kd)
        self._continuous = np.zeros(robot.nv, dtype=bool)  # the heading counts its turns
        driven = np.array([robot.config.joints[name].driven for name in robot.joint_names])
        self.followed = ~driven
        self._task, self._motors = consecutive(np.flatnonzero(~driven)), consecutive(np.flatnonzero(driven))
        rows = len(robot.constraint_jacobian(robot.home))
        if not rows or rows != driven.sum() or rows != (~driven).sum():
            raise InputError(
                f'{robot.name} is not a rolling base: '
                'it needs equally many constraints, motors and passive joints'
            )

    @classmethod
    def from_settings(cls, robot: Robot, settings: 'Settings') -> 'RollingBase':
        return cls(robot)

    def torque(self, state: TermInputs) -> Array:
        task, motors, reference, dynamics = self._task, self._motors, state.reference, state.dynamics
        q_d, v_d, a_d = reference.q, reference.v, reference.a
        a = feedback(q_d, v_d, a_d, state.q, state.v, self._kp, self._kd, self._continuous)
        a[motors] = 0.0
        J, bias = dynamics.constraint()
        a[motors] = -solved(J[:, motors], J.dot(a) + bias)
        # The rows of the passive joints give the forces of the wheels, as in Robot.motor_torque().
        force = dynamics.A.dot(a)
        force += dynamics.bias
        force += state.friction
        force -= solved(J[:, task].T, force[task]).dot(J)
        force[task] = 0.0
        return force
