"""`krang robots`: the shipped robots."""

import argparse
from typing import Any

from ..robot import library
from ..text import table


def add_parser(commands: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        'robots', help='list the shipped robots', epilog='example: krang robots'
    )
    return parser


def run(_: argparse.Namespace) -> int:
    rows = []
    for name in library.robots():
        robot = library.load_robot(name)
        counts = (str(robot.nv), str(len(robot.actuated_joint_names)))
        rows.append([name, *counts, robot.config.command_unit, robot.config.description])
    print('\n'.join(table(['robot', 'joints', 'driven', 'unit', 'description'], rows)))
    return 0
