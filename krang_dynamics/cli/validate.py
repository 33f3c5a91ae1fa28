"""`krang validate`: predicted against measured torque of a recording."""

import argparse
import json

from .arguments import BAG, add_recording, reading, recorded_robot
from .libraries import require_libraries

PURPOSE = 'compare predicted with measured torque of a recording, joint by joint'
EXAMPLES = ("krang validate my_bag --robot my.urdf --map 'fer_joint*=panda_joint*' --cutoff 5",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('bag', help=BAG)
    add_recording(parser)
    parser.add_argument(
        '--cutoff', type=float, metavar='HZ', help='cutoff of a low-pass filter; default: no filter'
    )
    parser.add_argument('--html', metavar='FILE', help='write a report with plots')
    parser.add_argument(
        '--max-rmse',
        type=float,
        metavar='NM',
        help='exit status 1 if the RMSE of a joint is above this [N m]',
    )
    parser.add_argument(
        '--min-r2', type=float, metavar='R2', help='exit status 1 if r2 of a joint is below this'
    )


def run(options: argparse.Namespace) -> int:
    """Exit status 1 if a bound is violated."""
    require_libraries('rosbags')
    from ..bags.io.files import refuse_existing, write
    from ..bags.validation.filtering import Filtering
    from ..bags.validation.html_report import validation_html
    from ..bags.validation.validation import validate

    refuse_existing((options.html, options.json), options.force)
    robot = recorded_robot(options)
    result = validate(options.bag, robot, reading(options), Filtering(options.cutoff, options.acceleration))
    print(result.text())
    write(options.json, json.dumps(result.as_json(), indent=2))
    if options.html:
        write(options.html, validation_html(result))
    missed = result.missed(options.max_rmse, options.min_r2)
    if missed:
        print('\n'.join(['', 'Missed', *(f'  {line}' for line in missed)]))
    return 1 if missed else 0
