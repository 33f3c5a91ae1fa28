"""Rolling base: a platform follows (x, y, heading) on wheels that cannot move sideways."""

from typing import TYPE_CHECKING

import numpy as np

from ...arrays import Array
from ...errors import InputError
from ...kernels import complete, feedback, forces, release
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
        self._task, self._motors = np.flatnonzero(~driven), np.flatnonzero(driven)
        self._chosen = self.followed.astype(float)  # 1 for joints whose acceleration can be chosen
        self._all, self._zero = np.ones(robot.nv), np.zeros(robot.nv)
        rows = len(robot.constraint_jacobian(robot.home))
        self._constraints, self._no_friction = np.arange(rows), np.zeros(rows)
        if not rows or rows != driven.sum() or rows != (~driven).sum():
            raise InputError(
                f'{robot.name} is not a rolling base: '
                'it needs equally many constraints, motors and passive joints'
            )

    @classmethod
    def from_settings(cls, robot: Robot, settings: 'Settings') -> 'RollingBase':
        return cls(robot)

    def torque(self, state: TermInputs) -> Array:
        reference, dynamics = state.reference, state.dynamics
        a = feedback(
            reference.q,
            reference.v,
            reference.a,
            state.q,
            state.v,
            self._kp,
            self._kd,
            self._continuous,
            self._chosen,
        )
        J, bias = dynamics.constraint()
        complete(a, self._motors, self._constraints, J, bias, self._no_friction)
        force = forces(dynamics.A, a, dynamics.bias, state.friction, self._zero, self._all)
        # The rows of the passive joints give the forces of the wheels, as in Robot.motor_torque().
        release(force, J, self._task)
        return force
