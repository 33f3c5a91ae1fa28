"""`krang record`: topics to a bag."""

import argparse

from .arguments import FORCE, add_ros_arguments
from .libraries import require_libraries, require_ros

PURPOSE = 'record topics to a bag; by default all that a replay needs'
EXAMPLES = ('krang record --out my_bag', "krang record /joint_states '/wrench/*'")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        'topics', nargs='*', metavar='TOPIC', help='names or patterns; default: all that a replay needs'
    )
    parser.add_argument('--out', metavar='BAG', help='a new folder; default: krang_DATE_TIME')
    parser.add_argument('--force', action='store_true', help=FORCE)
    add_ros_arguments(parser)


def run(options: argparse.Namespace) -> int:
    require_ros()
    require_libraries('rosbags')
    from ..nodes import recorder

    return recorder.record(options.topics, options.out, options.force, options.ros_args)
