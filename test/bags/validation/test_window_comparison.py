"""Windows of a recording compared with the model, and their sum."""

import numpy as np
import pytest
from bags.bagging import motion, record, torques

import krang_dynamics as kd
from krang_dynamics.bags.io.reader import Bag
from krang_dynamics.bags.validation.filtering import Filtering
from krang_dynamics.bags.validation.recording import Reading, Recording
from krang_dynamics.bags.validation.window_comparison import APART, WORST, WindowComparison

pytest.importorskip('rosbags', reason='rosbags is not installed')


def test_added_windows_give_the_result_of_one_window(tmp_path):
    robot = kd.load_robot('planar_2r')
    t, q, v, a = motion(robot, 6.0)
    tau = torques(robot, q, v, a)
    for k in (100, 110, 500, 900, 1100):
        tau[k, 0] += 30.0 + 0.01 * k
    path = record(tmp_path / 'bag', robot.joint_names, t, q, v, tau)
    compare = WindowComparison(path, robot, Reading(), Filtering(20.0), 10**6)
    (window,) = Recording(Bag(path), robot, Reading()).windows()
    one, middle = compare(window), sum(window) // 2
    two = compare((window[0], middle))
    two.add(compare((middle, window[1])))
    assert two.check.count == one.check.count == len(t)
    for level, sums in one.levels.items():
        assert two.levels[level].count == sums.count
        assert two.levels[level].figures(0).rmse == pytest.approx(sums.figures(0).rmse, rel=1e-3)
    np.testing.assert_allclose(two.series.t, one.series.t)
    times = [time for time, _ in two.worst[0]]
    assert len(times) == WORST
    assert np.diff(sorted(times)).min() > APART
