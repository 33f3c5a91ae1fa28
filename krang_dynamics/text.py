"""Formatting of text for terminals."""

from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table with aligned columns: numbers right, text left."""
    cells = [list(header), *(list(row) for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    numeric = [all(_is_number(row[i]) for row in cells[1:]) for i in range(len(header))]
    lines = [
        '  '.join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in cells
    ]
    rule = '  '.join('-' * width for width in widths).rstrip()
    return [lines[0], rule, *lines[1:]]


def number(value: float, digits: int = 4) -> str:
    """A number with `digits` significant digits and no trailing zeros; - if infinite."""
    if value in (float('inf'), float('-inf')):
        return '-'
    return f'{value:.{digits}g}' if abs(value) > 1e-12 else '0'


def _is_number(cell: str) -> bool:
    try:
        float(cell.rstrip('%'))
    except ValueError:
        return cell in ('', '-')
    return True
