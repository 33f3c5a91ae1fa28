"""Stability of gains with sampled, late states."""

from math import inf

import numpy as np

from ..arrays import Array
from ..robot.model import Robot

SAMPLING = 0.75  # mean age of a sampled command, in periods: half of one, and the time to compute it
DELAY = 0.01  # delay of states and commands with which gains should be stable [s]


def delay_margin(kp: Array, kd: Array) -> Array:
    """Delay [s] at which e'' + kd e' + kp e = 0 becomes unstable; infinite without gains.

    From the phase of (kd s + kp) / s^2 where its gain is 1.
    """
    crossover = np.sqrt(0.5 * (kd**2 + np.sqrt(kd**4 + 4 * kp**2)))  # [rad/s]
    phase = np.arctan2(kd * crossover, kp)
    return np.divide(phase, crossover, out=np.full(len(kp), inf), where=crossover > 0)


def gains_problem(robot: Robot, kp: Array, kd: Array, hertz: float, delay: float = 0.0) -> str | None:
    """The first joint whose gains are unstable with states at this rate [Hz]; 0 Hz: at any rate.

    `delay` [s] is that of states and commands.
    """
    sampling = SAMPLING / hertz if hertz > 0 else 0.0
    margin = delay_margin(kp, kd)
    unstable = margin <= sampling + delay
    if not unstable.any():
        return None
    i = int(np.argmax(unstable))
    name = f'gains of joint {robot.joint_names[i]!r} (kp {kp[i]:.4g}, kd {kd[i]:.4g})'
    if margin[i] <= 0:
        return f'{name} are unstable: kp needs a positive kd'
    late = f' and a delay of {1e3 * delay:g} ms' if delay else ''
    rate = f'states at {hertz:.4g} Hz' if hertz > 0 else 'states at a high rate'
    return f'{name} are unstable with {rate}{late}: their delay margin is {1e3 * margin[i]:.3g} ms'
