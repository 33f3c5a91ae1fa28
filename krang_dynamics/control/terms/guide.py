"""Hand guiding: the robot carries itself, and a person moves it; limits push back softly."""

from typing import TYPE_CHECKING

import numpy as np

from ...arrays import Array
from ...errors import InputError
from ...robot.model import Robot
from ...safety.limits import Limits
from ..parameters import Parameter
from .term import Term, TermInputs, follow_reference, register_term

if TYPE_CHECKING:
    from ..settings import Settings

ZONE = 0.2  # width of the zone before a position limit [rad, m]
STRENGTH = 0.6  # share of the effort limit with which the zone pushes back at its end
FAST = 0.7  # share of the speed limit above which motion is damped
TIME = 0.025  # time constant of the damping in the zone and above that speed [s]
FRICTION = 0.1  # share of the modelled friction that the default damping replaces
INERTIA = 0.3  # decay of a motion by the default damping [1/s]
SINK = 0.05  # damping per gravity torque [s/rad], so that joints which nobody holds sink slowly


@register_term
class Guide(Term):
    """Q + friction.scale Gamma_f - D v + S(q, v); D outweighs friction that is modelled 10 % too large.

    S is zero inside the limits' zones and below the fast speeds. In a zone it is a spring, which gives back
    what it took, with a damper, so that S never gives more energy than it took. What other terms compensate
    already is left out.
    """

    name = 'guide'
    needs_friction = True
    compensates_gravity = True
    parameters = (
        Parameter(
            'guide.damping', 'per_joint', None,
            'damping of hand guiding; default: a tenth of the modelled friction at low speed, and a little '
            'of the inertia', 'N m s/rad', 0, 1e6, live=True,
        ),
    )  # fmt: skip

    def __init__(self, robot: Robot, settings: 'Settings') -> None:
        limits = Limits.of(robot)
        margin = limits.position_margin
        if settings.limits_position_margin is not None:
            margin = settings.per_joint('limits.position_margin', robot)
        self.damping, self._sink = _default_damping(robot), SINK
        if settings.guide_damping is not None:
            self.damping, self._sink = settings.per_joint('guide.damping', robot), 0.0
        self.friction_scale = settings.friction_scale
        self._has_gravity = 'gravity' in settings.terms or settings.hardware_compensates_gravity
        self._has_friction = 'friction' in settings.terms
        self._lower, self._upper = robot.lower + margin + ZONE, robot.upper - margin - ZONE
        self._fast = FAST * robot.velocity_limits
        self._strength = STRENGTH * limits.effort
        self._friction = robot.friction

    @classmethod
    def from_settings(cls, robot: Robot, settings: 'Settings') -> 'Guide':
        if follow_reference(settings.terms):
            raise InputError(
                f'terms is {", ".join(settings.terms)}: a person cannot guide a robot that follows '
                'a reference; use guide without such terms as computed_torque and cartesian_impedance'
            )
        return cls(robot, settings)

    def adopt(self, other: 'Guide') -> None:
        self.damping, self._sink, self.friction_scale = other.damping, other._sink, other.friction_scale
        self._lower, self._upper = other._lower, other._upper

    def torque(self, state: TermInputs) -> Array:
        damping = self.damping + self._sink * np.abs(state.dynamics.gravity)
        torque = self._soft_limits(state) - damping * state.v
        if not self._has_gravity:
            torque += state.dynamics.gravity
        if not self._has_friction and self._friction.sign == 'smooth':
            torque += self.friction_scale * state.friction
        elif not self._has_friction:  # dry friction would chatter: the person carries it
            torque += self.friction_scale * self._friction.viscous * state.v
        return torque

    def _soft_limits(self, state: TermInputs) -> Array:
        """Spring and damper in the zones, and damping of fast motion."""
        q, v, rate = state.q, state.v, np.diag(state.dynamics.A) / TIME
        depth = (np.minimum(q - self._lower, 0.0) + np.maximum(q - self._upper, 0.0)) / ZONE
        torque = -self._strength * depth * np.abs(depth)
        torque -= np.minimum(np.abs(depth), 1.0) * rate * v
        torque -= rate * (v - np.clip(v, -self._fast, self._fast))
        return torque


def _default_damping(robot: Robot) -> Array:
    slope = robot.friction.slope(np.zeros(robot.nv)) if robot.friction.sign == 'smooth' else 0.0
    return np.asarray(FRICTION * slope + INERTIA * np.diag(robot.mass_matrix(robot.home)))
