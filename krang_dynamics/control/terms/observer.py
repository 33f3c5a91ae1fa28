"""Momentum observer: the external torque on every joint, without a force sensor."""

from typing import TYPE_CHECKING, Literal

import numpy as np

from ...arrays import Array
from ...robot.model import Robot
from ...safety.modes import Fault
from ..parameters import Parameter
from .term import Term, TermInputs, register_term

if TYPE_CHECKING:
    from ..settings import Settings


@register_term
class Observer(Term):
    """r' = K (external torque - r), from p = A v and p' = tau + C^T v - Q - Gamma_f + external torque.

    It adds no torque; `external` [N m] is the torque of the environment on the joints.
    """

    name = 'observer'
    needs_coriolis = True
    needs_friction = True
    external: Array
    parameters = (
        Parameter('observer.gain', 'number', 25.0, 'observer bandwidth', 'rad/s', 0.01, 1e3, live=True),
        Parameter(
            'observer.contact', 'number', 5.0, 'external torque that counts as contact', 'N m', 0, 1e6,
            live=True,
        ),
        Parameter(
            'observer.collision', 'number', 30.0, 'external torque that counts as collision', 'N m', 0, 1e6,
            live=True,
        ),
        Parameter(
            'observer.reaction', 'text', 'none', 'reaction to a collision', choices=('none', 'stop'),
            live=True,
        ),
    )  # fmt: skip

    def __init__(
        self,
        robot: Robot,
        gain: float = 25.0,
        contact: float = 5.0,
        collision: float = 30.0,
        reaction: Literal['none', 'stop'] = 'none',
    ) -> None:
        self.gain = gain  # [rad/s]
        self.thresholds = (contact, collision)  # [N m]
        self.reaction = reaction
        self.external = np.zeros(robot.nv)
        self._zero = np.zeros(robot.nv)
        self._zero.flags.writeable = False  # returned at every step
        self._integral = np.zeros(robot.nv)
        self._known: Array | None = None  # C^T v - Q - Gamma_f at the last step

    @classmethod
    def from_settings(cls, robot: Robot, settings: 'Settings') -> 'Observer':
        return cls(
            robot,
            settings.observer_gain,
            settings.observer_contact,
            settings.observer_collision,
            settings.observer_reaction,
        )

    def reset(self) -> None:
        self._known = None
        self.external = np.zeros_like(self._zero)
        self.contact = 'none'

    def adopt(self, other: 'Observer') -> None:
        self.gain, self.thresholds, self.reaction = other.gain, other.thresholds, other.reaction
        self._known = None  # the integral starts again from the present estimate

    def torque(self, state: TermInputs) -> Array:
        dynamics, v = state.dynamics, state.v
        momentum = dynamics.A.dot(v)
        known = v.dot(dynamics.C)
        known -= dynamics.gravity
        known -= state.friction
        if self._known is None:
            self._integral = momentum - self.external / self.gain
        else:
            # Trapezoids for what changes within a step; the command and r are constant in it.
            rate = self._known
            rate += known
            rate *= 0.5
            rate += state.applied
            rate += self.external
            rate *= state.dt
            self._integral += rate
            self.external = self.gain * (momentum - self._integral)
        self._known = known
        self.contact = self._event()
        return self._zero

    def fault(self) -> Fault | None:
        if self.reaction != 'stop' or self.contact != 'collision':
            return None
        return Fault('collision', f'external torque {self.largest():.1f} N m')

    def largest(self) -> float:
        """The largest external torque of any joint [N m]."""
        return float(np.abs(self.external).max())

    def _event(self) -> Literal['none', 'contact', 'collision']:
        contact, collision = self.thresholds
        if self.external.dot(self.external) <= min(contact, collision) ** 2:  # the usual case, at little cost
            return 'none'
        largest = self.largest()
        if not largest <= collision:  # also if it is NaN
            return 'collision'
        return 'contact' if largest > contact else 'none'
