"""Measured and predicted torque compared."""

import re

import numpy as np
import pytest
from bags.bagging import motion, record, record_model, torques

import krang_dynamics as kd
from krang_dynamics.bags.validation.filtering import Filtering
from krang_dynamics.bags.validation.recording import Reading
from krang_dynamics.bags.validation.validation import validate

pytest.importorskip('rosbags', reason='rosbags is not installed')


@pytest.fixture(scope='module')
def arm():
    return kd.load_robot('anthropomorphic')


def test_figures_are_those_of_a_direct_calculation(tmp_path):
    krang = kd.load_robot('krang')
    t, q, v, a = motion(krang, 5.0, rate=100, reach=0.1)
    tau = torques(krang, q, v, a) + np.random.default_rng(1).normal(0.3, 0.5, q.shape)
    result = validate(record(tmp_path / 'bag', krang.joint_names, t, q, v, tau), krang)
    a = np.gradient(v, t, axis=0)
    gravity = np.array([krang.gravity_torque(x) for x in q])
    full = np.array([krang.inverse_dynamics(*x, friction=True) for x in zip(q, v, a, strict=True)])
    for j, name in enumerate(krang.joint_names):
        for level, torque in (('gravity', gravity), ('friction', full)):
            error = tau[:, j] - torque[:, j]
            figures = result.joints[name][level]
            assert figures.rmse == pytest.approx(np.sqrt((error**2).mean()), rel=1e-6)
            assert figures.bias == pytest.approx(error.mean(), rel=1e-6)
            squares = ((tau[:, j] - tau[:, j].mean()) ** 2).sum()
            assert figures.r2 == pytest.approx(1 - (error**2).sum() / squares, rel=1e-6)
        correlation = np.corrcoef(tau[:, j], full[:, j])[0, 1]
        assert result.joints[name]['friction'].correlation == pytest.approx(correlation, rel=1e-6)


def test_each_level_of_the_model_reduces_the_error(tmp_path):
    """Only the full model explains a recording of itself."""
    krang = kd.load_robot('krang')
    result = validate(
        record_model(tmp_path / 'bag', krang, duration=5.0, reach=0.1), krang, None, Filtering(20.0)
    )
    for levels in result.joints.values():
        assert levels['friction'].rmse < 0.02 * max(levels['gravity'].rmse, 1.0)
    left_1 = result.joints['left_1']
    assert left_1['friction'].rmse < left_1['rotor'].rmse < left_1['gravity'].rmse


def test_the_largest_error_is_at_the_time_of_the_push(arm, tmp_path):
    t, q, v, a = motion(arm, 8.0)
    tau = torques(arm, q, v, a)
    tau[1000:1010, 2] += 30.0
    result = validate(record(tmp_path / 'bag', arm.joint_names, t, q, v, tau), arm)
    time, error = result.worst['joint_3'][0]
    assert 5.0 <= time <= 5.05
    assert error == pytest.approx(30, abs=1)


def test_gravity_and_locked_joints_are_applied(arm, tmp_path):
    tilted = arm.with_gravity((0, 9.81, 0))
    path = record_model(tmp_path / 'bag', tilted, duration=3.0)
    assert validate(path, tilted).joints['joint_2']['friction'].rmse < 0.05
    assert validate(path, arm).joints['joint_2']['friction'].rmse > 5
    locked = validate(path, tilted, Reading(locked={'joint_6': 0.0}))
    assert 'joint_6' not in locked.joints


def test_a_tool_that_only_the_model_has_gives_a_hint(arm, tmp_path):
    loaded = arm.with_payload('tool', 0.8, (0, 0, 0.05))
    path = record_model(tmp_path / 'bag', arm, noise=0.05)
    (hint,) = validate(path, loaded).hints
    assert re.search(r'0\.8\d kg less than the model at tool', hint)
    assert '--remove-subtree' in hint
    assert not validate(path, arm).hints


@pytest.mark.parametrize(('viscous', 'is_named'), [(1.0, True), (0.001, False)])
def test_friction_is_named_only_if_it_matters(arm, tmp_path, viscous, is_named):
    t, q, v, a = motion(arm, 8.0)
    tau = torques(arm, q, v, a) + viscous * v * (np.array(arm.joint_names) == 'joint_2')
    result = validate(record(tmp_path / 'bag', arm.joint_names, t, q, v, tau), arm)
    assert any('joint_2: the residual looks like viscous' in hint for hint in result.hints) == is_named


def test_missed_requirements_are_listed(arm, tmp_path):
    result = validate(record_model(tmp_path / 'bag', arm, duration=3.0, noise=0.5), arm)
    assert result.missed(None, None) == []
    assert result.missed(1.0, None) == []
    missed = result.missed(0.3, 0.9)
    assert any(line.startswith('joint_1: RMSE 0.5') for line in missed)
    assert any(line.startswith('joint_6: r2') for line in missed)


def test_the_text_states_filter_and_acceleration(arm, tmp_path):
    path = record_model(tmp_path / 'bag', arm, duration=3.0)
    text = validate(path, arm, None, Filtering(10.0)).text()
    assert 'Butterworth low pass of order 2 at 10 Hz' in text
    assert 'central differences of velocity' in text
    assert 'filter: none' in validate(path, arm, None, Filtering(acceleration='position')).text()


def test_a_truncated_recording_is_validated_and_the_damage_reported(arm, tmp_path):
    path = record_model(tmp_path / 'bag', arm, duration=6.0)
    file = path / 'bag.mcap'
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    result = validate(path, arm)
    assert result.joints['joint_1']['friction'].rmse < 0.1
    assert any('its end is missing' in line for line in result.check)
