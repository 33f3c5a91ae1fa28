"""The report of an identification."""

import pytest
from bags.bagging import record_model

import krang_dynamics as kd
from krang_dynamics.bags.identification.identification import identify
from krang_dynamics.bags.identification.identification_report import identification_report

pytest.importorskip('rosbags', reason='rosbags is not installed')
pytest.importorskip('matplotlib', reason='matplotlib is not installed')


def test_the_report_has_errors_parameters_and_a_picture_per_joint(tmp_path):
    robot = kd.load_robot('planar_2r')
    found = identify([record_model(tmp_path / 'bag', robot.with_payload('tip', 0.3), noise=0.1)], robot)
    text = identification_report(found)
    assert text.count('<img') == 2
    for words in ('Error on held-out data', 'moved by [deviations]', 'joint_2.m', 'lags behind', 'better'):
        assert words in text
