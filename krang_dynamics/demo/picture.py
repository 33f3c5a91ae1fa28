"""The picture at the end of a demonstration: angles, torques by term, errors, and the robot itself."""

from pathlib import Path

import numpy as np

from ..errors import InputError, KrangError
from ..robot.model import Robot
from ..robot.urdf import Array
from ..viewer.animation import draw
from .record import Record

MOST_POINTS = 2000  # of a curve
MOST_CURVES = 8  # with a name of their own


def paint(robot: Robot, record: Record, file: str | Path) -> None:
    """Write the PNG."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise KrangError('matplotlib is not installed; pip install matplotlib') from None
    figure = Figure(figsize=(14, 10), layout='constrained')
    FigureCanvasAgg(figure)
    figure.suptitle(f'{robot.name}: {", ".join(record.terms)}')
    thin = slice(None, None, max(1, len(record.times) // MOST_POINTS))
    angles, torques, errors, picture = figure.subplots(2, 2).flat
    _curves(angles, record.times[thin], record.q[thin], robot.joint_names, 'position [rad, m]')
    size = {name: np.abs(term).max(axis=1) for name, term in record.terms.items()}
    size['sum'] = np.abs(record.torque).max(axis=1)
    _curves(
        torques, record.times[thin], np.array(list(size.values())).T[thin], list(size), 'largest torque [N m]'
    )
    _curves(
        errors, record.times[thin], record.error[thin], robot.joint_names, 'reference - position [rad, m]'
    )
    draw(picture, robot, record.q[:: max(1, len(record.q) // 300)])
    try:
        figure.savefig(file, dpi=90)
    except OSError as error:
        raise InputError(f'{file}: cannot be written: {error.strerror}') from error


def _curves(axes: object, times: Array, values: Array, names: object, what: str) -> None:
    axes.plot(times, values, lw=1)  # type: ignore[attr-defined]
    axes.set(xlabel='time [s]', ylabel=what)  # type: ignore[attr-defined]
    axes.grid(alpha=0.3)  # type: ignore[attr-defined]
    axes.legend(names, fontsize='x-small', ncols=2, loc='upper right')  # type: ignore[attr-defined]
