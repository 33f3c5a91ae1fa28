"""Motions in files: a table (.csv), or a trajectory_msgs/JointTrajectory (.yaml)."""

import csv
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from yaml.composer import Composer

from ...arrays import Array
from ...control.reference.trajectory import JointTrajectory
from ...errors import InputError, suggestion
from ...reading import plain_number, regular_file
from ...robot.schema import UniqueKeys

SUFFIXES = ('.csv', '.yaml', '.yml')
COLUMNS = {'q': 'positions', 'v': 'velocities', 'a': 'accelerations', 'tau': 'effort'}
FIELDS = tuple(COLUMNS.values())  # of a point of the message


Parser: Any = getattr(yaml, 'CBaseLoader', yaml.BaseLoader)  # the fast one, if it is installed


class _Loader(UniqueKeys, Composer, Parser):  # type: ignore[misc]
    """Numbers remain words; where lists are nested too deep, the composer in C would crash."""

    def __init__(self, text: str) -> None:
        Parser.__init__(self, text)
        Composer.__init__(self)


LARGEST = 200_000_000  # of a file [bytes]


def read_motion(path: str | Path) -> JointTrajectory:
    """The motion in a file; InputError names the line or the point that is wrong."""
    file = Path(path)
    if file.suffix not in SUFFIXES:
        raise InputError(f'{path}: the name must end in .csv or .yaml')
    try:
        if file.stat().st_size > LARGEST:
            raise InputError(f'{path}: is larger than {LARGEST / 1e6:g} MB; send fewer points')
        text = regular_file(file).read_text(encoding='utf-8-sig')
    except OSError as error:
        raise InputError(f'{path}: cannot be read: {error.strerror}') from None
    except UnicodeDecodeError:
        raise InputError(f'{path}: is not a text file; give a table (.csv) or YAML') from None
    try:
        return _from_csv(text) if file.suffix == '.csv' else _from_yaml(text)
    except InputError as error:
        raise InputError(f'{path}: {error}') from None


def motion_text(motion: JointTrajectory, suffix: str) -> str:
    """The text of a file with this suffix, which read_motion() and, as YAML, `ros2 topic pub` read."""
    values = (motion.positions, motion.velocities, motion.accelerations, motion.efforts)
    given = [(*names, x) for names, x in zip(COLUMNS.items(), values, strict=True) if x is not None]
    if suffix == '.csv':
        header = ['time', *(f'{kind}.{name}' for kind, _, _ in given for name in motion.joint_names)]
        rows = np.column_stack([motion.times, *(x for _, _, x in given)])
        return '\n'.join([','.join(header), *(','.join(f'{x:.9g}' for x in row) for row in rows), ''])
    lines = [f'joint_names: [{", ".join(motion.joint_names)}]', 'points:']
    for k, time in enumerate(motion.times.tolist()):
        seconds, nanoseconds = divmod(round(time * 1e9), 1_000_000_000)
        # No exponents: YAML 1.1 reads 7e-08 as text.
        fields = [f'{field}: [{", ".join(f"{x:.9f}" for x in xs[k])}]' for _, field, xs in given]
        fields.append(f'time_from_start: {{sec: {seconds}, nanosec: {nanoseconds}}}')
        lines += [f'- {fields[0]}', *(f'  {field}' for field in fields[1:])]
    return '\n'.join([*lines, ''])


def _from_csv(text: str) -> JointTrajectory:
    """Columns time, q.JOINT, and optionally v.JOINT, a.JOINT and tau.JOINT; without a prefix q is meant."""
    try:
        lines = list(csv.reader(text.splitlines()))
    except csv.Error as error:  # a cell of many characters
        raise InputError(f'is no table: {error}') from None
    if not lines or not lines[0] or lines[0][0].strip() != 'time':
        raise InputError("the first line must name the columns: 'time,q.JOINT,...'")
    places = _columns([name.strip() for name in lines[0][1:]])
    names = tuple(places['positions'])
    rows = [
        [_number(cell, f'line {number}') for cell in line]
        for number, line in enumerate(lines[1:], 2)
        if any(cell.strip() for cell in line)
    ]
    for number, row in enumerate(rows, 2):
        if len(row) != len(lines[0]):
            raise InputError(f'line {number} has {len(row)} numbers; the first line names {len(lines[0])}')
    table = np.array(rows).reshape(len(rows), len(lines[0]))
    fields = {}
    for field, joints in places.items():
        if joints and set(joints) != set(names):
            raise InputError(f'{field} are given for {", ".join(joints)}, positions for {", ".join(names)}')
        fields[field] = table[:, [joints[name] for name in names]] if joints else None
    return _trajectory(names, table[:, 0], fields)


def _columns(header: Sequence[str]) -> dict[str, dict[str, int]]:
    """The column of every joint, by field of the message."""
    places: dict[str, dict[str, int]] = {field: {} for field in FIELDS}
    for column, name in enumerate(header, 1):
        kind, point, joint = name.partition('.')
        field, joint = (COLUMNS[kind], joint) if point and kind in COLUMNS else ('positions', name)
        if not joint or joint in places[field]:
            raise InputError(f'column {column + 1}, {name!r}, names no joint, or one that was named before')
        places[field][joint] = column
    return places


def _from_yaml(text: str) -> JointTrajectory:
    """One document; all its scalars are words, because YAML 1.1 reads 7e-08 as text and 1_0 as a number."""
    try:
        data, *others = list(yaml.load_all(text, _Loader)) or [None]
    except RecursionError:
        raise InputError('is not a motion: its lists are nested too deep') from None
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(f'is not YAML: {" ".join(str(error).split())}') from None
    if any(others):  # `ros2 topic echo` ends with an empty one
        raise InputError(f'it has {1 + len(others)} documents; a motion is one')
    names, points = (data.get(key) if isinstance(data, dict) else None for key in ('joint_names', 'points'))
    if not isinstance(names, list) or not isinstance(points, list):
        raise InputError('is not a JointTrajectory; it must have joint_names and points')
    if not all(isinstance(name, str) for name in names):
        raise InputError('joint_names must be names')
    for k, point in enumerate(points):
        if not isinstance(point, dict):
            raise InputError(f'points[{k}] is {_shown(point)}; it must have positions and time_from_start')
        _refuse_unknown(point, (*FIELDS, 'time_from_start'), f'points[{k}]')
    _refuse_unknown(data, ('header', 'joint_names', 'points'), 'the motion')
    times = np.array([_time(point.get('time_from_start'), k) for k, point in enumerate(points)])
    fields = {field: _field(points, field, len(names)) for field in FIELDS}
    return _trajectory(tuple(names), times, fields)


def _field(points: Sequence[Mapping[str, Any]], field: str, count: int) -> Array | None:
    """One field of all points (K, n); None where no point has it."""
    rows = [point.get(field) or [] for point in points]
    if not any(rows):
        return None
    for k, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != count:
            raise InputError(f'points[{k}].{field} must be {count} numbers, one per joint')
    return np.array([[_number(x, f'points[{k}].{field}') for x in row] for k, row in enumerate(rows)])


def _time(value: Any, k: int) -> float:
    """time_from_start as sec and nanosec, or as seconds [s]."""
    what = f'points[{k}].time_from_start'
    if isinstance(value, dict):
        _refuse_unknown(value, ('sec', 'nanosec'), what)
        seconds, nanoseconds = (_number(value.get(key, '0'), what) for key in ('sec', 'nanosec'))
        return seconds + 1e-9 * nanoseconds
    return _number(value, what)


def _refuse_unknown(entries: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for name in entries:
        if name not in known:
            raise InputError(f'{where} has the entry {name!r}{suggestion(name, known)}')


def _number(value: Any, where: str) -> float:
    try:
        number = plain_number(value)
        if not isfinite(number):
            raise ValueError
    except (AttributeError, ValueError):
        raise InputError(f'{where}: {_shown(value)} is not a finite number') from None
    return number


def _shown(value: Any) -> str:
    """The beginning of a word; lists are not shown, for aliases make them as long as they like."""
    return repr(value[:40]) if isinstance(value, str) else 'a list or mapping'


def _trajectory(names: tuple[str, ...], times: Array, fields: Mapping[str, Array | None]) -> JointTrajectory:
    if not names or not len(times):
        raise InputError('has no joints or no points; a motion needs both')
    if fields['positions'] is None:
        raise InputError('has no positions; a motion needs them')
    if times[0] < 0 or (np.diff(times) <= 0).any() or times[-1] >= 2**31:
        raise InputError('its times must be positive, increase from point to point, and be below 2^31 s')
    return JointTrajectory(
        names, times, fields['positions'], fields['velocities'], fields['accelerations'], fields['effort']
    )
