"""`krang info`: the sanity report of a robot."""

import argparse

from ..robot.library import load_robot
from ..robot.sanity_report import report
from ..safety.stop_policies import stop_policy
from .arguments import ROBOT

PURPOSE = 'report joints, links, limits, gravity torque, sign test and warnings of a robot'
EXAMPLES = ('krang info krang',)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('robot', help=ROBOT)


def run(options: argparse.Namespace) -> int:
    robot = load_robot(options.robot)
    stop_policy(robot.config.stop.policy)  # refuses an unknown name
    print(report(robot))
    return 0
