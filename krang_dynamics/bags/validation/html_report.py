"""Reports as one HTML file each, with charts that can be zoomed."""

import html
from collections.abc import Sequence

from ... import colours
from .html_charts import chart, head, scripts
from .validation import Validation, cell

STYLE = f"""
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 72em; margin: 2em auto; color: {colours.MEASURED} }}
table {{ border-collapse: collapse; margin: 1em 0 }} td, th {{ padding: .2em .8em }}
td {{ text-align: right; font-variant-numeric: tabular-nums }} td:first-child, th {{ text-align: left }}
.chart {{ margin: 1em 0 }} .warning {{ color: {colours.BAD} }}
"""
ZOOM = 'Drag to zoom, double-click to return.'


def validation_html(result: Validation) -> str:
    """The report of `krang validate`."""
    parts = [
        f'<p>{_text(result.topic)}, {result.duration:.1f} s. {_text(result.filtering)}.</p>',
        '<h2>Verdict</h2>',
        _rows(['joint', 'verdict'], list(result.verdicts.items())),
        *(f'<p class="warning">{_text(hint)}</p>' for hint in result.hints),
        '<h2>Measured and predicted torque</h2>',
        f'<p>{ZOOM}</p>',
        *(_plot(result, name) for name in result.joints),
        '<h2>Errors</h2>',
        '<p>RMSE of measured - predicted torque by level [N m]: gravity, with motion, with rotor inertia, '
        'with friction. Correlation, r2 and bias [N m] of the whole model.</p>',
        _rows(*result.figures()),
        '<h2>Largest errors of the whole model</h2>',
        _rows(
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
            _rows(header, rows),
        ]
    parts += ['<h2>Recording</h2>', _lines(result.check)]
    return _page(f'Validation of {result.robot} on {result.bag}', parts)


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


def _rows(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = ''.join(f'<th>{_text(cell)}</th>' for cell in header)
    body = ''.join('<tr>' + ''.join(f'<td>{_text(cell)}</td>' for cell in row) + '</tr>' for row in rows)
    return f'<table><tr>{head}</tr>{body}</table>'


def _lines(lines: Sequence[str]) -> str:
    items = (
        f'<li{" class=warning" if line[0] == "!" else ""}>{_text(line.lstrip("! "))}</li>' for line in lines
    )
    return f'<ul>{"".join(items)}</ul>'


def _page(title: str, parts: Sequence[str]) -> str:
    meta = f'<meta charset="utf-8"><title>{_text(title)}</title><style>{STYLE}</style>{head()}'
    body = f'<h1>{_text(title)}</h1>{"".join(parts)}{scripts()}'
    return f'<!doctype html><html><head>{meta}</head><body>{body}</body></html>'


def _text(value: str) -> str:
    return html.escape(value)
