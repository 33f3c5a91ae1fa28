"""Arguments that several commands share, and their conversion."""

import argparse
import os
import sys
from collections.abc import Iterable
from math import isfinite, nan
from typing import TYPE_CHECKING

from ..errors import KrangError
from ..robot.library import load_robot
from ..robot.model import Robot
from ..robot.motor import UNITS
from ..simulation import ENGINES, choose_engine
from .libraries import require_libraries

if TYPE_CHECKING:
    from ..bags.validation.recording import Reading
    from ..robot.payload import Payload

ROBOT = 'a shipped name, a robot file (YAML) or a URDF'
BAG = 'a rosbag2 folder, or a .mcap or .db3 file'
FORCE = 'overwrite existing files'


def add_engine(parser: argparse.ArgumentParser) -> None:
    text = 'physics engine; default: mujoco, or pinocchio if MuJoCo cannot simulate the robot'
    parser.add_argument('--engine', choices=ENGINES, help=text)


def engine_of(options: argparse.Namespace) -> str:
    """The engine of add_engine(); where MuJoCo cannot simulate the robot, the other, with a reason."""
    if options.engine is not None:
        require_libraries('mujoco' if options.engine == 'mujoco' else None)
        return str(options.engine)
    engine, reason = choose_engine(load_robot(options.robot))
    if reason:
        print(f'krang: simulated by {engine}, because {reason}', file=sys.stderr)
    return engine


def add_ros_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('--ros-args', nargs=argparse.REMAINDER, default=[], help='passed on to the node')


def add_controller(parser: argparse.ArgumentParser) -> None:
    """Arguments of the commands that talk to a running controller."""
    parser.add_argument('--node', help='name of the controller, if several run')
    add_ros_arguments(parser)


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Arguments of the commands that share their work among processes."""
    add, cores = parser.add_argument, os.cpu_count() or 1
    add('--workers', type=int, default=cores, metavar='N', help='processes; default: one per core')
    add('--scheduler', metavar='ADDRESS', help='use a Dask cluster, for example tcp://node1:8786')


def add_lock(parser: argparse.ArgumentParser, meaning: str) -> None:
    parser.add_argument('--lock', action='append', default=[], metavar='JOINT=VALUE', help=meaning)


def add_recording(parser: argparse.ArgumentParser) -> None:
    """Arguments of the commands that compare a model with recordings."""
    add = parser.add_argument
    add('--robot', required=True, help=ROBOT)
    add('--topic', help='topic of the joint states; default: the only such topic, or joint_states')
    add(
        '--map',
        action='append',
        default=[],
        metavar='FROM=TO',
        help="rename joints of the recording, for example 'fer_joint*=panda_joint*'",
    )
    add_lock(parser, 'a joint that did not move, at this position [rad, m]')
    add('--lock-rest', action='store_true', help='lock the joints that were not recorded at home')
    add(
        '--payload',
        action='append',
        default=[],
        metavar='FRAME=MASS[,X,Y,Z]',
        help='a load at a frame: kg, and its centre of mass [m] in the axes of the frame',
    )
    add(
        '--remove-subtree',
        action='append',
        default=[],
        metavar='LINK',
        help='remove a link and all links beyond it, for example a hand that was not mounted',
    )
    add(
        '--effort', choices=tuple(UNITS), default='torque', help='unit of the recorded effort; default torque'
    )
    add(
        '--gravity',
        type=float,
        nargs=3,
        metavar=('X', 'Y', 'Z'),
        help='gravity vector [m/s2] in the axes of the root link',
    )
    add(
        '--acceleration',
        choices=('velocity', 'position'),
        default='velocity',
        help='signal from which accelerations are differentiated; default velocity',
    )
    add('--json', metavar='FILE', help='write the figures as JSON')
    add('--force', action='store_true', help=FORCE)


def recorded_robot(options: argparse.Namespace) -> Robot:
    """The robot of a recording, by the arguments of add_recording()."""
    from ..control.builder import gravity_of
    from ..control.settings import Settings
    from ..robot.variant import without_subtree

    robot = load_robot(options.robot)
    if options.gravity:
        robot = robot.with_gravity(gravity_of(Settings(gravity=options.gravity), robot))
    for link in options.remove_subtree:
        robot = without_subtree(robot, link)
    return robot.carrying([payload(entry) for entry in options.payload]) if options.payload else robot


def payload(entry: str) -> 'Payload':
    """A payload FRAME=MASS[,X,Y,Z]."""
    from ..robot.payload import Payload

    frame, _, numbers = entry.partition('=')
    try:
        mass, *com = (float(word) for word in numbers.split(','))
    except ValueError:
        mass, com = 0.0, [0.0]
    if not frame or len(com) not in (0, 3):
        raise KrangError(f'--payload {entry!r}: write FRAME=MASS, or FRAME=MASS,X,Y,Z in kg and m')
    return Payload.checked(frame, mass, com or (0, 0, 0), [[0.0] * 3] * 3)


def reading(options: argparse.Namespace) -> 'Reading':
    """How a recording is read, by the arguments of add_recording()."""
    from ..bags.validation.recording import Reading

    locked = locked_joints(options.lock)
    return Reading(options.topic, tuple(options.map), locked, options.effort, options.lock_rest)


def locked_joints(entries: Iterable[str]) -> dict[str, float]:
    """Positions [rad, m] of joints, from JOINT=VALUE."""
    locked = {}
    for entry in entries:
        name, _, value = entry.partition('=')
        try:
            locked[name] = float(value)
        except ValueError:
            locked[name] = nan
        if not isfinite(locked[name]):
            raise KrangError(f'--lock {entry!r}: write JOINT=VALUE, in rad or m')
    return locked
