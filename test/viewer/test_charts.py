"""Latency and answered share from a report, and which joints a chart shows."""

import numpy as np
import pytest

from krang_dynamics.bags.observed_robot import Report
from krang_dynamics.robot.library import load_robot
from krang_dynamics.viewer.charts import Charts, latency


@pytest.mark.parametrize(
    ('histogram', 'expected'),
    [('<256:990 <512:10', (256, 256)), ('<128:500 <256:480 <1024:20', (128, 1024)), ('', (0, 0))],
)
def test_half_and_99_percent_of_the_commands_are_below_these_bounds(histogram, expected):
    values = {'latency histogram [us]': histogram, 'state rate [Hz]': '1000.0', 'command rate [Hz]': '900.0'}
    half, most, share = latency(Report(0, '', values))
    assert (half, most) == expected
    assert share == pytest.approx(90.0)


def test_the_joints_of_a_chart_change_only_if_others_are_clearly_larger():
    robot = load_robot('krang')
    charts, values = Charts(None, None, robot), np.ones((3, robot.nv))
    first = list(charts._largest(charts.torque, values, 0.0))
    values[:, -1] = 1.5
    assert list(charts._largest(charts.torque, values, 20.0)) == first
    values[:, -1] = 10.0
    assert list(charts._largest(charts.torque, values, 40.0))[-1] == robot.joint_names[-1]


def test_nothing_is_answered_without_states():
    assert latency(Report(0, '', {})) == (0, 0, 0)
