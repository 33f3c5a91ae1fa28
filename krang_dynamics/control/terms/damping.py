"""Damping: gravity compensation alone lets a robot drift."""

from ...arrays import Array
from .term import Moment, Term


class Damping(Term):
    """-D v, D [N m s/rad] per joint."""

    name = 'damping'

    def __init__(self, damping: Array) -> None:
        self.damping = damping

    def adopt(self, other: Term) -> None:
        assert isinstance(other, Damping)
        self.damping = other.damping

    def torque(self, moment: Moment) -> Array:
        return -self.damping * moment.v
