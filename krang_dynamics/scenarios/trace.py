"""What was heard during a demonstration, as arrays over simulated time."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import KrangError


@dataclass(frozen=True)
class Series:
    """Rows of numbers at times [s]."""

    times: Array
    values: Array

    def between(self, begin: float, end: float) -> Array:
        """The rows from begin to end [s]."""
        return np.asarray(self.values[(self.times >= begin) & (self.times <= end)])


@dataclass(frozen=True)
class Record:
    """One row per state that was answered, all over the robot's joints; times since the start [s]."""

    times: Array
    q: Array  # [rad]
    desired: Array  # reference of q [rad]
    torque: Array  # commanded [N m]
    external: Array  # as the observer sees it [N m], zeros without one
    terms: Mapping[str, Array] = field(default_factory=dict)  # [N m]
    wrenches: Mapping[str, Series] = field(default_factory=dict)  # measured at frames [N, N m]
    states: tuple[tuple[float, dict[str, Any]], ...] = ()  # of ~/state

    @property
    def error(self) -> Array:
        """Reference minus position [rad]."""
        return self.desired - self.q

    def between(self, begin: float, end: float) -> 'Record':
        """The rows from begin to end [s]."""
        rows = (self.times >= begin) & (self.times <= end)
        if not rows.any():
            raise KrangError(f'the demonstration ended before {begin:g} s; give it more time')
        return replace(
            self,
            times=self.times[rows],
            q=self.q[rows],
            desired=self.desired[rows],
            torque=self.torque[rows],
            external=self.external[rows],
            terms={name: term[rows] for name, term in self.terms.items()},
        )

    def wrench(self, frame: str) -> Series:
        return self.wrenches[frame]

    def touched(self, frame: str, after: float) -> float:
        """When something first acted on a frame [s]; infinite where nothing did."""
        times, values = self.wrenches[frame].times, self.wrenches[frame].values
        return float(min(times[(times >= after) & values.any(axis=1)], default=np.inf))

    def time_of(self, key: str, value: str, after: float) -> float:
        """When ~/state first said so [s]; infinite where it never did."""
        times = [time for time, state in self.states if time >= after and state[key] == value]
        return min(times, default=np.inf)
