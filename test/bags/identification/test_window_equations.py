"""Factors of windows, and their sum."""

import numpy as np
import pytest
from bags.bagging import motion, record, record_model, torques

import krang_dynamics as kd
from krang_dynamics.bags.identification.regressor import Regressor, Unknowns
from krang_dynamics.bags.identification.window_equations import Estimate, weighted_equations
from krang_dynamics.bags.io.reader import Bag
from krang_dynamics.bags.validation.filtering import Filtering
from krang_dynamics.bags.validation.recording import Reading, Recording

pytest.importorskip('rosbags', reason='rosbags is not installed')


@pytest.mark.parametrize('cutoff', [None, 10.0])
def test_added_windows_hold_the_equations_of_the_recording(cutoff, tmp_path):
    robot = kd.load_robot('planar_2r')
    recording = Recording(Bag(record_model(tmp_path / 'bag', robot, duration=6.0)), robot, Reading())
    regressor = Regressor(robot, Unknowns(), recording.moving, recording.measured)
    (window,) = recording.windows()
    middle = sum(window) // 2
    estimate = Estimate(regressor.prior, np.full(2, 0.1), 0.0)

    def equations(start, stop):
        return weighted_equations(recording, regressor, Filtering(cutoff), (start, stop), estimate)

    one, first = equations(*window), equations(window[0], middle)
    first.add(equations(middle, window[1]))
    assert not first.light.any()
    for whole, summed, active in zip(one.factors, first.factors, regressor.active, strict=True):
        assert summed.count == pytest.approx(whole.count, abs=2)
        # The recording is that of the model, so that the prior fits it without a delay.
        assert summed.rmse([*regressor.prior[active], 0, 0]) < 0.002
        assert whole.rmse([*regressor.prior[active], 0, 0]) < 0.002


def test_an_equation_that_does_not_fit_loses_weight(tmp_path):
    robot = kd.load_robot('planar_2r')
    t, q, v, a = motion(robot)
    tau = torques(robot, q, v, a)
    tau[400:420, 0] += 30.0  # longer than what is taken for an outlier
    recording = Recording(Bag(record(tmp_path / 'bag', robot.joint_names, t, q, v, tau)), robot, Reading())
    regressor = Regressor(robot, Unknowns(), recording.moving, recording.measured)
    estimate = Estimate(regressor.prior, np.full(2, 0.1), 0.0)
    equations = weighted_equations(recording, regressor, Filtering(10.0), recording.windows()[0], estimate)
    assert 2 <= equations.light[0] < 20
    assert equations.light[1] == 0
