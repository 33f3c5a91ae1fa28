"""The parameters of a controller: name, kind, default, range, and whether it may change while active."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf, pi
from typing import Any, Literal

import numpy as np

from ..errors import InputError, UnknownNameError
from ..robot.model import Robot
from .settings import TERMS

Kind = Literal['text', 'names', 'flag', 'number', 'numbers', 'per_joint', 'whole', 'wholes']
IN_WORDS = {
    'number': 'one number',
    'numbers': 'a list of numbers',
    'per_joint': "one number for all joints, or one per joint in the robot's order",
    'whole': 'one whole number',
    'wholes': 'a list of whole numbers',
}


@dataclass(frozen=True)
class Parameter:
    """One parameter; a default of None is the robot's own, or none. `live`: may change while active."""

    name: str
    kind: Kind
    default: Any
    description: str
    low: float = -inf
    high: float = inf
    choices: tuple[str, ...] = ()
    live: bool = False

    def checked(self, value: object) -> Any:
        """The value as it is used, or InputError that says what would have been valid."""
        if value is None:
            return None
        if self.kind == 'flag':
            return self._of_type(bool, value, 'true or false')
        if self.kind == 'text':
            text = self._of_type(str, value, 'text')
            if self.choices and text not in self.choices:
                raise InputError(f'{self.name} is {text!r}; it must be one of {", ".join(self.choices)}')
            return text
        return self._names(value) if self.kind == 'names' else self._numbers(value)

    def _of_type(self, kind: type, value: object, what: str) -> Any:
        if not isinstance(value, kind):
            raise InputError(f'{self.name} is {value!r}; it must be {what}')
        return value

    def _names(self, value: object) -> list[str]:
        names = list(value.split(',') if isinstance(value, str) else self._of_type(Iterable, value, 'names'))
        return [self._of_type(str, name, 'a list of names').strip() for name in names]

    def _numbers(self, value: object) -> Any:
        try:
            x = np.asarray(value)
        except ValueError:  # lists of different lengths
            x = np.array(['no number'])
        is_whole = self.kind in ('whole', 'wholes')
        dimensions = {'number': (0,), 'whole': (0,), 'per_joint': (0, 1)}.get(self.kind, (1,))
        if x.ndim not in dimensions or (x.size and x.dtype.kind not in ('iu' if is_whole else 'iuf')):
            raise InputError(f'{self.name} is {value!r}; it must be {IN_WORDS[self.kind]}')
        if not ((x >= self.low) & (x <= self.high)).all():
            raise InputError(f'{self.name} is {x.tolist()}; it must be within {self.low:g} .. {self.high:g}')
        return (x if is_whole else x.astype(float)).tolist()


def _live(
    name: str, kind: Kind, default: Any, description: str, low: float = 0.0, high: float = 1e6
) -> Parameter:
    return Parameter(name, kind, default, description, low, high, live=True)


def _choice(name: str, default: str | None, description: str, choices: str, live: bool = False) -> Parameter:
    return Parameter(name, 'text', default, description, choices=tuple(choices.split()), live=live)


PARAMETERS = (
    Parameter('robot', 'text', '', 'shipped name, or path of a robot file (YAML) or URDF'),
    Parameter('robot_description', 'text', '', 'text of a URDF, or the topic that has it; instead of robot'),
    Parameter('terms', 'names', ['gravity'], f'whose sum is the torque: {", ".join(TERMS)}'),
    Parameter(
        'command_joints', 'names', None, "joints or drivers in the drivers' order; default: all driven"
    ),
    _choice('command_unit', None, "what the drivers take; default: the robot's", 'torque current voltage'),
    Parameter('wheels_locked', 'flag', False, "whether wheels are locked, so that Krang's base gets torque"),
    _live('gains.bandwidth', 'number', 10 * pi, 'of computed torque [rad/s]', high=1e3),
    _live('gains.damping_ratio', 'number', 1.0, 'of computed torque [1]', high=10),
    _live('gains.kp', 'per_joint', None, 'instead of the bandwidth [1/s2]'),
    _live('gains.kd', 'per_joint', None, 'together with gains.kp [1/s]', high=1e4),
    _live('damping', 'per_joint', 0.0, 'of the term damping [N m s/rad]'),
    _live('limits.effort', 'per_joint', None, 'torque [N m], never above the URDF; default: the nominal'),
    _live(
        'limits.effort_rate', 'per_joint', None, 'its rate [N m/s], default: ten efforts per second', high=1e7
    ),
    _live('limits.velocity', 'per_joint', None, 'fault beyond [rad/s]', high=1e4),
    _live('limits.position_margin', 'per_joint', None, "fault nearer to the URDF's limits [rad]", high=10),
    _live('limits.following_error', 'per_joint', None, 'fault beyond [rad]; default: not watched', high=100),
    _live('ramp_time', 'number', 1.0, 'from enable until the terms act in full [s]', high=60),
    _choice('stop.policy', None, "how every stop goes; default: the robot's", 'hold lower zero'),
    Parameter('stop.time', 'number', None, 'in which weight is let down [s]', 0.01, 2.5),
    Parameter('stop.blind_time', 'number', None, 'the same without a valid state [s]', 0.01, 2.5),
    Parameter('stop.rate', 'per_joint', None, 'of the torque while stopping [N m/s]', 0, 1e7),
    _live('state_timeout', 'number', 0.1, 'an older state ends in the stop policy [s]', 1e-3, 2),
    _live('reference_timeout', 'number', None, 'an older set-point does so too [s]; default: none', 1e-3, 60),
    _live('wrench_timeout', 'number', 0.1, 'after which a silent wrench fades out [s]', 1e-3, 60),
    Parameter('deadman.required', 'flag', False, 'whether there must be a heartbeat on deadman'),
    _live('deadman.timeout', 'number', 0.2, 'longest pause of the heartbeat [s]', 0.01, 10),
    _choice('missing_velocity', 'error', 'what an absent or NaN velocity is', 'error zero differentiate'),
    _live('gravity', 'numbers', None, "in the root link's axes [m/s2]; default: the robot's", -30, 30),
    Parameter('hardware_compensates_gravity', 'flag', False, 'whether the drivers add gravity torque'),
    _live('observer.gain', 'number', 25.0, 'bandwidth of the observer [rad/s]', 0.01, 1e3),
    _live('observer.contact', 'number', 5.0, 'external torque that counts as contact [N m]'),
    _live('observer.collision', 'number', 30.0, 'external torque that counts as collision [N m]'),
    _choice('observer.reaction', 'none', 'to a collision', 'none stop', live=True),
)

# For every end effector, and for every other frame that is given one.
OF_FRAME = (
    _choice('wrench.{}.convention', None, 'whose force it is', 'applied_by_robot applied_on_robot'),
    _live('wrench.{}.max_force', 'number', None, 'a larger force is shortened [N]'),
    _live('wrench.{}.max_moment', 'number', None, 'a larger moment is shortened [N m]'),
    _live('payload.{}.mass', 'number', 0.0, 'of what is carried [kg]', high=1e4),
    _live('payload.{}.com', 'numbers', [0.0] * 3, "its centre of mass in the frame's axes [m]", -100, 100),
    _live('payload.{}.inertia', 'numbers', [0.0] * 6, 'there: xx yy zz xy xz yz [kg m2]', -1e4, 1e4),
)


def frame_parameters(robot: Robot, given: Iterable[str]) -> list[Parameter]:
    """Parameters of the end effectors, and of other frames that a given name speaks of."""
    frames = dict.fromkeys(robot.config.end_effectors)
    for name in given:
        kind, _, rest = name.partition('.')
        frame = rest.rpartition('.')[0]
        if kind in ('wrench', 'payload') and frame:
            if frame not in robot.frames:
                raise UnknownNameError('frame', frame, robot.frames)
            frames[frame] = None
    return [replace(parameter, name=parameter.name.format(f)) for f in frames for parameter in OF_FRAME]
