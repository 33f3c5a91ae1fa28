"""Checks all commands of a controller against P1, P2, P3, P5 and P9."""

import json
from itertools import pairwise

import numpy as np

ROUNDING = 1e-9  # N m
JITTER = 0.05  # between a change of mode in ~/state and the last command before it [s]
RESOLUTION = 1e-6  # of a present stamp as a double, and between two clocks [s]
RATE = 10.0  # default torque rate, in effort limits per second


class Monitor:
    """The limits are those of the robot's files, unless a test sets lower ones."""

    def __init__(self, controller, model, command_joints=None):
        self.controller = controller
        self.model = model
        self.joints = tuple(command_joints or model.actuated_joint_names)
        urdf = np.array([model.urdf.joints[name].effort for name in self.joints])
        rows = [model.joint_names.index(name) for name in self.joints]
        self.effort = np.minimum(urdf, model.effort_limits[rows])
        self.rate = RATE * self.effort  # the largest of effort_rate and stop.rate

    def check(self, begin=0.0):
        """Everything sent since a time of time.time() [s]."""
        torques = self.controller.torques.since(begin)
        self._check_commands(self.controller.commands.since(begin), torques)
        self._check_silence(torques)
        for part in self._parts(torques):
            self._check_torques(part)

    def _check_commands(self, commands, torques):
        """P1 and P9 in the driver's unit; where that is N m, the same numbers as beside it."""
        beside = {record.number: record.message for record in torques}
        for record in commands:
            data = np.array(record.message.data)
            assert len(data) == len(self.joints), f'P9: {len(data)} numbers for {self.joints}'
            assert np.isfinite(data).all(), f'P1: {data}'
            if self.model.config.command_unit == 'torque' and record.number in beside:
                effort = self._effort(beside[record.number])
                assert (data == effort).all(), f'P2: {data} to the driver, {effort} N m beside it'

    def _effort(self, message):
        """Torques of a message over command_joints [N m]; all other joints must have none."""
        by_name = dict(zip(message.name, message.effort, strict=True))
        for name in set(by_name) - set(self.joints):
            assert by_name[name] == 0.0, f'P9: {name} is passive and gets {by_name[name]} N m'
        return np.array([by_name[name] for name in self.joints])

    def _check_torques(self, records):
        torque = np.array([self._effort(record.message) for record in records])
        assert np.isfinite(torque).all(), 'P1'
        assert (np.abs(torque) <= self.effort + ROUNDING).all(), f'P2: {np.abs(torque).max(axis=0)} N m'
        latest = np.array([record.sent for record in records])
        stamps = np.array([_seconds(record.message.header.stamp) for record in records])
        # A stamp ahead of the clock does not bound the time of computation.
        earliest = np.where(stamps <= latest, stamps, -np.inf)
        earliest[1:] = np.maximum(earliest[1:], latest[:-1])
        self._check_rate(torque, earliest, latest)

    def _check_rate(self, torque, earliest, latest):
        """P3 between any two: each was computed before it was sent, and after its stamp and its predecessor.

        The torque must never exceed the rate since any earlier command.
        """
        start = latest[0]
        for sign in (1.0, -1.0):
            behind = sign * torque - self.rate * (earliest - start)[:, None]
            ahead = sign * torque - self.rate * (latest - start)[:, None]
            outrun = ahead[1:] - np.minimum.accumulate(behind, axis=0)[:-1]
            assert (outrun <= self.rate * RESOLUTION).all(), f'P3: {outrun.max(axis=0)} N m too fast'

    def _parts(self, torques):
        """The records from each enable to the next."""
        times = [record.sent for record in torques]
        cuts = np.searchsorted(times, [0.0, *self.controller.enabled_at, np.inf])
        return [torques[a:b] for a, b in pairwise(cuts) if b > a]

    def _check_silence(self, torques):
        """P5: no command while disabled, before enable is requested."""
        states = [(r.sent, json.loads(r.message.data)['mode']) for r in list(self.controller.states.records)]
        changes = [*states, (np.inf, None)]
        for (begin, mode), (end, _) in pairwise(changes):
            if mode in ('disabled', 'inactive'):
                asked = min([t for t in self.controller.enabled_at if t > begin], default=np.inf)
                loud = [r for r in torques if begin + JITTER < r.sent < min(end, asked)]
                assert not loud, f'P5: {len(loud)} commands while it is {mode}'


def _seconds(stamp):
    return stamp.sec + 1e-9 * stamp.nanosec
