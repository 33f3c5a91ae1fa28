"""Latency and answered share from a controller's report."""

import pytest

from krang_dynamics.bags.observed_robot import Report
from krang_dynamics.viewer.charts import latency


@pytest.mark.parametrize(
    ('histogram', 'expected'),
    [('<256:990 <512:10', (256, 256)), ('<128:500 <256:480 <1024:20', (128, 1024)), ('', (0, 0))],
)
def test_half_and_99_percent_of_the_commands_are_below_these_bounds(histogram, expected):
    values = {'latency histogram [us]': histogram, 'state rate [Hz]': '1000.0', 'command rate [Hz]': '900.0'}
    half, most, share = latency(Report(0, '', values))
    assert (half, most) == expected
    assert share == pytest.approx(90.0)


def test_nothing_is_answered_without_states():
    assert latency(Report(0, '', {})) == (0, 0, 0)
