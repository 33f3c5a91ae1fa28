"""`krang play`: repeat a taught motion within the robot's limits."""

import argparse

from .arguments import add_controller
from .libraries import require_ros

PURPOSE = "repeat a taught motion from where the robot is, slower where the robot's limits require it"
EXAMPLES = ('krang play motion.csv',)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('file', help='a motion of krang teach, or any table (.csv) of krang send')
    add('--timeout', type=float, default=30.0, metavar='S', help='longest wait; default 30')
    add_controller(parser)


def run(options: argparse.Namespace) -> int:
    require_ros()
    from ..nodes.motion_sender import send

    return send(options.file, options.node, None, options.timeout, options.ros_args)
