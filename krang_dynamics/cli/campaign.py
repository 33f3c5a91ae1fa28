"""`krang campaign`: many disturbed runs of a set-up in simulation."""

import argparse
import json
import shlex

from ..errors import KrangError
from ..robot.library import load_robot
from .arguments import FORCE, ROBOT, add_workers
from .libraries import require_libraries

PURPOSE = 'simulate many disturbed runs of controller and guard, and judge them by an independent monitor'
EXAMPLES = (
    'krang campaign krang --runs 1000 --html krang.html --min-held 0.6',
    'krang campaign my_robot.urdf --plan plan.yaml --scheduler tcp://node1:8786',
    'krang campaign krang --again 17 --picture run_17.png --record run_17',
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('robot', help=ROBOT)
    add('--plan', metavar='FILE', help='YAML with terms, settings, and what is varied; default: everything')
    add('--runs', type=int, default=1000, help='number of runs; default 1000')
    add('--seed', type=int, default=0, help='seed of the first run; the others follow; default 0')
    add_workers(parser)
    add('--html', metavar='FILE', help='write a report with plots')
    add('--json', metavar='FILE', help='write all runs and figures as JSON')
    add('--min-held', type=float, metavar='SHARE', help='exit status 1 if fewer runs are held, 0 .. 1')
    add('--max-unsafe', type=int, default=0, metavar='N', help='exit status 1 if more are unsafe; default 0')
    add('--again', type=int, metavar='SEED', help='repeat one run, with the same plan')
    add('--picture', metavar='FILE', help='with --again: plot as PNG')
    add('--record', metavar='BAG', help='with --again: write states, torques and reference to a bag')
    add('--force', action='store_true', help=FORCE)


def run(options: argparse.Namespace) -> int:
    """Exit status 1 if too few runs are held, or too many are unsafe."""
    drawn, is_one = options.html or options.picture, options.again is not None
    require_libraries(None if is_one else 'distributed', drawn and 'matplotlib', options.record and 'rosbags')
    from ..bags.io.files import make_way, refuse_existing, require_suffix, write
    from ..scenarios.campaign.campaign_monitor import UNSAFE
    from ..scenarios.campaign.campaign_plan import load_plan
    from ..scenarios.campaign.campaign_report import Campaign
    from ..scenarios.campaign.campaign_run import figures_of, run_again, run_campaign, run_nominal

    if options.runs < 1 or options.seed < 0 or (options.again or 0) < 0 or options.workers < 1:
        raise KrangError('--runs and --workers must be 1 or more, --seed and --again 0 or more')
    if not is_one and (options.picture or options.record):
        raise KrangError('--picture and --record show one run; give its seed by --again')
    if is_one and (options.html or options.json):
        raise KrangError('--html and --json report a campaign; with --again, give --picture or --record')
    if options.max_unsafe < 0 or not 0 <= (options.min_held or 0) <= 1:
        raise KrangError('--max-unsafe must be 0 or more, --min-held within 0 .. 1')
    require_suffix(options.picture, '.png')
    refuse_existing((options.html, options.json, options.picture), options.force)
    robot = load_robot(options.robot)
    plan = load_plan(robot, options.plan)
    command = shlex.join(
        ['krang', 'campaign', options.robot, *(['--plan', options.plan] if options.plan else [])]
    )
    if is_one:
        if options.record:
            make_way(options.record, options.force)
        result = run_again(robot, plan, options.again, options.picture, options.record)
        values = ', '.join(f'{name} {value:.4g}' for name, value in result.values.items())
        print(f'seed {result.seed}: {result.outcome}; {result.reason or "no fault"}; {values}')
        return int(result.outcome == UNSAFE)
    seeds = range(options.seed, options.seed + options.runs)
    nominal = run_nominal(robot, plan)
    results = run_campaign(robot, plan, seeds, options.workers, options.scheduler)
    campaign = Campaign(robot.name, command, plan, nominal, results)
    print(campaign.text())
    write(options.json, json.dumps(campaign.as_json(), indent=1))
    if options.html:
        write(options.html, campaign.html(figures_of(robot, plan, campaign.worst())))
    too_few = options.min_held is not None and not campaign.held >= options.min_held
    if too_few:
        print(f'held: {campaign.held:.3g} of the runs within control, fewer than {options.min_held:g}')
    return int(too_few or campaign.count(UNSAFE) > options.max_unsafe)
