"""`krang teach`: record a motion or poses while a person guides the robot."""

import argparse
from time import monotonic
from typing import Any

import numpy as np

from ..errors import KrangError
from .arguments import FORCE, add_controller
from .libraries import require_ros

PURPOSE = 'record a motion, or poses, while a person guides the robot (terms: [guide])'
EXAMPLES = ('krang teach motion.csv', 'krang teach poses.csv --poses')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('file', help='the motion as a table (.csv); krang play repeats it')
    add('--poses', action='store_true', help='record single poses: Enter adds one, q ends')
    add('--duration', type=float, metavar='S', help='end after this time; default: ^C ends')
    add('--force', action='store_true', help=FORCE)
    add_controller(parser)


def run(options: argparse.Namespace) -> int:
    require_ros()
    from ..bags.io.files import refuse_existing, require_suffix, write
    from ..bags.io.motion_file import motion_text
    from ..bags.io.taught_motion import taught_motion, taught_poses
    from ..nodes.controller_client import connected

    require_suffix(options.file, '.csv')
    refuse_existing((options.file,), options.force)
    with connected(options.node, options.ros_args) as controller:
        if options.poses:
            names, poses = _poses(controller)
            motion = taught_poses(names, poses)
        else:
            motion = taught_motion(*_motion(controller, options.duration))
    print(f'{len(motion.times)} points, {motion.times[-1] - motion.times[0]:.1f} s')
    write(options.file, motion_text(motion, '.csv'))
    return 0


def _motion(controller: Any, duration: float | None) -> tuple[tuple[str, ...], Any, Any]:
    """Names, times [s] and positions until ^C or the end of the duration."""
    print('recording; guide the robot, ^C ends', flush=True)
    begin = monotonic()
    try:
        while duration is None or monotonic() - begin < duration:
            controller.turn()
    except KeyboardInterrupt:
        print()
    samples = controller.samples
    names = samples[0].names if samples else ()
    same = [sample for sample in samples if tuple(sample.names) == tuple(names)]
    times = np.array([sample.stamp or sample.arrival for sample in same])
    positions = np.array([sample.position for sample in same]).reshape(len(same), len(names))
    keep = np.concatenate([[True], np.diff(times) > 0]) if len(times) else np.zeros(0, dtype=bool)
    return tuple(names), times[keep], positions[keep]


def _poses(controller: Any) -> tuple[tuple[str, ...], list[Any]]:
    """Names, and the pose at every Enter."""
    poses: list[Any] = []
    names: tuple[str, ...] = ()
    while input(f'{len(poses)} poses: Enter adds this one, q ends > ').strip().lower() != 'q':
        controller.samples.clear()
        deadline = monotonic() + 2.0
        while not controller.samples and monotonic() < deadline:
            controller.turn()
        if not controller.samples:
            raise KrangError('no joint states arrive; is the robot running?')
        names = tuple(controller.samples[-1].names)
        poses.append(controller.samples[-1].position.copy())
    return names, poses
