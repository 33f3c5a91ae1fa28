"""A robot and its nodes as their public topics show them, from running nodes or from a recording."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np

from ..arrays import Array
from ..control.drivers import Drivers
from ..control.messages import imu_sample, odom_sample, wrench_sample
from ..control.node_state import NodeState
from ..control.sensors import ImuSource, OdomSource
from ..errors import KrangError
from ..robot.model import Robot
from ..safety.joint_buffer import JointSamples
from .io.joint_state_codec import JointStateReader
from .validation.joint_names import renamed

STALE = 0.5  # age after which a torque or a reference is not shown any more [s]
LOST = 3.0  # age after which the reports of a node, one per second, have ended [s]


@dataclass(frozen=True)
class Report:
    """A node's own report on /diagnostics."""

    level: int  # 0: ok, 1: warning, 2: error
    message: str
    values: Mapping[str, str]


@dataclass(frozen=True)
class Snapshot:
    """All that was published last; arrays over joint_names, NaN where nothing is known."""

    time: float  # [s]
    age: float  # of the newest joint state [s]
    q: Array
    v: Array
    effort: Array  # measured [N m]
    torque: Array  # commanded [N m]
    terms: Mapping[str, Array]  # [N m]
    reference: Array | None  # of the joints that follow it [rad, m]
    external: Array | None  # [N m]
    forces: Mapping[str, Array]  # commanded at the end effectors, in world axes [N]
    controller: NodeState | None
    guard: NodeState | None
    reports: Mapping[str, Report]  # by the node's name


class ObservedRobot:
    """Takes messages and keeps the newest values; invalid messages are ignored, the controller reports them.

    Times are of arrival [s], on any clock that increases. Measured joints are renamed by rules FROM=TO.
    """

    def __init__(self, robot: Robot, maps: Sequence[str] = ()) -> None:
        self._robot, self._maps = robot, maps
        unknown = np.full(robot.nv, np.nan)
        self._q, self._v, self._effort = unknown.copy(), unknown.copy(), unknown.copy()
        self._measured_at = -inf
        self._drivers = Drivers(robot, robot.actuated_joint_names)
        imu, odom = robot.config.imu, robot.config.odom
        self._imu = ImuSource(robot) if imu is not None and imu.feeds == 'joint' else None
        self._odom = OdomSource(robot) if odom is not None else None
        followed = robot.actuated_joint_names if odom is None else (odom.x, odom.y, odom.heading)
        self._is_free = ~np.isin(robot.joint_names, followed)  # joints whose reference nothing follows
        self._readers: defaultdict[str, JointStateReader] = defaultdict(JointStateReader)
        self._places: dict[tuple[str, ...], tuple[list[int], list[int]]] = {}
        self._values: dict[str, tuple[float, Array]] = {}  # newest array of a topic, and its time
        self.controller: NodeState | None = None
        self.guard: NodeState | None = None
        self._reports: dict[str, tuple[float, Report]] = {}

    def take_joint_states(self, data: bytes, now: float) -> None:
        sample = self._read('joint_states', data, now)
        if sample is not None:
            if self._maps:
                names = renamed(sample.names, self._maps)
                sample = replace(sample, names=tuple(names[name] for name in sample.names))
            self._merge(self._drivers.joint_samples(sample), now)

    def take_imu(self, message: Any, now: float) -> None:
        self._take_sensor(self._imu, lambda imu: imu.samples(imu_sample(message, now)), now)

    def take_odom(self, message: Any, now: float) -> None:
        q, v = np.nan_to_num(self._q), np.nan_to_num(self._v)
        self._take_sensor(self._odom, lambda odom: odom.samples(odom_sample(message, now), q, v), now)

    def take_values(self, topic: str, data: bytes, now: float) -> None:
        """A JointState with the effort of each joint, or the position for the topic 'reference'."""
        sample = self._read(topic, data, now)
        if sample is not None:
            values = sample.position if topic == 'reference' else sample.effort
            placed = self._placed(sample.names, values, np.full(self._robot.nv, np.nan))
            if topic == 'reference':
                placed[self._is_free] = np.nan
            self._values[topic] = now, placed

    def take_wrench(self, frame: str, message: Any, now: float) -> None:
        sample = wrench_sample(frame, message, now)
        force = sample.wrench[:3]
        if sample.frame_id in self._robot.frames:
            force = self._robot.frame_pose(np.nan_to_num(self._q), sample.frame_id)[:3, :3] @ force
        if np.isfinite(force).all():
            self._values[f'wrench/{frame}'] = now, force

    def take_report(self, message: Any, now: float) -> None:
        for status in message.status:
            level = status.level[0] if isinstance(status.level, bytes) else int(status.level)
            values = {entry.key: entry.value for entry in status.values}
            self._reports[status.name] = now, Report(level, status.message, values)

    def snapshot(self, now: float) -> Snapshot:
        """The newest values, without those that are stale."""
        fresh = {topic: x for topic, (time, x) in self._values.items() if now - time < STALE}
        return Snapshot(
            now,
            now - self._measured_at,
            self._q.copy(),
            self._v.copy(),
            self._effort.copy(),
            fresh.get('torques', np.full(self._robot.nv, np.nan)),
            _below('terms/', fresh),
            fresh.get('reference'),
            fresh.get('external_torques'),
            _below('wrench/', fresh),
            self.controller,
            self.guard,
            {name: report for name, (time, report) in self._reports.items() if now - time < LOST},
        )

    def _take_sensor(self, source: Any, samples: Any, now: float) -> None:
        if source is None:
            return
        try:
            self._merge(samples(source), now)
        except KrangError:  # no orientation, or a body that has fallen over
            return

    def _read(self, topic: str, data: bytes, now: float) -> JointSamples | None:
        try:
            return self._readers[topic].read(data, now)
        except KrangError:
            return None

    def _merge(self, sample: JointSamples, now: float) -> None:
        self._placed(sample.names, sample.position, self._q)
        self._placed(sample.names, sample.velocity, self._v)
        self._placed(sample.names, sample.effort, self._effort)
        self._measured_at = now

    def _placed(self, names: Sequence[str], values: Array, target: Array) -> Array:
        """`target` with the values of the joints that it knows."""
        key = tuple(names)
        if key not in self._places:
            joints = self._robot.joint_names
            known = [(i, joints.index(name)) for i, name in enumerate(names) if name in joints]
            self._places[key] = [i for i, _ in known], [j for _, j in known]
        source, place = self._places[key]
        if len(values) == len(key):
            target[place] = values[source]
        return target


def _below(prefix: str, values: Mapping[str, Array]) -> dict[str, Array]:
    return {topic.removeprefix(prefix): x for topic, x in values.items() if topic.startswith(prefix)}
