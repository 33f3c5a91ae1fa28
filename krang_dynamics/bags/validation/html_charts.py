"""Charts of an HTML report that can be zoomed; uPlot (MIT) is in the file, so no network is needed."""

import json
from collections.abc import Mapping
from importlib.resources import files

import numpy as np

from ...arrays import Array

DIGITS = 5  # significant, of each number
DRAW = """
for (const box of document.querySelectorAll('.chart')) {
  const {title, names, colours, height, data} = JSON.parse(box.querySelector('script').textContent);
  new uPlot({
    title, height, width: box.clientWidth,
    cursor: {sync: {key: box.dataset.group}, drag: {x: true, y: false}},
    scales: {x: {time: false}}, axes: [{}, {size: 70}],
    series: [{label: 's'}, ...names.map((label, k) => ({label, stroke: colours[k], width: 1}))],
  }, data, box);
}
"""


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


def head() -> str:
    """Style sheet of the charts."""
    return f'<style>{_file("uPlot.min.css")}</style>'


def scripts() -> str:
    """What draws all charts; at the end of the body."""
    return f'<script>{_file("uPlot.iife.min.js")}</script><script>{DRAW}</script>'


def _file(name: str) -> str:
    return (files(__package__) / 'uplot' / name).read_text(encoding='utf-8')


def _numbers(values: Array) -> list[float | None]:
    """Rounded; a number that is not finite is a gap."""
    return [float(f'{x:.{DIGITS}g}') if np.isfinite(x) else None for x in values.tolist()]
