"""Friction compensation."""

from typing import TYPE_CHECKING

import numpy as np

from ...arrays import Array
from ...kernels import scaled
from ...robot.model import Robot
from ..parameters import Parameter
from .term import Term, TermInputs, register_term

if TYPE_CHECKING:
    from ..settings import Settings

# An exact sign is smoothed over this speed, so that a joint at rest does not chatter [rad/s].
SMOOTHING_SPEED = 0.02
SCALE = 0.8  # above it, a joint with less friction than modelled can accelerate by itself after a small push


@register_term
class FrictionCompensation(Term):
    """A share of Gamma_f(v), [krang] eq. 17, smooth near zero speed even if the model has the exact sign.

    The constant offset is compensated as a whole, because no share of it dissipates.
    """

    name = 'friction'
    needs_friction = True

    parameters = (
        Parameter(
            'friction.scale', 'number', SCALE, 'compensated share of the modelled friction', '1', 0, 2,
            live=True,
        ),
    )  # fmt: skip

    def __init__(self, robot: Robot, scale: float = 1.0) -> None:
        self.scale = scale
        self._friction = robot.friction
        self._is_smooth = robot.friction.sign == 'smooth' or not robot.friction.coulomb.any()
        self._is_plain = self._is_smooth and not robot.friction.has_offset

    @classmethod
    def from_settings(cls, robot: Robot, settings: 'Settings') -> 'FrictionCompensation':
        return cls(robot, settings.friction_scale)

    def adopt(self, other: 'FrictionCompensation') -> None:
        self.scale = other.scale

    def torque(self, state: TermInputs) -> Array:
        if self._is_plain:
            return scaled(self.scale, state.friction)
        friction, offset = self._friction, self._friction.offset
        if self._is_smooth:
            return self.scale * (state.friction - offset) + offset
        sign = np.tanh(state.v / SMOOTHING_SPEED)
        return self.scale * (friction.viscous * state.v + friction.coulomb * sign) + offset
