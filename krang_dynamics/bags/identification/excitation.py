"""`krang excite`: motions within limits for which identification is well conditioned."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ...arrays import Array, Mask
from ...control.reference.trajectory import JointTrajectory
from ...errors import InputError, KrangError, UnknownNameError, UrdfError
from ...robot.model import Robot
from ...robot.self_distance import SelfDistance
from ...text import number, table
from ..parallel import Progress
from ..validation.filtering import FilteredMotion
from ..validation.prediction import Predictor
from .least_squares import BaseParameters, base_parameters
from .regressor import Regressor, Unknowns, random_motion

MARGIN = 0.9  # used fraction of each limit
POINTS = 150  # samples of a motion for torque limits and condition number
FINE = 2000  # samples for position and velocity limits
MOST_POINTS = 1_000_000  # written
TURN = np.pi  # amplitude of a joint without position limits [rad]
CLEARANCE = 0.02  # least distance between links [m], at most half of that at home
AMPLITUDES = (1.0, 0.8, 0.6, 0.45, 0.3, 0.2, 0.1)  # tried until the links are clear
CHECKED = 1000  # poses of the final motion whose distances are checked
ROUNDS, STEP = 80, 0.2  # of the reduction of amplitudes to the torque limits
SPEEDS = 5  # of passes for friction, each half as fast as the one before
EASE = 0.2  # share of a pass in which the speed rises, and falls


@dataclass(frozen=True)
class Design:
    """Duration and rate of the motion, base frequency, number of harmonics, and number of trials."""

    duration: float = 30.0  # [s]
    rate: float = 100.0  # of the written points [Hz]
    frequency: float = 0.1  # [Hz]
    harmonics: int = 5
    tries: int = 300

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 < value < np.inf:
                raise InputError(f'{name} is {value}; it must be positive')
        if self.duration * self.rate > MOST_POINTS:
            raise InputError(
                f'{self.duration:g} s at {self.rate:g} points per second are too many points; '
                f'the limit is {MOST_POINTS}'
            )
        if 2 * self.frequency * self.harmonics > self.rate:
            raise InputError(
                f'{self.harmonics} harmonics of {self.frequency:g} Hz reach '
                f'{self.frequency * self.harmonics:g} Hz; with {self.rate:g} points per second '
                f'the limit is {self.rate / 2:g} Hz'
            )

    @property
    def ramp(self) -> float:
        """Time in which the amplitude rises from zero, and returns to zero [s]."""
        return min(0.2 * self.duration, 1 / self.frequency)


@dataclass(frozen=True)
class Excitation:
    """The motion over joint_names (K, n) and the condition number of its regressor."""

    robot: Robot
    t: Array
    q: Array
    v: Array
    a: Array
    torque: Array
    condition: float  # NaN if it was not the goal
    first: float  # condition number of the first trial
    moved: tuple[str, ...]
    clearance: str  # a sentence on the distance between links

    def text(self) -> str:
        """Range, speed and torque per joint, with the limits."""
        robot, rows = self.robot, []
        for j, name in enumerate(robot.joint_names):
            if name in self.moved:
                peak = np.abs(self.torque[:, j]).max()
                rows.append(
                    [
                        name,
                        f'{self.q[:, j].min():.3f}',
                        f'{self.q[:, j].max():.3f}',
                        f'{np.abs(self.v[:, j]).max():.3f}',
                        number(robot.velocity_limits[j], 3),
                        number(peak, 4),
                        number(robot.effort_limits[j], 4),
                    ]
                )
        goal = f', condition number {self.condition:.4g} (first trial {self.first:.4g})'
        goal = goal if np.isfinite(self.condition) else ', at constant speeds'
        header = ['joint', 'from [rad]', 'to', 'speed [rad/s]', 'limit', 'torque [N m]', 'limit']
        return '\n'.join(
            [
                f'{robot.name}: {self.t[-1]:.1f} s{goal}',
                *(f'  {line}' for line in table(header, rows)),
                self.clearance,
                'Collisions with the surroundings are not checked: run the motion in a simulator first.',
            ]
        )

    def trajectory(self) -> JointTrajectory:
        """The motion of the joints that move."""
        columns = [self.robot.joint_names.index(name) for name in self.moved]
        return JointTrajectory(self.moved, self.t, self.q[:, columns], self.v[:, columns], self.a[:, columns])


def excite(robot: Robot, design: Design, locked: Mapping[str, float], count: int = 1) -> list[Excitation]:
    """Motions that are well conditioned together; the condition number of each is that of all up to it.

    Each search for coefficients of least condition number is deterministic.
    """
    if count < 1:
        raise InputError(f'--motions is {count}; it must be 1 or more')
    search = _Search(_movable(robot, locked), design, locked)
    return [search.run(number) for number in range(count)]


def friction_passes(robot: Robot, design: Design, locked: Mapping[str, float]) -> Excitation:
    """Passes at constant speeds, forward and back, each half as fast as the one before."""
    return _Passes(_movable(robot, locked), design, locked).run()


def _movable(robot: Robot, locked: Mapping[str, float]) -> Robot:
    for name in locked:
        if name not in robot.joint_names:
            raise UnknownNameError('joint to lock', name, robot.joint_names)
    if robot.config.rolling:
        raise KrangError(
            f'{robot.name} rolls: its joints cannot move independently, so no motion is designed'
        )
    return robot


class _Search:
    """Coefficients of a Fourier series per joint, (2, harmonics, n)."""

    def __init__(self, robot: Robot, design: Design, locked: Mapping[str, float]) -> None:
        self.robot, self.design = robot, design
        self.center = np.array([locked.get(n, x) for n, x in zip(robot.joint_names, robot.home, strict=True)])
        driven = np.isin(robot.joint_names, robot.actuated_joint_names)
        self.moving = driven & ~np.isin(robot.joint_names, list(locked))
        if not self.moving.any():
            raise KrangError(f'{robot.name}: no driven joint can move; all are locked')
        self._predictor = Predictor(robot)
        self._distance, self._unchecked = None, ''
        try:
            self._distance = SelfDistance(robot)
            self._clearance = min(CLEARANCE, 0.5 * self._distance.minimum(self.center)[0])
        except UrdfError as error:
            self._unchecked = str(error)
        self._regressor = Regressor(robot, Unknowns(robot.friction.sign or 'exact'), self.moving, self.moving)
        self._base = self._identifiable()
        reach = np.minimum(robot.upper - self.center, self.center - robot.lower)
        self._reach = MARGIN * np.where(np.isfinite(reach), reach, TURN)
        if (self._reach[self.moving] <= 0).any():
            stuck = [
                n for n, m, r in zip(robot.joint_names, self.moving, self._reach, strict=True) if m and r <= 0
            ]
            raise KrangError(f'{stuck[0]} is at its position limit at home; --lock it, or change home')
        self._coarse = self._times()
        self._earlier: Array | float = 0.0  # Y^T Y of the motions before
        self._share = np.ones(robot.nv)  # amplitude of each joint in the last trial, relative to its reach
        self._peak_torque = self._influence()

    def run(self, number: int = 0) -> Excitation:
        """Random search, for the motion of this number."""
        random = np.random.default_rng(2 + number)
        shape = (2, self.design.harmonics, self.robot.nv)
        progress = Progress('searching motions', self.design.tries)
        coefficients = random.normal(size=shape)
        best = first = self._clear_condition(coefficients, np.inf)
        for k in range(self.design.tries):
            # The first third samples at random, the rest near the best so far with decreasing steps.
            is_random = k < self.design.tries // 3
            step = max(0.05, 1.0 - k / self.design.tries)
            trial = random.normal(size=shape) + (0 if is_random else coefficients / step)
            condition = self._clear_condition(trial, best)
            if condition < best:
                best, coefficients = condition, trial / np.abs(trial).max()
            progress.step()
        progress.end()
        return self._result(coefficients, best, first)

    def motion(self, coefficients: Array, t: Array, amplitude: float = 1.0) -> FilteredMotion | None:
        """The series at times t, as large as the limits allow; None if gravity exceeds effort limits."""
        fitted = self._within_torque(amplitude * self._within_reach(coefficients))
        return None if fitted is None else self._at(fitted, t)

    def _amplitude(self, coefficients: Array, t: Array) -> float:
        """The largest amplitude at which the links keep their distance; 0 if there is none."""
        if self._distance is None:
            return 1.0
        for amplitude in AMPLITUDES:
            motion = self.motion(coefficients, t, amplitude)
            distance, least = self._distance, self._clearance
            if motion is not None and all(distance.minimum(q)[0] >= least for q in motion.q):
                return amplitude
        return 0.0

    def _within_reach(self, coefficients: Array) -> Array:
        """Scale each joint to its position and velocity limits."""
        dq, dv, _ = self._series(coefficients, np.linspace(0, self.design.duration, FINE))
        peak_q, peak_v = np.abs(dq).max(axis=0), np.abs(dv).max(axis=0)
        scale = np.minimum(self._reach / peak_q, MARGIN * self.robot.velocity_limits / peak_v)
        return np.where(self.moving, coefficients * scale, 0.0)

    def _at(self, coefficients: Array, t: Array) -> FilteredMotion:
        dq, v, a = self._series(coefficients, t)
        return FilteredMotion(t, np.zeros(len(t), np.int64), self.center + dq, v, a, np.zeros_like(dq))

    def _influence(self) -> Array:
        """Peak torque of joint i due to motion of joint j alone at full amplitude, (n, n) [N m]."""
        n = self.robot.nv
        full = self._within_reach(self._any())
        still = self._torques(self._at(0 * full, self._coarse))
        peak = np.zeros((n, n))
        for j in np.flatnonzero(self.moving):
            alone = np.where(np.arange(n) == j, full, 0.0)
            peak[:, j] = np.abs(self._torques(self._at(alone, self._coarse)) - still).max(axis=0)
        return peak

    def _times(self) -> Array:
        """Where torques and condition numbers are evaluated [s]."""
        return np.linspace(0, self.design.duration, POINTS)

    def _any(self) -> Array:
        """Some coefficients."""
        return np.random.default_rng(3).normal(size=(2, self.design.harmonics, self.robot.nv))

    def _within_torque(self, coefficients: Array) -> Array | None:
        """Scale down until all torques are within limits; first the joints that load the worst joint most."""
        limits = MARGIN * self.robot.effort_limits
        share = self._share.copy()
        for _ in range(ROUNDS):
            torque = np.abs(self._torques(self._at(coefficients * share, self._coarse))).max(axis=0)
            excess = np.where(self.moving, torque / np.maximum(limits, 1e-12), 0.0)
            worst = int(np.argmax(excess))
            if excess[worst] <= 1:
                # The next trial is likely to need similar amplitudes: it starts a little above.
                self._share = np.minimum(1.0, 1.1 * share)
                return coefficients * share
            load = (self._peak_torque[worst] * share) ** 2
            share *= 1 - STEP * load / max(load.max(), 1e-12)
        self._share = np.ones(self.robot.nv)
        return None

    def _torques(self, motion: FilteredMotion) -> Array:
        return self._predictor.torques(motion)['friction']

    def _series(self, coefficients: Array, t: Array) -> tuple[Array, Array, Array]:
        """Displacement, velocity and acceleration (K, n) of w(t) times a sum of sines and cosines."""
        w, dw, ddw = _window(t, self.design.duration, self.design.ramp)
        f = df = ddf = np.zeros((len(t), self.robot.nv))
        for k in range(self.design.harmonics):
            omega = 2 * np.pi * self.design.frequency * (k + 1)
            sine, cosine = np.sin(omega * t)[:, None], np.cos(omega * t)[:, None]
            a, b = coefficients[:, k] / omega
            f = f + a * sine + b * cosine
            df = df + omega * (a * cosine - b * sine)
            ddf = ddf - omega**2 * (a * sine + b * cosine)
        return w * f, dw * f + w * df, ddw * f + 2 * dw * df + w * ddf

    def _identifiable(self) -> BaseParameters:
        regressor = self._regressor
        names, still = self.robot.joint_names, ~self.moving
        locked = {names[j]: float(self.center[j]) for j in np.flatnonzero(still)}
        motion = random_motion(self.robot, max(60, len(regressor.names)), locked)
        Y = regressor.matrix(motion)[:, self.moving].reshape(-1, len(regressor.names))
        return base_parameters(Y, np.arange(len(regressor.names)) >= regressor.inertial)

    def _clear_condition(self, coefficients: Array, best: float) -> float:
        """The condition number of the largest motion without self-collision; a smaller one is no better."""
        condition = self._condition(coefficients)
        if not condition < best:
            return condition
        amplitude = self._amplitude(coefficients, self._coarse)
        if amplitude == 1.0:
            return condition
        return self._condition(coefficients, amplitude) if amplitude else np.inf

    def _condition(self, coefficients: Array, amplitude: float = 1.0) -> float:
        motion = self.motion(coefficients, self._coarse, amplitude)
        if motion is None:
            return np.inf
        products = self._earlier + self._products(motion)
        scale = np.maximum(np.sqrt(np.diag(products)), 1e-12)
        eigenvalues = np.linalg.eigvalsh(products / scale / scale[:, None])
        return float(np.sqrt(eigenvalues[-1] / max(eigenvalues[0], 1e-15)))

    def _products(self, motion: FilteredMotion) -> Array:
        """Y^T Y of the base parameters."""
        Y = self._regressor.matrix(motion)[:, self.moving][:, :, self._base.independent]
        columns = (Y / self._weights()).reshape(-1, Y.shape[2])
        return np.asarray(columns.T @ columns)

    def _weights(self) -> Array:
        """Weight of each joint's equation: its effort limit [N m]."""
        limits = self.robot.effort_limits[self.moving]
        return np.where(np.isfinite(limits) & (limits > 0), limits, 1.0)[:, None]

    def _result(self, coefficients: Array, best: float, first: float) -> Excitation:
        if not np.isfinite(best):
            raise KrangError(
                f'{self.robot.name}: no motion about home is within the effort limits and free of '
                'self-collision; --lock JOINT=VALUE, or change home'
            )
        t = np.arange(0, self.design.duration + 0.5 / self.design.rate, 1 / self.design.rate)
        amplitude = self._amplitude(coefficients, t[:: max(1, len(t) // CHECKED)])
        motion = self.motion(coefficients, t, amplitude) if amplitude else None
        if motion is None:
            raise KrangError(
                f'{self.robot.name}: its links come closer than {self._clearance:.3f} m to each other in '
                'every motion about home; --lock JOINT=VALUE, or change home'
            )
        clearance = f'Self-collision is not checked: {self._unchecked}'
        if self._distance is not None:
            _, gap, pair = self._distance.along(motion.q[:: max(1, len(t) // CHECKED)])
            clearance = 'No two links can collide.'
            if pair is not None:
                clearance = f'Smallest distance between links: {gap:.3f} m, {pair[0]} and {pair[1]}.'
        torque = self._torques(motion)
        moved = _names(self.robot, self.moving)
        condition = self._condition(coefficients, amplitude)
        few = motion.every(max(1, len(t) // POINTS))
        self._earlier = self._earlier + self._products(few)
        return Excitation(
            self.robot, t, motion.q, motion.v, motion.a, torque, condition, first, moved, clearance
        )


class _Passes(_Search):
    """Coefficients are amplitudes of the joints, (n,)."""

    def run(self, number: int = 0) -> Excitation:
        """As large as the limits allow."""
        condition = self._clear_condition(self._any(), np.inf)
        return replace(self._result(self._any(), condition, np.nan), condition=np.nan)

    def _any(self) -> Array:
        return np.ones(self.robot.nv)

    def _times(self) -> Array:
        ends = self._ends()
        return np.interp(np.linspace(0, len(ends) - 1, 2 * POINTS), np.arange(len(ends)), ends)

    def _ends(self) -> Array:
        """Times between the passes [s]."""
        lengths = np.repeat(2.0 ** np.arange(SPEEDS), 2)
        return np.append(0.0, np.cumsum(lengths)) * self.design.duration / lengths.sum()

    def _series(self, coefficients: Array, t: Array) -> tuple[Array, Array, Array]:
        x, v, a = np.zeros((3, len(t)))
        for k, (start, end) in enumerate(pairwise(self._ends().tolist())):
            inside = (t >= start) & (t <= end + 1e-9)
            side, back = (-1.0) ** (k // 2), k % 2
            shape = _pass((t[inside] - start) / (end - start))
            x[inside] = side * (1 - shape[0] if back else shape[0])
            v[inside], a[inside] = (side * (-1) ** back * shape[i] / (end - start) ** i for i in (1, 2))
        return x[:, None] * coefficients, v[:, None] * coefficients, a[:, None] * coefficients


def _pass(s: Array) -> tuple[Array, Array, Array]:
    """x(s) from 0 to 1 with constant speed, but for smooth ends of length EASE; and two derivatives."""
    near = np.clip(np.minimum(s, 1 - s), 0, EASE)
    top, phase = 1 / (1 - EASE), np.pi * near / EASE
    speed = top * (1 - np.cos(phase)) / 2
    turn = np.where(near < EASE, top * np.pi / (2 * EASE) * np.sin(phase), 0.0) * np.where(s < 0.5, 1, -1)
    ramp = top / 2 * (near - EASE / np.pi * np.sin(phase)) + top * np.maximum(np.minimum(s, 1 - s) - EASE, 0)
    return np.where(s < 0.5, ramp, 1 - ramp), speed, turn


def _names(robot: Robot, mask: Mask) -> tuple[str, ...]:
    return tuple(name for name, chosen in zip(robot.joint_names, mask, strict=True) if chosen)


def _window(t: Array, duration: float, ramp: float) -> Sequence[Array]:
    """w(t) from 0 to 1 to 0 with quintic ends, so that the motion starts and ends at rest; w, w', w''."""
    s = np.clip(np.minimum(t, duration - t) / ramp, 0, 1)
    toward = np.where(t < duration / 2, 1.0, -1.0) / ramp
    w = s**3 * (10 - 15 * s + 6 * s**2)
    dw = 30 * s**2 * (1 - s) ** 2 * toward
    ddw = 60 * s * (1 - s) * (1 - 2 * s) / ramp**2
    return w[:, None], dw[:, None], ddw[:, None]
