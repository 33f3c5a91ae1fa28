"""The output limiter, which every command passes."""

import numpy as np

from ..arrays import Array
from ..kernels import limited
from .limits import Limits


class OutputLimiter:
    """Finite, within the effort limit, no faster than the rate limit: P1 before P2 before P3.

    A limit lowered below the present torque is reached at the stop rate, not in a jump.
    """

    def __init__(self, limits: Limits, commanded: Array) -> None:
        self._limits = limits
        self._commanded = commanded  # 1 where a motor may get torque, 0 elsewhere
        self.last = np.zeros_like(limits.effort)
        self._adopt_limit()

    def start(self, torque: Array) -> Array:
        """The first command: the measured effort, 0 if it is not measured, within the limit."""
        wanted = np.where(np.isfinite(torque), torque, 0.0)
        self.last = np.zeros_like(wanted)
        self._adopt_limit()
        return self.limit(wanted, 1.0, np.full_like(wanted, np.inf))[0]

    def limit(self, torque: Array, dt: float, rate: Array) -> tuple[Array, bool]:
        """The command nearest to `torque` [N m] within the limits, and whether a limit changed it.

        Numbers that are not finite are replaced by the last command: the caller has latched the fault.
        """
        if self._limits.effort is not self._effort:
            self._adopt_limit()
        bound = self._limit
        if self._above:
            bound = np.maximum(bound, np.abs(self.last) - self._limits.stop_rate * dt)
        # A new array that cannot be changed: the next command starts from it.
        command, is_limited = limited(torque, self.last, rate, dt, bound)
        self.last = command
        if self._above:
            self._adopt_limit()
        return command, is_limited

    def _adopt_limit(self) -> None:
        self._effort = self._limits.effort
        self._limit = np.minimum(self._effort, self._limits.peak) * self._commanded
        self._above = bool((np.abs(self.last) > self._limit).any())  # after a limit was lowered
