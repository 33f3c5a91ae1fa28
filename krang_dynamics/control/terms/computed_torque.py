"""Computed torque: each joint follows its reference like a unit mass on a spring and damper."""

from math import pi
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import Array
from ...errors import InputError
from ...robot.model import Robot
from ..parameters import Parameter
from .term import Term, TermInputs, register_term

if TYPE_CHECKING:
    from ..settings import Settings


@register_term
class ComputedTorque(Term):
    """A (a_d + Kd (v_d - v) + Kp (q_d - q)) + C v + Q + feed-forward effort.

    Q is left out if the term gravity or the hardware provides it, so that gravity counts once.
    """

    name = 'computed_torque'
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

    def __init__(self, robot: Robot, kp: Array, kd: Array, with_gravity: bool) -> None:
        self.kp = kp  # [1/s2]
        self.kd = kd  # [1/s]
        self._with_gravity = with_gravity
        continuous = [robot.urdf.joints[name].type == 'continuous' for name in robot.joint_names]
        self._continuous = np.array(continuous) if any(continuous) else None

    @classmethod
    def from_settings(cls, robot: Robot, settings: 'Settings') -> 'ComputedTorque':
        elsewhere = 'gravity' in settings.terms or settings.hardware_compensates_gravity
        return cls(robot, *gains(robot, settings), with_gravity=not elsewhere)

    def adopt(self, other: 'ComputedTorque') -> None:
        self.kp, self.kd = other.kp, other.kd

    def torque(self, state: TermInputs) -> Array:
        dynamics, reference = state.dynamics, state.reference
        error = reference.q - state.q
        if self._continuous is not None:  # the short way round
            error = np.where(self._continuous, np.remainder(error + pi, 2 * pi) - pi, error)
        error *= self.kp
        a = reference.v - state.v
        a *= self.kd
        a += error
        a += reference.a
        torque = dynamics.A.dot(a)
        torque += dynamics.bias
        torque += reference.effort
        if not self._with_gravity:
            torque -= dynamics.gravity
        return torque


def gains(robot: Robot, settings: 'Settings') -> tuple[Array, Array]:
    """Kp [1/s2] and Kd [1/s] over joint_names."""
    if (settings.gains_kp is None) != (settings.gains_kd is None):
        raise InputError('gains.kp and gains.kd belong together; give both, or bandwidth and damping_ratio')
    if settings.gains_kp is None:
        w = settings.per_joint('gains.bandwidth', robot)
        return w**2, 2 * settings.per_joint('gains.damping_ratio', robot) * w
    return settings.per_joint('gains.kp', robot), settings.per_joint('gains.kd', robot)
