"""Computed torque: each joint follows its reference like a unit mass on a spring and damper."""

from collections.abc import Sequence
from math import pi
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import Array, Mask
from ...errors import InputError
from ...kernels import complete, feedback, forces
from ...robot.model import Robot
from ..drivers import drivers_of
from ..parameters import Parameter
from .term import Term, TermInputs, register_term

if TYPE_CHECKING:
    from ..settings import Settings


@register_term
class ComputedTorque(Term):
    """A (a_d + Kd (v_d - v) + Kp (q_d - q)) + C v + Q + feed-forward effort.

    Only commanded joints are fed back (P16). Q is left out if the term gravity or the hardware provides it,
    so that gravity counts once.
    """

    name = 'computed_torque'
    follows_reference = True
    compensates_gravity = True
    followed: Mask
    parameters = (
        Parameter(
            'gains.bandwidth', 'number', 10 * pi, 'bandwidth of computed torque', 'rad/s', 0, 1e3, live=True
        ),
        Parameter(
            'gains.damping_ratio', 'number', 1.0, 'damping ratio of computed torque', '1', 0, 10, live=True
        ),
        Parameter(
            'gains.kp', 'per_joint', None, 'proportional gain; replaces bandwidth', '1/s2', 0, 1e6, live=True
        ),
        Parameter('gains.kd', 'per_joint', None, 'derivative gain; needs gains.kp', '1/s', 0, 1e4, live=True),
    )

    def __init__(
        self, robot: Robot, kp: Array, kd: Array, with_gravity: bool, commanded: Sequence[str] | None = None
    ) -> None:
        self.kp = kp  # [1/s2]
        self.kd = kd  # [1/s]
        self._with_gravity = with_gravity
        names = robot.joint_names
        self.followed = np.isin(names, names if commanded is None else commanded)
        self._chosen = self.followed.astype(float)  # 1 for joints whose acceleration can be chosen
        passive = [not robot.config.joints[name].driven for name in names]
        self._passive = np.flatnonzero(passive & ~self.followed)
        self.needs_friction = bool(self._passive.size)
        self._zero = np.zeros(robot.nv)
        self._continuous = robot.continuous

    @property
    def gains(self) -> tuple[Array, Array]:
        """Kp [1/s2] and Kd [1/s]; 0 for joints that are not commanded."""
        return self.followed * self.kp, self.followed * self.kd

    @classmethod
    def from_settings(cls, robot: Robot, settings: 'Settings') -> 'ComputedTorque':
        if robot.config.rolling:
            raise InputError(
                f'computed_torque: {robot.name} rolls on wheels, which constrain its joints; use rolling_base'
            )
        elsewhere = 'gravity' in settings.terms or settings.hardware_compensates_gravity
        joints = drivers_of(settings, robot).joints
        return cls(robot, *gains(robot, settings), with_gravity=not elsewhere, commanded=joints)

    def adopt(self, other: 'ComputedTorque') -> None:
        self.kp, self.kd = other.kp, other.kd

    def torque(self, state: TermInputs) -> Array:
        dynamics, reference = state.dynamics, state.reference
        # a_d + Kd (v_d - v) + Kp (q_d - q), continuous joints by the short way. Driven joints that are not
        # commanded are assumed not to accelerate.
        a = feedback(
            reference.q,
            reference.v,
            reference.a,
            state.q,
            state.v,
            self.kp,
            self.kd,
            self._continuous,
            self._chosen,
        )
        # Passive joints accelerate as their rows of the equations of motion require, without torque:
        # partial feedback linearisation.
        if self.needs_friction:
            complete(a, self._passive, self._passive, dynamics.A, dynamics.bias, state.friction)
        gravity = self._zero if self._with_gravity else dynamics.gravity
        return forces(dynamics.A, a, dynamics.bias, reference.effort, gravity, self._chosen)


def gains(robot: Robot, settings: 'Settings') -> tuple[Array, Array]:
    """Kp [1/s2] and Kd [1/s] over joint_names."""
    if (settings.gains_kp is None) != (settings.gains_kd is None):
        raise InputError('gains.kp and gains.kd belong together; give both, or bandwidth and damping_ratio')
    if settings.gains_kp is None:
        w = settings.per_joint('gains.bandwidth', robot)
        return w**2, 2 * settings.per_joint('gains.damping_ratio', robot) * w
    return settings.per_joint('gains.kp', robot), settings.per_joint('gains.kd', robot)
