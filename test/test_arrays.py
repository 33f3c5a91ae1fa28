"""Checks of arrays where values enter the package."""

import numpy as np
import pytest

from krang_dynamics.arrays import is_finite


@pytest.mark.parametrize('bad', [np.nan, -np.nan, np.inf, -np.inf])
@pytest.mark.parametrize('place', range(5))
def test_one_number_that_is_not_finite_is_found(bad, place):
    x = np.array([0.0, -1.5, 1e-300, 1.7e308, -1.7e308])
    assert is_finite(x)
    x[place] = bad
    assert not is_finite(x)


def test_finite_numbers_of_every_magnitude_are_finite():
    with np.errstate(over='ignore'):
        powers = np.ldexp(1.0, np.arange(-1074, 1024))
    for sign in (1.0, -1.0):
        assert all(is_finite(sign * powers[k : k + 1]) for k in range(len(powers)))
    assert is_finite(np.stack([powers, -powers])[:, ::2])
