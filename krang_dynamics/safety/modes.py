"""The state machine: disabled, ramping, active, stopping, fault."""

from dataclasses import dataclass
from enum import Enum


class Mode(Enum):
    """What the controller is doing; only the middle three send torque."""

    DISABLED = 'disabled'
    RAMPING = 'ramping'
    ACTIVE = 'active'
    STOPPING = 'stopping'
    FAULT = 'fault'


@dataclass(frozen=True)
class Fault:
    """Why the controller stopped by itself: a short kind and a sentence."""

    kind: str
    reason: str

    def __str__(self) -> str:
        return f'{self.kind}: {self.reason}'
