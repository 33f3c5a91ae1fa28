"""A verdict in words on how well the model of a joint explains its measured torque."""

from collections.abc import Sequence

import numpy as np

from ...arrays import Array
from .statistics import FitFigures
from .window_comparison import PlotSeries

GOOD_R2, GOOD_SHARE = 0.9, 0.05  # a good model explains this variance, or misses this share of the torque
SPEED, ACCELERATION = 0.02, 0.05  # below them a joint does not move enough to judge it [rad/s], [rad/s2]
CLEAR = 0.4  # an explanation must explain this share of the squared residual


def verdict(series: PlotSeries, joint: int, figures: FitFigures, has_load_hint: bool) -> str:
    """One line: good, or what the residual of the whole model looks like."""
    v, a = series.v[:, joint], series.a[:, joint]
    residual = series.measured[:, joint] - series.predicted['friction'][:, joint]
    largest = float(np.abs(series.measured[:, joint]).max())
    if figures.r2 >= GOOD_R2 or figures.rmse <= GOOD_SHARE * largest:
        return 'good'
    if _rms(v) < SPEED and _rms(a) < ACCELERATION:
        return 'hardly moved: gravity and offsets alone can be judged'
    shares = {
        'friction unknown: the residual follows the velocity': _explained([v, np.sign(v)], residual),
        'rotor missing: the residual follows the acceleration': _explained([a], residual),
    }
    best = max(shares, key=lambda text: shares[text])
    if shares[best] >= CLEAR:
        return best
    if has_load_hint:
        return 'payload? the residual looks like a load'
    if _explained([np.ones_like(v)], residual) >= CLEAR:
        return 'offset: the residual is nearly constant'
    return 'unexplained: check masses, joint names and signs'


def explained_effort(several: Sequence[PlotSeries], joint: int) -> float:
    """Share of the variance of a joint's effort that its model, motion or pose explains, with any gains."""
    y, gravity, rotor, q, v, a = (
        np.concatenate([x[:, joint] for x in columns])
        for columns in zip(
            *((s.measured, s.predicted['gravity'], s.predicted['rotor'], s.q, s.v, s.a) for s in several),
            strict=True,
        )
    )
    columns = [gravity, rotor, v, np.sign(v), a, np.sin(q), np.cos(q)]
    return _explained([x - x.mean() for x in columns], y - y.mean()) if np.ptp(y) else 0.0


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _explained(columns: list[Array], residual: Array) -> float:
    """Share of the squared residual that a combination of the columns explains."""
    basis = np.column_stack(columns)
    rest = residual - basis @ np.linalg.lstsq(basis, residual, rcond=None)[0]
    return 1.0 - float(rest @ rest) / max(float(residual @ residual), 1e-30)
