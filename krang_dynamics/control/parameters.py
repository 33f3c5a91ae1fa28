"""Parameters: name, kind, default, unit, range, whether live, description. One row states all of it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Literal

import numpy as np

from ..errors import InputError, UnknownNameError
from ..robot.model import Robot

Kind = Literal['text', 'names', 'flag', 'number', 'numbers', 'per_joint', 'integer', 'integers']
KINDS = {
    'text': 'text',
    'names': 'a list of names',
    'flag': 'true or false',
    'number': 'one number',
    'numbers': 'a list of numbers',
    'per_joint': "one number for all joints, or one per joint in the robot's order",
    'integer': 'one integer',
    'integers': 'a list of integers',
}
FRAME = '<frame>'  # part of a name: the row applies to every frame


@dataclass(frozen=True)
class Parameter:
    """One row of the table; a default of None means the robot's own value, or none.

    A live parameter may change while the controller is active; the others are read at configure.
    """

    name: str
    kind: Kind
    default: Any
    description: str
    unit: str = ''
    low: float = -inf
    high: float = inf
    choices: tuple[str, ...] = ()
    live: bool = False

    @property
    def attribute(self) -> str:
        """The name as a field of Settings: gains.kp is gains_kp."""
        return self.name.replace('.', '_')

    @property
    def text(self) -> str:
        """The description with unit, kind and choices, as in `ros2 param describe`."""
        unit = f'; unit: {self.unit}' if self.unit not in ('', '1') else ''
        kind = f'; {KINDS[self.kind]}' if self.kind == 'per_joint' else ''
        choices = f'; one of {", ".join(self.choices)}' if self.choices else ''
        return f'{self.description}{unit}{kind}{choices}'

    def checked(self, value: object) -> Any:
        """The value as it is used, or InputError that names the valid values."""
        if value is None:
            return None
        if self.kind == 'flag':
            return self._of_type(bool, value)
        if self.kind == 'text':
            text = self._of_type(str, value)
            if self.choices and text not in self.choices:
                raise InputError(f'{self.name} is {text!r}; it must be one of {", ".join(self.choices)}')
            return text
        return self._names(value) if self.kind == 'names' else self._numbers(value)

    def _of_type(self, kind: type, value: object) -> Any:
        if not isinstance(value, kind):
            raise InputError(f'{self.name} is {value!r}; it must be {KINDS[self.kind]}')
        return value

    def _names(self, value: object) -> tuple[str, ...]:
        names = value.split(',') if isinstance(value, str) else self._of_type(Iterable, value)
        if not all(isinstance(name, str) for name in names):
            raise InputError(f'{self.name} is {value!r}; it must be {KINDS[self.kind]}')
        return tuple(name.strip() for name in names)

    def _numbers(self, value: object) -> Any:
        try:
            x = np.asarray(value)
        except ValueError:  # lists of different lengths
            x = np.array(['no number'])
        is_integer = self.kind in ('integer', 'integers')
        dimensions = {'number': (0,), 'integer': (0,), 'per_joint': (0, 1)}.get(self.kind, (1,))
        if x.ndim not in dimensions or (x.size and x.dtype.kind not in ('iu' if is_integer else 'iuf')):
            raise InputError(f'{self.name} is {value!r}; it must be {KINDS[self.kind]}')
        if not ((x >= self.low) & (x <= self.high)).all():
            raise InputError(f'{self.name} is {x.tolist()}; it must be within {self.low:g} .. {self.high:g}')
        return (x if is_integer else x.astype(float)).tolist()


# Rows of the controller. Each term adds its own rows, see control/terms/.
PARAMETERS = (
    Parameter('robot', 'text', '', 'shipped name, or path of a robot file (YAML) or URDF'),
    Parameter('robot_description', 'text', '', 'instead of robot: text of a URDF, or the topic that has it'),
    Parameter('terms', 'names', ('gravity',), 'control terms whose sum is the torque'),
    Parameter('command_joints', 'names', None, 'joints or drivers in command order; default: all driven'),
    Parameter('command_unit', 'text', None, "unit of the command; default: the robot's"),
    Parameter('wheels_locked', 'flag', False, "true: the wheels are locked, so Krang's base_pitch is driven"),
    Parameter('auto_enable', 'flag', False, 'enable once after activation, without a request'),
    Parameter(
        'hardware_compensates_gravity', 'flag', False, 'true: the drivers compensate gravity themselves'
    ),
    Parameter('ramp_time', 'number', 1.0, 'time from enable to full torque', 's', 0, 60, live=True),
    Parameter(
        'limits.effort', 'per_joint', None,
        "largest torque; default: the nominal torque; never above the URDF's effort",
        'N m', 0, 1e6, live=True,
    ),
    Parameter(
        'limits.effort_rate', 'per_joint', None, 'largest torque rate; default: ten effort limits per second',
        'N m/s', 0, 1e7, live=True,
    ),
    Parameter(
        'limits.velocity', 'per_joint', None,
        "largest speed; above it: fault; default: 1.2 times the URDF's",
        'rad/s', 0, 1e4, live=True,
    ),
    Parameter(
        'limits.position_margin', 'per_joint', None,
        "smallest distance to the URDF's position limits; below it: fault",
        'rad', 0, 10, live=True,
    ),
    Parameter(
        'limits.following_error', 'per_joint', None,
        "largest following error of a joint reference; above it: fault; default: the robot's, else 0.2",
        'rad', 0, 100, live=True,
    ),
    Parameter(
        'limits.state_rate', 'number', 50.0, 'lowest rate of the states; 10 % below it: no enable, fault',
        'Hz', 0, 1e4, live=True,
    ),
    Parameter(
        'limits.self_distance', 'number', None,
        'smallest distance between links; below it: fault; default: not checked', 'm', 0, 1, live=True,
    ),
    Parameter('stop.policy', 'text', None, "stop policy; default: the robot's"),
    Parameter(
        'stop.time', 'number', None, "time in which gravity support ends; default: the robot's",
        's', 0.01, 600,
    ),
    Parameter(
        'stop.blind_time', 'number', None, "the same without a valid state; default: the robot's",
        's', 0.01, 600,
    ),
    Parameter('stop.rate', 'per_joint', None, 'largest torque rate during a stop', 'N m/s', 0, 1e7),
    Parameter(
        'stop.limit', 'number', None, 'longest stop at deactivate or end of the process; then torque fades',
        's', 0.1, 600,
    ),
    Parameter(
        'state_timeout', 'number', 0.1, 'largest age of a state; above it: fault', 's', 1e-3, 2, live=True
    ),
    Parameter(
        'reference_timeout', 'number', 0.5,
        'largest age of a streamed set-point; above it the reference comes to rest',
        's', 1e-3, 60, live=True,
    ),
    Parameter(
        'stream.velocity', 'per_joint', None, "largest speed of streamed motion; default: the URDF's",
        'rad/s', 1e-6, 1e4, live=True,
    ),
    Parameter(
        'stream.acceleration', 'per_joint', None,
        "largest acceleration of streamed motion; default: the URDF's speed within 0.5 s",
        'rad/s2', 1e-6, 1e6, live=True,
    ),
    Parameter(
        'stream.jerk', 'per_joint', None,
        'largest jerk of streamed motion; default: its default acceleration within 0.05 s',
        'rad/s3', 1e-6, 1e8, live=True,
    ),
    Parameter(
        'emergency_stop.required', 'flag', False, 'true: enable needs a message on emergency_stop'
    ),
    Parameter('deadman.required', 'flag', False, 'true: a heartbeat on deadman is required'),
    Parameter('deadman.timeout', 'number', 0.2, 'longest gap between heartbeats', 's', 0.01, 10, live=True),
    Parameter(
        'missing_velocity', 'text', 'error', 'what to do if a velocity is absent or NaN',
        choices=('error', 'zero', 'differentiate'),
    ),
    Parameter(
        'gravity', 'numbers', None, "gravity vector in the axes of the root link; default: the robot's",
        'm/s2', -30, 30, live=True,
    ),
    Parameter(
        'estimate_payload.frame', 'text', '', 'hand of ~/estimate_payload; default: the first end effector',
        live=True,
    ),
    Parameter(
        'estimate_payload.tare', 'flag', False, 'true: ~/estimate_payload measures the empty hand', live=True
    ),
    Parameter('payload.<frame>.mass', 'number', 0.0, 'mass of the payload', 'kg', 0, 1e4, live=True),
    Parameter(
        'payload.<frame>.com', 'numbers', [0.0] * 3, 'centre of mass of the payload in the axes of the frame',
        'm', -100, 100, live=True,
    ),
    Parameter(
        'payload.<frame>.inertia', 'numbers', [0.0] * 6,
        'inertia of the payload at its centre of mass: xx yy zz xy xz yz',
        'kg m2', -1e4, 1e4, live=True,
    ),
)  # fmt: skip


def without_frames(rows: Iterable[Parameter]) -> list[Parameter]:
    """The rows that apply to the robot as a whole."""
    return [row for row in rows if FRAME not in row.name]


def for_frames(rows: Iterable[Parameter], robot: Robot, given: Iterable[str]) -> list[Parameter]:
    """Rows with <frame>, for every end effector and for other frames that occur in a given name."""
    families = [row for row in rows if FRAME in row.name]
    frames = dict.fromkeys(robot.config.end_effectors)
    for name in given:
        for row in families:
            frame = frame_of(row, name)
            if frame is not None:
                if frame not in robot.frames:
                    raise UnknownNameError('frame', frame, robot.frames)
                frames[frame] = None
    return [replace(row, name=row.name.replace(FRAME, frame)) for frame in frames for row in families]


def frame_of(row: Parameter, name: str) -> str | None:
    """The frame in a parameter's name if the name belongs to this row, else None."""
    before, frame, after = row.name.partition(FRAME)
    if not frame or not (name.startswith(before) and name.endswith(after)):
        return None
    return name[len(before) : len(name) - len(after)] or None
