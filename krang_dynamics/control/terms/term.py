"""What a torque term is: one method from the present moment to a torque."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from ...arrays import Array
from ..dynamics import Dynamics


@dataclass(slots=True)
class Moment:
    """The state and its reference at one step, all over joint_names; shared by all terms, changed by none."""

    time: float  # steady [s]
    dt: float  # since the last step [s]
    q: Array  # [rad]
    v: Array  # [rad/s]
    q_d: Array  # reference
    v_d: Array
    a_d: Array
    effort_d: Array  # feed-forward [N m]
    applied: Array  # the torque commanded since the last step [N m]
    friction: Array  # Gamma_f(v), as the robot's model has it [N m]
    dynamics: Dynamics


class Term(ABC):
    """A part of the torque that goes to the motors."""

    name: str

    @abstractmethod
    def torque(self, moment: Moment) -> Array:
        """Torque [N m] over joint_names, in an array that nobody will change."""

    def reset(self) -> None:  # noqa: B027
        """Forget the past, as at enable; terms without a past have nothing to forget."""

    def adopt(self, other: 'Term') -> None:  # noqa: B027
        """Take over the settings of another term of the same kind, and keep one's own past."""
