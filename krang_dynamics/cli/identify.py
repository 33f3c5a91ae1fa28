"""`krang identify`: link, rotor and friction parameters from recordings."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import KrangError
from ..robot.model import Robot
from .arguments import add_recording, command_parser, filtering, reading, recorded_robot
from .libraries import require_libraries

if TYPE_CHECKING:
    from ..bags.identification.identification import Identification

CUTOFF = 10.0  # [Hz]


def add_parser(commands: Any) -> argparse.ArgumentParser:
    parser = command_parser(
        commands,
        'identify',
        'identify link, rotor and friction parameters, and test them on held-out recordings',
        'krang identify day_1 day_2 --held-out day_3 --robot krang --out krang_found.yaml',
    )
    add = parser.add_argument
    add('bags', nargs='+', metavar='bag', help='rosbag2 folders or files')
    add_recording(parser)
    add(
        '--cutoff',
        type=float,
        metavar='HZ',
        default=CUTOFF,
        help=f'cutoff of the low-pass filter; 0: none; default {CUTOFF:g}, at most a fifth of the rate',
    )
    add('--held-out', nargs='+', default=[], metavar='BAG', help='recordings to test the result on')
    add(
        '--share',
        type=float,
        default=0.5,
        help='without --held-out: fraction of each recording to identify from; default 0.5',
    )
    add('--sign', choices=('smooth', 'exact'), help="sign function of Coulomb friction; default: the robot's")
    add('--asymmetric', action='store_true', help='let Coulomb friction depend on the direction of motion')
    add('--gains', action='store_true', help='identify motor gains first, with the given link parameters')
    add('--out', metavar='YAML', help='write the identified robot file')
    add('--urdf', metavar='FILE', help='write the identified URDF')
    add('--html', metavar='FILE', help='write a report with plots, before and after')
    return parser


def run(options: argparse.Namespace) -> int:
    require_libraries('rosbags')
    from ..bags.identification.identification import identify
    from ..bags.identification.regressor import Unknowns
    from ..bags.io.files import refuse_existing, write
    from ..bags.validation.html_report import identification_html

    refuse_existing((options.out, options.urdf, options.html, options.json), options.force)
    robot = recorded_robot(options)
    if options.remove_subtree and options.out and not options.urdf:
        raise KrangError('--out refers to a URDF: with --remove-subtree, write it too with --urdf FILE')
    result = identify(
        options.bags,
        robot,
        reading(options),
        filtering(_cutoff(options, robot), options),
        Unknowns(options.sign or robot.friction.sign or 'exact', options.asymmetric),
        options.held_out,
        options.share,
        options.gains,
    )
    print(result.text())
    _write_model(options, robot, result)
    write(options.json, json.dumps(result.as_json(), indent=2))
    if options.html:
        write(options.html, identification_html(result))
    return 0


def _cutoff(options: argparse.Namespace, robot: Robot) -> float | None:
    """The default is lowered for slow recordings; an explicit value is not."""
    from ..bags.io.reader import Bag
    from ..bags.validation.recording import Recording

    if options.cutoff != CUTOFF:
        return options.cutoff or None
    rates = [Recording(Bag(path), robot, reading(options)).rate for path in options.bags]
    return float(min(CUTOFF, 0.2 * min(rates)))


def _write_model(options: argparse.Namespace, robot: Robot, result: 'Identification') -> None:
    from ..bags.identification.model_files import robot_file
    from ..bags.io.files import write

    if options.urdf:
        text = result.robot.urdf.text
        write(options.urdf, text if isinstance(text, str) else text.decode())
    if options.out:
        comments = [
            f'Identified by krang identify. {result.used}.',
            *(f'Offset of the effort of {name}: {x:.4g} N m.' for name, x in result.offsets.items()),
        ]
        if not options.urdf:
            comments.append(
                'Masses and inertias are the original ones: --urdf FILE writes the identified ones.'
            )
        urdf = Path(options.urdf or robot.urdf.source)
        write(options.out, robot_file(result.robot.config, Path(options.out), urdf, comments))
