"""The checks of a guard on every command: order, length, limits and rate."""

from dataclasses import dataclass
from math import inf

import numpy as np

from ..arrays import FLOAT64, Array, any_true, is_finite
from ..robot.model import Robot
from ..safety.limits import Limits
from ..safety.modes import Fault
from .drivers import Drivers

JITTER = 0.03  # largest jitter of commands; a controller limits the rate over at most 0.02 s [s]
GRACE = 1.0  # time for the controller to get a limit that was lowered here [s]
START = 0.1  # fraction of the effort limit by which a first torque may be outside the range from 0 to Q
UNSEEN = 0.1  # fraction of the speed limit by which a joint may be faster than in the last states
FASTEST = 1e3  # speed of a joint without a speed limit [rad/s]
ROUNDING = 1e-9  # relative


@dataclass(frozen=True)
class Command:
    """A command of the controller, in the drivers' order and unit."""

    values: Array
    label: str  # the drivers' names, separated by commas; '' if they are not given
    arrival: float  # steady [s]
    error: str = ''  # why the message could not be read


class CommandCheck:
    """Whether a controller within its limits could have sent a command.

    A torque or a current determines the intended torque. A voltage determines it only together with the
    speed that the controller used, which is one of the last speeds, not exactly the present one. So a
    voltage is within the limits if it is at one of these speeds, and the intended torque is the one among
    these speeds that is nearest to the last intended torque: that one must keep the rate limit.
    """

    def __init__(self, robot: Robot, drivers: Drivers, limits: Limits) -> None:
        self._joint_names = robot.joint_names
        self._drivers = drivers
        self._limits = limits
        self._label = ','.join(drivers.names)
        # Several drivers of one joint must agree, unless the limit of a command may prevent it.
        self._shares = len(drivers.names) > len(drivers.joints) and not drivers.is_limited
        self._has_drag = bool(robot.motors.drag.any())
        self._coulomb = robot.friction.coulomb
        self._zero = np.zeros(robot.nv)
        self._meant: Array | None = None  # intended torque of the last command [N m]; None: no torque
        self._standing = self._zero  # the torque of that command at rest [N m]
        self._may_begin = True  # whether the last command was zero, as at the end of a stop
        self._allowance = self._zero  # allowed change at once [N m]
        self._rates = (self._zero, self._zero)  # limits of the rate [N m/s] ...
        self._most = self._zero  # ... and the largest allowance with them [N m]
        self._range: tuple[Array, Array, Array] | None = None  # a ceiling, and the commands that it allows
        self._ceiling = self._effort = limits.effort  # largest torque now, and its limit [N m]
        self._lowered = -inf  # when that limit was last lowered [s]
        self._speeds = SpeedRange(robot.nv)
        self._time = -inf  # of the last step [s]

    def forget(self) -> None:
        """Reset: no torque is in flight."""
        self._meant = None

    def follow(self, command: Array, torque: Array) -> None:
        """The guard itself sends this command; the controller's next one must continue from it."""
        self._remember(command, torque, self._drivers.torque(command, self._zero))
        self._allowance = self._zero

    def advance(self, now: float, v: Array, span: float) -> None:
        """Advance the time; v [rad/s] is the present speed, and the speeds of the last `span` [s] count."""
        limits = self._limits
        dt = max(0.0, now - self._time)
        if limits.effort_rate is not self._rates[0] or limits.stop_rate is not self._rates[1]:
            self._rates = limits.effort_rate, limits.stop_rate
            self._most = JITTER * np.maximum(*self._rates)
        self._allowance = np.minimum(self._allowance + self._most * min(dt / JITTER, 1.0), self._most)
        self._lower_ceiling(now, dt)
        self._v = self._slowest = self._fastest = v
        if self._has_drag:
            slowest, fastest = self._speeds.take(now, v, span)
            unseen = np.minimum(UNSEEN * limits.velocity, FASTEST)
            self._slowest, self._fastest = slowest - unseen, fastest + unseen
        self._time = now

    def _lower_ceiling(self, now: float, dt: float) -> None:
        """A limit below the present torque is reached at the stop rate, after GRACE."""
        limits = self._limits
        if self._meant is None:
            self._ceiling = limits.effort
        elif limits.effort is not self._effort:
            within_reach = np.minimum(self._ceiling, np.abs(self._meant) + self._most)
            self._ceiling = np.maximum(limits.effort, within_reach)
            self._lowered = now if (limits.effort < self._effort).any() else self._lowered
        elif self._ceiling is not limits.effort and now - self._lowered > GRACE:
            ceiling = np.maximum(limits.effort, self._ceiling - limits.stop_rate * dt)
            self._ceiling = limits.effort if (ceiling == limits.effort).all() else ceiling
        self._effort = limits.effort

    def check(self, command: Command, measured: Array, gravity: Array) -> Fault | None:
        """The fault of a new command, or None; then it becomes the last command.

        A controller that is enabled begins at the `measured` effort [N m], NaN if there is none, or
        between 0 and Q, which is `gravity` [N m].
        """
        values = command.values
        reason = self._malformed(command) or self._beyond(values) or self._jump(values, measured, gravity)
        return None if reason is None else Fault('command', reason)

    def _malformed(self, command: Command) -> str | None:
        values, names = command.values, self._drivers.names
        if command.error:
            return command.error
        if not isinstance(values, np.ndarray) or values.dtype != FLOAT64 or values.shape != (len(names),):
            return f'{np.size(values)} numbers for {len(names)} drivers: {self._label}'
        if command.label not in ('', self._label):
            return f'it is for {command.label[:200]!r}, but the drivers are {self._label!r}'
        if not is_finite(values):
            i = int(np.argmin(np.isfinite(values)))
            return f'driver {names[i]!r}: {values[i]} is not finite'
        return None

    def _beyond(self, values: Array) -> str | None:
        """Compare with the limits in the drivers' unit, which includes the supply voltage."""
        if not any_true(values != 0):  # the end of a stop, when the motor may still turn
            return None
        drivers, (low, high) = self._drivers, self._allowed()
        beyond = (values < low) | (values > high)
        if any_true(beyond):
            i = int(np.argmax(beyond))
            return f'driver {drivers.names[i]!r}: {values[i]:.6g} is outside {low[i]:.6g} .. {high[i]:.6g}'
        if self._shares:
            share = drivers.command(drivers.torque(values, self._zero), self._zero)
            uneven = np.abs(values - share) > ROUNDING * np.abs(values).max()
            if any_true(uneven):
                i = int(np.argmax(uneven))
                return f'driver {drivers.names[i]!r}: {values[i]:.6g} is not its share, {share[i]:.6g}'
        return None

    def _allowed(self) -> tuple[Array, Array]:
        """The lowest and highest commands within the ceiling; without drag they do not depend on speed."""
        ceiling, known = self._ceiling, self._range
        if known is None or known[0] is not ceiling or self._has_drag:
            ends = (
                self._drivers.command(-ceiling, self._slowest),
                self._drivers.command(ceiling, self._fastest),
            )
            low, high = np.minimum(*ends), np.maximum(*ends)
            room = ROUNDING * np.maximum(np.abs(low), np.abs(high))
            self._range = known = ceiling, low - room, high + room
        return known[1], known[2]

    def _jump(self, values: Array, measured: Array, gravity: Array) -> str | None:
        """Rate limit as a leaky bucket: each joint accumulates the change that it may make at once."""
        drivers = self._drivers
        standing = low = high = drivers.torque(values, self._zero)
        if self._has_drag:
            low, high = drivers.torque(values, self._fastest), drivers.torque(values, self._slowest)
        if self._meant is None:
            reason = self._no_start(low, high, self._measured(measured), gravity)
            if reason is not None:
                return reason
            self._allowance = self._most
            self._remember(values, drivers.torque(values, self._v), standing)
            return None
        meant = np.minimum(np.maximum(self._meant, low), high)
        # A constant voltage changes no faster than the speed, whatever torque was intended.
        change = np.minimum(np.abs(meant - self._meant), np.abs(standing - self._standing))
        if not any_true(values != 0):
            change, meant = np.minimum(change, np.abs(self._meant)), self._zero
        if self._may_begin:
            begin = self._measured(measured)
            change = np.fmin(change, np.abs(np.minimum(np.maximum(begin, low), high) - begin))
        rounding = ROUNDING * (self._most + np.abs(standing))
        jumps = change > self._allowance + (high - low) + rounding
        if any_true(jumps):
            i = int(np.argmax(jumps))
            return f'joint {self._joint_names[i]!r}: its torque jumps by {change[i]:.4g} N m'
        self._allowance = self._allowance - change
        self._remember(values, meant, standing)
        return None

    def _measured(self, effort: Array) -> Array:
        """Measured effort [N m] within the ceiling; NaN where no motor can have had this torque."""
        begin = np.clip(effort, -self._ceiling, self._ceiling)
        begin[np.abs(effort) > self._ceiling + self._most] = np.nan
        return begin

    def _no_start(self, low: Array, high: Array, begin: Array, gravity: Array) -> str | None:
        """Why a stream must not begin with a torque between low and high [N m], or None."""
        room = self._coulomb + START * self._limits.effort
        lowest, highest = np.minimum(gravity, 0.0) - room, np.maximum(gravity, 0.0) + room
        is_near = (low <= begin + self._most) & (high >= begin - self._most)  # False without a measurement
        wrong = ~is_near & ((low > highest) | (high < lowest))
        if not any_true(wrong):
            return None
        i = int(np.argmax(wrong))
        effort = 'not measured' if np.isnan(begin[i]) else f'{begin[i]:.4g} N m'
        return (
            f'joint {self._joint_names[i]!r}: its first torque is {(low[i] + high[i]) / 2:.4g} N m; '
            f'it must be within {lowest[i]:.4g} .. {highest[i]:.4g} N m, or near the effort ({effort})'
        )

    def _remember(self, command: Array, meant: Array, standing: Array) -> None:
        self._meant, self._standing = meant, standing
        self._may_begin = not any_true(command != 0)


class SpeedRange:
    """Lowest and highest speed of each joint [rad/s] over the last one to two spans of time."""

    def __init__(self, n: int) -> None:
        self._before = self._recent = (np.zeros(n), np.zeros(n))
        self._since = -inf  # when `_recent` began [s]

    def take(self, now: float, v: Array, span: float) -> tuple[Array, Array]:
        if not 0.0 <= now - self._since <= span:
            self._before, self._recent, self._since = self._recent, (v, v), now
        low, high = self._recent
        self._recent = np.minimum(low, v), np.maximum(high, v)
        return np.minimum(self._before[0], self._recent[0]), np.maximum(self._before[1], self._recent[1])
