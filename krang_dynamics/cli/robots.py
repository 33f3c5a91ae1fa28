"""`krang robots`: the shipped robots."""

import argparse
from typing import Any

from ..robot import library
from ..text import table
from .arguments import command_parser


def add_parser(commands: Any) -> argparse.ArgumentParser:
    return command_parser(commands, 'robots', 'list the shipped robots', 'krang robots')


def run(_: argparse.Namespace) -> int:
    rows = []
    for name in library.robots():
        robot = library.load_robot(name)
        counts = (str(robot.nv), str(len(robot.actuated_joint_names)))
        rows.append([name, *counts, robot.config.command_unit, robot.config.description])
    print('\n'.join(table(['robot', 'joints', 'driven', 'unit', 'description'], rows)))
    return 0
