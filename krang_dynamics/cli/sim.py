"""`krang sim`: the simulated robot as a node."""

import argparse
import json
import signal
from collections.abc import Mapping, Sequence
from itertools import pairwise
from time import sleep
from typing import Any

from ..errors import KrangError
from .arguments import ROBOT, add_engine, add_ros_arguments, engine_of
from .libraries import require_ros

NEXT = '^C ends; in other terminals: krang send FILE, krang record --out BAG, krang view'
POLL = 0.2  # period at which the processes are checked [s]
PURPOSE = 'run the simulated robot as a node, alone or with controller and guard'
EXAMPLES = (
    'krang sim krang --real-time --ros-args -p faults.lost:=0.1',
    'krang sim ur5.urdf --control gravity,damping --ros-args -p damping:=2.0',
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
    _check_parameters(options.ros_args)
    values = {
        'robot': options.robot,
        'engine': engine_of(options),
        'lock_step': not options.real_time,
        'publish_clock': options.clock,
        'held': options.held,
    }
    if options.control is not None:
        return _run_controlled(values, _terms(options), options.ros_args)
    from ..nodes import simulator

    given = [word for name, value in values.items() for word in ('-p', f'{name}:={json.dumps(value)}')]
    simulator.main(['--ros-args', *given, *options.ros_args])
    return 0


def _check_parameters(ros_args: Sequence[str]) -> None:
    """KrangError if a parameter on the command line is one of no node."""
    from ..nodes.ros.ros_parameters import unknown_parameters

    words = [word for option, word in pairwise(ros_args) if option in ('-p', '--param')]
    for word in words:
        if ':=' not in word:
            raise KrangError(f'-p {word}: write NAME:=VALUE')
    for problem in unknown_parameters(word.partition(':=')[0].rpartition(':')[2] for word in words):
        raise KrangError(problem)


def _run_controlled(simulator: Mapping[str, Any], terms: Sequence[str], ros_args: Sequence[str]) -> int:
    """Simulator, controller and guard as processes until ^C, like simulation.launch.py without launch.

    `simulator` has the parameters of that node; all nodes get `ros_args`. KrangError if a node ends before.
    """
    from ..scenarios.processes import Processes, signals_as

    shared = {'robot': simulator['robot'], 'wheels_locked': True}
    controller = {
        'terms': list(terms), 'guard': 'torque_guard', 'auto_activate': True, 'auto_enable': True,
        'publish_terms': True,
    }  # fmt: skip
    on_clock = {**shared, 'use_sim_time': True}
    guarded = ('-r', 'effort_commands:=guarded/effort_commands')
    print(f'{NEXT} {simulator["robot"]}', flush=True)
    with signals_as(signal.default_int_handler), Processes(is_logged=False) as processes:
        processes.start('torque_controller', {**on_clock, **controller}, *ros_args)
        processes.start('torque_guard', on_clock, *ros_args)
        processes.start('simulator', {**shared, **simulator, 'publish_clock': True}, *guarded, *ros_args)
        try:
            while (dead := processes.dead()) is None:
                sleep(POLL)
        except KeyboardInterrupt:
            return 0
        raise KrangError(dead)


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
