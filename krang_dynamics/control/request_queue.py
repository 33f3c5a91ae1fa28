"""What people and planners ask of a controller between two steps: alike in node and replay."""

from collections import deque
from typing import Any

from . import messages
from .controller import Inputs
from .reference.trajectory import JointTrajectory
from .terms.wrench import WrenchSample

MOST_PRESSES = 100  # an even number, so that a flood ends as it began
MOST_TRAJECTORIES = 100  # that wait for a step; who sends more sends rubbish


class RequestQueue:
    """The newest of deadman and wrenches; every trajectory, press and release, of which a step takes one."""

    def __init__(self) -> None:
        self._deadman: bool | None = None
        self._presses: deque[bool] = deque(maxlen=MOST_PRESSES)  # of the emergency stop, and releases
        self._trajectories: deque[JointTrajectory] = deque()
        self._wrenches: dict[str, WrenchSample] = {}  # by end effector

    def take_deadman(self, message: Any) -> None:
        self._deadman = bool(message.data)

    def take_emergency_stop(self, message: Any) -> None:
        pressed = bool(message.data)
        if not self._presses or self._presses[-1] != pressed:
            self._presses.append(pressed)

    def take_trajectory(self, message: Any) -> None:
        if len(self._trajectories) < MOST_TRAJECTORIES:
            self._trajectories.append(messages.joint_trajectory(message))

    def take_wrench(self, frame: str, sample: WrenchSample) -> None:
        self._wrenches[frame] = sample

    def empty_into(self, inputs: Inputs) -> None:
        """Hand over to one step what it may have."""
        inputs.deadman, self._deadman = self._deadman, None
        if self._presses:
            inputs.emergency_stop = self._presses.popleft()
        if self._trajectories:
            inputs.trajectory = self._trajectories.popleft()
        if self._wrenches:
            inputs.wrenches, self._wrenches = list(self._wrenches.values()), {}
