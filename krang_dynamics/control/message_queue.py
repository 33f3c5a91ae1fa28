"""Messages that wait for the next step: joint states, other sensors, and requests."""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..robot.model import Robot
from ..safety.joint_buffer import JointSamples
from . import messages
from .reference.cartesian_target import PoseSample, TwistSample
from .reference.trajectory import JointTrajectory, PreparedTrajectory
from .sensors import ImuSample, OdomSample
from .terms.wrench import WrenchSample

if TYPE_CHECKING:
    from .controller import Inputs
    from .guard import GuardInputs

MOST_STATES = 50  # kept between two steps
MOST_LISTS = 64  # of joint names that are cached
MOST_PRESSES = 100  # even, so that the last state of the button is kept when entries are dropped
MOST_TRAJECTORIES = 8  # of different joints that wait for a step

Trajectory = JointTrajectory | PreparedTrajectory


class StateCollector:
    """All joint states since the last step, and the newest message of IMU and odometry.

    If IMU or odometry have the same stamps as joint_states, they are measured together. A step then waits
    for both, because messages of different topics can arrive in any order.
    """

    def __init__(self, robot: Robot) -> None:
        self._joint_of = {a.name: a.joint for a in robot.config.actuators}
        self._required = {name for name, j in robot.config.joints.items() if j.state == 'joint_states'}
        self._found: dict[tuple[str, ...], frozenset[str]] = {}
        self._missing = set(self._required)
        self._samples: list[JointSamples] = []
        self._others: dict[str, ImuSample | OdomSample] = {}  # by topic, since the last step
        self._stamps: dict[str, float] = {}  # of their newest messages [s]
        self._partners: set[str] = set()  # topics with the same stamps as joint_states
        self._newest = 0.0  # stamp of the newest joint state [s]
        self._handed_over: JointSamples | None = None  # the last one

    def take_sample(self, sample: JointSamples) -> bool:
        """Keep a joint state; returns whether everything that a step needs has arrived since the last one.

        A message that repeats stamp and names is ignored, unless time has not advanced: a simulator in
        lock step repeats its state if the command was lost.
        """
        if not self._samples and sample.stamp > 0 and self._is_old(sample):
            return False
        if self._samples:  # a topic that did not have the last stamp is not measured together
            self._partners = {topic for topic in self._partners if self._stamps[topic] == self._newest}
        self._newest = sample.stamp
        self._samples.append(sample)
        del self._samples[:-MOST_STATES]
        self._missing -= self._joints(sample.names)
        return self._is_complete()

    def _is_old(self, sample: JointSamples) -> bool:
        last = self._handed_over
        if last is None or (sample.stamp, sample.names) != (last.stamp, last.names):
            return False
        return sample.arrival != last.arrival

    def take_other(self, topic: str, sample: ImuSample | OdomSample) -> bool:
        """Keep a message of imu or odom; returns whether joint states waited for it and a step is due."""
        self._others[topic] = sample
        self._stamps[topic] = sample.stamp
        is_complete = self._is_complete()
        return is_complete and bool(self._samples)

    def _is_complete(self) -> bool:
        if self._newest > 0:
            self._partners |= {topic for topic, stamp in self._stamps.items() if stamp == self._newest}
        return not self._missing and all(self._stamps[topic] == self._newest for topic in self._partners)

    @property
    def is_whole(self) -> bool:
        """Whether every joint has a state since the last step."""
        return not self._missing

    def forget_states(self) -> None:
        """Discard the joint states that no step has used."""
        self._samples.clear()
        self._handed_over = None
        self._missing = set(self._required)

    def empty_into(self, inputs: 'Inputs | GuardInputs') -> None:
        """Move everything that was received into the inputs of one step."""
        inputs.samples = self._samples
        if self._samples:
            self._handed_over = self._samples[-1]
        for sample in self._others.values():
            if isinstance(sample, ImuSample):
                inputs.imu = (sample,)
            else:
                inputs.odom = (sample,)
        self._samples, self._others, self._missing = [], {}, set(self._required)

    def _joints(self, names: Sequence[str]) -> frozenset[str]:
        """The required joints among the names of a message, which may be drivers' names."""
        key = tuple(names)
        found = self._found.get(key)
        if found is None:
            if len(self._found) >= MOST_LISTS:
                self._found.clear()
            found = frozenset(self._joint_of.get(name, name) for name in key) & self._required
            self._found[key] = found
        return found


class RequestQueue:
    """The newest heartbeat, wrenches, targets and trajectories; one trajectory and emergency stop per step.

    A trajectory replaces one for the same joints that still waits; an empty one replaces all.
    """

    def __init__(self) -> None:
        self._deadman: bool | None = None
        self._presses: deque[bool] = deque(maxlen=MOST_PRESSES)  # emergency stop: pressed or released
        self._trajectories: dict[tuple[str, ...], tuple[Trajectory, int]] = {}  # by joints; reception [ns]
        self._wrenches: dict[str, WrenchSample] = {}  # by end effector
        self._targets: dict[tuple[type, str], PoseSample | TwistSample] = {}  # by kind and hand

    def take_deadman(self, message: Any) -> None:
        """A heartbeat; one that is false reaches the next step, whatever follows."""
        self._deadman = bool(message.data) and self._deadman is not False

    def forget_deadman(self) -> None:
        """Discard a heartbeat that no step has used."""
        self._deadman = None

    def take_emergency_stop(self, message: Any) -> None:
        pressed = bool(message.data)
        if not self._presses or self._presses[-1] != pressed:
            self._presses.append(pressed)

    def take_trajectory(self, message: Any, received: int) -> None:
        """A message, or the trajectory that was decoded from it."""
        is_ready = isinstance(message, (JointTrajectory, PreparedTrajectory))
        trajectory = message if is_ready else messages.joint_trajectory(message)
        source = trajectory.source if isinstance(trajectory, PreparedTrajectory) else trajectory
        waiting = self._trajectories
        if len(source.times) == 0:
            waiting.clear()
        waiting.pop(source.joint_names, None)
        waiting[source.joint_names] = (trajectory, received)
        if len(waiting) > MOST_TRAJECTORIES:
            del waiting[next(iter(waiting))]

    def take_wrench(self, sample: WrenchSample) -> None:
        self._wrenches[sample.frame] = sample

    def take_target(self, sample: PoseSample | TwistSample) -> None:
        key = (type(sample), sample.frame)
        self._targets.pop(key, None)
        self._targets[key] = sample

    def empty_into(self, inputs: 'Inputs') -> int:
        """Move the requests of one step into its inputs; returns the time of its trajectory [ns], or 0."""
        inputs.deadman, self._deadman = self._deadman, None
        if self._presses:
            inputs.emergency_stop = self._presses.popleft()
        if self._wrenches:
            wrenches, self._wrenches = self._wrenches.values(), {}
            inputs.wrenches = [replace(sample, arrival=inputs.time) for sample in wrenches]
        if self._targets:
            inputs.targets, self._targets = list(self._targets.values()), {}
        if not self._trajectories:
            return 0
        inputs.trajectory, received = self._trajectories.pop(next(iter(self._trajectories)))
        return received
