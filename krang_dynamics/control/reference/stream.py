"""Streamed motion: to a set-point at rest, limited in velocity and acceleration."""

from dataclasses import dataclass

import numpy as np

from ...arrays import Array
from ...robot.model import Robot

DEFAULT_SPEED = 1.0  # of a joint without a speed limit [rad/s, m/s]
SPEED_TIME = 0.5  # default time from rest to the speed limit [s]


@dataclass(frozen=True, eq=False)
class StreamLimits:
    """Largest speed [rad/s, m/s] and acceleration [rad/s2, m/s2] of streamed motion, over joint_names."""

    velocity: Array
    acceleration: Array

    @classmethod
    def of(cls, robot: Robot) -> 'StreamLimits':
        """The URDF's speed limits, and those speeds per SPEED_TIME."""
        speed = robot.velocity_limits
        speed = np.where(np.isfinite(speed) & (speed > 0), speed, DEFAULT_SPEED)
        return cls(speed, speed / SPEED_TIME)


class SetPointProfile:
    """The quickest motion of n joints to `goal`: constant acceleration, then speed, then deceleration.

    `start` (2, n) is position and velocity at t = 0. A joint that is faster than `velocity` slows down first.
    The profile has no acceleration feed-forward: with a stream it would switch sign at every set-point.
    """

    def __init__(
        self, start: Array, goal: Array, velocity: Array, acceleration: Array, effort: Array
    ) -> None:
        p, v = start
        self._p, self._a, self._effort = p.copy(), acceleration, effort
        sign = np.sign(goal - stop_position(start, acceleration))
        self._sign = np.where(sign == 0, np.where(v < 0, -1.0, 1.0), sign)
        x, self._u = self._sign * (goal - p), self._sign * v
        u, a = self._u, acceleration
        peak = np.minimum(np.sqrt(np.maximum(a * x + u * u / 2, 0.0)), velocity)
        self._t1 = np.abs(peak - u) / a
        self._a1 = np.sign(peak - u) * a
        self._t3 = peak / a
        way = x - (u + peak) / 2 * self._t1 - peak / 2 * self._t3
        self._t2 = np.maximum(np.divide(way, peak, out=np.zeros_like(way), where=peak > 0), 0.0)
        self._peak, self._ends = peak, self._t1 + self._t2 + self._t3
        self.end = float(self._ends.max(initial=0.0))
        self.rest = np.array([goal, *np.zeros((2, len(goal))), effort])

    def sample(self, t: float) -> Array:
        """Position, velocity, zero and effort (4, n) at t [s]."""
        if not t < self.end:
            return self.rest
        t = max(t, 0.0)
        t1 = np.minimum(t, self._t1)
        t2 = np.minimum(np.maximum(t - self._t1, 0.0), self._t2)
        t3 = np.maximum(t - self._t1 - self._t2, 0.0)
        v = self._u + self._a1 * t1 - self._a * t3
        way = (self._u + self._a1 * t1 / 2) * t1 + self._peak * (t2 + t3) - self._a * t3 * t3 / 2
        values = self.rest.copy()
        moves = t < self._ends
        values[0] = np.where(moves, self._p + self._sign * way, values[0])
        values[1] = np.where(moves, self._sign * v, 0.0)
        return values


def stop_position(start: Array, acceleration: Array) -> Array:
    """Where joints with position and velocity (2, n) come to rest."""
    p, v = start
    return np.asarray(p + v * np.abs(v) / (2 * acceleration))


def braking(start: Array, acceleration: Array, lower: Array, upper: Array) -> Array:
    """The acceleration, or more where it would not stop a joint before its position limit."""
    p, v = start
    room = np.where(v > 0, upper - p, p - lower)
    needed = np.divide(v * v, 2 * room, out=np.zeros_like(v), where=(room > 1e-9) & np.isfinite(room))
    return np.asarray(np.maximum(acceleration, needed))
