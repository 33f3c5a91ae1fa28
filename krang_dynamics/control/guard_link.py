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

    def take(self, text: str, now: float) -> None:
        """A heartbeat that arrived at `now`, steady [s]."""
        self.mode, _, self._obstacle = text.partition(': ')
        self._received = now

    def problem(self, now: float) -> str:
        """Why the guard would not relay at `now`, steady [s]; empty if it would."""
        if self._received == -inf:
            return f'no heartbeat of {self.name!r} was received; start it first'
        if not now - self._received <= LONGEST:
            return f'no heartbeat of {self.name!r} for {now - self._received:.2f} s'
        return f'{self.name!r}: {self._obstacle}' if self._obstacle else ''
