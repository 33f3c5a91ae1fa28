"""Measured wrenches against the torques that the model leaves unexplained, and against the observer."""

from dataclasses import dataclass

import numpy as np

from ...arrays import Array
from ...control.dynamics import Dynamics
from ...control.terms.observer import Observer
from ...control.terms.term import ReferencePoint, TermInputs
from ...control.terms.wrench import Wrench, WrenchSample, WrenchSettings
from ...robot.model import Robot
from ..io.reader import Bag
from .filtering import Filtering, Motion, low_pass
from .statistics import Moments

TYPE = 'geometry_msgs/msg/WrenchStamped'
WARM_UP = 0.3  # time in which the observer forgets that it began at zero [s]


@dataclass(frozen=True)
class Source:
    """A topic of wrenches and the frame of the robot that they act at."""

    topic: str
    frame: str
    frame_id: str  # its axes and point of application


def sources(bag: Bag, robot: Robot) -> tuple[list[Source], list[str]]:
    """Topics of wrenches whose frames the robot has, and sentences about those that it has not."""
    found, problems = [], []
    for topic in bag.of_type(TYPE):
        first = next((message for _, message in bag.read(topic)), None)
        if first is None:
            continue
        frame_id, frame = first.header.frame_id, topic.rsplit('/', 1)[-1]
        if frame not in robot.frames:
            frame = frame_id
        if frame_id in robot.frames and frame in robot.frames:
            found.append(Source(topic, frame, frame_id))
        else:
            problems.append(f'{topic}: its frame_id {frame_id!r} is no frame of {robot.name}; left out')
    return found, problems


class WrenchCheck:
    """Runs the controller's own wrench term and observer along a motion."""

    def __init__(self, bag: Bag, robot: Robot, found: list[Source], filtering: Filtering) -> None:
        self._bag, self._robot, self._filtering = bag, robot, filtering
        # Last where several topics speak of one hand: a wrench term has one wrench per hand.
        self._sources = {source.frame: source for source in found}

    def compare(self, motion: Motion, predicted: Array, start: int, stop: int) -> dict[str, Moments]:
        """residual: effort - predicted; observer: minus its external torque; both against J^T f."""
        robot = self._robot
        wrenches = {frame: self._along(motion, source) for frame, source in self._sources.items()}
        term = Wrench(robot, {frame: WrenchSettings('applied_by_robot') for frame in wrenches}, np.inf)
        observer = Observer(robot)
        dynamics = Dynamics(robot, coriolis=True)
        zero = np.zeros(robot.nv)
        reference = ReferencePoint(zero, zero, zero, zero)
        state = TermInputs(0.0, 0.0, zero, zero, reference, zero, zero, dynamics)
        expected, seen = np.empty_like(motion.q), np.empty_like(motion.q)
        for k, (t, q, v) in enumerate(zip(motion.t, motion.q, motion.v, strict=True)):
            dynamics.update(q, v)
            state.time, state.dt = float(t), float(t - motion.t[k - 1]) if k else 0.0
            state.q, state.v, state.friction = q, v, robot.friction.torque(v)
            state.applied = motion.effort[k - 1] if k else zero
            for frame, source in self._sources.items():
                term.take(WrenchSample(frame, source.frame_id, wrenches[frame][k], float(t)), float(t))
            expected[k] = term.torque(state)
            observer.torque(state)
            seen[k] = -observer.external
        rows = slice(*np.searchsorted(motion.arrival, (start, stop)).tolist())
        residual = motion.effort - predicted
        return {
            'residual': Moments(residual[rows], expected[rows]),
            'observer': Moments(seen[rows], expected[rows]),
        }

    def _along(self, motion: Motion, source: Source) -> Array:
        """The wrench at the times of the motion, by time of arrival, filtered like all else; (K, 6)."""
        first, last = int(motion.arrival[0]) - 1_000_000_000, int(motion.arrival[-1]) + 1_000_000_000
        times, values = [], []
        for time, message in self._bag.read(source.topic, first, last):
            f, m = message.wrench.force, message.wrench.torque
            times.append(time - first)
            values.append((f.x, f.y, f.z, m.x, m.y, m.z))
        if not times:
            return np.zeros((len(motion.t), 6))
        t = (motion.arrival - first).astype(float)
        wrench = np.column_stack([np.interp(t, times, column) for column in np.array(values).T])
        cutoff = self._filtering.cutoff
        return low_pass(wrench, cutoff, 1 / float(np.median(np.diff(motion.t)))) if cutoff else wrench
