"""`krang send`: a motion to a running controller."""

import argparse
from typing import Any

from .arguments import add_ros_arguments, command_parser
from .libraries import require_ros


def add_parser(commands: Any) -> argparse.ArgumentParser:
    parser = command_parser(
        commands,
        'send',
        'send a motion to a running controller, follow it and report the errors',
        'krang send motion.csv --approach 5',
    )
    add = parser.add_argument
    add('file', help='a table (.csv) or a trajectory_msgs/JointTrajectory (.yaml), as krang excite writes')
    add(
        '--approach',
        type=float,
        default=0.0,
        metavar='S',
        help='seconds to move to the first point; default 0: the robot is already there',
    )
    add('--node', help='name of the controller, if several run')
    add(
        '--timeout',
        type=float,
        default=30.0,
        metavar='S',
        help='longest wait for the controller [s]; default 30',
    )
    add_ros_arguments(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    require_ros()
    from ..nodes.motion_sender import send

    return send(options.file, options.node, options.approach, options.timeout, options.ros_args)
