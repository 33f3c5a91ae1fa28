"""Factors of windows, and their sum."""

import numpy as np
import pytest
from bags.bagging import record_model

import krang_dynamics as kd
from krang_dynamics.bags.identification.regressor import Regressor, Unknowns
from krang_dynamics.bags.identification.window_equations import window_factors
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

    def factors(start, stop):
        return window_factors(recording, regressor, Filtering(cutoff), (start, stop))

    for one, first, second in zip(
        factors(*window), factors(window[0], middle), factors(middle, window[1]), strict=True
    ):
        first.add(second)
        assert first.count == pytest.approx(one.count, abs=2)
        if cutoff is None:
            np.testing.assert_allclose(first.R.T @ first.R, one.R.T @ one.R, rtol=1e-6, atol=1e-6)
        # The recording is that of the model, so that the prior fits it.
        assert first.rmse(regressor.prior) < 0.02
        assert one.rmse(regressor.prior) < 0.02
