"""Swing-up and balance of a driven arm with a free pendulum: energy pump, partial linearisation, LQR."""

from math import cos, pi, remainder
from typing import TYPE_CHECKING, Literal

import numpy as np

from ...arrays import Array, joint_vector
from ...errors import ConfigError
from ...robot.model import Robot
from .term import Term, TermInputs, register_term

if TYPE_CHECKING:
    from ..settings import Settings

STATE_SCALE = np.array([0.7, 0.2, 7.0, 3.0])  # errors of (q, v) with equal weight [rad, rad/s]
VOLTS_SCALE = 8.0  # voltage with the same weight [V]


@register_term
class Balance(Term):
    """Brings the pendulum from any state to the upright pose `robot.home`, and keeps it and the arm there.

    x = (q, v) - (home, 0). If the regulator's cost-to-go x^T P x is small, it balances by volts = -K x;
    if it is large, the arm swings so that the pendulum's energy becomes that of the upright.
    """

    name = 'balance'

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.arm_speed = 8.2  # speed of the arm while it pumps [rad/s]
        self.arm_reach = 1.48  # angle beyond which the pump does not drive the arm outwards [rad]
        self.arm_stiffness = 6.0  # pulls the arm home [1/s2]
        self.arm_damping = 16.4  # brings the arm to the pump's speed [1/s]
        self.energy_gain = 3.7  # share of arm_speed per weight moment of missing energy [1]
        self.energy_surplus = 0.13  # target above the upright's energy: friction takes it [weight moments]
        self.full_swing = 0.77  # pendulum speed from which the pump uses its full speed [rad/s]
        self.catch_cost = 0.6  # below which the regulator takes over [s]
        self.fall_cost = 2.4  # above which the arm swings again [s]

        from scipy.linalg import solve_continuous_are  # slow to import, and only this term needs it

        self._check()
        A, B = robot.linearize(robot.home, np.zeros(2), np.zeros(1))
        self.cost = solve_continuous_are(A, B, np.diag(STATE_SCALE**-2), [[VOLTS_SCALE**-2]])  # P
        self.gain = VOLTS_SCALE**2 * B[:, 0] @ self.cost  # K [V/rad, V s/rad]
        self.weight_moment = self._weight_moment()
        self.supply = np.array([robot.config.joints[robot.joint_names[0]].motor.supply, 0.0])  # [V]
        self.reset()

    @classmethod
    def from_settings(cls, robot: Robot, settings: 'Settings') -> 'Balance':
        return cls(robot)

    def reset(self) -> None:
        """Reset; the next state decides whether to swing or to balance."""
        self.mode: Literal['swing', 'balance'] = 'swing'

    def torque(self, state: TermInputs) -> Array:
        return self.drive(state.q, state.v)

    def drive(self, q: Array, v: Array) -> Array:
        """Torque [N m] over joint_names for one control period, 0 on the pendulum; q [rad], v [rad/s]."""
        q = joint_vector('q', q, self.robot.joint_names, (2,))
        v = joint_vector('v', v, self.robot.joint_names, (2,))
        error = q - self.robot.home
        error[1] = remainder(error[1], 2 * pi)  # to the nearest upright
        x = np.concatenate([error, v])
        self._choose_mode(x @ self.cost @ x)
        tau = self._regulate(x) if self.mode == 'balance' else self._swing(q, v, error)
        return self._within_limits(tau, v)

    def _choose_mode(self, cost: float) -> None:
        """Catch below one cost, fall above a larger one, so that the two modes do not alternate."""
        if cost < self.catch_cost:
            self.mode = 'balance'
        elif cost > self.fall_cost:
            self.mode = 'swing'

    def _regulate(self, x: Array) -> Array:
        """Torque [N m] of volts = -K x."""
        return self.robot.motors.torque(np.array([-self.gain @ x, 0.0]), x[2:])

    def _swing(self, q: Array, v: Array, error: Array) -> Array:
        """Torque [N m] that accelerates the arm by a, for any motion of the free pendulum.

        Partial feedback linearisation: the pendulum's row, [pendubot] eq. 3, gives its acceleration,
        the arm's row, eq. 2, the torque: (A11 - A12^2 / A22) a + h1 - A12 / A22 h2.
        """
        A = self.robot.mass_matrix(q)
        h = self.robot.inverse_dynamics(q, v, np.zeros(2), friction=True)
        coupling = A[0, 1] / A[1, 1]
        energy = 0.5 * A[1, 1] * v[1] ** 2 / self.weight_moment + cos(error[1]) - 1  # 0 at rest upright
        speed = self._pump(energy, coupling * v[1], error[0])
        a = self.arm_damping * (speed - v[0]) - self.arm_stiffness * error[0]
        return np.array([(A[0, 0] - A[0, 1] * coupling) * a + h[0] - coupling * h[1], 0.0])

    def _pump(self, energy: float, swing: float, arm: float) -> float:
        """Speed of the arm [rad/s] that feeds the pendulum: its energy changes by -A12 v2 a.

        swing = A12 / A22 v2 [rad/s]; energy in weight moments; arm [rad] from home.
        """
        missing = _clip(self.energy_gain * (self.energy_surplus - energy), -1, 1)
        # At rest there is no swing to feed: any direction starts one.
        direction = _clip(-swing / self.full_swing, -1, 1) if swing else 1.0
        speed = self.arm_speed * missing * direction
        room = _clip(2 - 2 * abs(arm) / self.arm_reach, 0, 1) if speed * arm > 0 else 1.0
        return speed * room

    def _within_limits(self, tau: Array, v: Array) -> Array:
        """The nearest torque [N m] within the effort limit that the supply can give at speed v."""
        motors, limit = self.robot.motors, self.robot.effort_limits
        volts = motors.command(np.maximum(-limit, np.minimum(tau, limit)), v)
        return motors.torque(np.maximum(-self.supply, np.minimum(volts, self.supply)), v)

    def _weight_moment(self) -> float:
        """m g l [N m] of the pendulum: the torque that holds it horizontal."""
        return float(-self.robot.gravity_torque(self.robot.home + np.array([0.0, pi / 2]))[1])

    def _check(self) -> None:
        """Refuse a robot that is not a driven joint with a free pendulum, upright at home."""
        robot = self.robot
        driven = [joint.driven for joint in robot.config.joints.values()]
        if driven != [True, False] or robot.config.command_unit != 'voltage':
            raise ConfigError(f'{robot.name}: balance needs a joint driven in volts, then a passive one')
        if np.abs(robot.gravity_torque(robot.home)).max() > 1e-6 or self._weight_moment() <= 0:
            raise ConfigError(f'{robot.name}: balance needs a home with the pendulum upright')


def _clip(value: float, lower: float, upper: float) -> float:
    # NumPy's function takes longer for one number than the rest of the pump.
    return max(lower, min(value, upper))
