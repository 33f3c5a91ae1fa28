"""`krang view`: a web page that shows and operates a running robot, or shows a recording."""

import argparse
import signal
from typing import Any

from ..robot.library import load_robot
from .arguments import ROBOT, add_ros_arguments, command_parser
from .libraries import require_libraries, require_ros


def add_parser(commands: Any) -> argparse.ArgumentParser:
    parser = command_parser(
        commands,
        'view',
        'show and operate a running robot on a web page, or show a recording',
        'krang view krang',
        'krang view panda.urdf --host 0.0.0.0',
    )
    add = parser.add_argument
    add('robot', help=ROBOT)
    add('--node', metavar='NAME', help='the controller, if several are running')
    add('--host', default='localhost', help='address to listen on; default localhost')
    add('--port', type=int, default=8080, help='first port to try; default 8080')
    add('--allow-control', action='store_true', help='with --host beyond localhost, let operators control')
    add_ros_arguments(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    require_libraries('viser', 'trimesh')
    require_ros()
    from ..nodes.robot_watch import RobotWatch
    from ..viewer.page import Page

    robot = load_robot(options.robot)
    watch = RobotWatch(robot, options.node, options.ros_args)
    signals: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: signals.append(number))
    try:
        page = Page(robot, watch, watch, options.host, options.port, options.allow_control)
        print(f'{robot.name}: {page.url}', flush=True)
        page.run(lambda: bool(signals))
        page.close()
    finally:
        watch.close()
    return 0
