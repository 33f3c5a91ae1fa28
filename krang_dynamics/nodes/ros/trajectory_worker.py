"""Long trajectories, decoded and prepared in a thread beside the control loop."""

from collections import deque
from threading import Condition, Thread
from time import sleep

import numpy as np

from ...bags.io.trajectory_codec import decode_trajectory
from ...control.reference.trajectory import Bounds, JointTrajectory, PreparedTrajectory
from ...errors import KrangError
from ...robot.model import Robot
from .self_distance_monitor import SelfDistanceMonitor

SHORT = 4096  # a message that takes less time than a control period to decode and prepare [bytes]
MOST_WAITING = 100
LARGEST = 64_000_000  # bytes that wait at most; the newest message may be larger
YIELD = 1e-4  # sleep between two parts of the work, so that the control loop gets the interpreter [s]

Result = JointTrajectory | PreparedTrajectory | KrangError  # with the time of reception [ns]


class TrajectoryWorker:
    """Turns the bytes of messages into trajectories, in the order of their reception.

    Short messages are done at once while no other waits; the rest is done by a thread. An empty trajectory
    is a stop: it discards all that waits.
    """

    def __init__(self, robot: Robot, monitor: SelfDistanceMonitor | None = None) -> None:
        self._robot, self._monitor = robot, monitor
        self._jobs: deque[tuple[int, bytes, int, Bounds]] = deque(maxlen=MOST_WAITING)
        self.results: deque[tuple[int, Result, int]] = deque()  # for ready(); read it to save the call
        self._generation = 0  # jobs of an earlier one are discarded
        self._is_busy = self._is_closed = False
        self._changed = Condition()
        self._thread = Thread(target=self._run, name='trajectories', daemon=True)
        self._thread.start()

    def take(self, data: bytes, received: int, bounds: Bounds) -> JointTrajectory | None:
        """A message received at a time [ns]: the trajectory where it is ready at once, else None."""
        is_short = len(data) <= SHORT
        trajectory = decode_trajectory(data) if is_short else None
        if trajectory is not None and not len(trajectory.times):
            with self._changed:
                self._generation += 1
                self._jobs.clear()
                self.results.clear()
            return trajectory
        with self._changed:
            is_idle = not (self._jobs or self._is_busy or self.results)
            is_checked = self._monitor is not None and self._monitor.limit is not None
            if trajectory is not None and is_idle and not is_checked:
                return trajectory
            self._jobs.append((self._generation, data, received, bounds))
            while len(self._jobs) > 1 and sum(len(job[1]) for job in self._jobs) > LARGEST:
                self._jobs.popleft()
            self._changed.notify()
        return None

    def ready(self) -> tuple[Result, int] | None:
        """The next result of the thread and the time of its reception [ns]."""
        while self.results:
            generation, result, received = self.results.popleft()
            if generation == self._generation:
                return result, received
        return None

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join(timeout=1.0)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._is_busy = False
                self._changed.wait_for(lambda: self._jobs or self._is_closed)
                if self._is_closed:
                    return
                generation, data, received, bounds = self._jobs.popleft()
                self._is_busy = True
            self.results.append((generation, self._prepare(data, bounds), received))

    @np.errstate(all='ignore')  # numbers that overflow are refused
    def _prepare(self, data: bytes, bounds: Bounds) -> Result:
        try:
            trajectory = PreparedTrajectory(
                self._robot, bounds, decode_trajectory(data), lambda: sleep(YIELD)
            )
            if self._monitor is not None:
                self._monitor.check(trajectory)
            return trajectory
        except KrangError as error:
            return error
        except Exception as error:  # of any kind: a message never ends the thread
            return KrangError(f'trajectory: {type(error).__name__}: {error}')
