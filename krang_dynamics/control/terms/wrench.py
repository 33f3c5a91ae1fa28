"""Wrench to torque: Gamma = sum of J^T f, [krang] eq. 16, for any number of frames."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import TYPE_CHECKING, Literal

import numpy as np

from ...arrays import Array, joint_vector
from ...errors import ConfigError, InputError, UnknownNameError
from ...robot.model import Robot
from ..parameters import Parameter
from .term import Term, TermInputs, register_term

if TYPE_CHECKING:
    from ..settings import Settings

FADE = 0.2  # time in which a wrench fades out after its timeout [s]
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
    """Sign convention and limits of one end effector's wrench; the convention has no default."""

    convention: Convention
    max_force: float = inf  # [N]
    max_moment: float = inf  # [N m]

    def applied(self, f: Array) -> Array:
        """The wrench that the robot applies for a received f: limited in norm, signed, a new array."""
        f = f.copy() if self.convention == 'applied_by_robot' else -f
        if self.max_force < inf:
            _limit_norm(f[:3], self.max_force)
        if self.max_moment < inf:
            _limit_norm(f[3:], self.max_moment)
        return f


@register_term
class Wrench(Term):
    """The torque of all wrenches; one that is not renewed for `timeout` fades out."""

    name = 'wrench'
    takes = (WrenchSample,)
    parameters = (
        Parameter(
            'wrench.<frame>.convention', 'text', None, 'sign convention of received wrenches; no default',
            choices=('applied_by_robot', 'applied_on_robot'),
        ),
        Parameter(
            'wrench.<frame>.max_force', 'number', None, 'largest force; a larger one is scaled down',
            'N', 0, 1e6, live=True,
        ),
        Parameter(
            'wrench.<frame>.max_moment', 'number', None, 'largest moment; a larger one is scaled down',
            'N m', 0, 1e6, live=True,
        ),
        Parameter(
            'wrench_timeout', 'number', 0.1, 'largest age of a wrench; an older one fades out', 's', 1e-3, 60,
            live=True,
        ),
    )  # fmt: skip

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
        # By end effector: the wrench that the robot applies, its frame_id, its arrival [s].
        self._samples: dict[str, tuple[Array, str, float]] = {}

    @classmethod
    def from_settings(cls, robot: Robot, settings: 'Settings') -> 'Wrench':
        frames = settings.frames('wrench')
        wrenches = {
            frame: WrenchSettings(**values) for frame, values in frames.items() if 'convention' in values
        }
        if not wrenches:
            frame = next(iter([*frames, *robot.config.end_effectors]), '<frame>')
            raise ConfigError(
                f'terms has wrench, so wrench.{frame}.convention must be applied_by_robot or '
                'applied_on_robot; it has no default'
            )
        return cls(robot, wrenches, settings.wrench_timeout)

    def take(self, sample: WrenchSample, now: float) -> str | None:
        """Use a new wrench from now [s] on; returns the reason if it is refused."""
        if sample.frame not in self.settings:
            return f'wrench at {sample.frame!r}: not configured; set wrench.{sample.frame}.convention'
        if sample.frame_id not in self._frames:
            return f'wrench at {sample.frame!r}: frame_id {sample.frame_id!r} is not a frame of the robot'
        try:
            f = joint_vector('wrench', sample.wrench, AXES, (6,))
        except InputError as error:
            return f'wrench at {sample.frame!r}: {error}'
        f = self.settings[sample.frame].applied(f)
        self._samples[sample.frame] = (f, sample.frame_id, min(sample.arrival, now))
        return None

    def reset(self) -> None:
        self._samples.clear()

    def adopt(self, other: 'Wrench') -> None:
        self.settings, self.timeout = other.settings, other.timeout

    def torque(self, state: TermInputs) -> Array:
        torque = np.zeros(len(state.q))
        for frame, (f, frame_id, arrival) in self._samples.items():
            late = state.time - arrival - self.timeout
            share = 1.0 if late <= 0 else max(0.0, 1.0 - late / FADE)
            if share > 0:
                f = f if share == 1.0 else share * f
                state.dynamics.add_wrench(torque, frame, f, frame_id)
        return torque


def _limit_norm(x: Array, largest: float) -> None:
    """Scale x in place to at most `largest`, in its own direction."""
    length = sqrt(x.dot(x))
    if length > largest:
        x *= largest / length
