"""The commands on recordings, but for those that need ROS: arguments in, files and exit status out."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..bags.io.files import make_way, refuse_existing, write
from ..errors import KrangError
from ..robot.library import load_robot
from ..robot.model import Robot
from ..robot.motor import UNITS

if TYPE_CHECKING:
    from ..bags.identification.identification import Identification
    from ..bags.validation.filtering import Filtering
    from ..bags.validation.recording import Reading

IDENTIFY_CUTOFF = 10.0  # [Hz]


def add_parsers(commands: Any) -> None:
    """Add the commands to argparse's subparsers."""
    _add_validate(commands)
    _add_identify(commands)
    _add_excite(commands)


def _add_validate(commands: Any) -> None:
    parser = commands.add_parser(
        'validate',
        help='predicted against measured torque of a recording, joint by joint',
        epilog="example: krang validate my_bag --robot my.urdf --map 'fer_joint*=panda_joint*' --cutoff 5",
    )
    parser.add_argument('bag', help='a rosbag2 folder, or a .mcap or .db3 file')
    _add_reading(parser)
    parser.add_argument('--cutoff', type=float, metavar='HZ', help='zero-phase low pass; default: none')
    parser.add_argument('--html', metavar='FILE', help='write a report with plots')
    parser.add_argument('--max-rmse', type=float, metavar='NM', help='status 1 if a joint has more')
    parser.add_argument('--min-r2', type=float, metavar='SHARE', help='status 1 if a joint has less')
    parser.set_defaults(run=run_validate)


def _add_identify(commands: Any) -> None:
    parser = commands.add_parser(
        'identify',
        help='link, rotor and friction parameters from recordings, checked on what was held out',
        epilog='example: krang identify day_1 day_2 --held-out day_3 --robot krang --out krang_found.yaml',
    )
    parser.add_argument('bags', nargs='+', metavar='bag', help='rosbag2 folders or files')
    _add_reading(parser)
    parser.add_argument(
        '--cutoff',
        type=float,
        metavar='HZ',
        default=IDENTIFY_CUTOFF,
        help=f'zero-phase low pass; 0: none; default {IDENTIFY_CUTOFF:g}, or a fifth of the rate',
    )
    parser.add_argument('--held-out', nargs='+', default=[], metavar='BAG', help='recordings to check on')
    parser.add_argument(
        '--share', type=float, default=0.5, help='without --held-out: first part that is used; default 0.5'
    )
    parser.add_argument(
        '--sign', choices=('smooth', 'exact'), help="of Coulomb friction; default: the robot's"
    )
    parser.add_argument(
        '--asymmetric', action='store_true', help='Coulomb friction that depends on direction'
    )
    parser.add_argument(
        '--gains', action='store_true', help='motor gains too, trusting the links as described'
    )
    parser.add_argument('--out', metavar='YAML', help='write the robot file with what was found')
    parser.add_argument('--urdf', metavar='FILE', help='write the URDF with what was found')
    parser.add_argument('--html', metavar='FILE', help='write a report, before and after')
    parser.set_defaults(run=run_identify)


def _add_excite(commands: Any) -> None:
    parser = commands.add_parser(
        'excite',
        help='design a motion within limits that makes identification well conditioned',
        epilog='example: krang excite krang --duration 60 --out motion.csv',
    )
    parser.add_argument('robot', help='a shipped name, a robot file (YAML) or a URDF')
    parser.add_argument('--duration', type=float, default=30.0, metavar='S', help='default 30')
    parser.add_argument('--frequency', type=float, default=0.1, metavar='HZ', help='lowest; default 0.1')
    parser.add_argument('--harmonics', type=int, default=5, help='default 5')
    parser.add_argument('--rate', type=float, default=100.0, metavar='HZ', help='of the points; default 100')
    parser.add_argument('--tries', type=int, default=300, help='how hard to search; default 300')
    parser.add_argument(
        '--lock', action='append', default=[], metavar='JOINT=VALUE', help='keep a joint still'
    )
    parser.add_argument(
        '--out', metavar='FILE', help='write it: .csv as a table, .yaml as a trajectory_msgs/JointTrajectory'
    )
    parser.add_argument('--force', action='store_true', help='write over existing files')
    parser.set_defaults(run=run_excite)


def _add_reading(parser: argparse.ArgumentParser) -> None:
    """What validate and identify have in common."""
    add = parser.add_argument
    add('--robot', required=True, help='a shipped name, a robot file (YAML) or a URDF')
    add('--topic', help='the joint states; default: the only ones, or joint_states')
    add('--map', action='append', default=[], metavar='FROM=TO', help="new names: 'fer_joint*=panda_joint*'")
    add('--lock', action='append', default=[], metavar='JOINT=VALUE', help='a joint that stood still')
    add('--remove-subtree', action='append', default=[], metavar='LINK', help='links that were not there')
    add('--effort', choices=tuple(UNITS), default='torque', help='what effort holds')
    add('--gravity', type=float, nargs=3, metavar=('X', 'Y', 'Z'), help="m/s2, in the root link's axes")
    add(
        '--acceleration',
        choices=('velocity', 'position'),
        default='velocity',
        help='what it is differentiated from; default velocity',
    )
    add('--json', metavar='FILE', help='write the figures as JSON')
    add('--force', action='store_true', help='write over existing files')


def run_validate(options: argparse.Namespace) -> int:
    """The whole command; status 1 where a demand is missed."""
    _need_libraries('matplotlib' if options.html else None)
    from ..bags.validation.html_report import validation_html
    from ..bags.validation.validation import validate

    refuse_existing((options.html, options.json), options.force)
    robot = _robot(options)
    result = validate(options.bag, robot, _reading(options), _filtering(options.cutoff, options))
    print(result.text())
    write(options.json, json.dumps(result.as_json(), indent=2))
    if options.html:
        write(options.html, validation_html(result))
    missed = result.missed(options.max_rmse, options.min_r2)
    if missed:
        print('\n'.join(['', 'Missed', *(f'  {line}' for line in missed)]))
    return 1 if missed else 0


def run_identify(options: argparse.Namespace) -> int:
    """The whole command."""
    _need_libraries('matplotlib' if options.html else None)
    from ..bags.identification.identification import identify
    from ..bags.identification.regressor import Unknowns
    from ..bags.validation.html_report import identification_html

    refuse_existing((options.out, options.urdf, options.html, options.json), options.force)
    robot = _robot(options)
    if options.remove_subtree and options.out and not options.urdf:
        raise KrangError('--out names a URDF: with --remove-subtree it must be written too, by --urdf FILE')
    sign = options.sign or robot.friction.sign or 'exact'
    result = identify(
        options.bags,
        robot,
        _reading(options),
        _filtering(_identify_cutoff(options, robot), options),
        Unknowns(sign, options.asymmetric),
        options.held_out,
        options.share,
        options.gains,
    )
    print(result.text())
    _write_models(options, robot, result)
    write(options.json, json.dumps(result.as_json(), indent=2))
    if options.html:
        write(options.html, identification_html(result))
    return 0


def run_excite(options: argparse.Namespace) -> int:
    """The whole command."""
    from ..bags.identification.excitation import Design, excite

    refuse_existing((options.out,), options.force)
    if options.out and Path(options.out).suffix not in ('.csv', '.yaml', '.yml'):
        raise KrangError(f'{options.out}: the name must end in .csv or .yaml')
    design = Design(options.duration, options.rate, options.frequency, options.harmonics, options.tries)
    result = excite(load_robot(options.robot), design, _locked(options.lock))
    print(result.text())
    if options.out:
        write(options.out, result.csv() if options.out.endswith('.csv') else result.message())
    return 0


def run_replay(options: argparse.Namespace) -> int:
    """The whole command, offline."""
    _need_libraries()
    from ..bags.io.reader import Bag
    from ..bags.replay.replayer import replay

    if options.robot is None:
        raise KrangError('give --robot; or --live, to play the recording onto topics')
    robot, overrides = load_robot(options.robot), _overrides(options)
    bag = Bag(options.bag)
    if options.out:
        if Path(options.out).resolve() in (bag.path.resolve(), bag.path.resolve().parent):
            raise KrangError(f'--out {options.out} is the recording itself; choose another name')
        make_way(options.out, options.force)
    print(replay(bag, robot, overrides, options.enable_at, options.node, options.out).text())
    return 0


def _overrides(options: argparse.Namespace) -> dict[str, Any]:
    """Parameters that are to be others than the recorded ones."""
    found: dict[str, Any] = {'terms': options.terms} if options.terms else {}
    for entry in options.param:
        name, sign, text = entry.partition('=')
        if not (name and sign):
            raise KrangError(f'--param {entry!r}: write NAME=VALUE, limits.velocity=2.0 say')
        try:
            found[name] = json.loads(text)
        except ValueError:  # a bare word
            found[name] = text
    return found


def _write_models(options: argparse.Namespace, robot: Robot, result: 'Identification') -> None:
    from ..bags.identification.model_files import robot_file

    if options.urdf:
        text = result.robot.urdf.text
        write(options.urdf, text if isinstance(text, str) else text.decode())
    if options.out:
        comments = [
            f'Found by krang identify. {result.used}.',
            *(f'Offset of the effort of {name}: {x:.4g} N m.' for name, x in result.offsets.items()),
        ]
        if not options.urdf:
            comments.append('Masses and inertias are those of before: --urdf FILE writes the new ones.')
        urdf = Path(options.urdf or robot.urdf.source)
        write(options.out, robot_file(result.robot.config, Path(options.out), urdf, comments))


def _robot(options: argparse.Namespace) -> Robot:
    from ..robot.variant import without_subtree

    robot = load_robot(options.robot)
    if options.gravity:
        robot = robot.with_gravity(options.gravity)
    for link in options.remove_subtree:
        robot = without_subtree(robot, link)
    return robot


def _reading(options: argparse.Namespace) -> 'Reading':
    from ..bags.validation.recording import Reading

    return Reading(options.topic, tuple(options.map), _locked(options.lock), options.effort)


def _filtering(cutoff: float | None, options: argparse.Namespace) -> 'Filtering':
    from ..bags.validation.filtering import Filtering

    return Filtering(cutoff, options.acceleration)


def _identify_cutoff(options: argparse.Namespace, robot: Robot) -> float | None:
    """The default gives way to slow recordings; what is asked for does not."""
    from ..bags.io.reader import Bag
    from ..bags.validation.recording import Recording

    if options.cutoff != IDENTIFY_CUTOFF:
        return options.cutoff or None
    rates = [Recording(Bag(path), robot, _reading(options)).rate for path in options.bags]
    return float(min(IDENTIFY_CUTOFF, 0.2 * min(rates)))


def _locked(entries: list[str]) -> dict[str, float]:
    locked = {}
    for entry in entries:
        name, _, value = entry.partition('=')
        try:
            locked[name] = float(value)
        except ValueError:
            raise KrangError(f'--lock {entry!r}: write JOINT=VALUE, in rad or m') from None
    return locked


def _need_libraries(*more: str | None) -> None:
    """Say at once what is missing, not after minutes of work."""
    for name in ('rosbags', *more):
        if name is None:
            continue
        try:
            __import__(name)
        except ImportError:
            raise KrangError(f'{name} is not installed; pip install {name}') from None
