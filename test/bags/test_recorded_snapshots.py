"""A recording as snapshots at a steady rate."""

import numpy as np
import pytest
from bags.bagging import motion, record_model

from krang_dynamics.bags.io.reader import Bag
from krang_dynamics.bags.recorded_snapshots import RATE, recorded_snapshots
from krang_dynamics.bags.replay.recorded_controller import recorded_controller
from krang_dynamics.robot.library import load_robot

pytestmark = pytest.mark.slow

ARM = load_robot('planar_2r')


def test_snapshots_follow_the_recorded_motion(tmp_path):
    bag = Bag(record_model(tmp_path / 'bag', ARM, duration=2.0))
    found = recorded_snapshots(bag, ARM, recorded_controller(bag), None, ())
    t, q, *_ = motion(ARM, duration=2.0)
    times = np.array([snapshot.time for snapshot in found])
    np.testing.assert_allclose(np.diff(times)[:-1], 1 / RATE)
    assert times[-1] == pytest.approx(bag.duration)
    for snapshot in found:
        before = np.flatnonzero(t - t[0] < snapshot.time + 1e-9)[-1]
        np.testing.assert_allclose(snapshot.q, q[before], atol=0.02)  # within one message
