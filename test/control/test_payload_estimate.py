"""Payload estimation: true values within bounds in many noisy runs, with and without a tare."""

import re

import numpy as np
import pytest
from harness import Harness, robot_named

import krang_dynamics as kd
from krang_dynamics.control.payload_estimate import PayloadEstimator, PayloadMeasurement
from krang_dynamics.errors import InputError

KRANG = robot_named('krang')
HAND, NOISE = 'left_hand', 0.2


@pytest.fixture(scope='module')
def wrong(tmp_path_factory):
    """Krang with all masses up to 5 % off."""
    random, path = np.random.default_rng(0), tmp_path_factory.mktemp('wrong') / 'krang.urdf'

    def scale(match):
        return f'mass value="{float(match[1]) * random.uniform(0.95, 1.05)!r}"'

    path.write_text(re.sub('mass value="([^"]+)"', scale, KRANG.urdf.text.decode()))
    return kd.load_robot('krang', urdf=str(path))


def poses(count=12, seed=1):
    random = np.random.default_rng(seed)
    q = np.tile(KRANG.home, (count, 1))
    q[:, 3:10] += random.uniform(-0.8, 0.8, (count, 7))
    return np.clip(q, KRANG.lower, KRANG.upper)


def run(random, mass, com, model, tare=True, dry=0.0):
    """One estimate; dry friction holds with either sign, and every pose is approached from both sides."""
    loaded = KRANG.with_payload(HAND, mass, com)
    estimator = PayloadEstimator(model, HAND)
    for robot in (KRANG, loaded) if tare else (loaded,):
        for q in poses():
            for side in (-1, 1) if dry else (0,):
                effort = robot.gravity_torque(q) + side * dry + random.normal(size=17) * NOISE
                estimator.add(q, np.zeros(17), effort)
        if tare and robot is KRANG:
            estimator.tare()
    return estimator.estimate()


@pytest.mark.parametrize(
    ('mass', 'mass_bound', 'com_bound'), [(0.5, 0.06, 0.06), (2.0, 0.1, 0.015), (5.0, 0.25, 0.015)]
)
def test_after_a_tare_mass_and_centre_are_within_the_bounds_in_95_percent_of_the_runs(
    wrong, mass, mass_bound, com_bound
):
    random, com = np.random.default_rng(2), np.array([0.02, -0.03, 0.12])
    runs = [run(random, mass, com, wrong) for _ in range(200)]
    assert np.mean([abs(x.mass - mass) <= mass_bound for x in runs]) >= 0.95
    assert np.mean([np.linalg.norm(x.com - com) <= com_bound for x in runs]) >= 0.95
    # The stated deviations are honest: two of them cover most runs.
    assert 0.9 <= np.mean([abs(x.mass - mass) <= 2 * x.mass_deviation for x in runs]) <= 1.0


def test_without_a_tare_the_deviations_include_the_error_of_the_model(wrong):
    com = np.array([0.0, 0.0, 0.1])
    with_tare = run(np.random.default_rng(3), 2.0, com, wrong)
    without = run(np.random.default_rng(3), 2.0, com, wrong, tare=False)
    assert without.mass_deviation > 2 * with_tare.mass_deviation
    assert abs(without.mass - 2.0) <= 3 * without.mass_deviation


def test_poses_from_both_sides_average_dry_friction(wrong):
    found = run(np.random.default_rng(4), 2.0, np.array([0.0, 0.0, 0.1]), wrong, dry=5.0)
    assert found.mass == pytest.approx(2.0, abs=0.1)


def test_a_running_controller_measures_pose_by_pose_first_empty_then_loaded():
    loop = Harness(KRANG, limits_state_rate=0.0, estimate_payload_tare=True)
    measurement, loaded = PayloadMeasurement(), KRANG.with_payload(HAND, 3.0, [0.0, 0.0, 0.1])
    for robot in (KRANG, loaded):
        for k, q in enumerate(poses(4)):
            loop.move(q)
            loop.effort = robot.gravity_torque(q)
            loop.step(settings=loop.settings.replace(estimate_payload_tare=robot is KRANG))
            text = measurement.add(loop.controller)
            assert f'{k + 1} ' in text
    assert text.startswith('left_hand: 3.000 +- ')


def test_a_change_to_a_tare_and_back_discards_earlier_poses():
    loop, measurement = Harness('krang', terms=('gravity',), wheels_locked=True), PayloadMeasurement()
    loop.effort = KRANG.gravity_torque(KRANG.home)
    loop.step()
    for text in ('1 of', '2 of'):
        assert text in measurement.add(loop.controller)
    for tare in (True, False):
        loop.step(settings=loop.settings.replace(estimate_payload_tare=tare))
        measurement.begin(loop.controller)
    assert '1 of' in measurement.add(loop.controller)
    loop.step(settings=loop.settings.replace(estimate_payload_frame='nose'))
    assert "estimate_payload.frame 'nose'" in loop.outputs.refused[0]


def test_what_cannot_be_estimated_is_refused():
    estimator = PayloadEstimator(KRANG, HAND)
    with pytest.raises(InputError, match='no poses yet'):
        estimator.tare()
    for _ in range(3):
        estimator.add(KRANG.home, np.zeros(17), KRANG.gravity_torque(KRANG.home))
    with pytest.raises(InputError, match='too similar'):
        estimator.estimate()
    with pytest.raises(InputError, match="joint 'waist' moves"):
        estimator.add(KRANG.home, 0.1 * np.eye(17)[1], np.zeros(17))
    with pytest.raises(InputError, match='0 of at least 3'):
        PayloadEstimator(KRANG, HAND).estimate()
