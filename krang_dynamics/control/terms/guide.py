"""Hand guiding: the robot carries itself, and a person moves it; limits push back softly."""

from math import pi
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import Array, Mask, any_true
from ...errors import InputError
from ...robot.model import Robot
from ...safety.limits import Limits
from ..drivers import drivers_of
from ..parameters import Parameter
from .cartesian_impedance import BANDWIDTH
from .speed_zone import TIME, SpeedZone, free_inertia
from .term import Term, TermInputs, follow_reference, register_term

if TYPE_CHECKING:
    from ..settings import Settings

ZONE = 0.2  # width of the zone before a position limit [rad, m]
STRENGTH = 0.6  # share of the effort limit with which the zone pushes back at its end
FRICTION = 0.1  # share of the modelled friction that the default damping replaces
POSITIONS = 9  # at which the gravity torque of a joint is compared with its limit
INERTIA = 0.3  # decay of a motion by the default damping [1/s]
SINK = 0.05  # damping per gravity torque [s/rad], so that joints which nobody holds sink slowly


@register_term
class Guide(Term):
    """Q + friction.scale Gamma_f - D v + S(q, v); D outweighs friction that is modelled 10 % too large.

    S is zero inside the limits' zones and below the speed zones. In a zone it is a spring, which gives back
    what it took, with a damper, so that S never gives more energy than it took. Joints that cannot carry
    the robot everywhere would tip it: they are held where they were at enable. What other terms compensate
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
        self._speed_zone = SpeedZone(robot, settings)
        commanded = np.isin(robot.joint_names, drivers_of(settings, robot).joints)
        self._is_held = commanded & _weak_joints(robot, limits.effort)
        self._inertia = robot.mass_matrix(robot.home)
        self._stiffness = self._is_held * np.diag(self._inertia) * BANDWIDTH**2
        self._held: Array | None = None  # pose at enable [rad]
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

    @property
    def gains(self) -> tuple[Array, Array] | None:
        """Kp [1/s2] and Kd [1/s] of the fastest motion of the held joints at home."""
        if not self._is_held.any():
            return None
        fastest = np.linalg.eigvals(np.linalg.solve(self._inertia, np.diag(self._stiffness))).real.max()
        return self._is_held * fastest, self._is_held * 2 * fastest / BANDWIDTH

    def reset(self) -> None:
        self._held = None

    def adopt(self, other: 'Guide') -> None:
        self.damping, self._sink, self.friction_scale = other.damping, other._sink, other.friction_scale
        self._lower, self._upper, self._speed_zone = other._lower, other._upper, other._speed_zone

    def torque(self, state: TermInputs) -> Array:
        if self._held is None:
            self._held = state.q.copy()
        damping = self.damping + self._sink * np.abs(state.dynamics.gravity)
        damping = np.where(self._is_held, 2 * self._stiffness / BANDWIDTH, damping)
        torque = self._soft_limits(state) - damping * state.v
        torque += self._stiffness * (self._held - state.q)
        if not self._has_gravity:
            torque += state.dynamics.gravity
        if not self._has_friction and self._friction.sign == 'smooth':
            torque += self.friction_scale * state.friction
        elif not self._has_friction:  # dry friction would chatter: the person carries it
            torque += self.friction_scale * self._friction.viscous * state.v
        return torque

    def _soft_limits(self, state: TermInputs) -> Array:
        """Spring and damper in the zones of position, and the speed zones."""
        q, v, A = state.q, state.v, state.dynamics.A
        depth = (np.minimum(q - self._lower, 0.0) + np.maximum(q - self._upper, 0.0)) / ZONE
        torque = -self._strength * depth * np.abs(depth)
        if any_true(depth != 0):
            torque -= np.minimum(np.abs(depth), 1.0) * free_inertia(A) / TIME * v
        torque += self._speed_zone.torque(torque, v, np.zeros(len(v)), A)
        return torque


def _weak_joints(robot: Robot, effort: Array) -> Mask:
    """Joints that need more than their effort limit [N m] to carry the robot, within a turn from home."""
    weak = np.zeros(robot.nv, dtype=bool)
    for i, (lower, upper) in enumerate(zip(robot.lower, robot.upper, strict=True)):
        for position in np.linspace(max(lower, -pi), min(upper, pi), POSITIONS):
            q = robot.home
            q[i] = position
            weak[i] |= abs(robot.gravity_torque(q)[i]) > effort[i]
    return weak


def _default_damping(robot: Robot) -> Array:
    loads = np.where(np.isfinite(robot.effort_limits), robot.effort_limits, 0.0)  # the largest
    slope = robot.friction.slope(np.zeros(robot.nv), loads) if robot.friction.sign == 'smooth' else 0.0
    return np.asarray(FRICTION * slope + INERTIA * np.diag(robot.mass_matrix(robot.home)))
