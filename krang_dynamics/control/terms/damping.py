"""Joint damping: under gravity compensation alone a robot drifts."""

from typing import TYPE_CHECKING

from ...arrays import Array
from ...kernels import scaled
from ...robot.model import Robot
from ..parameters import Parameter
from .term import Term, TermInputs, register_term

if TYPE_CHECKING:
    from ..settings import Settings


@register_term
class Damping(Term):
    """-D v, D [N m s/rad] per joint."""

    name = 'damping'
    parameters = (
        Parameter(
            'damping', 'per_joint', 0.0, 'joint damping of the term damping', 'N m s/rad', 0, 1e6, live=True
        ),
    )

    def __init__(self, damping: Array) -> None:
        self.damping = damping
        self._minus_D = -damping

    @classmethod
    def from_settings(cls, robot: Robot, settings: 'Settings') -> 'Damping':
        return cls(settings.per_joint('damping', robot))

    def adopt(self, other: 'Damping') -> None:
        self.damping, self._minus_D = other.damping, other._minus_D

    def torque(self, state: TermInputs) -> Array:
        return scaled(self._minus_D, state.v)
