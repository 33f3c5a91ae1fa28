"""Figures of windows that can be added."""

import numpy as np
import pytest

from krang_dynamics.bags.validation.statistics import CorrelationSums


def test_added_windows_give_the_figures_of_numpy():
    random = np.random.default_rng(6)
    y = random.normal(100, 3, (1000, 2))
    p = 0.7 * y + random.normal(20, 1, (1000, 2))
    total = CorrelationSums(y[:0], p[:0])
    for part in np.split(np.arange(1000), [1, 300, 900]):
        total.add(CorrelationSums(y[part], p[part]))
    for j in range(2):
        figures = total.figures(j)
        error = y[:, j] - p[:, j]
        assert figures.rmse == pytest.approx(np.sqrt((error**2).mean()), rel=1e-12)
        assert figures.bias == pytest.approx(error.mean(), rel=1e-12)
        assert figures.correlation == pytest.approx(np.corrcoef(y[:, j], p[:, j])[0, 1], rel=1e-10)
        assert figures.r2 == pytest.approx(1 - (error**2).sum() / ((y[:, j] - y[:, j].mean()) ** 2).sum())
        assert total.slope(j) == pytest.approx(np.polyfit(p[:, j], y[:, j], 1)[0], rel=1e-9)


def test_undefined_figures_are_null_in_json():
    figures = CorrelationSums(np.ones((5, 1)), np.ones((5, 1))).figures(0)
    assert figures.as_dict() == {'rmse': 0.0, 'correlation': None, 'r2': None, 'bias': 0.0}
    assert CorrelationSums(np.zeros((0, 1)), np.zeros((0, 1))).figures(0).as_dict()['rmse'] is None
