"""Faults of a simulated robot's sensors and drivers."""

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from ..arrays import Array
from ..errors import InputError, UnknownNameError
from ..robot.model import Robot


@dataclass(frozen=True)
class Faults:
    """Sensor and driver faults, all off by default; noise is a standard deviation."""

    position_noise: float = 0.0  # [rad]
    velocity_noise: float = 0.0  # [rad/s]
    effort_noise: float = 0.0  # [N m]
    quantisation: float = 0.0  # of positions [rad]
    delay: float = 0.0  # of states [s]
    lost: float = 0.0  # fraction of states that are not sent
    frozen: tuple[str, ...] = ()  # joints whose sensors repeat their last value
    nan: tuple[str, ...] = ()  # joints whose sensors give NaN
    dead_drivers: tuple[str, ...] = ()  # drivers that give no torque

    def check(self, robot: Robot, drivers: tuple[str, ...]) -> None:
        """Refuse unknown names and impossible values."""
        for kind, names, valid in (
            ('joint', (*self.frozen, *self.nan), robot.joint_names),
            ('driver', self.dead_drivers, drivers),
        ):
            for name in names:
                if name not in valid:
                    raise UnknownNameError(kind, name, valid)
        if not 0 <= self.lost <= 1:
            raise InputError(f'lost is {self.lost}; it must be a fraction, 0 .. 1')


@dataclass(frozen=True)
class Measurement:
    """A state at a time [s], over the robot's joints."""

    time: float
    q: Array  # [rad]
    v: Array  # [rad/s]
    effort: Array  # [N m]


@dataclass
class SensorModel:
    """From the true state to the measured one; random numbers depend on the seed alone."""

    robot: Robot
    faults: Faults = field(default_factory=Faults)
    seed: int = 0

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Return to the initial state: no delayed measurements, the same random numbers again."""
        self._random = np.random.default_rng(self.seed)
        self._delayed: deque[Measurement] = deque()
        self._frozen: dict[str, tuple[float, float]] = {}

    def measure(self, true: Measurement) -> Measurement | None:
        """The measurement that arrives at the time of a true state; None if none arrives."""
        self._delayed.append(self._disturbed(true))
        arrived = None
        while self._delayed and self._delayed[0].time <= true.time - self.faults.delay + 1e-9:
            arrived = self._delayed.popleft()
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
