"""Momentum observer: the external torque on every joint, without a force sensor."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from ...arrays import Array, Indices, consecutive
from ...kernels import is_near, observed, unconstrained
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
    """r' = K (external torque - r), with the external torque A a + C v + Q + Gamma_f - tau.

    A a dt is mean(A) dv, which is the change of the momentum A v without that of A: no acceleration is
    differentiated. It adds no torque; `external` [N m] is the torque of the environment on the joints.
    """

    name = 'observer'
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
        self.reaction = reaction
        self._robot = robot
        # The observer does not know the torque of joints that others command.
        counted = np.isin(robot.joint_names, robot.joint_names if commanded is None else commanded)
        self._uncounted: Indices | slice = consecutive(np.flatnonzero(~counted))
        self.thresholds = np.full(robot.nv, contact, float), np.full(robot.nv, collision, float)
        self._is_rolling = bool(robot.config.rolling)
        self.external = np.zeros(robot.nv)
        self._zero = np.zeros(robot.nv)
        self._zero.flags.writeable = False  # returned at every step
        self._last = np.zeros((robot.nv + 2, robot.nv))  # A, v and C v + Q + Gamma_f at the last step
        self._has_last = False
        self._torque = np.zeros(robot.nv)  # external torque without that of rolling constraints [N m]

    @property
    def thresholds(self) -> tuple[Array, Array]:
        """Contact and collision over joint_names [N m]."""
        return self._thresholds

    @thresholds.setter
    def thresholds(self, thresholds: tuple[Array, Array]) -> None:
        self._thresholds = thresholds
        self._quiet = np.minimum(*thresholds)  # below it there is certainly no event
        self._quiet[self._uncounted] = np.inf

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
        self._has_last = False
        self.external = np.zeros_like(self._zero)
        self._torque = np.zeros_like(self._zero)
        self.contact = 'none'

    def adopt(self, other: 'Observer') -> None:
        self.gain, self.thresholds, self.reaction = other.gain, other.thresholds, other.reaction
        self._has_last = False  # the next state only begins a step with them

    def torque(self, state: TermInputs) -> Array:
        # Means for what changes within a step; the command and r are constant in it.
        dt = state.dt if self._has_last and state.dt <= GAP else -1.0  # the first state only begins a step
        dynamics = state.dynamics
        self._torque = self.external = external = observed(
            self.external,
            self._last,
            dynamics.A,
            state.v,
            dynamics.bias,
            state.friction,
            state.applied,
            dt,
            self.gain,
        )
        self._has_last = True
        if self._is_rolling:
            self._torque = external = unconstrained(external, dynamics.constraint()[0])
        if self.contact != 'none' or not is_near(external, self._zero, self._quiet):
            self.contact = self._event(self._counted())
        return self._zero

    def fault(self) -> Fault | None:
        if self.reaction != 'stop' or self.contact != 'collision':
            return None
        torque, limit = np.abs(self._counted()), self.thresholds[1]
        i = int(np.argmax(~(torque <= RELEASE * limit)))
        name = self._robot.joint_names[i]
        return Fault(
            'collision',
            f'joint {name!r}: external torque {torque[i]:.1f} N m, observer.collision is {limit[i]:g} N m',
        )

    def largest(self) -> float:
        """The largest external torque of any joint that counts [N m]."""
        return float(np.abs(self._counted()).max())

    def _counted(self) -> Array:
        """External torque [N m] without that of rolling constraints; 0 where not commanded."""
        torque = self._torque.copy()
        torque[self._uncounted] = 0.0
        return torque

    def _event(self, torque: Array) -> Literal['none', 'contact', 'collision']:
        """What the torque means; an event ends at RELEASE times the threshold at which it begins."""
        contact, collision = self.thresholds
        if self.contact != 'none':
            contact = RELEASE * contact
        if self.contact == 'collision':
            collision = RELEASE * collision
        if not is_near(torque, self._zero, collision):  # also if it is NaN
            return 'collision'
        return 'none' if is_near(torque, self._zero, contact) else 'contact'
