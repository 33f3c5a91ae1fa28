"""How well a robot follows a trajectory that another process has sent, from its joint states."""

import numpy as np

from ...arrays import short_way
from ...robot.model import Robot
from ...safety.joint_buffer import JointSamples
from ...safety.limits import Limits
from ...text import table
from ..drivers import Drivers
from .joint_reference import Reference
from .trajectory import JointTrajectory


class FollowedMotion:
    """Compares measured positions with the trajectory, from its start to its end.

    Without a robot only time is followed.
    """

    def __init__(self, robot: Robot | None, trajectory: JointTrajectory, start: float) -> None:
        self.elapsed = 0.0  # since the start [s]
        self.duration = float(trajectory.times[-1])  # [s]
        self._robot, self._trajectory = robot, trajectory
        self._start = start  # on the node's clock [s]
        self._drivers = None if robot is None else Drivers(robot, robot.actuated_joint_names)
        self._reference: Reference | None = None
        self._largest: dict[str, tuple[float, float]] = {}  # by joint: error [rad, m] and when [s]
        self._last: dict[str, float] = {}  # newest error by joint [rad, m]

    @property
    def is_over(self) -> bool:
        return self.elapsed >= self.duration

    def take(self, sample: JointSamples) -> None:
        """A joint state; one from before the start is ignored. `arrival` replaces a missing stamp."""
        elapsed = (sample.stamp or sample.arrival) - self._start
        if elapsed < 0:
            return
        self.elapsed = max(self.elapsed, elapsed)
        if self._robot is not None and self._drivers is not None:
            self._compare(self._robot, self._drivers.joint_samples(sample), elapsed)

    def _compare(self, robot: Robot, joints: JointSamples, elapsed: float) -> None:
        measured = dict(zip(joints.names, joints.position, strict=False))
        self._reference = self._reference or self._begin(robot, measured)
        desired = self._reference.sample(self._start + elapsed)[0]
        for name in self._trajectory.joint_names:
            if name not in measured:
                continue
            column = robot.joint_names.index(name)
            difference = np.array([measured[name] - desired[column]])
            error = float(np.abs(short_way(difference, robot.continuous[[column]]))[0])
            self._last[name] = error
            if error > self._largest.get(name, (-1.0, 0.0))[0]:
                self._largest[name] = (error, elapsed)

    def _begin(self, robot: Robot, measured: dict[str, float]) -> Reference:
        """The reference from the measured pose on, without limits: the controller has checked them."""
        q = np.array([measured.get(name, x) for name, x in zip(robot.joint_names, robot.home, strict=True)])
        free = Limits.of(robot)
        free.effort, free.position_margin = np.full_like(q, np.inf), np.full_like(q, -np.inf)
        reference = Reference(robot, start_tolerance=np.inf, limits=free)
        reference.hold(q)
        reference.accept(self._trajectory, self._start, q)
        return reference

    def text(self) -> str:
        """The largest and the last error of each joint."""
        if not self._largest:
            return 'done; joint_states has no joint of the motion, so its errors are not known'
        rows = [
            [name, f'{error:.5f}', f'{time:.2f}', f'{self._last[name]:.5f}']
            for name, (error, time) in self._largest.items()
        ]
        header = ['joint', 'largest error [rad, m]', 'at [s]', 'last error']
        return '\n'.join(table(header, rows))
