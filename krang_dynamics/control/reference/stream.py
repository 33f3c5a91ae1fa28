"""Streamed motion: to a set-point, to a velocity or to rest, limited in velocity, acceleration and jerk."""

import atexit
from dataclasses import dataclass
from weakref import WeakSet

import numpy as np
from ruckig import (
    ControlInterface,
    InputParameter,
    Result,
    Ruckig,
    RuckigError,
    Synchronization,
    Trajectory,
)

from ...arrays import Array, any_true
from ...errors import InputError
from ...robot.model import Robot

DEFAULT_SPEED = 1.0  # of a joint without a speed limit [rad/s, m/s]
SPEED_TIME = 0.5  # default time from rest to the speed limit [s]
ACCELERATION_TIME = 0.05  # default time from no acceleration to its limit [s]
QUICKER = 1.2  # a motion that would pass a position limit is repeated this much quicker ...
MOST_TRIALS = 30  # ... up to 1.2^30 = 240 times
ROUND_OFF = 1e-9  # of positions [rad, m]
SHARES_OF_JERK = (1.0, 1 - 1e-6, 1 - 1e-4, 0.99)


@dataclass(frozen=True, eq=False)
class StreamLimits:
    """Largest speed [rad/s], acceleration [rad/s2] and jerk [rad/s3] of streamed motion, over joint_names."""

    velocity: Array
    acceleration: Array
    jerk: Array

    @classmethod
    def of(cls, robot: Robot) -> 'StreamLimits':
        """The URDF's speed limits, those speeds per SPEED_TIME, and that per ACCELERATION_TIME."""
        speed = robot.velocity_limits
        speed = np.where(np.isfinite(speed) & (speed > 0), speed, DEFAULT_SPEED)
        return cls(speed, speed / SPEED_TIME, speed / SPEED_TIME / ACCELERATION_TIME)


class StreamedMotion:
    """The quickest motion of n joints from `start` (3, n): position, velocity, acceleration.

    It ends at rest at `goal`, where joints may arrive `together`, or reaches `velocity` and keeps it. A joint
    that would pass a position limit accelerates more than the limits allow, so that it does not.
    """

    def __init__(
        self,
        start: Array,
        limits: StreamLimits,
        position: tuple[Array, Array],
        effort: Array,
        goal: Array | None = None,
        velocity: Array | None = None,
        together: bool = False,
    ) -> None:
        n = len(effort)
        request = InputParameter(n)
        # Positions are relative to the start: ruckig's extrema of a motion always include zero.
        self._origin = start[0].copy()
        position = position[0] - self._origin, position[1] - self._origin
        request.current_position, request.current_velocity = [0.0] * n, start[1].tolist()
        # With more acceleration than the limits allow, the joint would first become much faster.
        acceleration = np.clip(start[2], -limits.acceleration, limits.acceleration)
        request.current_acceleration = acceleration.tolist()
        request.max_velocity = limits.velocity.tolist()
        request.control_interface = ControlInterface.Velocity
        request.synchronization = Synchronization.No
        self._trajectory = _stop(request, limits, position)
        if goal is not None:
            request.control_interface = ControlInterface.Position
            request.synchronization = Synchronization.Phase if together else Synchronization.No
            request.target_position = (goal - self._origin).tolist()
        if velocity is not None:
            request.target_velocity = velocity.tolist()
        if goal is not None or velocity is not None:
            self._trajectory = _calculated(request)
        is_moving = velocity is not None and velocity.any()
        self.end = np.inf if is_moving else float(self._trajectory.duration)
        ends = self._trajectory.independent_min_durations
        self._ends = np.full(n, self.end) if together or is_moving else np.array(ends)
        self.rest = np.zeros((4, n))
        end = self._trajectory.at_time(self._trajectory.duration)[0]
        self.rest[0] = self._origin + end if goal is None else goal
        self.rest[3] = effort
        _alive.add(self)

    def write(self, t: float, out: Array) -> None:
        """The values (4, n) at t [s], written to an array."""
        out[:] = self.sample(t)

    def sample(self, t: float) -> Array:
        """Position, velocity, acceleration and effort (4, n) at t [s]."""
        if not t < self.end:
            return self.rest
        values = self.rest.copy()
        values[:3] = self._trajectory.at_time(max(t, 0.0))
        values[0] += self._origin
        # Joints that have arrived are at rest to the last bit, whatever the others do.
        arrived = t >= self._ends
        if any_true(arrived):
            values[:, arrived] = self.rest[:, arrived]
        return values


_alive: WeakSet[StreamedMotion] = WeakSet()


@atexit.register
def _release() -> None:
    """Release ruckig's objects before the interpreter ends: its bindings report later ones as leaks."""
    for motion in _alive:
        motion.__dict__.pop('_trajectory')


def _stop(request: InputParameter, limits: StreamLimits, position: tuple[Array, Array]) -> Trajectory:
    """The motion to rest; joints that would pass a position limit get more acceleration in the request.

    A motion to a goal does not go beyond both the goal and the place where it could stop.
    """
    lower, upper = np.minimum(position[0], 0.0) - ROUND_OFF, np.maximum(position[1], 0.0) + ROUND_OFF
    quicker = np.ones(len(lower))
    for _ in range(MOST_TRIALS):
        request.max_acceleration = (limits.acceleration * quicker).tolist()
        request.max_jerk = (limits.jerk * quicker**2).tolist()
        trajectory = _calculated(request)
        extrema = [(x.min, x.max) for x in trajectory.position_extrema]
        beyond = [a < low or b > high for (a, b), low, high in zip(extrema, lower, upper, strict=True)]
        if not any(beyond):
            break
        quicker = np.where(beyond, QUICKER * quicker, quicker)
    return trajectory


def _calculated(request: InputParameter) -> Trajectory:
    """The motion of a request. Where round-off prevents one, between two profiles, jerk is a little lower."""
    n, jerk = request.degrees_of_freedom, np.array(request.max_jerk)
    for share in SHARES_OF_JERK:
        request.max_jerk = (share * jerk).tolist()
        trajectory = Trajectory(n)
        try:
            result = Ruckig(n).calculate(request, trajectory)
        except RuckigError:
            continue
        if result in (Result.Working, Result.Finished):
            return trajectory
    raise InputError('no motion within the limits of the stream was found')
