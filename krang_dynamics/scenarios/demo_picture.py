"""The plot of a demonstration: positions, torques by term, errors, and the robot."""

from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import InputError, KrangError
from ..robot.model import Robot
from ..viewer.animation import draw
from .demo_record import DemoRecord

MOST_POINTS = 2000  # per curve
# Ten dark colours, then their light versions: enough to distinguish 17 joints.
COLOURS = (
    '#1f77b4 #ff7f0e #2ca02c #d62728 #9467bd #8c564b #e377c2 #7f7f7f #bcbd22 #17becf '
    '#aec7e8 #ffbb78 #98df8a #ff9896 #c5b0d5 #c49c94 #f7b6d2 #c7c7c7 #dbdb8d #9edae5'
).split()


def paint(robot: Robot, record: DemoRecord, errors: Array, file: str | Path) -> None:
    """Write the PNG; `errors` [rad, m] has a column per joint, NaN where a joint is not controlled."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise KrangError('matplotlib is not installed; pip install matplotlib') from None
    figure = Figure(figsize=(14, 10), layout='constrained')
    FigureCanvasAgg(figure)
    figure.suptitle(f'{robot.name}: {", ".join(record.terms)}')
    thin = slice(None, None, max(1, len(record.times) // MOST_POINTS))
    times = record.times[thin]
    above_left, above_right, below_left, below_right = figure.subplots(2, 2).flat
    joints = _curves(above_left, times, record.q[thin], 'position [rad, m]')
    _curves(below_left, times, errors[thin], 'reference - position [rad, m]')
    figure.legend(joints, robot.joint_names, loc='outside lower left', ncols=9, fontsize='small')
    size = {name: np.abs(term).max(axis=1) for name, term in record.terms.items()}
    size['sum'] = np.abs(record.torque).max(axis=1)
    terms = _curves(above_right, times, np.array(list(size.values())).T[thin], 'largest torque [N m]')
    above_right.legend(terms, list(size), fontsize='small')
    draw(below_right, robot, record.q[:: max(1, len(record.q) // 300)])
    try:
        figure.savefig(file, dpi=90)
    except OSError as error:
        raise InputError(f'{file}: cannot be written: {error.strerror}') from error


def _curves(axes: Any, times: Array, values: Array, label: str) -> Any:
    """One line per column."""
    axes.set_prop_cycle(color=COLOURS)
    axes.set(xlabel='time [s]', ylabel=label)
    axes.grid(alpha=0.3)
    return axes.plot(times, values, lw=1)
