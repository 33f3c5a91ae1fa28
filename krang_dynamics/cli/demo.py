"""`krang demo`: a scripted demonstration on real topics."""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import KrangError
from .arguments import FORCE, ROBOT, add_engine, engine_of
from .libraries import require_libraries, require_ros

# `krang view`, which the kernel ends together with its parent.
PAGE = (
    'import sys; from krang_dynamics.scenarios.processes import end_with_parent; '
    'end_with_parent(int(sys.argv.pop(1))); from krang_dynamics.cli.main import command; command()'
)
PURPOSE = 'run a scripted demonstration: simulator, controller and guard on real ROS 2 topics'
EXAMPLES = ('krang demo krang --animate krang.gif', 'krang demo ur5.urdf')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('robot', help=ROBOT)
    add_engine(parser)
    add('--duration', type=float, metavar='S', help='simulated seconds; default: the whole scenario')
    add('--picture', metavar='FILE', help='plot as PNG; default krang_demo_ROBOT.png')
    add('--animate', metavar='FILE', help='write a GIF of the motion')
    add('--record', metavar='BAG', help='write all topics to a bag, for krang replay, validate and identify')
    add('--view', action='store_true', help='show the robot on a web page, whose address is printed')
    add('--force', action='store_true', help=FORCE)


def run(options: argparse.Namespace) -> int:
    require_ros()
    require_libraries('matplotlib', options.record and 'rosbags', options.view and 'viser')
    from ..scenarios.demo_run import DemoOptions, run_demo

    demo = DemoOptions(
        options.robot,
        engine_of(options),
        options.duration,
        options.picture,
        options.animate,
        options.record,
        options.force,
    )
    if not options.view:
        return run_demo(demo)
    with _page(options.robot):
        return run_demo(demo)


@contextmanager
def _page(robot: str) -> Iterator[None]:
    """`krang view` in the domain of the demonstration; on a terminal the user opens it before the start."""
    from ..scenarios.processes import private_domain

    private_domain()
    words = [sys.executable, '-c', PAGE, str(os.getpid()), 'view', robot]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as page:
        assert page.stdout is not None
        try:
            address = page.stdout.readline().strip()
            if not address:
                raise KrangError('the page did not start; see the message above')
            print(f'page of {address}', flush=True)
            if sys.stdin.isatty():
                input('open it, then press Enter to start ')
            yield
        finally:
            page.terminate()
