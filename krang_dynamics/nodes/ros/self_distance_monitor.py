"""Watches the distance between links in a thread beside the control loop."""

from threading import Event, Thread

from ...control.controller import TorqueController
from ...control.reference.trajectory import PreparedTrajectory
from ...control.self_collision import path_problem, pose_problem
from ...errors import InputError
from ...robot.self_distance import SelfDistance

PERIOD = 0.02  # between two poses [s]


class SelfDistanceMonitor:
    """`problem` names the links that are nearer than limits.self_distance; empty while that is not set."""

    def __init__(self, controller: TorqueController) -> None:
        self.problem = ''
        self._controller = controller
        # One for each thread, with a robot of its own: robots are not shared between threads.
        self._of_poses: SelfDistance | None = None
        self._of_trajectories: SelfDistance | None = None
        self._end = Event()
        self._thread = Thread(target=self._run, name='self distance', daemon=True)
        self._thread.start()

    @property
    def limit(self) -> float | None:
        """limits.self_distance [m]."""
        limit = self._controller.settings.limits_self_distance
        return None if limit is None else float(limit)

    def close(self) -> None:
        """End the thread."""
        self._end.set()
        self._thread.join(timeout=1.0)

    def check(self, trajectory: PreparedTrajectory) -> None:
        """InputError if links would come too near along a trajectory; for the thread that prepares it."""
        if self.limit is not None:
            self._of_trajectories = self._of_trajectories or self._distance()
            q = self._controller.state.buffer.q.copy()
            problem = path_problem(self._of_trajectories, trajectory, q, self.limit)
            if problem:
                raise InputError(problem)

    def _run(self) -> None:
        while not self._end.wait(PERIOD):
            if self.limit is None:
                self.problem = ''
                continue
            self._of_poses = self._of_poses or self._distance()
            self.problem = pose_problem(self._of_poses, self._controller.state.buffer.q.copy(), self.limit)

    def _distance(self) -> SelfDistance:
        robot = self._controller.robot
        return SelfDistance(robot.carrying(robot.payloads))
