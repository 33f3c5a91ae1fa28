"""The `krang` command."""

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from . import bench as benchmarks
from .errors import KrangError
from .robot.info import report
from .robot.library import load_robot, robots
from .text import table


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; errors are one line and exit status 2."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options) or 0)
    except KrangError as error:
        print(f'krang: {error}', file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of the output, `head` say, has seen enough
        sys.stderr.close()
        return 0


def command() -> None:
    """Entry point of the executable."""
    sys.exit(main())


class _Parser(argparse.ArgumentParser):
    """argparse with errors of one line."""

    def error(self, message: str) -> NoReturn:
        print(f'{self.prog}: {message}; {self.prog} --help says how', file=sys.stderr)
        sys.exit(2)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog='krang', description='Dynamics and torque control of real robots.')
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

    derive = commands.add_parser(
        'derive',
        help="derive A, C and Q by Lagrange's method; print, export or check them",
        epilog='example: krang derive planar_2r; krang derive krang --check',
    )
    derive.add_argument('robot', help='a shipped name, a robot file (YAML) or a URDF')
    derive.add_argument('--latex', metavar='FILE', help='write the equations as LaTeX')
    derive.add_argument('--python', metavar='FILE', help='write them as a module that needs numpy alone')
    derive.add_argument('--c', metavar='FILE', help='write them as C99')
    derive.add_argument(
        '--check', action='store_true', help='compare with Pinocchio; status 1 if they differ'
    )
    derive.add_argument('--force', action='store_true', help='write over existing files')
    derive.set_defaults(run=_derive)

    bench = commands.add_parser(
        'bench',
        help='run a benchmark; figures are ratios within one run',
        epilog='example: krang bench tick --json tick.json',
    )
    bench.add_argument('name', help=', '.join(benchmarks.names()))
    bench.add_argument('--json', metavar='FILE', help='write the figures as JSON too')
    bench.set_defaults(run=lambda options: benchmarks.run(options.name, options.json))
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


def _derive(options: argparse.Namespace) -> int:
    try:
        from . import derive
    except ImportError as error:
        raise KrangError(f'{error.name} is not installed; pip install casadi sympy') from None
    outputs = derive.Outputs(options.latex, options.python, options.c, options.check, options.force)
    return derive.run(load_robot(options.robot), options.robot in robots(), outputs)
