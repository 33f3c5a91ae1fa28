"""`krang excite`: a motion to record for identification."""

import argparse
from pathlib import Path

from ..errors import KrangError
from ..robot.library import load_robot
from .arguments import FORCE, ROBOT, add_lock, locked_joints

PURPOSE = "design a motion for identification, within the robot's limits"
EXAMPLES = (
    'krang excite krang --duration 60 --out motion.csv',
    'krang excite krang --motions 3 --duration 20 --out motion.csv',
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('robot', help=ROBOT)
    add('--duration', type=float, default=30.0, metavar='S', help='duration of the motion; default 30')
    add('--frequency', type=float, default=0.1, metavar='HZ', help='lowest frequency; default 0.1')
    add('--harmonics', type=int, default=5, help='number of harmonics; default 5')
    add('--rate', type=float, default=100.0, metavar='HZ', help='points per second; default 100')
    add('--tries', type=int, default=300, help='number of candidate motions; default 300')
    add(
        '--motions',
        type=int,
        default=1,
        metavar='N',
        help='so many short motions that complement each other; --out motion.csv writes motion_1.csv, ...',
    )
    add(
        '--friction',
        action='store_true',
        help='passes at constant speeds, each half as fast as the one before, in place of a search',
    )
    add_lock(parser, 'a joint that must not move, at this position [rad, m]')
    add(
        '--out',
        metavar='FILE',
        help='write the motion as a table (.csv) or as a trajectory_msgs/JointTrajectory (.yaml)',
    )
    add('--force', action='store_true', help=FORCE)


def run(options: argparse.Namespace) -> int:
    from ..bags.identification.excitation import Design, excite, friction_passes
    from ..bags.io.files import refuse_existing, require_suffix, write
    from ..bags.io.motion_file import motion_text

    require_suffix(options.out, '.csv', '.yaml', '.yml')
    design = Design(options.duration, options.rate, options.frequency, options.harmonics, options.tries)
    robot, locked = load_robot(options.robot), locked_joints(options.lock)
    if options.friction and options.motions != 1:
        raise KrangError('--friction is one motion; leave --motions out')
    outs = [options.out] * options.motions
    if options.out and options.motions > 1:
        path = Path(options.out)
        outs = [str(path.with_stem(f'{path.stem}_{k + 1}')) for k in range(options.motions)]
    refuse_existing(outs, options.force)
    if options.friction:
        results = [friction_passes(robot, design, locked)]
    else:
        results = excite(robot, design, locked, options.motions)
    print('\n\n'.join(result.text() for result in results))
    for out, result in zip(outs, results, strict=True):
        if out:
            write(out, motion_text(result.trajectory(), Path(out).suffix))
    return 0
