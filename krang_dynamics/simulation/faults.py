"""What can go wrong with a simulated robot's sensors and drivers, on request."""

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from ..arrays import Array
from ..errors import InputError, UnknownNameError
from ..robot.model import Robot


@dataclass(frozen=True)
class Faults:
    """All off by default; noise is a standard deviation."""

    position_noise: float = 0.0  # [rad]
    velocity_noise: float = 0.0  # [rad/s]
    effort_noise: float = 0.0  # [N m]
    quantisation: float = 0.0  # of positions [rad]
    delay: float = 0.0  # of states [s]
    lost: float = 0.0  # share of states that are never sent
    frozen: tuple[str, ...] = ()  # joints whose sensors repeat their last value
    nan: tuple[str, ...] = ()  # joints whose sensors say NaN
    dead_drivers: tuple[str, ...] = ()  # that give no torque

    def check(self, robot: Robot, drivers: tuple[str, ...]) -> None:
        """Refuse names that do not exist."""
        for kind, names, valid in (
            ('joint', (*self.frozen, *self.nan), robot.joint_names),
            ('driver', self.dead_drivers, drivers),
        ):
            for name in names:
                if name not in valid:
                    raise UnknownNameError(kind, name, valid)
        if not 0 <= self.lost <= 1:
            raise InputError(f'lost is {self.lost}; it is a share, 0 .. 1')


@dataclass(frozen=True)
class Measurement:
    """What the sensors say at a time [s], over the robot's joints."""

    time: float
    q: Array  # [rad]
    v: Array  # [rad/s]
    effort: Array  # [N m]


@dataclass
class Sensors:
    """From the true state to what is measured; the same randomness at every run."""

    robot: Robot
    faults: Faults = field(default_factory=Faults)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """As at the beginning: nothing under way, and the same randomness again."""
        self._random = np.random.default_rng(0)
        self._late: deque[Measurement] = deque()
        self._frozen: dict[str, tuple[float, float]] = {}

    def measure(self, true: Measurement) -> Measurement | None:
        """What arrives for a true state; None where nothing does."""
        self._late.append(self._disturbed(true))
        arrived = None
        while self._late and self._late[0].time <= true.time - self.faults.delay + 1e-9:
            arrived = self._late.popleft()
        if self.faults.lost and self._random.random() < self.faults.lost:
            return None
        return arrived

    def _disturbed(self, true: Measurement) -> Measurement:
        faults, n = self.faults, self.robot.nv
        q, v, effort = true.q.copy(), true.v.copy(), true.effort.copy()
        for x, noise in (
            (q, faults.position_noise),
            (v, faults.velocity_noise),
            (effort, faults.effort_noise),
        ):
            if noise:
                x += self._random.normal(0.0, noise, n)
        if faults.quantisation:
            q = np.round(q / faults.quantisation) * faults.quantisation
        self._freeze(q, v)
        for name in faults.nan:
            row = self.robot.joint_names.index(name)
            q[row] = v[row] = np.nan
        return Measurement(true.time, q, v, effort)

    def _freeze(self, q: Array, v: Array) -> None:
        self._frozen = {name: value for name, value in self._frozen.items() if name in self.faults.frozen}
        for name in self.faults.frozen:
            row = self.robot.joint_names.index(name)
            q[row], v[row] = self._frozen.setdefault(name, (q[row], v[row]))
