"""`krang demo`: a scripted demonstration on real topics."""

import argparse
from typing import Any

from .arguments import FORCE, ROBOT, add_engine, command_parser, engine_of
from .libraries import require_libraries, require_ros


def add_parser(commands: Any) -> argparse.ArgumentParser:
    parser = command_parser(
        commands,
        'demo',
        'run a scripted demonstration: simulator, controller and guard on real ROS 2 topics',
        'krang demo krang --animate krang.gif',
        'krang demo ur5.urdf',
    )
    add = parser.add_argument
    add('robot', help=ROBOT)
    add_engine(parser)
    add('--duration', type=float, metavar='S', help='simulated seconds; default: the whole scenario')
    add('--picture', metavar='FILE', help='plot as PNG; default krang_demo_ROBOT.png')
    add('--animate', metavar='FILE', help='write a GIF of the motion')
    add('--record', metavar='BAG', help='write all topics to a bag, for krang replay, validate and identify')
    add('--force', action='store_true', help=FORCE)
    return parser


def run(options: argparse.Namespace) -> int:
    require_ros()
    require_libraries('matplotlib')
    require_libraries(*(['rosbags'] if options.record else []))
    from ..scenarios.demo_run import DemoOptions, run_demo

    return run_demo(
        DemoOptions(
            options.robot,
            engine_of(options),
            options.duration,
            options.picture,
            options.animate,
            options.record,
            options.force,
        )
    )
