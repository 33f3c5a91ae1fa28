"""The report of `krang validate` as one HTML file, with charts that can be zoomed.

uPlot (MIT), which draws them, is in the file, so no network is needed.
"""

import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files

import numpy as np

from ... import colours
from ...arrays import Array
from ..io.html_page import html_table, page, paragraph
from .validation import Validation, cell

STYLE = f"""
td {{ text-align: right }} td:first-child, td:nth-child(2):last-child {{ text-align: left }}
.chart {{ margin: 1em 0 }} .warning {{ color: {colours.BAD} }}
"""
DIGITS = 5  # significant, of each number of a chart
DRAW = """
for (const box of document.querySelectorAll('.chart')) {
  const {title, names, colours, height, data} = JSON.parse(box.querySelector('script').textContent);
  const plot = new uPlot({
    title, height, width: box.clientWidth,
    cursor: {sync: {key: box.dataset.group}, drag: {x: true, y: false}},
    scales: {x: {time: false}},
    axes: [{}, {size: 70, values: (u, ticks) => ticks.map(x => +x.toPrecision(6))}],
    series: [{label: 'time [s]'}, ...names.map((label, k) => ({label, stroke: colours[k], width: 1}))],
  }, data, box);
  addEventListener('resize', () => plot.setSize({width: box.clientWidth, height}));
}
"""


def validation_html(result: Validation) -> str:
    """The report of `krang validate`."""
    parts = [
        paragraph(f'{result.topic}, {result.duration:.1f} s. {result.filtering}.'),
        '<h2>Verdict</h2>',
        html_table(['joint', 'verdict'], list(result.verdicts.items())),
        *(f'<p class="warning">{escape(hint)}</p>' for hint in result.hints),
        '<h2>Measured and predicted torque</h2>',
        paragraph('Drag to zoom, double-click to return.'),
        *(_plot(result, name) for name in result.joints),
        '<h2>Errors</h2>',
        '<p>RMSE of measured - predicted torque by level [N m]: gravity, with motion, with rotor inertia, '
        'with friction. Correlation, r2 and bias [N m] of the whole model.</p>',
        html_table(*result.figures()),
        '<h2>Largest errors of the whole model</h2>',
        html_table(
            ['joint', 'time [s]: error [N m]'],
            [
                [name, ', '.join(f'{t:.2f}: {e:.3g}' for t, e in errors)]
                for name, errors in result.worst.items()
            ],
        ),
    ]
    if result.wrenches:
        header = ['joint', 'residual RMSE [N m]', 'correlation', 'observer RMSE [N m]', 'correlation']
        rows = [
            [name, *(cell(x) for f in kinds.values() for x in (f.rmse, f.correlation))]
            for name, kinds in result.wrenches.items()
        ]
        parts += [
            '<h2>Measured wrenches</h2>',
            '<p>J^T f compared with the torque residual of the whole model, and with the observer.</p>',
            html_table(header, rows),
        ]
    lines = (
        f'<li{" class=warning" if line[0] == "!" else ""}>{escape(line.lstrip("! "))}</li>'
        for line in result.check
    )
    script = f'<script>{_file("uPlot.iife.min.js")}</script><script>{DRAW}</script>'  # draws all charts
    parts += ['<h2>Recording</h2>', f'<ul>{"".join(lines)}</ul>', script]
    head = f'<style>{_file("uPlot.min.css")}{STYLE}</style>'
    return page(f'Validation of {result.robot} on {result.bag}', parts, head)


def _plot(result: Validation, joint: str) -> str:
    """Torque and residual over time."""
    series, j = result.series, result.names.index(joint)
    measured, predicted = series.measured[:, j], series.predicted['friction'][:, j]
    torque = {'measured': (colours.MEASURED, measured), 'whole model': (colours.PREDICTED, predicted)}
    residual = {'residual': (colours.PREDICTED, measured - predicted)}
    torque['gravity only'] = (colours.GRAVITY, series.predicted['gravity'][:, j])
    return chart(f'{joint}: torque [N m]', series.t, torque, group=joint) + chart(
        f'{joint}: residual [N m]', series.t, residual, height=150, group=joint
    )


def chart(
    title: str, t: Array, curves: Mapping[str, tuple[str, Array]], height: int = 240, group: str = ''
) -> str:
    """Curves (colour and values, by name) over t [s]; charts of a group have a common cursor."""
    data = {
        'title': title,
        'names': list(curves),
        'colours': [colour for colour, _ in curves.values()],
        'height': height,
        'data': [_numbers(t), *(_numbers(values) for _, values in curves.values())],
    }
    text = json.dumps(data, separators=(',', ':')).replace('<', '\\u003c')
    name = json.dumps(group).replace('<', '').replace('&', '')
    return f'<div class="chart" data-group={name}><script type="application/json">{text}</script></div>'


def _file(name: str) -> str:
    return (files(__package__) / 'uplot' / name).read_text(encoding='utf-8')


def _numbers(values: Array) -> list[float | None]:
    """Rounded; a number that is not finite is a gap."""
    return [float(f'{x:.{DIGITS}g}') if np.isfinite(x) else None for x in values.tolist()]
