"""Reports of a fleet, for a terminal and as HTML."""

from typing import Any

import numpy as np

from ...text import table
from ..io.html_page import html_table, image, new_figure, page, paragraph
from .fleet_table import METRICS, Finding, Fleet

HEADER = ['machine', 'joint', 'week', 'bags', *(f'{name} [{unit}]' for name, unit in METRICS.items())]


def fleet_text(fleet: Fleet) -> str:
    """Findings, the last week of every joint, and broken bags."""
    last = {(row[0], row[1]): row for row in fleet.weeks()}
    machines = len({row[0] for row in last.values()})
    bags = len({row.path for row in fleet.rows})
    lines = [
        f'{bags} bags of {machines} machines, {len(fleet.broken)} not usable',
        '',
        'Last week of every joint',
    ]
    lines += table(HEADER, last.values())
    lines += ['', *(f'! {row.path}: {row.error}' for row in fleet.broken)]
    lines += [f'! {path}: used without its damaged part: {what}' for path, what in fleet.damaged.items()]
    lines += ['', *([str(finding) for finding in fleet.findings()] or ['no figure has changed'])]
    return '\n'.join(lines)


def fleet_html(fleet: Fleet) -> str:
    """Findings with plots, the table by week, and broken bags."""
    findings = fleet.findings()
    parts = ['<h2>Changes</h2>', *(paragraph(str(f)) + image(_plot(fleet, f)) for f in findings)]
    if not findings:
        parts.append(paragraph('No figure has changed.'))
    parts += ['<h2>By week</h2>', html_table(HEADER, fleet.weeks())]
    if fleet.broken:
        parts += ['<h2>Bags that cannot be used</h2>']
        parts.append(html_table(['bag', 'reason'], [[row.path, row.error] for row in fleet.broken]))
    if fleet.damaged:
        parts += ['<h2>Bags that are used without their damaged part</h2>']
        parts.append(html_table(['bag', 'damage'], [list(row) for row in fleet.damaged.items()]))
    return page('Fleet', parts)


def _plot(fleet: Fleet, finding: Finding) -> Any:
    rows = fleet.series[finding.machine, finding.joint]
    figure = new_figure(9, 2.5)
    axes = figure.subplots()
    days = np.array([row.start for row in rows]).astype('datetime64[ns]').astype('datetime64[s]')
    axes.plot(days, [getattr(row, finding.metric) for row in rows], '.', ms=4)
    axes.axvline(np.datetime64(finding.since, 'ns').astype('datetime64[s]'), color='#d62728', lw=1)
    axes.set_ylabel(f'{finding.metric} [{METRICS[finding.metric]}]')
    return figure
