"""Momentum observer: the external torque on every joint, without a force sensor."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from ...arrays import Array, all_true, any_true
from ...robot.model import Robot
from ...safety.modes import Fault
from ..drivers import drivers_of
from ..parameters import Parameter
from .term import Term, TermInputs, register_term

if TYPE_CHECKING:
    from ..settings import Settings

GAP = 0.1  # after a longer step the integral starts again [s]
RELEASE = 0.7  # an event ends at this share of its threshold


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
            'observer.contact', 'per_joint', 5.0, 'external torque that counts as contact', 'N m', 0, 1e6,
            live=True,
        ),
        Parameter(
            'observer.collision', 'per_joint', 30.0, 'external torque that counts as collision', 'N m', 0,
            1e6, live=True,
        ),
        Parameter(
            'observer.reaction', 'text', 'stop', 'reaction to a collision', choices=('none', 'stop'),
            live=True,
        ),
    )  # fmt: skip

    def __init__(
        self,
        robot: Robot,
        gain: float = 25.0,
        contact: Array | float = 5.0,
        collision: Array | float = 30.0,
        reaction: Literal['none', 'stop'] = 'stop',
        commanded: Sequence[str] | None = None,
    ) -> None:
        self.gain = gain  # [rad/s]
        # Contact and collision over joint_names [N m].
        self.thresholds = np.broadcast_to(contact, robot.nv), np.broadcast_to(collision, robot.nv)
        self.reaction = reaction
        self._robot = robot
        # The observer does not know the torque of joints that others command.
        self._counted = np.isin(robot.joint_names, robot.joint_names if commanded is None else commanded)
        self._counts_all = bool(self._counted.all())
        self.external = np.zeros(robot.nv)
        self._zero = np.zeros(robot.nv)
        self._zero.flags.writeable = False  # returned at every step
        self._integral = np.zeros(robot.nv)
        self._torque = np.zeros(robot.nv)  # external torque that counts [N m]
        self._known: Array | None = None  # C^T v - Q - Gamma_f at the last step

    @classmethod
    def from_settings(cls, robot: Robot, settings: 'Settings') -> 'Observer':
        return cls(
            robot,
            settings.observer_gain,
            settings.per_joint('observer.contact', robot),
            settings.per_joint('observer.collision', robot),
            settings.observer_reaction,
            drivers_of(settings, robot).joints,
        )

    def reset(self) -> None:
        self._known = None
        self.external = np.zeros_like(self._zero)
        self._torque = np.zeros_like(self._zero)
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
        if self._known is None or not state.dt <= GAP:
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
        self.contact = self._event(self._counted_torque(state.q))
        return self._zero

    def fault(self) -> Fault | None:
        if self.reaction != 'stop' or self.contact != 'collision':
            return None
        torque, limit = self._torque, self.thresholds[1]
        i = int(np.argmax(~(torque <= RELEASE * limit)))
        name = self._robot.joint_names[i]
        return Fault(
            'collision',
            f'joint {name!r}: external torque {torque[i]:.1f} N m, observer.collision is {limit[i]:g} N m',
        )

    def largest(self) -> float:
        """The largest external torque of any joint that counts [N m]."""
        return float(self._torque.max())

    def _counted_torque(self, q: Array) -> Array:
        """Absolute external torque [N m] without that of rolling constraints; 0 where not commanded."""
        external = self.external
        if self._robot.config.rolling:
            J = self._robot.constraint_jacobian(q)
            external = external - J.T @ np.linalg.solve(J @ J.T, J @ external)
        self._torque = np.abs(external)
        if not self._counts_all:
            self._torque[~self._counted] = 0.0
        return self._torque

    def _event(self, torque: Array) -> Literal['none', 'contact', 'collision']:
        """What the torque means; an event ends at RELEASE times the threshold at which it begins."""
        contact, collision = self.thresholds
        if self.contact != 'none':
            contact = RELEASE * contact
        if self.contact == 'collision':
            collision = RELEASE * collision
        if not all_true(torque <= collision):  # also if it is NaN
            return 'collision'
        return 'contact' if any_true(torque > contact) else 'none'
