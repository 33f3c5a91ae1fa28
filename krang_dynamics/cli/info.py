"""`krang info`: the sanity report of a robot."""

import argparse
from typing import Any

from ..robot.library import load_robot
from ..robot.sanity_report import report
from ..safety.stop_policies import stop_policy
from .arguments import ROBOT, command_parser


def add_parser(commands: Any) -> argparse.ArgumentParser:
    parser = command_parser(
        commands,
        'info',
        'report joints, links, limits, gravity torque, sign test and warnings of a robot',
        'krang info krang',
    )
    parser.add_argument('robot', help=ROBOT)
    return parser


def run(options: argparse.Namespace) -> int:
    robot = load_robot(options.robot)
    stop_policy(robot.config.stop.policy)  # refuses an unknown name
    print(report(robot))
    return 0
