"""The report of `krang identify` as one HTML file: errors, parameters, residuals and friction."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ... import colours
from ...arrays import Array
from ..io.html_page import html_table, image, new_figure, page, paragraph
from ..validation.validation import Validation, cell
from .identification import Identification

MOST = 40  # parameters that are listed
SPEEDS = 200  # points of a friction curve


def identification_report(result: Identification) -> str:
    """What improved, which parameters moved by how many deviations, and what is left over in each joint."""
    parts = [
        paragraph(f'Data used: {result.used}. Effort lags behind motion by {1e3 * result.delay[0]:.2f} ms.'),
        '<h2>Error on held-out data</h2>',
        paragraph(result.held_out or 'No data were held out.'),
        html_table(
            ['joint', 'RMSE before [N m]', 'after', 'noise of the fit', 'verdict'],
            [
                [
                    name,
                    cell(a),
                    cell(b),
                    cell(result.noise.get(name, np.nan)),
                    'better' if b < a else 'not better',
                ]
                for name, (a, b) in result.rmse().items()
            ],
        ),
        '<h2>Parameters that moved most</h2>',
        html_table(['parameter', 'before', 'after', 'deviation', 'moved by [deviations]'], _moved(result)),
        '<h2>Base parameters, from least squares without constraints</h2>',
        html_table(
            ['base parameter', 'value', 'deviation'],
            [[n, f'{v:.5g}', f'{d:.2g}'] for n, v, d in result.base_table()],
        ),
    ]
    for before, after in zip(result.before, result.after, strict=True):
        parts.append(f'<h2>{len(after.joints)} joints over time, and what is left over</h2>')
        parts.append(paragraph(f'{after.bag}. The band is two standard deviations of the noise of the fit.'))
        parts += [_joint(result, before, after, name) for name in after.joints]
    parts += ['<h2>Recording</h2>', *(paragraph(line) for line in result.check)]
    parts += [paragraph(f'{name} is left out: {why}') for name, why in result.left_out.items()]
    return page(f'Identification of {result.robot.name}', parts)


def _moved(result: Identification) -> Iterator[list[str]]:
    """Parameters by the size of their change."""
    change = np.abs(result.theta - result.prior) / np.maximum(result.deviation, 1e-300)
    for i in np.argsort(-change)[:MOST]:
        before, after, deviation = result.prior[i], result.theta[i], result.deviation[i]
        yield [result.names[i], f'{before:.5g}', f'{after:.5g}', f'{deviation:.2g}', f'{change[i]:.1f}']


def _joint(result: Identification, before: Validation, after: Validation, joint: str) -> str:
    """Torque and residuals over time, residual over position, speed and acceleration, friction over speed."""
    series, j = after.series, after.names.index(joint)
    figure = new_figure(11, 6)
    grid = figure.add_gridspec(3, 4)
    torque, residual = figure.add_subplot(grid[0, :]), figure.add_subplot(grid[1, :])
    measured, predicted = series.measured[:, j], series.predicted['friction'][:, j]
    left, earlier = measured - predicted, _residual(before, j)
    torque.plot(series.t, measured, color=colours.MEASURED, lw=1, label='measured')
    torque.plot(series.t, predicted, color=colours.PREDICTED, lw=1, label='model after')
    residual.plot(before.series.t, earlier, color=colours.GRAVITY, lw=0.8, label='residual before')
    residual.plot(series.t, left, color=colours.PREDICTED, lw=0.8, label='after')
    band = 2 * result.noise.get(joint, 0.0)
    residual.axhspan(-band, band, color=colours.GRAVITY, alpha=0.2)
    for axes, unit in ((torque, 'torque [N m]'), (residual, 'residual [N m]')):
        axes.set_ylabel(unit)
        axes.legend(loc='upper right', fontsize='small')
    torque.set_title(joint)
    for k, (x, name) in enumerate(((series.q, 'position'), (series.v, 'speed'), (series.a, 'acceleration'))):
        axes = figure.add_subplot(grid[2, k])
        axes.plot(x[:, j], left, '.', ms=2, color=colours.PREDICTED)
        axes.set_xlabel(name)
    _friction(figure.add_subplot(grid[2, 3]), result, after, j)
    return image(figure)


def _friction(axes: Any, result: Identification, after: Validation, j: int) -> None:
    """Measured torque without that of the links and the rotor, and the friction of the model, over speed."""
    series = after.series
    v = np.zeros((SPEEDS, len(after.names)))
    v[:, j] = np.linspace(series.v[:, j].min(), series.v[:, j].max(), SPEEDS)
    axes.plot(
        series.v[:, j],
        series.measured[:, j] - series.predicted['rotor'][:, j],
        '.',
        ms=2,
        color=colours.MEASURED,
    )
    axes.plot(v[:, j], result.robot.friction.torque(v)[:, j], color=colours.PREDICTED)
    axes.set_xlabel('friction over speed')


def _residual(result: Validation, j: int) -> Array:
    return np.asarray(result.series.measured[:, j] - result.series.predicted['friction'][:, j])
