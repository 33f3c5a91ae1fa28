"""The heartbeat of a guard, and what a controller concludes from it."""

from math import inf

HEARTBEAT = 0.05  # period of the guard's heartbeat [s]
LONGEST = 0.4  # gap between heartbeats; after a longer one the guard counts as dead [s]


def heartbeat(mode: str, obstacle: str) -> str:
    """The text of a heartbeat: the guard's mode and, if it does not relay, the reason."""
    return f'{mode}: {obstacle}' if obstacle else mode


class GuardLink:
    """The state of the guard, as its controller receives it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.mode = ''  # of the guard
        self._obstacle = ''
        self._received = -inf  # steady [s]
        self._received_by_time = -inf  # the controller's time then [s]

    def take(self, text: str, steady: float, now: float) -> None:
        """A heartbeat, by the steady clock and by the controller's time [s]."""
        self.mode, _, self._obstacle = text.partition(': ')
        self._received, self._received_by_time = steady, now

    def problem(self, steady: float, now: float | None = None) -> str:
        """Why the guard would not relay at this time [s]; empty if it would.

        With `now`, it is silent only by both clocks: in lock step a late guard delays simulated time, too.
        """
        if self._received == -inf:
            return f'no heartbeat of {self.name!r} was received; start it first'
        age = steady - self._received
        if now is not None:
            age = min(age, abs(now - self._received_by_time))
        if not age <= LONGEST:
            return f'no heartbeat of {self.name!r} for {age:.2f} s'
        return f'{self.name!r}: {self._obstacle}' if self._obstacle else ''
