"""Records: rows by time, and what ~/state said."""

import numpy as np
import pytest

from krang_dynamics.errors import KrangError
from krang_dynamics.scenarios.trace import Record, Series

TIMES = np.arange(0, 1, 0.25)
Q = np.outer(TIMES, [1.0, 2.0])


def record(**changes):
    values = {'desired': Q + 0.1, 'torque': 3 * Q, 'external': 4 * Q, 'terms': {'gravity': 5 * Q}, **changes}
    return Record(TIMES, Q, **values)


def test_the_error_is_reference_minus_position():
    np.testing.assert_allclose(record().error, 0.1)


def test_rows_between_two_moments_include_both():
    part = record().between(0.25, 0.5)
    np.testing.assert_array_equal(part.times, [0.25, 0.5])
    for rows, factor in ((part.q, 1), (part.torque, 3), (part.external, 4), (part.terms['gravity'], 5)):
        np.testing.assert_array_equal(rows, factor * Q[1:3])
    np.testing.assert_allclose(part.error, 0.1)


def test_a_time_that_never_came_is_an_error():
    with pytest.raises(KrangError, match='ended before 2 s'):
        record().between(2.0, 3.0)


def test_a_series_is_cut_the_same_way():
    series = Series(TIMES, Q)
    np.testing.assert_array_equal(series.between(0.25, 0.5), Q[1:3])
    assert series.between(2.0, 3.0).shape == (0, 2)
    assert record(wrenches={'hand': series}).wrench('hand') is series


def test_when_a_state_was_first_said():
    states = (
        (0.1, {'contact': 'contact'}),
        (0.3, {'contact': 'none'}),
        (0.4, {'contact': 'contact'}),
        (0.6, {'contact': 'contact'}),
    )
    assert record(states=states).time_of('contact', 'contact', after=0.2) == 0.4
    assert record(states=states).time_of('contact', 'collision', after=0.2) == np.inf
