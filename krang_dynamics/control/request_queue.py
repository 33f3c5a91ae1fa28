"""Requests between two steps: heartbeats, emergency stop, trajectories and wrenches."""

from collections import deque
from dataclasses import replace
from typing import Any

from . import messages
from .controller import Inputs
from .reference.trajectory import JointTrajectory
from .terms.wrench import WrenchSample

MOST_PRESSES = 100  # an even number, so that after a flood the last state is right
MOST_TRAJECTORIES = 100  # that wait for a step


class RequestQueue:
    """The newest heartbeat and wrenches; trajectories and presses in order, of which a step takes one."""

    def __init__(self) -> None:
        self._deadman: bool | None = None
        self._presses: deque[bool] = deque(maxlen=MOST_PRESSES)  # of the emergency stop, and releases
        self._trajectories: deque[tuple[JointTrajectory, int]] = deque()  # each with its reception [ns]
        self._wrenches: dict[str, WrenchSample] = {}  # by end effector

    def take_deadman(self, message: Any) -> None:
        self._deadman = bool(message.data)

    def take_emergency_stop(self, message: Any) -> None:
        pressed = bool(message.data)
        if not self._presses or self._presses[-1] != pressed:
            self._presses.append(pressed)

    def take_trajectory(self, message: Any, received: int) -> None:
        if len(self._trajectories) < MOST_TRAJECTORIES:
            self._trajectories.append((messages.joint_trajectory(message), received))

    def take_wrench(self, sample: WrenchSample) -> None:
        self._wrenches[sample.frame] = sample

    def empty_into(self, inputs: Inputs) -> int:
        """Hand over to one step what it may have; when its trajectory was received [ns], 0 without one."""
        inputs.deadman, self._deadman = self._deadman, None
        if self._presses:
            inputs.emergency_stop = self._presses.popleft()
        if self._wrenches:
            wrenches, self._wrenches = self._wrenches.values(), {}
            inputs.wrenches = [replace(sample, arrival=inputs.time) for sample in wrenches]
        if not self._trajectories:
            return 0
        inputs.trajectory, received = self._trajectories.popleft()
        return received
