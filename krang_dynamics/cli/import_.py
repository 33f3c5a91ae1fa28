"""`krang import`: recordings in tables become a bag."""

import argparse
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from ..errors import KrangError
from .libraries import require_libraries

PURPOSE = 'convert CSV, MATLAB or numpy recordings to a bag'
EXAMPLES = (
    'krang import run.csv --out run',
    "krang import arm.csv --columns time=t_s 'q=q*' 'v=dq_filt*' 'tau=cur_A_*' --joints 'left_*' --out a",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('files', nargs='+', metavar='file', help='.csv, .mat (up to version 7), .npz or .npy')
    add(
        '--columns',
        nargs='+',
        default=[],
        metavar='KIND=PATTERN',
        help='columns of time, q, v and tau: a name in which * is the joint, or numbers from 1 as 2-8; '
        'default: usual names, such as time, q.JOINT, v.JOINT and tau.JOINT',
    )
    add(
        '--units',
        nargs='+',
        default=[],
        metavar='KIND=UNIT',
        help='unit or factor of a kind, such as q=deg v=rpm time=ms tau=mA; default s, rad, rad/s, N m',
    )
    add('--joints', default='*', metavar='PATTERN', help="names of the joints, such as 'left_*'; default *")
    add('--rate', type=float, metavar='HZ', help='sample rate of files without a column of time')
    add('--topic', default='/joint_states', help='default /joint_states')
    add('--out', required=True, metavar='BAG', help='the folder to write')
    add('--force', action='store_true', help='replace an existing bag')


def run(options: argparse.Namespace) -> int:
    require_libraries('rosbags')
    from ..bags.io.files import make_way
    from ..bags.io.table_file import KINDS, UNITS, Columns, read_table, write_bag

    kinds = ('time', *KINDS)
    if options.rate is not None and not options.rate > 0:
        raise KrangError(f'--rate is {options.rate}; it must be a positive number of Hz')
    factors = {}
    for kind, unit in _pairs('--units', options.units, kinds).items():
        try:
            factors[kind] = UNITS[unit] if unit in UNITS else float(unit)
        except ValueError:
            raise KrangError(f'--units {kind}={unit}: use a number or one of {", ".join(UNITS)}') from None
    columns = Columns(_pairs('--columns', options.columns, kinds), factors, options.joints, options.rate)
    recordings = [read_table(Path(path), columns) for path in options.files]
    make_way(options.out, options.force)
    count = write_bag(Path(options.out), recordings, options.topic)
    for path, recording in zip(options.files, recordings, strict=True):
        rate = (len(recording.t) - 1) / max(float(recording.t[-1] - recording.t[0]), 1e-9)
        present = ', '.join(kind for kind in KINDS if recording.values[kind] is not None)
        joints = ', '.join(recording.joints)
        print(f'{path}: {len(recording.t)} samples, {rate:.4g} Hz, {present} of {joints}')
        for kind in KINDS:
            values = recording.values[kind]
            if values is not None and np.isnan(values).any():
                print(f'! {path}: {np.isnan(values).sum()} numbers of {kind} are missing')
        if recording.unused:
            print(f'{path}: columns that are not used: {", ".join(recording.unused)}')
    print(f'{options.out}: {count} messages on {options.topic}')
    return 0


def _pairs(option: str, entries: Iterable[str], kinds: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for entry in entries:
        kind, equals, value = entry.partition('=')
        if kind not in kinds or not equals or not value:
            raise KrangError(f'{option} {entry!r}: write KIND=VALUE with a kind of {", ".join(kinds)}')
        found[kind] = value
    return found
