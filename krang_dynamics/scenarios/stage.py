"""Where a scenario is played: topics and parameters of a running controller and simulator."""

from typing import Protocol

from ..arrays import Array
from .motions import Motion


class Stage(Protocol):
    """What a scenario can do."""

    @property
    def q(self) -> Array:
        """Where the robot is [rad]."""

    def follow(self, motion: Motion) -> None:
        """Send a trajectory."""

    def push(self, frame: str, wrench: Array, duration: float) -> None:
        """Let the simulated robot be pushed: (force [N], moment [N m]), world axes, for so long [s]."""

    def stream_wrench(self, frame: str, frame_id: str, wrench: Array) -> None:
        """Ask for a wrench at an end effector from now on."""

    def set_controller(self, values: dict[str, object]) -> None:
        """Change parameters of the controller, together or not at all."""

    def set_simulator(self, values: dict[str, object]) -> None:
        """Change parameters of the simulator."""
