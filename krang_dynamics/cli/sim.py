"""`krang sim`: the simulated robot as a node."""

import argparse
import json

from ..errors import KrangError
from .arguments import ROBOT, add_engine, add_ros_arguments, engine_of
from .libraries import require_ros

PURPOSE = 'run the simulated robot as a node, alone or with controller and guard'
EXAMPLES = (
    'krang sim krang --real-time --ros-args -p faults.lost:=0.1',
    'krang sim ur5.urdf --control gravity,damping',
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('robot', help=ROBOT)
    add_engine(parser)
    parser.add_argument(
        '--real-time', action='store_true', help='follow the clock instead of waiting for commands'
    )
    parser.add_argument('--held', action='store_true', help='brakes hold the robot while no commands arrive')
    parser.add_argument(
        '--control',
        nargs='?',
        const='',
        metavar='TERMS',
        help='also run controller and guard, with these terms, separated by commas; default: by robot',
    )
    parser.add_argument('--clock', action='store_true', help='publish simulated time on /clock')
    add_ros_arguments(parser)


def run(options: argparse.Namespace) -> int:
    require_ros()
    values = {
        'robot': options.robot,
        'engine': engine_of(options),
        'lock_step': not options.real_time,
        'publish_clock': options.clock,
        'held': options.held,
    }
    if options.control is not None:
        from ..scenarios.controlled_simulation import run_simulation

        return run_simulation(values, _terms(options), options.ros_args)
    from ..nodes import simulator

    given = [word for name, value in values.items() for word in ('-p', f'{name}:={json.dumps(value)}')]
    simulator.main(['--ros-args', *given, *options.ros_args])
    return 0


def _terms(options: argparse.Namespace) -> list[str]:
    """The terms of --control; KrangError if the controller would refuse them, or could not hold the robot."""
    from ..control.controller import TorqueController
    from ..control.settings import Settings
    from ..robot.library import load_robot
    from ..robot.plausibility import gravity_problems
    from ..simulation.simulated_robot import default_terms

    robot = load_robot(options.robot)
    terms = (options.control or default_terms(robot)).split(',')
    TorqueController(robot, Settings(terms=tuple(terms), wheels_locked=True))
    for problem in gravity_problems(robot):
        raise KrangError(problem)
    return terms
