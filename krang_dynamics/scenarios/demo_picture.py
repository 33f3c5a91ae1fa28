"""The plot of a demonstration: positions, errors, torques by term, and the robot."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import Array
from ..bags.io.files import writing
from ..bags.io.html_page import new_figure
from ..colours import BAD, GOOD
from ..robot.model import Robot
from ..viewer.animation import draw
from .demo_record import DemoRecord
from .scenario import Result, Scenario

MOST_POINTS = 2000  # per curve
SMALLEST_GROUP = 3  # joints whose names differ only in a number


def paint(
    robot: Robot, scenario: Scenario, record: DemoRecord, results: Sequence[Result], file: str | Path
) -> None:
    """Write the PNG, with the verdict of the results in its title."""
    figure = new_figure(14, 10)
    verdict, colour = _verdict(results)
    figure.suptitle(f'{robot.name}: {verdict}', color=colour)
    halves: Any = figure.subfigures(1, 2)
    left, right = halves
    thin = slice(None, None, max(1, len(record.times) // MOST_POINTS))
    times, errors = record.times[thin], unwrapped(robot, scenario.error(record))[thin]
    panels = [
        (f'{group}\n{what} [rad, m]'.strip(), rows, values)
        for what, values in (('position', record.q[thin]), ('error', errors))
        for group, rows in joint_groups(robot).items()
        if np.isfinite(values[:, rows]).any()
    ]
    axes = left.subplots(len(panels), 1, sharex=True)
    for place, (label, rows, values) in zip(axes, panels, strict=True):
        _curves(place, times, values[:, rows], [robot.joint_names[row] for row in rows], label)
    axes[-1].set_xlabel('time [s]')
    torque_axes, robot_axes = right.subplots(2, 1)
    _paint_torques(torque_axes, record, thin)
    for place in (*axes, torque_axes):
        _mark_phases(place, scenario, times[-1], with_names=place in (axes[0], torque_axes))
    draw(robot_axes, robot, record.q[:: max(1, len(record.q) // 300)])
    with writing(file):
        figure.savefig(file, dpi=90)


def joint_groups(robot: Robot) -> dict[str, list[int]]:
    """Rows of the joints that are shown together, by name: arms, wheels, or all joints."""
    if robot.config.rolling:
        kinds = ['motors' if robot.config.joints[name].driven else 'body' for name in robot.joint_names]
    else:
        stems = [re.sub(r'[_ ]*\d+$', '', name) for name in robot.joint_names]
        limbs = {stem for stem in stems if SMALLEST_GROUP <= stems.count(stem) < robot.nv}
        rest = {0: '', 1: 'other'}.get(len(limbs), 'trunk')
        kinds = [stem if stem in limbs else rest for stem in stems]
    return {kind: [row for row, other in enumerate(kinds) if other == kind] for kind in dict.fromkeys(kinds)}


def unwrapped(robot: Robot, errors: Array) -> Array:
    """Errors [rad, m] without jumps by whole turns, which end within half a turn of zero."""
    result = errors.copy()
    for row, name in enumerate(robot.joint_names):
        if robot.urdf.joints[name].type != 'prismatic' and np.isfinite(errors[:, row]).all():
            angle = np.unwrap(errors[:, row])
            result[:, row] = angle - 2 * np.pi * np.round(angle[-1] / (2 * np.pi))
    return result


def _verdict(results: Sequence[Result]) -> tuple[str, str]:
    missed = [result.name for result in results if not result.passed]
    verdict = f'{len(results) - len(missed)} of {len(results)} criteria met'
    return (f'{verdict}; missed: {", ".join(missed)}', BAD) if missed else (verdict, GOOD)


def _paint_torques(axes: Any, record: DemoRecord, thin: slice) -> None:
    """The largest torque of each term over the joints; terms that are zero are labelled."""
    terms: Mapping[str, Array] = {**record.terms, 'sum': record.torque}
    for name, torque in terms.items():
        size = np.abs(torque).max(axis=1)
        label = name if size.max() > 1e-9 else f'{name} (zero)'
        style = {'color': 'black', 'ls': '--'} if name == 'sum' else {}
        axes.plot(record.times[thin], size[thin], lw=1.2, label=label, **style)
    axes.set(xlabel='time [s]', ylabel='largest torque of a joint [N m]')
    axes.grid(alpha=0.3)
    axes.legend(fontsize='small', loc='upper right')


def _mark_phases(axes: Any, scenario: Scenario, end: float, with_names: bool) -> None:
    """A line at the start of each phase, and its name above the axes."""
    for time, name in scenario.phases:
        if time > end:
            continue
        axes.axvline(time, color='#888888', lw=0.8, ls=':')
        if with_names:
            axes.annotate(
                name, (time, 1.01), xycoords=('data', 'axes fraction'), fontsize='small', color='#555555'
            )


def _curves(axes: Any, times: Array, values: Array, names: Sequence[str], label: str) -> None:
    """One line per column."""
    for column, name in zip(values.T, names, strict=True):
        if np.isfinite(column).any():
            axes.plot(times, column, lw=1, label=name)
    axes.set_ylabel(label, fontsize='small')
    axes.grid(alpha=0.3)
    axes.legend(fontsize='x-small', loc='center left', bbox_to_anchor=(1.0, 0.5))
