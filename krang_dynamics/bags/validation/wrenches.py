"""Measured wrenches compared with the torque residual of the model, and with the observer."""

from dataclasses import dataclass

import numpy as np

from ...arrays import Array
from ...control.dynamics import Dynamics
from ...control.terms.observer import Observer
from ...control.terms.term import ReferencePoint, TermInputs
from ...control.terms.wrench import Wrench, WrenchSample, WrenchSettings
from ...robot.model import Robot
from ..io.reader import Bag
from .filtering import FilteredMotion, Filtering, low_pass
from .statistics import CorrelationSums

TYPE = 'geometry_msgs/msg/WrenchStamped'
WARM_UP = 0.3  # settling time of the observer [s]


@dataclass(frozen=True)
class WrenchTopic:
    """A topic of wrenches and the frame of the robot at which they act."""

    topic: str
    frame: str
    frame_id: str  # axes and point of application


def wrench_topics(bag: Bag, robot: Robot) -> tuple[list[WrenchTopic], list[str]]:
    """Topics of wrenches at frames of the robot, and a sentence on each other one."""
    found, problems = [], []
    for topic in bag.of_type(TYPE):
        first = next((message for _, message in bag.read(topic)), None)
        if first is None:
            continue
        frame_id, frame = first.header.frame_id, topic.rsplit('/', 1)[-1]
        if frame not in robot.frames:
            frame = frame_id
        if frame_id in robot.frames and frame in robot.frames:
            found.append(WrenchTopic(topic, frame, frame_id))
        else:
            problems.append(
                f'{topic}: its frame_id {frame_id!r} is not a frame of {robot.name}; it is ignored'
            )
    return found, problems


class WrenchComparison:
    """Runs the wrench term and the observer of the controller along a motion."""

    def __init__(self, bag: Bag, robot: Robot, topics: list[WrenchTopic], filtering: Filtering) -> None:
        self._bag, self._robot, self._filtering = bag, robot, filtering
        # The last topic of a frame is used: the wrench term takes one wrench per frame.
        self._topics = {topic.frame: topic for topic in topics}

    def compare(
        self, motion: FilteredMotion, predicted: Array, start: int, stop: int
    ) -> dict[str, CorrelationSums]:
        """J^T f against 'residual' (effort - predicted) and 'observer' (minus its external torque)."""
        robot = self._robot
        wrenches = {frame: self._interpolated(motion, topic) for frame, topic in self._topics.items()}
        term = Wrench(robot, {frame: WrenchSettings('applied_by_robot') for frame in wrenches}, np.inf)
        observer = Observer(robot)
        dynamics = Dynamics(robot, coriolis=True)
        zero = np.zeros(robot.nv)
        reference = ReferencePoint(zero, zero, zero, zero)
        state = TermInputs(0.0, 0.0, zero, zero, reference, zero, zero, dynamics)
        expected, observed = np.empty_like(motion.q), np.empty_like(motion.q)
        positions, velocities, efforts = map(np.ascontiguousarray, (motion.q, motion.v, motion.effort))
        for k, (t, q, v) in enumerate(zip(motion.t, positions, velocities, strict=True)):
            dynamics.update(q, v)
            state.time, state.dt = float(t), float(t - motion.t[k - 1]) if k else 0.0
            state.q, state.v, state.friction = q, v, robot.friction.torque(v, dynamics.gravity)
            state.applied = efforts[k - 1] if k else zero
            for frame, topic in self._topics.items():
                term.take(WrenchSample(frame, topic.frame_id, wrenches[frame][k], float(t)), float(t))
            expected[k] = term.torque(state)
            observer.torque(state)
            observed[k] = -observer.external
        rows = slice(*np.searchsorted(motion.arrival, (start, stop)).tolist())
        residual = motion.effort - predicted
        return {
            'residual': CorrelationSums(residual[rows], expected[rows]),
            'observer': CorrelationSums(observed[rows], expected[rows]),
        }

    def _interpolated(self, motion: FilteredMotion, topic: WrenchTopic) -> Array:
        """The wrench at the arrival times of the motion, with the same low pass; (K, 6)."""
        first, last = int(motion.arrival[0]) - 1_000_000_000, int(motion.arrival[-1]) + 1_000_000_000
        times, values = [], []
        for time, message in self._bag.read(topic.topic, first, last):
            f, m = message.wrench.force, message.wrench.torque
            times.append(time - first)
            values.append((f.x, f.y, f.z, m.x, m.y, m.z))
        if not times:
            return np.zeros((len(motion.t), 6))
        t = (motion.arrival - first).astype(float)
        wrench = np.column_stack([np.interp(t, times, column) for column in np.array(values).T])
        cutoff = self._filtering.cutoff
        return low_pass(wrench, cutoff, 1 / float(np.median(np.diff(motion.t)))) if cutoff else wrench
