"""Wrench to torque: Gamma = sum of J^T f, [krang] eq. 16, for any number of frames."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Literal

import numpy as np

from ...arrays import Array, joint_vector
from ...errors import InputError, UnknownNameError
from ...robot.model import Robot
from ..dynamics import Dynamics
from .term import Moment, Term

FADE = 0.2  # time in which the wrench of a silent source is taken back [s]
AXES = ('fx', 'fy', 'fz', 'mx', 'my', 'mz')
Convention = Literal['applied_by_robot', 'applied_on_robot']


@dataclass(frozen=True)
class WrenchSample:
    """(force [N], moment [N m]) in the axes of `frame_id`, applied at the origin of `frame_id`."""

    frame: str  # the end effector
    frame_id: str
    wrench: Array
    arrival: float  # steady [s]

    def moved(self, frame_id: str, rotation: Array, translation: Array) -> 'WrenchSample':
        """The same wrench in the axes and at the origin of another frame, given the pose in it [m]."""
        force = rotation @ self.wrench[:3]
        moment = rotation @ self.wrench[3:] + np.cross(translation, force)
        return replace(self, frame_id=frame_id, wrench=np.concatenate([force, moment]))


@dataclass
class WrenchSettings:
    """How to read one end effector's wrench; the sign has no default."""

    convention: Convention
    max_force: float = inf  # [N]
    max_moment: float = inf  # [N m]

    def applied(self, f: Array) -> Array:
        """What the robot shall apply for a wrench f as it came: within the norms, signed; a new array."""
        f = f.copy() if self.convention == 'applied_by_robot' else -f
        if self.max_force < inf:
            _shorten(f[:3], self.max_force)
        if self.max_moment < inf:
            _shorten(f[3:], self.max_moment)
        return f


class Wrench(Term):
    """The torque of all wrenches; one whose source has been silent for `timeout` fades out."""

    name = 'wrench'

    def __init__(self, robot: Robot, settings: Mapping[str, WrenchSettings], timeout: float) -> None:
        for frame, setting in settings.items():
            if frame not in robot.frames:
                raise UnknownNameError('wrench frame', frame, robot.frames)
            if setting.convention not in ('applied_by_robot', 'applied_on_robot'):
                raise InputError(
                    f'wrench.{frame}.convention is {setting.convention!r}; it must be applied_by_robot or '
                    'applied_on_robot, and has no default'
                )
            if not (setting.max_force >= 0 and setting.max_moment >= 0):
                raise InputError(f'wrench.{frame}: max_force and max_moment must be 0 or more')
        self.settings = dict(settings)
        self.timeout = timeout  # [s]
        self._frames = set(robot.frames)
        # By end effector: the wrench that the robot shall apply, its frame_id, its arrival [s].
        self._samples: dict[str, tuple[Array, str, float]] = {}

    def take(self, sample: WrenchSample, now: float) -> str | None:
        """Use a new wrench from now [s] on; the reason where it is refused."""
        if sample.frame not in self.settings:
            return f'wrench at {sample.frame!r}: not configured; set wrench.{sample.frame}.convention'
        if sample.frame_id not in self._frames:
            return f'wrench at {sample.frame!r}: frame_id {sample.frame_id!r} is no frame of the robot'
        try:
            f = joint_vector('wrench', sample.wrench, AXES, (6,))
        except InputError as error:
            return f'wrench at {sample.frame!r}: {error}'
        f = self.settings[sample.frame].applied(f)
        self._samples[sample.frame] = (f, sample.frame_id, min(sample.arrival, now))
        return None

    def reset(self) -> None:
        self._samples.clear()

    def adopt(self, other: Term) -> None:
        assert isinstance(other, Wrench)
        self.settings, self.timeout = other.settings, other.timeout

    def torque(self, moment: Moment) -> Array:
        torque = np.zeros(len(moment.q))
        for frame, (f, frame_id, arrival) in self._samples.items():
            silent = moment.time - arrival - self.timeout
            share = 1.0 if silent <= 0 else max(0.0, 1.0 - silent / FADE)
            if share > 0:
                torque += _torque(moment.dynamics, frame, f if share == 1.0 else share * f, frame_id)
        return torque


def _torque(dynamics: Dynamics, frame: str, f: Array, frame_id: str) -> Array:
    """J^T f of a wrench in the axes and at the origin of frame_id, [krang] eq. 16."""
    if frame_id == frame:
        return f.dot(dynamics.local_jacobian(frame))
    axes, point = dynamics.pose(frame_id)
    force = axes @ f[:3]
    # The moment is shifted from where it applies to the hand's origin.
    moment = axes @ f[3:] + np.cross(point - dynamics.pose(frame)[1], force)
    return np.concatenate([force, moment]) @ dynamics.jacobian(frame)


def _shorten(x: Array, largest: float) -> None:
    """Scale x in place to at most `largest`, in its own direction."""
    length = sqrt(x.dot(x))
    if length > largest:
        x *= largest / length
