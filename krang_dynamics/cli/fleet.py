"""`krang fleet`: figures of many recordings of many robots, and what has changed."""

import argparse
import json

from ..errors import KrangError
from .arguments import FORCE, add_workers
from .libraries import require_libraries

PURPOSE = 'compare many recordings of many robots with their models, and name what has changed'
EXAMPLES = (
    'krang fleet /data/bags --html fleet.html',
    "krang fleet '/data/*/2026-*' --robots machines.yaml --scheduler tcp://node1:8786",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('places', nargs='+', metavar='DIR_OR_GLOB', help='folders or globs with bags: .../MACHINE/.../BAG')
    add('--robots', metavar='FILE', help='YAML with `machine: robot`; default: krang-2 is a krang')
    add(
        '--store',
        metavar='FILE',
        default='krang_fleet.parquet',
        help='what was computed; default %(default)s',
    )
    add('--cutoff', type=float, default=5.0, metavar='HZ', help='cutoff of the low-pass filter; default 5')
    add_workers(parser)
    add('--html', metavar='FILE', help='write a report with plots')
    add('--json', metavar='FILE', help='write findings and the table by week as JSON')
    add('--force', action='store_true', help=FORCE)


def run(options: argparse.Namespace) -> int:
    """Exit status 1 if a figure has changed."""
    require_libraries('rosbags', 'distributed', 'pyarrow', options.html and 'matplotlib')
    from ..bags.fleet.fleet_report import HEADER, fleet_html, fleet_text
    from ..bags.fleet.fleet_table import find_bags, load_models, load_store, update
    from ..bags.io.files import refuse_existing, write

    if options.workers < 1 or not options.cutoff > 0:
        raise KrangError('--workers must be 1 or more, --cutoff above 0')
    refuse_existing((options.html, options.json, options.store), True)
    refuse_existing((options.html, options.json), options.force)
    load_store(options.store)  # refuses another file before the work begins
    bags, models = find_bags(options.places), load_models(options.robots)
    fleet = update(bags, models, options.store, options.cutoff, options.workers, options.scheduler)
    print(fleet_text(fleet))
    findings = [str(finding) for finding in fleet.findings()]
    weeks = [dict(zip(HEADER, row, strict=True)) for row in fleet.weeks()]
    broken = {row.path: row.error for row in fleet.broken}
    figures = {'findings': findings, 'weeks': weeks, 'broken': broken, 'damaged': fleet.damaged}
    write(options.json, json.dumps(figures, indent=1))
    if options.html:
        write(options.html, fleet_html(fleet))
    if len(broken) == len(bags):
        raise KrangError('no bag could be used: the reasons are above')
    return int(bool(findings))
