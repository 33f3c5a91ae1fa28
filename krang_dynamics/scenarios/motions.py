"""Smooth joint motions for demonstrations."""

import numpy as np
from scipy.integrate import cumulative_trapezoid
from scipy.interpolate import make_interp_spline
from scipy.optimize import brentq

from ..arrays import Array
from ..control.reference.trajectory import JointTrajectory
from ..robot.model import Robot

HALF = 1.8  # duration of a motion there, and of the motion back [s]


def smooth_step(s: Array) -> Array:
    """From 0 to 1 with zero velocity and acceleration at both ends."""
    s = np.clip(s, 0, 1)
    return np.asarray(s**3 * (10 - 15 * s + 6 * s**2))


class JointMotion:
    """A quintic spline through dense points of some joints [rad, m]; it starts and ends at rest."""

    def __init__(self, names: tuple[str, ...], times: Array, positions: Array) -> None:
        self.names, self.times = names, times
        self._spline = make_interp_spline(times, positions, k=5)
        self._q, self._v, self._a = (self._spline(times, nu) for nu in range(3))
        for x in (self._v, self._a):
            x[0] = x[-1] = 0

    @property
    def trajectory(self) -> JointTrajectory:
        """The points, with velocities and accelerations."""
        return JointTrajectory(self.names, self.times, self._q, self._v, self._a)

    @property
    def states(self) -> tuple[Array, Array, Array]:
        """Positions, velocities and accelerations at `times`, one row each."""
        return self._q, self._v, self._a

    def at(self, t: Array | float) -> Array:
        """Positions at times t [s]; constant before the start and after the end."""
        return np.asarray(self._spline(np.clip(t, 0, self.times[-1])))


def there_and_back(robot: Robot, reach: Array) -> JointMotion:
    """From home by `reach` [rad, m], and home again."""
    times = np.arange(0, 2 * HALF + 0.3, 0.02)
    share = smooth_step(times / HALF) - smooth_step((times - HALF - 0.1) / HALF)
    return JointMotion(robot.joint_names, times, robot.home + np.outer(share, reach))


def krang_at_full_speed(robot: Robot, step: float = 0.01) -> JointMotion:
    """Sixteen joints there and back, each at its velocity limit; base_pitch keeps the balance."""
    reach = 0.45 * np.where(np.arange(17) % 2, -1, 1)
    reach[:3] = 0, 0.3, 0.4
    duration = 1.875 * np.abs(reach[1:]) / robot.velocity_limits[1:]
    half = duration.max()
    times = np.arange(0, 2 * half + 0.3, step)
    q = np.tile(robot.home, (len(times), 1))
    for joint in range(1, 17):
        there, back = times / duration[joint - 1], (times - half) / duration[joint - 1]
        q[:, joint] += reach[joint] * (smooth_step(there) - smooth_step(back))
    q[:, 0] = [balanced_pitch(robot, x) for x in q]
    return JointMotion(robot.joint_names, times, q)


def balanced_pitch(robot: Robot, q: Array) -> float:
    """The base_pitch with the centre of mass above the axle [rad]."""

    def offset(pitch: float) -> float:
        return float(robot.center_of_mass(np.array([pitch, *q[1:]]))[0])

    return float(brentq(offset, -1.5, 0.8, xtol=1e-14))


def figure_of_eight() -> JointMotion:
    """Otbot's figure of eight at 1 m/s, with the platform turning at 1 rad/s.

    The published path is a line, three quarters of a circle, a line, three quarters of a circle in the
    other direction, and a line. Here the curvature changes within 0.4 m instead of in steps, the speed
    within 4 s, the platform rate within 1 s, and both circles have the same speed.
    """
    step, blend, start = 0.01, 0.4, 4.0  # [s], [m], [s]
    lengths, curvatures = [2.0, 1.5 * np.pi, 2.0, 1.5 * np.pi, 2.0], [0, 1, 0, -1, 0]
    total = sum(lengths)
    s = np.linspace(0, total, 20001)
    window = np.hanning(round(blend / (s[1] - s[0])))
    curvature = np.repeat(curvatures, np.round(np.array(lengths) / total * 20001).astype(int) + 1)[:20001]
    padded = np.pad(curvature.astype(float), len(window), mode='edge')
    curvature = np.convolve(padded, window / window.sum(), mode='same')[len(window) : -len(window)]
    heading = cumulative_trapezoid(curvature, s, initial=0)
    x, y = (cumulative_trapezoid(f(heading), s, initial=0) for f in (np.cos, np.sin))

    end = total + start
    fine = np.linspace(0, end, 40001)
    speed = smooth_step(fine / start) * smooth_step((end - fine) / start)
    turn_rate = smooth_step(fine - start) * smooth_step(end - start - fine)
    travelled, turned = (cumulative_trapezoid(f, fine, initial=0) for f in (speed, turn_rate))
    times = np.arange(0, end + step / 2, step)
    along = np.interp(times, fine, travelled * total / travelled[-1])
    points = [np.interp(along, s, x), np.interp(along, s, y), np.interp(times, fine, turned)]
    return JointMotion(('x', 'y', 'alpha'), times, np.array(points).T)
