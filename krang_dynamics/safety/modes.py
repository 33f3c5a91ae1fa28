"""The modes of a controller, and faults."""

from dataclasses import dataclass
from enum import Enum


class Mode(Enum):
    """Torque is sent while ramping, active and stopping, and in a fault until the stop ends."""

    DISABLED = 'disabled'
    RAMPING = 'ramping'
    ACTIVE = 'active'
    STOPPING = 'stopping'
    FAULT = 'fault'


@dataclass(frozen=True)
class Fault:
    """The reason for a stop that was not requested: a short kind and a sentence."""

    kind: str
    reason: str

    def __str__(self) -> str:
        return f'{self.kind}: {self.reason}'
