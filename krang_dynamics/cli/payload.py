"""`krang payload`: mass and centre of mass of what a hand carries, measured by a running controller."""

import argparse
import re
from typing import Any

from ..errors import KrangError
from .arguments import add_controller
from .libraries import require_ros

NUMBER = r'(-?\d+\.\d+) \+- \d+\.\d+'
ESTIMATE = re.compile(rf'(\S+): {NUMBER} kg, centre of mass \({NUMBER}, {NUMBER}, {NUMBER}\) m')
PURPOSE = 'estimate the payload of a hand from resting poses'
EXAMPLES = ('krang payload --frame left_hand --tare',)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        'Move the robot to a pose, let it rest, and press Enter; q ends. Three poses with different '
        'orientations of the hand suffice. --tare first measures the same poses with an empty hand.'
    )
    add = parser.add_argument
    add('--frame', default='', help='the hand; default: the first end effector')
    add('--tare', action='store_true', help='measure the empty hand first')
    add('--set', action='store_true', help='give the payload to the controller at the end')
    add_controller(parser)


def run(options: argparse.Namespace) -> int:
    require_ros()
    from ..nodes.controller_client import connected

    with connected(options.node, options.ros_args) as controller:
        for is_tare in (True, False):  # without --tare the first change only discards earlier poses
            controller.set_parameters(
                {'estimate_payload.frame': options.frame, 'estimate_payload.tare': is_tare}
            )
            if options.tare or not is_tare:
                text = _measure(controller, 'empty hand' if is_tare else 'payload')
        found = ESTIMATE.match(text)
        if options.set and found is None:
            raise KrangError('no estimate yet, so the payload is not set; measure more poses')
        if options.set and found is not None:
            frame, mass, *com = found.groups()
            controller.set_parameters(
                {f'payload.{frame}.mass': float(mass), f'payload.{frame}.com': [float(x) for x in com]}
            )
            print(f'payload.{frame} is set')
    return 0


def _measure(controller: Any, what: str) -> str:
    """Poses until the user ends; the last answer."""
    text = ''
    while input(f'{what}: Enter measures this pose, q ends > ').strip().lower() != 'q':
        success, answer = controller.trigger('estimate_payload')
        print(answer)
        text = answer if success else text
    return text
