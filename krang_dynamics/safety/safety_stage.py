"""The safety stage: computes every command from the torque of the terms and the torque of a stop."""

import numpy as np

from ..arrays import Array, any_true, is_finite
from ..kernels import in_proportion
from ..robot.config import StopConfig
from ..robot.model import Robot
from .limits import Limits
from .modes import Fault, Mode
from .output_limiter import OutputLimiter
from .stop_policies import Fade, Lower, StopPolicy, StopState, Zero, stop_policy

ACTIVE = Mode.ACTIVE  # looked up once: members of an enum are slow to access
DRIVING = (Mode.RAMPING, ACTIVE)
LONGEST_STEP = 0.02  # largest time for which the rate limit allows a change at once [s]


class SafetyStage:
    """Modes, ramp, stop and output limiter. A fault latches until it is cleared.

    `step` always gets both the torque of the terms and the torque of a stop, so that stopping never needs
    anything that may have failed.
    """

    def __init__(
        self, robot: Robot, limits: Limits, stop: StopConfig, ramp_time: float, commanded: Array
    ) -> None:
        self.limits = limits
        self.ramp_time = ramp_time  # [s]
        self._stopping: StopPolicy | None = None
        self.mode = Mode.DISABLED
        self.fault: Fault | None = None
        self.limited = False  # whether a limit changed the last command
        self.stop = stop
        self.policy = stop_policy(stop.policy)
        self._limiter = OutputLimiter(limits, commanded)
        self._first = np.zeros(robot.nv)  # torque at the beginning of the ramp
        self._since = 0.0  # when the ramp began [s]
        self._last_time: float | None = None
        self._gravity = np.zeros(robot.nv)  # of the last valid state [N m]

    # -- requests -------------------------------------------------------------------------------------

    def enable(self, now: float, measured: Array) -> str | None:
        """Begin the ramp from the measured effort [N m]; returns the reason if that is refused."""
        if self.fault is not None:
            return f'a fault is latched ({self.fault}); clear it first'
        if self.is_driving:
            return None
        # During a stop, torque continues from where it is.
        is_stopping = self._stopping is not None
        self._first = self._limiter.last.copy() if is_stopping else self._limiter.start(measured)
        self._since, self._stopping = now, None
        self._last_time = None
        self.mode = Mode.RAMPING
        return None

    def disable(self, now: float) -> None:
        """Run the stop policy, then send nothing."""
        if self.is_driving:
            self._begin_stop(now)
            self.mode = Mode.STOPPING

    def release(self, now: float) -> None:
        """Bring the torque to zero at the stop rate, from any mode: for robots with brakes or a support."""
        self._change_stop(now, Zero)

    def lower(self, now: float) -> None:
        """End a stop that would last: a robot that is held is lowered."""
        if self._stopping is not None and self._stopping.is_lasting:
            self._change_stop(now, Lower)

    def fade(self, now: float) -> None:
        """End a stop within its time, at rest or not."""
        self._change_stop(now, Fade)

    def _change_stop(self, now: float, policy: type[StopPolicy]) -> None:
        if self.is_sending:
            self._stopping = policy(self.stop, now, self._limiter.last)
            self.mode = Mode.STOPPING if self.fault is None else Mode.FAULT

    def trip(self, now: float, fault: Fault) -> None:
        """Latch a fault; torque in flight ends in the stop policy. The first fault is kept."""
        if self.fault is not None:
            return
        self.fault = fault
        if self.is_driving:
            self._begin_stop(now)
        self.mode = Mode.FAULT

    def clear(self) -> str | None:
        """Clear a latched fault once the stop is over; returns the reason if that is refused."""
        if self.fault is None:
            return None
        if self._stopping is not None and not self.policy.is_lasting:
            return 'the stop is not over yet; try again when it is'
        self.fault = None
        # A robot that is held stays held.
        self.mode = Mode.DISABLED if self._stopping is None else Mode.STOPPING
        return None

    @property
    def torque(self) -> Array:
        """The last command [N m]."""
        return self._limiter.last

    @property
    def mode(self) -> Mode:
        return self._mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._mode = mode
        # Asked often in a step: whether the terms reach the motors, and whether torque is in flight.
        self.is_driving = mode in DRIVING
        self.is_sending = self.is_driving or self._stopping is not None

    @property
    def idle_reason(self) -> str:
        """Why no reference is followed, and what to do."""
        if self.fault is not None:
            return f'a fault is latched ({self.fault}); clear it and enable the controller first'
        return f'the controller is {self.mode.value}; enable it first'

    # -- every step -----------------------------------------------------------------------------------

    def step(
        self, now: float, stamped: float | None, torque: Array | None, stop: StopState | None
    ) -> Array | None:
        """The command [N m] over joint_names; None: send nothing.

        `stamped` is the increase of the stamps since the last step [s], None without a new state; `torque`
        is the sum of the terms, None if they could not be evaluated; `stop` has the gravity, velocity and
        inertia for a stop, None without a valid state.
        """
        dt = self._elapsed(now, stamped)
        if stop is not None and is_finite(stop.gravity):
            self._gravity = stop.gravity
        if self.is_driving:
            if torque is not None and is_finite(torque):
                return self._out(self._blend(now, torque), dt, self.limits.effort_rate)
            self.trip(now, Fault('torque', 'the sum of the terms is not finite'))
        if self._stopping is None:
            return None
        if stop is not None and not (is_finite(stop.gravity) and is_finite(stop.A)):
            stop = None
        command = self._out(self._stop_torque(now, stop, dt), dt, self.limits.stop_rate)
        if self._stopping.finished and not any_true(command != 0):
            self._stopping = None
            self.mode = Mode.DISABLED if self.fault is None else Mode.FAULT
        return command

    def _stop_torque(self, now: float, stop: StopState | None, dt: float) -> Array:
        """The torque of the stop [N m] after this step; a stop that fails becomes one that needs no state."""
        assert self._stopping is not None
        last = self._limiter.last
        try:
            if stop is None or not self._stopping.is_braking:
                return self._in_proportion(self._stopping.torque(now, stop), dt)
            stop.applied = last
            torque = self._stopping.torque(now, stop)
            command = last + stop.nearest_within(torque - last, self.limits.stop_rate * dt)
            if is_finite(command):
                return command
            raise ArithmeticError('its torque is not finite')
        except Exception as error:  # of any kind: an exception must not end a stop
            self.trip(now, Fault('stop', f'{type(error).__name__}: {error}'))
            self.fade(now)
            return self._in_proportion(self._stopping.torque(now, None), dt)

    def _begin_stop(self, now: float) -> None:
        self._stopping = self.policy(self.stop, now, self._gravity)

    def _in_proportion(self, torque: Array, dt: float) -> Array:
        """The torque after this step where no state shows the motion: all joints change in proportion.

        Joints that change one after another would first accelerate the hand.
        """
        limits = self.limits
        return in_proportion(torque, self._limiter.last, limits.effort, limits.stop_rate, dt)

    def _blend(self, now: float, torque: Array) -> Array:
        if self._mode is ACTIVE:  # a ramp that has ended does not begin again when ramp_time changes
            return torque
        share = 1.0 if self.ramp_time <= 0 else max(0.0, (now - self._since) / self.ramp_time)
        if share >= 1.0:
            self.mode = Mode.ACTIVE
            return torque
        return (1.0 - share) * self._first + share * torque

    def _out(self, torque: Array, dt: float, rate: Array) -> Array:
        command, self.limited = self._limiter.limit(torque, dt, rate)
        return command

    def _elapsed(self, now: float, stamped: float | None) -> float:
        """The smallest of steady time, stamp time and a cap since the last step, never negative."""
        steady = 0.0 if self._last_time is None else now - self._last_time
        self._last_time = now
        elapsed = steady if steady < LONGEST_STEP else LONGEST_STEP
        if stamped is not None and stamped < elapsed:
            elapsed = stamped
        return elapsed if elapsed > 0.0 else 0.0
