"""~/state: mode, fault and values in force of a controller or guard, as JSON. One writer, one reader."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from math import isfinite
from typing import Any

import numpy as np

from ..errors import InputError
from ..robot.payload import Payload
from ..safety.modes import Fault

HAND_OVER = 'hand_over'  # event of a controller that ends and leaves the stop to its guard


@dataclass(frozen=True)
class NodeState:
    """The content of ~/state at one event."""

    event: str  # what caused it: configure, activate, enable, disable, mode, fault, parameters, ...
    time: float  # the node's clock [s]
    step: str  # time of the step at which it took effect, as in a command's layout.dim[2].label
    mode: str
    fault: Fault | None
    robot: str
    drivers: tuple[str, ...]
    parameters: dict[str, Any]  # in force, by name
    contact: str = 'none'
    payload: list[dict[str, Any]] = field(default_factory=list)
    gravity: list[float] = field(default_factory=list)  # root link's axes [m/s2]
    limits: dict[str, list[float]] = field(default_factory=dict)  # in force, over joint_names
    trajectory: int = 0  # when the trajectory of an event 'trajectory' was received [ns]

    def payloads(self, robot: str) -> list[Payload]:
        """What the robot of this name carries; InputError if it is another robot, or no payload."""
        if self.robot != robot:
            raise InputError(f'it is the state of {self.robot!r}; the robot is {robot!r}')
        try:
            return [Payload.checked(**{**entry, 'frame': str(entry['frame'])}) for entry in self.payload]
        except (TypeError, KeyError):
            raise InputError(f'payload {self.payload!r} is not a list of frame, mass, com, inertia') from None

    def to_json(self) -> str:
        """Arrays become lists, and numbers that are not finite become null."""
        return json.dumps(_plain(asdict(self)))

    @classmethod
    def from_json(cls, text: str) -> 'NodeState | None':
        """The state in a message; None if the text is something else."""
        try:
            data = json.loads(text)
            known = {f.name: data[f.name] for f in fields(cls) if f.name in data}
            fault = known['fault']
            known['fault'] = None if fault is None else Fault(str(fault['kind']), str(fault['reason']))
            known['drivers'] = tuple(known['drivers'])
            return cls(**known)
        except (ValueError, TypeError, KeyError, RecursionError):
            return None


def _plain(value: Any) -> Any:
    """The same in types that JSON has."""
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if value is None or isinstance(value, (str, int)) else str(value)
