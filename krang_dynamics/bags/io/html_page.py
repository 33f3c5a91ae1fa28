"""Parts of an HTML report that is one file: tables and embedded plots."""

import base64
import html
import io
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

STYLE_SHEET = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72em; margin: 2em auto; color: #222 }
table { border-collapse: collapse; margin: 1em 0 } td, th { padding: .2em .8em; text-align: left }
td { font-variant-numeric: tabular-nums } img { max-width: 100% }
"""


def page(title: str, parts: Iterable[str], more: str = '') -> str:
    """A page with a title; `parts`, and `more` for the head, are HTML already."""
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{STYLE_SHEET}</style>{more}'
    body = ''.join([f'<h1>{html.escape(title)}</h1>', *parts])
    return f'<!doctype html><html><head>{head}</head><body>{body}</body></html>'


class PageLink(NamedTuple):
    """Text that leads to the part of the page with this name."""

    text: str
    name: str


def html_table(header: Sequence[str], rows: Iterable[Sequence[str | PageLink]]) -> str:
    """A table of plain text and links."""
    head = ''.join(f'<th>{html.escape(cell)}</th>' for cell in header)
    body = ''.join('<tr>' + ''.join(f'<td>{_cell(cell)}</td>' for cell in row) + '</tr>' for row in rows)
    return f'<table><tr>{head}</tr>{body}</table>'


def _cell(cell: str | PageLink) -> str:
    if isinstance(cell, PageLink):
        return f'<a href="#{html.escape(cell.name)}">{html.escape(cell.text)}</a>'
    return html.escape(cell)


def paragraph(text: str) -> str:
    """Plain text."""
    return f'<p>{html.escape(text)}</p>'


def new_figure(width: float, height: float) -> Any:
    """A matplotlib figure [inch] that needs no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout='constrained')
    FigureCanvasAgg(figure)
    return figure


def image(figure: Any, name: str = '') -> str:
    """A figure of matplotlib as an embedded picture, to which links of this name lead."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format='png', dpi=80)
    anchor = f'id="{html.escape(name)}" ' if name else ''
    return f'<img {anchor}alt="" src="data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}">'
