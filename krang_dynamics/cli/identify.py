"""`krang identify`: link, rotor and friction parameters from recordings."""

import argparse
import json
from pathlib import Path

from numpy.linalg import LinAlgError

from ..errors import KrangError
from ..robot.library import ROBOT_FILES
from ..robot.model import Robot
from .arguments import add_recording, payload, reading, recorded_robot
from .libraries import require_libraries

PURPOSE = 'identify link, rotor and friction parameters, and test them on held-out recordings'
EXAMPLES = (
    'krang identify day_1 day_2 --held-out day_3 --robot krang --out krang_found.yaml',
    'krang identify --static poses.csv --robot krang --balanced base_pitch --offset base_pitch',
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('bags', nargs='+', metavar='bag', help='rosbag2 folders or files')
    add_recording(parser)
    add(
        '--cutoff',
        type=float,
        metavar='HZ',
        help='cutoff of the low-pass filter; 0: none; default: four times the bandwidth of the motion, '
        'from 1 to 10 Hz and at most a fifth of the rate',
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
    add(
        '--loaded',
        nargs='+',
        default=[],
        metavar='BAG',
        help='recordings with the load of --payload, which the others lack: identify motor gains from it',
    )
    add(
        '--static',
        action='store_true',
        help='the files are poses at rest: tables with q.JOINT and tau.JOINT, or bags with resting parts',
    )
    add('--balanced', metavar='JOINT', help='with --static: the robot balances over this joint in all poses')
    add(
        '--offset',
        action='append',
        default=[],
        metavar='JOINT',
        help='with --static: a joint whose angle has an unknown offset, such as that of an inertial unit',
    )
    add('--find-gravity', action='store_true', help='with --static: the direction of gravity is unknown')
    add('--total-mass', type=float, metavar='KG', help='total mass of the moving links, if it is known')
    add('--out', metavar='YAML', help='write the identified robot file')
    add('--urdf', metavar='FILE', help='write the identified URDF')
    add('--html', metavar='FILE', help='write a report with plots, before and after')


def run(options: argparse.Namespace) -> int:
    require_libraries('rosbags')
    from ..bags.identification.identification import identify
    from ..bags.identification.regressor import Unknowns
    from ..bags.io.files import refuse_existing, require_suffix, write
    from ..bags.validation.filtering import Filtering

    require_suffix(options.out, *ROBOT_FILES)
    require_suffix(options.urdf, '.urdf')
    refuse_existing((options.out, options.urdf, options.html, options.json), options.force)
    loads = [payload(entry) for entry in options.payload] if options.loaded else []
    if options.loaded:
        options.payload = []
    robot = recorded_robot(options)
    if options.loaded and not loads:
        raise KrangError('--loaded needs the load: --payload FRAME=MASS[,X,Y,Z]')
    if options.remove_subtree and options.out and not options.urdf:
        raise KrangError('--out refers to a URDF: with --remove-subtree, write it too with --urdf FILE')
    if options.total_mass is not None and not options.total_mass > 0:
        raise KrangError(f'--total-mass is {options.total_mass:g} kg; it must be positive')
    if options.static:
        return _static(options, robot)
    if options.balanced or options.offset or options.find_gravity:
        raise KrangError('--balanced, --offset and --find-gravity are for poses at rest; add --static')
    filtering = None  # that suits the motion
    if options.cutoff is not None:
        filtering = Filtering(options.cutoff or None, options.acceleration)
    try:
        result = identify(
            options.bags,
            robot,
            reading(options),
            filtering,
            Unknowns(options.sign or robot.friction.sign or 'smooth', options.asymmetric),
            options.held_out,
            options.share,
            options.gains,
            options.total_mass,
            options.loaded,
            loads,
        )
    except LinAlgError:
        raise KrangError(
            f'{", ".join(options.bags)}: too few samples, or times that are wrong; see krang validate'
        ) from None
    print(result.text())
    write(options.json, json.dumps(result.as_json(), indent=2))
    worse, doubts = result.worse(), result.doubts()
    for title, lines in (('Worse on held-out data', worse), ('Doubtful: check the recording', doubts)):
        if lines:
            print('\n'.join(['', title, *(f'  {line}' for line in lines)]))
    if (worse or doubts) and not options.force:
        print('No model is written; --force writes it nevertheless.')
        return 1
    _write_model(options, robot, result.robot, result.used)
    if options.html:
        from ..bags.identification.identification_report import identification_report

        write(options.html, identification_report(result))
    return 1 if worse or doubts else 0


def _static(options: argparse.Namespace, robot: Robot) -> int:
    """Masses from poses at rest; exit status 1 if the result is worse on held-out poses."""
    from ..bags.identification.static_fit import StaticUnknowns, identify_static
    from ..bags.identification.static_poses import read_poses

    poses = read_poses(options.bags, robot, reading(options))
    unknowns = StaticUnknowns(tuple(options.offset), options.find_gravity)
    result = identify_static(robot, poses, unknowns, options.balanced, options.total_mass, options.share)
    print(result.text())
    if result.is_worse() and not options.force:
        print('Worse on held-out poses: no model is written; --force writes it nevertheless.')
        return 1
    _write_model(options, robot, result.robot, f'from {", ".join(options.bags)} at rest')
    return 1 if result.is_worse() else 0


def _write_model(options: argparse.Namespace, robot: Robot, found: Robot, used: str) -> None:
    from ..bags.identification.model_files import robot_file
    from ..bags.io.files import write

    if options.urdf:
        text = found.urdf.text
        write(options.urdf, text if isinstance(text, str) else text.decode())
    if options.out:
        comments = [f'Identified by krang identify. {used}.']
        if not options.urdf:
            comments.append(
                'Masses and inertias are the original ones: --urdf FILE writes the identified ones.'
            )
        urdf = Path(options.urdf or robot.urdf.source)
        write(options.out, robot_file(found.config, Path(options.out), urdf, comments))
