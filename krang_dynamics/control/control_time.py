"""The time that a controller lives in."""

AHEAD = 1.0  # by which a state may be ahead of the clock; more is another clock's [s]
BACKSTOP = 2.0  # a simulated clock that stands still for so long no longer counts [s]


class ControlTime:
    """Steady time on a machine; the simulated clock where there is one.

    A simulated clock that has stood still for BACKSTOP with torque in flight goes on at the pace of the
    steady clock, so that timeouts and stops come to their end whatever becomes of the simulator.
    """

    def __init__(self, is_simulated: bool) -> None:
        self.is_simulated = is_simulated
        self._clock = -1.0  # when it last moved, it showed this [s] ...
        self._since = 0.0  # ... at this steady time [s]
        self._newest = 0.0  # latest stamp of a state [s]
        self._last = 0.0  # what the clock itself last showed [s]

    def saw(self, stamp: float, clock: float) -> None:
        """A state of this stamp came, perhaps before the clock's own message of that time."""
        if clock < stamp <= clock + AHEAD:
            self._newest = stamp

    def now(self, steady: float, clock: float, is_sending: bool) -> float:
        """The time [s], from the steady clock and the node's clock.

        Without torque in flight a simulated clock may stand still for as long as it likes.
        """
        if not self.is_simulated:
            return steady
        if clock < self._last:  # it was set back, and so is everything that was ahead of it
            self._newest = 0.0
        self._last = clock
        if clock < self._newest <= clock + AHEAD:
            clock = self._newest
        if clock != self._clock or not is_sending:
            self._clock, self._since = clock, steady
        return clock + max(0.0, steady - self._since - BACKSTOP)
