"""The interface of all simulated plants: motor torques in, joint positions and velocities out."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import ceil, inf, isfinite
from numbers import Real

import numpy as np

from ..arrays import Array, array, joint_vector
from ..errors import InputError, KrangError, UnknownNameError
from ..kernels import moved
from ..robot.config import FrictionConfig
from ..robot.friction import Friction
from ..robot.model import Robot

STIFF = 1.0  # decay per step above which Runge-Kutta is inaccurate; above 2.8 it is unstable


class Plant(ABC):
    """A moving robot: q [rad, m] and v [rad/s, m/s] over robot.joint_names, time [s].

    It starts at home and at rest. A step longer than `timestep` [s] is divided into equal parts.
    """

    name: str  # of the engine

    def __init__(self, robot: Robot, friction: bool, timestep: float) -> None:
        self.robot = robot
        self.frames = robot.frames  # frames that push() accepts
        self.time = 0.0
        self._friction = robot.friction if friction else Friction(FrictionConfig(), robot.joint_names)
        self._is_dry = self._friction.sign == 'exact' and bool(self._friction.coulomb.any())
        self._timestep = _duration('timestep', timestep)
        self._is_stiff = _decay(robot, self._friction) * self._timestep > STIFF
        self._E = robot.actuation_matrix()
        self._q, self._v = robot.home, np.zeros(robot.nv)
        self._pushes: dict[str, Array] = {}

    @property
    def has_stiff_friction(self) -> bool:
        """Whether dry friction acts on joints whose viscous friction stops them within a step."""
        return self._is_stiff and self._is_dry

    @property
    def q(self) -> Array:
        return self._q.copy()

    @property
    def v(self) -> Array:
        return self._v.copy()

    def reset(self, q: Array, v: Array) -> None:
        """Restart at time 0 in the given state, without pushes."""
        names, shape = self.robot.joint_names, (self.robot.nv,)
        self._q = joint_vector('q', q, names, shape).copy()
        self._v = joint_vector('v', v, names, shape).copy()
        self.time = 0.0
        self._pushes = {}

    def push(self, frame: str, wrench: Array) -> None:
        """Apply (force [N], moment [N m]) at a frame's origin, in world axes, until the next call."""
        if frame not in self.frames:
            raise UnknownNameError('frame', frame, self.frames)
        f = array(f'wrench at {frame!r}', wrench, (6,)).copy()
        self._pushes.pop(frame, None)
        if f.any():
            self._pushes[frame] = f

    def step(self, u: Array, dt: float) -> None:
        """Advance by dt [s] under constant motor torques u [N m], one per actuated joint."""
        names = self.robot.actuated_joint_names
        force = self._E @ joint_vector('u', u, names, (len(names),))
        parts = ceil(_duration('dt', dt) / self._timestep - 1e-9)
        for _ in range(parts):
            self._advance(force, dt / parts)
        self.time += dt
        if not isfinite(self._q.dot(self._q) + self._v.dot(self._v)):
            raise KrangError(
                f'the simulation of {self.robot.name} diverged before {self.time:.3f} s; start it again '
                'with lower gains or torques, or at a higher rate: krang sim ROBOT --ros-args -p rate:=5000.0'
            )

    def _drag(self, q: Array, v: Array) -> Array:
        """The part of friction that is a smooth function of v [N m]: all of it unless the sign is exact."""
        friction = self._friction
        if self._is_dry:
            return friction.viscous * v + friction.offset
        return friction.torque(v, self.robot.friction_load(q))

    def _implicit_step(self, a: Array, h: float) -> None:
        """q and v after h [s] by Euler's method, implicit in smooth friction, from the acceleration."""
        self._v = self._v + h * self._damped(a, h)
        self._q = self._q + h * self._v

    def _damped(self, a: Array, h: float) -> Array:
        """The acceleration if smooth friction acts at the speed after h [s]: (A + h dGamma_f/dv) a' = A a."""
        K, n = self.robot.saddle_matrix(self._q), self.robot.nv
        right = K[:, :n] @ a
        load = self.robot.friction_load(self._q)
        K[:n, :n] += h * np.diag(self._friction.slope(self._v, load))
        return np.asarray(np.linalg.solve(K, right)[:n])

    @abstractmethod
    def _advance(self, force: Array, h: float) -> None:
        """Integrate q and v over h [s] under a generalised force of the motors [N m] over all joints."""


def _decay(robot: Robot, friction: Friction) -> float:
    """The fastest decay of a speed by smooth friction at home [1/s]."""
    F = np.sqrt(friction.slope(np.zeros(robot.nv), robot.friction_load(robot.home)))
    return float(np.linalg.eigvalsh(F[:, None] * np.linalg.inv(robot.mass_matrix(robot.home)) * F)[-1])


def rk4_step(
    acceleration: Callable[[Array, Array], Array], q: Array, v: Array, h: float
) -> tuple[Array, Array]:
    """q and v after h [s] by the classical Runge-Kutta method for q'' = a(q, v); error per step O(h^5)."""
    half = h / 2
    a1 = acceleration(q, v)
    v2 = moved(v, a1, half)
    a2 = acceleration(moved(q, v, half), v2)
    v3 = moved(v, a2, half)
    a3 = acceleration(moved(q, v2, half), v3)
    v4 = moved(v, a3, h)
    a4 = acceleration(moved(q, v3, h), v4)
    # The velocities v, v2, v3, v4 have weights 1, 2, 2, 1; equal terms are collected.
    inner = a2 + a3
    return moved(moved(q, v, h), a1 + inner, h * h / 6), moved(v, a1 + a4 + 2 * inner, h / 6)


def _duration(what: str, seconds: float) -> float:
    if not (isinstance(seconds, Real) and 0 < seconds < inf):
        raise InputError(f'{what} is {seconds!r}; it must be a positive number of seconds')
    return float(seconds)
