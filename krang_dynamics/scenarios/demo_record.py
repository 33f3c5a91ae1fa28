"""The record of a demonstration, as arrays over simulated time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Array
from ..errors import KrangError
from ..robot.model import Robot

if TYPE_CHECKING:  # it needs ROS
    from ..nodes.robot_operator import RobotOperator


@dataclass(frozen=True)
class TopicLog:
    """Rows of numbers from one topic, at rising times [s]."""

    times: Array
    values: Array

    def between(self, begin: float, end: float) -> Array:
        """The rows from begin to end [s], both included."""
        return np.asarray(self.values[(self.times >= begin) & (self.times <= end)])

    def at(self, times: Array) -> Array:
        """The latest row at each of these times [s]; the first row before there is one."""
        rows = np.searchsorted(self.times, times + 1e-9, side='right') - 1
        return np.asarray(self.values[np.clip(rows, 0, None)])


@dataclass(frozen=True)
class DemoRecord:
    """One row per control step, columns in the order of the robot's joints; times since the start [s]."""

    times: Array
    q: Array  # [rad, m]
    desired: Array  # reference of q [rad, m]
    torque: Array  # commanded [N m]
    external: Array  # external torque of the observer [N m], zeros without one
    terms: Mapping[str, Array] = field(default_factory=dict)  # [N m]
    wrenches: Mapping[str, TopicLog] = field(default_factory=dict)  # measured, by frame [N, N m]
    states: tuple[tuple[float, dict[str, Any]], ...] = ()  # of ~/state

    @property
    def error(self) -> Array:
        """Reference minus position [rad, m]."""
        return self.desired - self.q

    def between(self, begin: float, end: float) -> 'DemoRecord':
        """The rows from begin to end [s], both included."""
        rows = (self.times >= begin) & (self.times <= end)
        if not rows.any():
            raise KrangError(f'the demonstration ended before {begin:g} s; give it more time')
        return replace(
            self,
            times=self.times[rows],
            q=self.q[rows],
            desired=self.desired[rows],
            torque=self.torque[rows],
            external=self.external[rows],
            terms={name: term[rows] for name, term in self.terms.items()},
        )

    def contact_time(self, frame: str, after: float) -> float:
        """First time of a wrench at a frame [s]; infinite without one."""
        times, values = self.wrenches[frame].times, self.wrenches[frame].values
        return float(min(times[(times >= after) & values.any(axis=1)], default=np.inf))

    def state_time(self, key: str, value: str, after: float) -> float:
        """First time at which ~/state had this value [s]; infinite if it never had."""
        times = [time for time, state in self.states if time >= after and state[key] == value]
        return min(times, default=np.inf)


def record_of(robot: Robot, terms: Sequence[str], operator: 'RobotOperator') -> DemoRecord:
    """What an operator recorded, at the times of the controller's reference."""

    def log(topic: str, column: str) -> TopicLog:
        return TopicLog(*operator.joint_values(topic, column))

    desired = log('torque_controller/reference', 'position')
    times = desired.times
    torque = np.zeros((len(times), robot.nv))
    columns = [robot.joint_names.index(name) for name in operator.joint_names('torque_controller/torques')]
    torque[:, columns] = log('torque_controller/torques', 'effort').at(times)
    external = log('torque_controller/external_torques', 'effort')
    return DemoRecord(
        times,
        log('simulator/truth', 'position').at(times),
        desired.values,
        torque,
        external.at(times) if len(external.times) else np.zeros_like(torque),
        {term: log(f'torque_controller/terms/{term}', 'effort').at(times) for term in terms},
        {frame: TopicLog(*operator.wrenches(frame)) for frame in robot.config.end_effectors},
        tuple(operator.states),
    )
