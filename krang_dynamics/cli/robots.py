"""`krang robots`: the shipped robots."""

import argparse

from ..robot import library
from ..text import table

PURPOSE = 'list the shipped robots'
EXAMPLES = ('krang robots',)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """It has none."""


def run(_: argparse.Namespace) -> int:
    rows = []
    for name in library.robots():
        robot = library.load_robot(name)
        counts = (str(robot.nv), str(len(robot.actuated_joint_names)))
        rows.append([name, *counts, robot.config.command_unit, robot.config.description])
    print('\n'.join(table(['robot', 'joints', 'driven', 'unit', 'description'], rows)))
    return 0
