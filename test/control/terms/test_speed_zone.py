"""Speed zones: torque only against the motion, less drive, and nothing below the zone."""

import numpy as np
import pytest
from harness import robot_named

from krang_dynamics.control.settings import Settings
from krang_dynamics.control.terms.speed_zone import BEGIN, SpeedZone

KRANG = robot_named('krang')
A, ZERO = KRANG.mass_matrix(KRANG.home), np.zeros(17)


def test_the_torque_always_opposes_the_motion():
    random, zone = np.random.default_rng(1), SpeedZone(KRANG, Settings())
    for _ in range(100):
        v = random.uniform(-1.5, 1.5, 17) * KRANG.velocity_limits
        assert (zone.torque(random.normal(size=17) * 100, v, ZERO, A) * v <= 0).all()
        torque = zone.torque(random.normal(size=17), v, ZERO, A)
        slow = np.abs(v) < BEGIN * KRANG.velocity_limits
        assert not torque[slow].any()
        assert torque[~slow].all()


@pytest.mark.parametrize(('settings', 'limit'), [({}, 1.2), ({'limits_velocity': 0.2}, 0.2)])
def test_at_the_limit_nothing_drives_a_joint(settings, limit):
    zone = SpeedZone(KRANG, Settings(**settings))
    v = limit * (np.ones(17) if settings else KRANG.velocity_limits)
    assert (zone.torque(np.full(17, 1e3), v, ZERO, A) < -1e3).all()


def test_a_reference_is_not_braked():
    zone = SpeedZone(KRANG, Settings())
    v = KRANG.velocity_limits
    assert not zone.torque(np.ones(17), v, v, A).any()
    assert (zone.torque(np.ones(17), 1.1 * v, v, A) < 0).all()


def test_a_drive_that_cannot_be_removed_in_time_is_lowered_before():
    """Motors of 5 N m remove 1 N m within 20 ms; joint_6 would gain 12 rad/s meanwhile."""
    arm = robot_named('anthropomorphic')
    zone, v, drive = SpeedZone(arm, Settings()), 0.2 * arm.velocity_limits, np.eye(6)[5]
    torque = zone.torque(drive, v, np.zeros(6), arm.mass_matrix(arm.home))
    np.testing.assert_allclose(torque, -drive)
    held = zone.torque(drive, np.zeros(6), np.zeros(6), arm.mass_matrix(arm.home))
    assert not held.any()
    quick = SpeedZone(arm, Settings(limits_effort_rate=1e5))
    assert not quick.torque(drive, v, np.zeros(6), arm.mass_matrix(arm.home)).any()
