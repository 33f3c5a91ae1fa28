"""`krang replay`: a recording through the controller, offline, or its inputs onto topics."""

import argparse
import json
from pathlib import Path
from typing import Any

from ..errors import KrangError
from ..robot.library import load_robot
from .arguments import BAG, FORCE, ROBOT, add_ros_arguments
from .libraries import require_libraries, require_ros

PURPOSE = 'run the controller on a recording, offline; with --live, publish the recorded inputs'
EXAMPLES = ('krang replay my_bag --out replayed --param limits.velocity=2.0',)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('bag', help=BAG)
    add('--robot', help=f'{ROBOT}; default: the robot of the recorded controller')
    add('--out', metavar='BAG', help='write the recording and, under replay/, the outputs of the replay')
    add('--terms', metavar='A,B', help='replace the recorded terms')
    add('--param', action='append', default=[], metavar='NAME=VALUE', help='replace a recorded parameter')
    add(
        '--enable-at',
        type=float,
        metavar='S',
        help='enable after S seconds, instead of the recorded requests; default 0 if there are none',
    )
    add('--node', help='name of the controller, if several were recorded')
    add('--live', action='store_true', help='publish the recorded inputs and /clock')
    add('--rate', type=float, default=1.0, help='with --live: speed relative to real time; default 1')
    add('--force', action='store_true', help=FORCE)
    add_ros_arguments(parser)


def run(options: argparse.Namespace) -> int:
    require_libraries('rosbags')
    return _play(options) if options.live else _replay(options)


def _play(options: argparse.Namespace) -> int:
    require_ros()
    from ..nodes import bag_player

    return bag_player.play(options.bag, options.rate, options.node, options.ros_args)


def _replay(options: argparse.Namespace) -> int:
    from ..bags.io.files import make_way
    from ..bags.io.reader import Bag
    from ..bags.replay.recorded_controller import recorded_robot
    from ..bags.replay.replayer import replay

    overrides = _overrides(options)
    bag = Bag(options.bag)
    robot = recorded_robot(bag, options.node) if options.robot is None else load_robot(options.robot)
    if options.out:
        if Path(options.out).resolve() in (bag.path.resolve(), bag.path.resolve().parent):
            raise KrangError(f'--out {options.out} is the recording itself; choose another name')
        make_way(options.out, options.force)
    print(replay(bag, robot, overrides, options.enable_at, options.node, options.out).text())
    return 0


def _overrides(options: argparse.Namespace) -> dict[str, Any]:
    """Parameters that replace the recorded ones."""
    found: dict[str, Any] = {'terms': options.terms} if options.terms else {}
    for entry in options.param:
        name, sign, text = entry.partition('=')
        if not (name and sign):
            raise KrangError(f'--param {entry!r}: write NAME=VALUE, for example limits.velocity=2.0')
        try:
            found[name] = json.loads(text)
        except ValueError:  # a string without quotes
            found[name] = text
    return found
