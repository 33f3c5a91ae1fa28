"""`krang excite`: a motion to record for identification."""

import argparse
from pathlib import Path
from typing import Any

from ..errors import KrangError
from ..robot.library import load_robot
from .arguments import FORCE, ROBOT, add_lock, command_parser, locked_joints


def add_parser(commands: Any) -> argparse.ArgumentParser:
    parser = command_parser(
        commands,
        'excite',
        "design a motion for identification, within the robot's limits",
        'krang excite krang --duration 60 --out motion.csv',
    )
    add = parser.add_argument
    add('robot', help=ROBOT)
    add('--duration', type=float, default=30.0, metavar='S', help='duration of the motion; default 30')
    add('--frequency', type=float, default=0.1, metavar='HZ', help='lowest frequency; default 0.1')
    add('--harmonics', type=int, default=5, help='number of harmonics; default 5')
    add('--rate', type=float, default=100.0, metavar='HZ', help='points per second; default 100')
    add('--tries', type=int, default=300, help='number of candidate motions; default 300')
    add_lock(parser, 'a joint that must not move, at this position [rad, m]')
    add(
        '--out',
        metavar='FILE',
        help='write the motion as a table (.csv) or as a trajectory_msgs/JointTrajectory (.yaml)',
    )
    add('--force', action='store_true', help=FORCE)
    return parser


def run(options: argparse.Namespace) -> int:
    from ..bags.identification.excitation import Design, excite
    from ..bags.io.files import refuse_existing, write

    refuse_existing((options.out,), options.force)
    if options.out and Path(options.out).suffix not in ('.csv', '.yaml', '.yml'):
        raise KrangError(f'{options.out}: the name must end in .csv or .yaml')
    design = Design(options.duration, options.rate, options.frequency, options.harmonics, options.tries)
    result = excite(load_robot(options.robot), design, locked_joints(options.lock))
    print(result.text())
    if options.out:
        write(options.out, result.csv() if options.out.endswith('.csv') else result.message())
    return 0
