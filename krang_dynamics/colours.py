"""Colours of the page and of the reports: the same thing has the same colour everywhere."""

MEASURED = '#24292f'
PREDICTED = '#d62728'
REFERENCE = '#1f77b4'
GRAVITY = '#7fb2e5'
EXTERNAL = '#e8590c'
GOOD, WARNING, BAD, IDLE = '#2b8a3e', '#b35900', '#c92a2a', '#5c636a'  # of a state
SERIES = (
    '#1f77b4', '#d62728', '#2ca02c', '#9467bd', '#ff7f0e', '#17becf', '#8c564b', '#e377c2', '#7f7f7f',
)  # fmt: skip
TRAILS = ('#2ca02c', '#9467bd', '#8c564b', '#e377c2')  # of hands, and of a mobile base


def rgb(colour: str) -> tuple[int, int, int]:
    """#rrggbb as three numbers from 0 to 255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
