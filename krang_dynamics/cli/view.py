"""`krang view`: a web page that shows and operates a running robot, or shows a recording."""

import argparse
import signal
import sys
from typing import TYPE_CHECKING, Any

from ..errors import InputError, KrangError
from ..robot.library import load_robot
from ..robot.model import Robot
from .arguments import BAG, ROBOT, add_controller, add_lock, locked_joints
from .libraries import require_libraries, require_ros

if TYPE_CHECKING:
    from ..viewer.playback import Playback

PURPOSE = 'show and operate a running robot on a web page, or show a recording'
EXAMPLES = ('krang view krang', 'krang view --bag my_bag')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('robot', nargs='?', help=f'{ROBOT}; default with --bag: that of the recorded controller')
    add('--bag', metavar='BAG', help=f'show a recording: {BAG}')
    add('--topic', help='with --bag: topic of the joint states; default: joint_states')
    add('--map', action='append', default=[], metavar='FROM=TO', help='with --bag: rename recorded joints')
    add_lock(parser, 'with --bag: a joint that did not move, at this position [rad, m]')
    add(
        '--remove-subtree', action='append', default=[], metavar='LINK', help='with --bag: remove these links'
    )
    add('--host', default='localhost', help='address to listen on; default localhost')
    add('--port', type=int, default=8080, help='first port to try; default 8080')
    add('--allow-control', action='store_true', help='allow operators also with --host beyond localhost')
    add_controller(parser)


def run(options: argparse.Namespace) -> int:
    require_libraries('viser', 'trimesh')
    if options.bag is not None:
        robot, playback = _recording(options)
        _serve(robot, playback, options)
        return 0
    if options.robot is None:
        raise InputError('which robot? For example: krang view krang')
    require_ros()
    from ..nodes.robot_watch import RobotWatch

    robot = load_robot(options.robot)
    watch = RobotWatch(robot, options.node, options.ros_args)
    try:
        _serve(robot, watch, options)
    finally:
        watch.close()
    return 0


def _serve(robot: Robot, source: Any, options: argparse.Namespace) -> None:
    """Serve the page until SIGINT or SIGTERM."""
    from ..viewer.page import Page

    signals: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: signals.append(number))
    page = Page(robot, source, options.host, options.port, options.allow_control)
    print(f'{robot.name}: {page.url}', flush=True)
    try:
        page.run(lambda: bool(signals))
    finally:
        page.close()


def _recording(options: argparse.Namespace) -> tuple[Robot, 'Playback']:
    require_libraries('rosbags')
    from ..bags.io.reader import Bag
    from ..bags.recorded_snapshots import recorded_snapshots
    from ..bags.replay.recorded_controller import recorded_controller, recorded_robot
    from ..bags.validation.recording import Reading
    from ..bags.validation.validation import validate
    from ..robot.variant import without_subtree
    from ..viewer.playback import Playback

    bag = Bag(options.bag)
    robot = load_robot(options.robot) if options.robot else recorded_robot(bag, options.node)
    for link in options.remove_subtree:
        robot = without_subtree(robot, link)
    controller = recorded_controller(bag, options.node)
    snapshots = recorded_snapshots(bag, robot, controller, options.topic, options.map)
    reading = Reading(options.topic, tuple(options.map), locked_joints(options.lock))
    try:
        validation, problem = validate(options.bag, robot, reading), ''
    except KrangError as error:  # torque was not recorded
        validation, problem = None, f'The model is not compared with the recording: {error}'
    for fault in dict.fromkeys([*bag.damage, *(validation.damage if validation else ())]):
        print(f'! {options.bag}: {fault}', file=sys.stderr)
    return robot, Playback(snapshots, controller, bag.start, validation, problem)
