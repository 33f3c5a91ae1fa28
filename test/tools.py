"""Small helpers of the tests: random states and comparisons with a named tolerance."""

import numpy as np

EQUATIONS = 1e-9  # relative, what the equations of motion are held to
SMALLEST = 1e-3  # N m, kg m2 or m: below it, what is zero in theory has no size to compare with


def states(count, n, parts=3, reach=2.5):
    """`parts` arrays (count, n), uniform in +-reach, the same at every run."""
    return np.random.default_rng(1).uniform(-reach, reach, (parts, count, n))


def relative_error(actual, expected):
    """Largest difference over all entries, relative to the largest entry of each state."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    axes = tuple(range(1, expected.ndim))
    scale = np.abs(expected).max(axis=axes, initial=SMALLEST)
    return float((np.abs(actual - expected).max(axis=axes, initial=0.0) / scale).max())


def assert_close(actual, expected, tolerance=EQUATIONS):
    """Every state's entries agree, relative to the largest entry of that state."""
    assert np.shape(actual) == np.shape(expected)
    assert relative_error(actual, expected) <= tolerance
