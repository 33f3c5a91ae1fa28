"""The `krang` command."""

import argparse
import sys
from collections.abc import Sequence

from .errors import KrangError
from .robot.info import report
from .robot.library import load_robot, robots
from .text import table


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; errors are one line and exit status 2."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except KrangError as error:
        print(f'krang: {error}', file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of the output, `head` say, has seen enough
        sys.stderr.close()
        return 0
    return 0


def command() -> None:
    """Entry point of the executable."""
    sys.exit(main())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog='krang', description='Dynamics and torque control of real robots.')
    commands = parser.add_subparsers(required=True, metavar='COMMAND')

    listing = commands.add_parser('robots', help='list the shipped robots', epilog='example: krang robots')
    listing.set_defaults(run=_robots)

    info = commands.add_parser(
        'info',
        help='what to read before the first enable: joints, links, limits, signs, warnings',
        epilog='example: krang info krang',
    )
    info.add_argument('robot', help='a shipped name, a robot file (YAML) or a URDF')
    info.set_defaults(run=_info)
    return parser


def _robots(_: argparse.Namespace) -> None:
    rows = []
    for name in robots():
        robot = load_robot(name)
        counts = (str(robot.nv), str(len(robot.actuated_joint_names)))
        rows.append([name, *counts, robot.config.command_unit, robot.config.description])
    print('\n'.join(table(['robot', 'joints', 'driven', 'unit', 'description'], rows)))


def _info(options: argparse.Namespace) -> None:
    print(report(load_robot(options.robot)))
