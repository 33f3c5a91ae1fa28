"""`krang record`: topics to a bag."""

import argparse
from typing import Any

from .arguments import FORCE, add_ros_arguments, command_parser
from .libraries import require_libraries, require_ros


def add_parser(commands: Any) -> argparse.ArgumentParser:
    parser = command_parser(
        commands,
        'record',
        'record topics to a bag; by default all that a replay needs',
        'krang record --out my_bag',
        "krang record /joint_states '/wrench/*'",
    )
    parser.add_argument(
        'topics', nargs='*', metavar='TOPIC', help='names or patterns; default: all that a replay needs'
    )
    parser.add_argument('--out', metavar='BAG', help='a new folder; default: krang_DATE_TIME')
    parser.add_argument('--force', action='store_true', help=FORCE)
    add_ros_arguments(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    require_ros()
    require_libraries('rosbags')
    from ..nodes import recorder

    return recorder.record(options.topics, options.out, options.force, options.ros_args)
