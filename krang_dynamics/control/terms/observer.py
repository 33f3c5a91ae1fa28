"""Momentum observer: the external torque on every joint, without a force sensor."""

from dataclasses import dataclass
from math import inf
from typing import Literal

import numpy as np

from ...arrays import Array
from ...errors import InputError
from ...robot.model import Robot
from .term import Moment, Term

SINGULAR = 0.1  # smallest singular value of a Jacobian through which a wrench can be seen


@dataclass
class ObserverSettings:
    """Gain [rad/s], thresholds on the external torque [N m], and what a collision leads to."""

    gain: float = 25.0
    contact: float = 5.0
    collision: float = 30.0
    reaction: Literal['none', 'stop'] = 'none'

    def __post_init__(self) -> None:
        if not 0 < self.gain < inf:
            raise InputError(f'observer.gain is {self.gain} rad/s; it must be positive')
        if not (self.contact >= 0 and self.collision >= 0):
            raise InputError(
                f'observer.contact {self.contact} and collision {self.collision} N m must be 0 or more'
            )
        if self.reaction not in ('none', 'stop'):
            raise InputError(f'observer.reaction is {self.reaction!r}; it must be none or stop')


class Observer(Term):
    """r' = K (external torque - r), from p = A v and p' = tau + C^T v - Q - Gamma_f + external torque.

    It adds no torque; `external` [N m] is the torque that the surroundings exert on the joints.
    """

    name = 'observer'

    def __init__(self, robot: Robot, settings: ObserverSettings) -> None:
        self.settings = settings
        self.external = np.zeros(robot.nv)
        self._zero = np.zeros(robot.nv)
        self._zero.flags.writeable = False  # handed out at every step
        self._integral = np.zeros(robot.nv)
        self._known: Array | None = None  # C^T v - Q - Gamma_f at the last step

    def reset(self) -> None:
        self._known = None
        self.external = np.zeros_like(self._zero)

    def adopt(self, other: Term) -> None:
        assert isinstance(other, Observer)
        self.settings = other.settings
        self._known = None  # the integral begins anew from the present estimate

    def torque(self, moment: Moment) -> Array:
        dynamics, v = moment.dynamics, moment.v
        momentum = dynamics.A.dot(v)
        known = v.dot(dynamics.C)
        known -= dynamics.gravity
        known -= moment.friction
        if self._known is None:
            self._integral = momentum - self.external / self.settings.gain
        else:
            # Trapezoids for what changes within a step; the command and r are constant in it.
            rate = self._known
            rate += known
            rate *= 0.5
            rate += moment.applied
            rate += self.external
            rate *= moment.dt
            self._integral += rate
            self.external = self.settings.gain * (momentum - self._integral)
        self._known = known
        return self._zero

    def event(self) -> Literal['none', 'contact', 'collision']:
        """What the largest external torque says."""
        if self.external.dot(self.external) <= self.settings.contact**2:  # the usual case, at little cost
            return 'none'
        largest = self.largest()
        if not largest <= self.settings.collision:  # also where it is not a number
            return 'collision'
        return 'contact' if largest > self.settings.contact else 'none'

    def largest(self) -> float:
        """The largest external torque of any joint [N m]."""
        return float(np.abs(self.external).max())

    def wrench(self, J: Array) -> Array | None:
        """External wrench at the frame of a 6 x nv Jacobian, in its axes; None near a singularity."""
        u, s, vt = np.linalg.svd(J.T, full_matrices=False)
        if s[-1] < SINGULAR:
            return None
        return np.asarray(vt.T @ ((u.T @ self.external) / s))
