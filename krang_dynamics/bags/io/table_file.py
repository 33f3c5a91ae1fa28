"""Recordings in tables: CSV, MATLAB and numpy files, read by column and written as a bag of joint states."""

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...arrays import Array
from ...errors import BagError
from ...reading import plain_number, regular_file
from .joint_state_codec import TYPE, encode
from .writer import BagWriter

KINDS = ('q', 'v', 'tau')
USUAL = {  # patterns of column names without --columns; * is the joint
    'time': ('time', 't', 't_s', 'timestamp', 'stamp', 'seconds'),
    'q': ('q.*', 'q_*', 'position.*', 'pos_*', 'q*'),
    'v': ('v.*', 'v_*', 'dq_*', 'qd_*', 'velocity.*', 'vel_*', 'dq*', 'qd*', 'v*'),
    'tau': ('tau.*', 'tau_*', 'effort.*', 'torque.*', 'torque_*', 'current_*', 'tau*', 'effort*'),
}
NUMBERS = 'fiu'  # kinds of numpy's types
TURN = 2 * np.pi
UNITS = {
    'rad': 1.0, 'deg': TURN / 360, 'rev': TURN, 'm': 1.0, 'mm': 1e-3, 's': 1.0, 'ms': 1e-3, 'us': 1e-6,
    'ns': 1e-9, 'rad/s': 1.0, 'deg/s': TURN / 360, 'rpm': TURN / 60, 'm/s': 1.0, 'mm/s': 1e-3, 'Nm': 1.0,
    'mNm': 1e-3, 'N': 1.0, 'A': 1.0, 'mA': 1e-3, 'V': 1.0,
}  # fmt: skip
PAUSE = 10.0  # between two files in one bag [s]
LONGEST = 1e8  # of a recording [s], three years: more means that its unit is wrong


@dataclass(frozen=True)
class Columns:
    """Which columns to read: patterns and unit factors by kind (time, q, v, tau), or a rate [Hz]."""

    patterns: Mapping[str, str]
    factors: Mapping[str, float]
    joints: str = '*'  # name of a joint, * stands for what matched in the column's name
    rate: float | None = None


@dataclass(frozen=True)
class TableRecording:
    """Samples of one file: t [s] (K,), and q, v, tau (K, n) over `joints`, None where there are none."""

    joints: tuple[str, ...]
    t: Array
    values: dict[str, Array | None]
    unused: tuple[str, ...]  # names of the columns that were not read


def read_table(path: Path, columns: Columns) -> TableRecording:
    """The joint states in a file."""
    names, data = _table(path)
    found = {kind: _select(path, kind, names, columns) for kind in ('time', *KINDS)}
    joints = tuple(columns.joints.replace('*', key) for key in found['q'])
    if not joints:
        raise BagError(
            f'{path}: no column of positions is recognised; name them, as --columns time=t q=q* v=dq*; '
            f'it has {", ".join(names)}'
        )
    if found['time']:
        t = data[:, next(iter(found['time'].values()))] * columns.factors.get('time', 1.0)
    elif columns.rate:
        t = np.arange(len(data)) / columns.rate
    else:
        raise BagError(f'{path}: no column of time is recognised; use --columns time=NAME, or --rate HZ')
    _check_time(path, t)
    values: dict[str, Array | None] = {}
    for kind in KINDS:
        other = set(found[kind]) - set(found['q'])
        if other:
            raise BagError(f'{path}: {kind} has columns of {", ".join(sorted(other))}, for which q has none')
        if not found[kind]:
            values[kind] = None
            continue
        rows = np.column_stack(
            [
                data[:, found[kind][key]] if key in found[kind] else np.full(len(data), np.nan)
                for key in found['q']
            ]
        )
        values[kind] = _without_infinity(path, kind, joints, rows * columns.factors.get(kind, 1.0))
    for place in (*found['time'].values(), *found['q'].values()):
        if not np.isfinite(data[:, place]).any():
            raise BagError(f'{path}: column {names[place]} has no numbers')
    used = {place for places in found.values() for place in places.values()}
    unused = tuple(name for place, name in enumerate(names) if name and place not in used)
    return TableRecording(joints, t, values, unused)


def _check_time(path: Path, t: Array) -> None:
    """Every sample has a time, which increases [s]."""
    wrong = np.flatnonzero(~np.isfinite(t) | np.concatenate([[False], np.diff(t) <= 0]))
    if wrong.size:
        k = int(wrong[0])
        after = f' after {t[k - 1]:g} s' if k else ''
        raise BagError(
            f'{path}: row {k + 1} of the numbers has the time {t[k]:g} s{after}; times must increase'
        )
    if t[-1] - t[0] > LONGEST:
        raise BagError(f'{path}: it lasts {t[-1] - t[0]:g} s; give the unit of time, such as --units time=ns')


def _without_infinity(path: Path, kind: str, joints: Sequence[str], values: Array) -> Array:
    """The same values (K, n); a missing one is NaN, an infinite one is damaged."""
    infinite = np.argwhere(np.isinf(values))
    if len(infinite):
        k, joint = infinite[0]
        raise BagError(f'{path}: row {k + 1} of the numbers has an infinite {kind} of {joints[joint]}')
    return values


def write_bag(path: Path, recordings: Sequence[TableRecording], topic: str = '/joint_states') -> int:
    """One bag of joint states, a pause between the recordings; returns the number of messages."""
    start = 1.0
    with BagWriter(path) as writer:
        for recording in recordings:
            stamps = np.round(1e9 * (recording.t - recording.t[0] + start)).astype(np.int64)
            for k, stamp in enumerate(stamps.tolist()):
                q, v, tau = (
                    np.zeros(0) if value is None else np.ascontiguousarray(value[k])
                    for value in (recording.values[kind] for kind in KINDS)
                )
                writer.write(topic, TYPE, encode(recording.joints, stamp, q, v, tau), stamp)
            start += float(recording.t[-1] - recording.t[0]) + PAUSE
        return writer.count


def _select(path: Path, kind: str, names: Sequence[str], columns: Columns) -> dict[str, int]:
    """Joint -> column of one kind; the first usual pattern that matches, or that of --columns."""
    given = columns.patterns.get(kind)
    for pattern in (given,) if given else USUAL[kind]:
        if re.fullmatch(r'\d+(-\d+)?', pattern):  # numbers of columns, from 1
            first, _, last = pattern.partition('-')
            places = range(int(first) - 1, int(last or first))
            if not 0 <= places[0] <= places[-1] < len(names):
                raise BagError(f'{path}: --columns {kind}={pattern}: it has {len(names)} columns')
            return {str(i): place for i, place in enumerate(places, 1)}
        expression = re.compile(re.escape(pattern).replace(r'\*', '(.+)'), re.IGNORECASE)
        matches = [(match, i) for i, name in enumerate(names) if (match := expression.fullmatch(name))]
        if matches:
            found = {(match.group(1) if match.groups() else '').strip('._ '): i for match, i in matches}
            if len(found) < len(matches):
                raise BagError(f'{path}: two columns of {kind} have the same name; it has {", ".join(names)}')
            return found
    if given:
        raise BagError(f'{path}: --columns {kind}={given}: no column matches; it has {", ".join(names)}')
    return {}


def _table(path: Path) -> tuple[list[str], Array]:
    """Names of the columns, and numbers (rows, columns)."""
    readers: dict[str, Any] = {
        '.csv': _csv,
        '.txt': _csv,
        '.tsv': _csv,
        '.mat': _mat,
        '.npz': _npz,
        '.npy': _npy,
    }
    if path.suffix not in readers:
        raise BagError(f'{path}: the name must end in {", ".join(readers)}')
    try:
        names, data = readers[path.suffix](regular_file(path))
    except (BagError, MemoryError):
        raise
    except OSError as error:
        raise BagError(f'{path}: cannot be read: {error.strerror or error}') from error
    except Exception as error:  # numpy and scipy raise any type of error on damaged files
        raise BagError(f'{path}: cannot be read: {error}') from error
    if not len(data):
        raise BagError(f'{path}: it has no rows of numbers')
    return names, np.asarray(data, dtype=float)


def _csv(path: Path) -> tuple[list[str], Array]:
    lines = path.read_text(encoding='utf-8-sig').splitlines()
    rows = [line for line in lines if line.strip() and not line.lstrip().startswith(('#', '%'))]
    if not rows:
        return [], np.zeros((0, 0))
    try:
        delimiter = csv.Sniffer().sniff(rows[0], ',;\t ').delimiter
    except csv.Error:
        delimiter = ','
    cells = [
        [word.strip() for word in row] for row in csv.reader(rows, delimiter=delimiter, skipinitialspace=True)
    ]
    first = [_number(word) for word in cells[0]]
    has_header = any(value is None for value in first)
    names = cells[0] if has_header else [str(i) for i in range(1, len(first) + 1)]
    data = np.full((len(cells) - has_header, len(names)), np.nan)
    wrong: dict[int, tuple[int, str]] = {}  # by column: the first row with a word, and that word
    for k, (row, words) in enumerate(zip(data, cells[has_header:], strict=True), 1):
        if len(words) < len(names) or any(words[len(names) :]):
            raise BagError(f'{path}: row {k} of the numbers has {len(words)} columns instead of {len(names)}')
        numbers = [_number(word) for word in words[: len(names)]]
        row[:] = [np.nan if value is None else value for value in numbers]
        for i in [i for i, value in enumerate(numbers) if value is None and i not in wrong]:
            wrong[i] = k, words[i]
    for i, (k, word) in wrong.items():
        if np.isfinite(data[:, i]).any():  # else it is a column of words
            raise BagError(
                f'{path}: row {k} of the numbers has {word!r} in column {names[i]}; '
                'leave the cell empty where a number is missing'
            )
    return names, data


def _number(word: str) -> float | None:
    try:
        return plain_number(word) if word else float('nan')
    except ValueError:
        return None


def _mat(path: Path) -> tuple[list[str], Array]:
    from scipy.io import loadmat

    try:
        return _named(path, {k: v for k, v in loadmat(path).items() if not k.startswith('__')})
    except NotImplementedError:  # scipy's error for this format
        raise BagError(f"{path}: it has MATLAB's format 7.3; save it again with save(..., '-v7')") from None


def _npz(path: Path) -> tuple[list[str], Array]:
    with np.load(path) as arrays:
        return _named(path, dict(arrays))


def _npy(path: Path) -> tuple[list[str], Array]:
    data = np.load(path)
    if data.dtype.names:
        return _named(path, {name: data[name] for name in data.dtype.names})
    if data.ndim != 2 or data.dtype.kind not in NUMBERS:
        what = f'{data.ndim} dimensions of {data.dtype}'
        raise BagError(f'{path}: it has {what}; a table has 2 of real numbers')
    return [str(i) for i in range(1, data.shape[1] + 1)], data


def _named(path: Path, arrays: Mapping[str, Any]) -> tuple[list[str], Array]:
    """Columns NAME of a vector and NAME1, NAME2, ... of a matrix; all arrays with the most common length."""
    for name, values in arrays.items():
        if np.iscomplexobj(values):
            raise BagError(f'{path}: {name} is complex; a recording has real numbers')
    numeric = {k: np.asarray(v) for k, v in arrays.items() if np.asarray(v).dtype.kind in NUMBERS}
    numeric = {
        k: v.reshape(-1, 1) if 1 in v.shape or v.ndim == 1 else v for k, v in numeric.items() if v.size > 1
    }
    if not numeric:
        raise BagError(f'{path}: it has no arrays of numbers')
    lengths = [n for v in numeric.values() for n in v.shape if n == max(v.shape)]
    K = max(set(lengths), key=lengths.count)
    names: list[str] = []
    columns: list[Array] = []
    for name, values in numeric.items():
        matrix = values if len(values) == K else values.T
        if matrix.ndim == 2 and len(matrix) == K:
            names += [name] if matrix.shape[1] == 1 else [f'{name}{i}' for i in range(1, matrix.shape[1] + 1)]
            columns += list(matrix.T)
    return names, np.column_stack(columns)
