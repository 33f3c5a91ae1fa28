"""A scenario: timed events on a running robot, and criteria for the result."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Array
from ..control.reference.trajectory import JointTrajectory
from .demo_record import DemoRecord

if TYPE_CHECKING:  # it needs ROS
    from ..nodes.robot_operator import RobotOperator

END_TOLERANCE = 0.1  # by which a record may miss the end of a part [s]
# References and pushes are sent so far ahead that a busy machine does not delay them [s]; a controller
# prepares a long trajectory in a thread, for which the simulation does not wait.
REFERENCE_LEAD, PUSH_LEAD = 1.5, 0.4

Event = tuple[float, Callable[['RobotOperator'], None]]  # simulated time since the start [s], action


@dataclass(frozen=True)
class Result:
    """One row of the table at the end: a measured number and its upper bound."""

    name: str
    measured: float
    bound: float
    unit: str

    @property
    def passed(self) -> bool:
        return bool(self.measured <= self.bound)


@dataclass(frozen=True)
class Criterion:
    """An upper bound on a measure of one part of the scenario, which ends at `end` [s]."""

    name: str
    measure: Callable[[DemoRecord], float]
    bound: float
    unit: str
    end: float


@dataclass
class Scenario:
    """Terms, parameters, events and criteria of one demonstration."""

    terms: tuple[str, ...]
    duration: float  # [s]
    events: list[Event]
    criteria: list[Criterion]
    controller: dict[str, Any] = field(default_factory=dict)  # parameters of one node
    simulator: dict[str, Any] = field(default_factory=dict)
    shared: dict[str, Any] = field(default_factory=dict)  # parameters of these two and of the guard
    phases: Sequence[tuple[float, str]] = ()  # start [s] and name, for the picture
    # Control error of each joint [rad, m], NaN where a joint is not controlled.
    error: Callable[[DemoRecord], Array] = lambda record: record.error

    def evaluate(self, record: DemoRecord) -> list[Result]:
        """The result of every part that was completed."""
        completed = [c for c in self.criteria if record.times[-1] > c.end - END_TOLERANCE]
        return [Result(c.name, c.measure(record), c.bound, c.unit) for c in completed]

    def play(self, operator: 'RobotOperator', duration: float, progress: Callable[[float], None]) -> None:
        """Trigger the events at their times until `duration` [s]."""
        waiting = sorted(self.events, key=lambda event: event[0])
        while operator.now < duration:
            operator.step()
            while waiting and waiting[0][0] <= operator.now:
                waiting.pop(0)[1](operator)
            progress(operator.now)


def follow(time: float, trajectory: JointTrajectory) -> Event:
    """A trajectory that starts at a time [s]."""
    return max(0.0, time - REFERENCE_LEAD), lambda operator: operator.follow(trajectory, time)


def push(time: float, frame: str, force: tuple[float, float, float], duration: float) -> Event:
    """A force [N] in world axes at a time [s], for a duration [s]."""
    wrench = np.array([*force, 0, 0, 0.0])
    return time - PUSH_LEAD, lambda operator: operator.push(frame, wrench, duration, time)


def largest(deviation: Array) -> float:
    """The largest absolute value."""
    return float(np.abs(deviation).max())


def rms(error: Array) -> float:
    """Root mean square of the worst joint."""
    return float(np.sqrt((error**2).mean(axis=0)).max())
