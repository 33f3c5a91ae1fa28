"""The `krang` command."""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from ..errors import KrangError
from ..robot.library import load_robot, robots
from ..robot.sanity_report import report
from ..simulation import ENGINES
from ..text import table
from . import bag_commands
from . import bench as benchmarks


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

    demo = commands.add_parser(
        'demo',
        help='simulator, controller and guard on real topics: a story, a table, a picture',
        epilog='example: krang demo krang --animate krang.gif',
    )
    demo.add_argument('robot', help='a shipped name')
    demo.add_argument('--engine', choices=ENGINES, default='mujoco', help='what computes the motion')
    demo.add_argument(
        '--duration', type=float, metavar='S', help='simulated seconds, instead of the whole story'
    )
    demo.add_argument('--picture', metavar='FILE', help='of the PNG; default krang_demo_ROBOT.png')
    demo.add_argument('--animate', metavar='FILE', help='write a GIF of the robot moving')
    demo.add_argument('--record', metavar='BAG', help='write all messages as a bag')
    demo.add_argument('--force', action='store_true', help='write over existing files')
    demo.set_defaults(run=_demo)

    sim = commands.add_parser(
        'sim',
        help='only the simulated robot, as a node; all its parameters after --ros-args',
        epilog='example: krang sim krang --real-time --ros-args -p faults.lost:=0.1',
    )
    sim.add_argument('robot', help='a shipped name, a robot file (YAML) or a URDF')
    sim.add_argument('--engine', choices=ENGINES, default='mujoco', help='what computes the motion')
    sim.add_argument('--real-time', action='store_true', help='do not wait for the answer to a state')
    sim.add_argument('--clock', action='store_true', help='publish simulated time on /clock')
    sim.add_argument('--ros-args', nargs=argparse.REMAINDER, default=[], help='as for any node')
    sim.set_defaults(run=_sim)

    bag_commands.add_parsers(commands)
    _add_record(commands)
    _add_replay(commands)

    bench = commands.add_parser(
        'bench',
        help='run a benchmark; figures are ratios within one run',
        epilog='example: krang bench tick --json tick.json',
    )
    bench.add_argument('name', help=', '.join(benchmarks.names()))
    bench.add_argument('--json', metavar='FILE', help='write the figures as JSON too')
    bench.set_defaults(run=lambda options: benchmarks.run(options.name, options.json))
    return parser


def _add_record(commands: Any) -> None:
    parser = commands.add_parser(
        'record',
        help='write all topics that a replay needs, or those that are named, to a bag',
        epilog="example: krang record --out my_bag; krang record /joint_states '/wrench/*'",
    )
    parser.add_argument(
        'topics', nargs='*', metavar='TOPIC', help='names or patterns; default: what a replay needs'
    )
    parser.add_argument('--out', metavar='BAG', help='a new folder; default: krang_ and the time')
    parser.add_argument('--force', action='store_true', help='write over an existing bag')
    parser.add_argument('--ros-args', nargs=argparse.REMAINDER, default=[], help='as for any node')
    parser.set_defaults(run=_record)


def _add_replay(commands: Any) -> None:
    parser = commands.add_parser(
        'replay',
        help='feed a recording through the controller again, offline, or --live onto topics',
        epilog='example: krang replay my_bag --robot krang --out replayed --param limits.velocity=2.0',
    )
    parser.add_argument('bag', help='a rosbag2 folder, or a .mcap or .db3 file')
    parser.add_argument('--robot', help='a shipped name, a robot file (YAML) or a URDF')
    parser.add_argument(
        '--out', metavar='BAG', help='write what was recorded and, under replay/, what follows'
    )
    parser.add_argument('--terms', metavar='A,B', help='instead of the recorded ones')
    parser.add_argument(
        '--param', action='append', default=[], metavar='NAME=VALUE', help='instead of the recorded value'
    )
    parser.add_argument(
        '--enable-at',
        type=float,
        metavar='S',
        help='instead of the recorded requests; 0 where there are none',
    )
    parser.add_argument('--node', help='which controller, where several were recorded')
    parser.add_argument('--live', action='store_true', help='play the inputs onto topics, with /clock')
    parser.add_argument('--rate', type=float, default=1.0, help='with --live: times real time; default 1')
    parser.add_argument('--force', action='store_true', help='write over an existing bag')
    parser.add_argument(
        '--ros-args', nargs=argparse.REMAINDER, default=[], help='with --live: as for any node'
    )
    parser.set_defaults(run=_replay)


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


def _demo(options: argparse.Namespace) -> int:
    _need_ros()
    from ..scenarios import demo_run as command

    asked = command.Options(
        options.robot,
        options.engine,
        options.duration,
        options.picture,
        options.animate,
        options.record,
        options.force,
    )
    return command.run(asked)


def _sim(options: argparse.Namespace) -> None:
    _need_ros()
    from ..nodes import simulator

    values = {
        'robot': options.robot,
        'engine': options.engine,
        'lock_step': not options.real_time,
        'publish_clock': options.clock,
    }
    given = [word for name, value in values.items() for word in ('-p', f'{name}:={json.dumps(value)}')]
    simulator.main(['--ros-args', *given, *options.ros_args])


def _record(options: argparse.Namespace) -> int:
    _need_ros()
    from ..nodes import recorder

    return recorder.record(options.topics, options.out, options.force, options.ros_args)


def _replay(options: argparse.Namespace) -> int:
    if not options.live:
        return bag_commands.run_replay(options)
    _need_ros()
    from ..nodes import bag_player as player

    return player.play(options.bag, options.rate, options.node, options.ros_args)


def _need_ros() -> None:
    try:
        import rclpy  # noqa: F401
    except ImportError:
        raise KrangError('rclpy is not installed; source a ROS 2 installation, or make setup') from None
