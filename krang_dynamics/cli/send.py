"""`krang send`: a motion to a running controller."""

import argparse

from .arguments import add_controller
from .libraries import require_ros

PURPOSE = 'send a motion to a running controller, follow it and report the errors'
EXAMPLES = ('krang send motion.csv --approach 5',)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('file', help='a table (.csv) or a trajectory_msgs/JointTrajectory (.yaml), as krang excite writes')
    add(
        '--approach',
        type=float,
        default=0.0,
        metavar='S',
        help='seconds to move to the first point; default 0: the robot is already there',
    )
    add(
        '--timeout',
        type=float,
        default=30.0,
        metavar='S',
        help='longest wait for the controller [s]; default 30',
    )
    add_controller(parser)


def run(options: argparse.Namespace) -> int:
    require_ros()
    from ..nodes.motion_sender import send

    return send(options.file, options.node, options.approach, options.timeout, options.ros_args)
