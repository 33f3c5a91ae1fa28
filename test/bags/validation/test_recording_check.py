"""Faults of a recording are found, and nothing else is reported."""

import numpy as np
import pytest
from bags.bagging import START, motion, record, torques

import krang_dynamics as kd
from krang_dynamics.bags.validation.recording import Reading
from krang_dynamics.bags.validation.recording_check import _unchanged
from krang_dynamics.bags.validation.validation import validate

pytest.importorskip('rosbags', reason='rosbags is not installed')


@pytest.fixture(scope='module')
def robot():
    return kd.load_robot('planar_2r')


@pytest.fixture(scope='module')
def moved(robot):
    t, q, v, a = motion(robot, 8.0)
    return t, q, v, torques(robot, q, v, a)


def checked(tmp_path, robot, t, q, v, tau, **options):
    path = record(tmp_path / 'bag', robot.joint_names, t, q, v, tau, **options)
    lines = validate(path, robot, Reading()).check
    return lines[0], '\n'.join(lines[1:])


def test_a_good_recording_has_no_faults(robot, moved, tmp_path):
    first, rest = checked(tmp_path, robot, *moved)
    assert first.startswith('1600 samples, 200 Hz')
    assert rest == ''


def test_gaps_and_repetitions_are_reported(robot, moved, tmp_path):
    t, q, v, tau = moved
    late = t + np.where(t >= 4, 1.5, 0)
    stamps = START + np.round(1e9 * late).astype(np.int64)
    stamps[100] = stamps[99]
    q, tau = q.copy(), tau.copy()
    q[500], tau[500] = q[499], tau[499]
    _, rest = checked(tmp_path, robot, late, q, v, tau, stamps=stamps)
    assert '1 gap(s): 1.5 s after 3.995 s' in rest
    assert '1 sample(s) have a repeated stamp' in rest
    assert '1 sample(s) repeat the values' in rest


def test_velocity_in_degrees_is_reported(robot, moved, tmp_path):
    t, q, v, tau = moved
    _, rest = checked(tmp_path, robot, t, q, np.degrees(v), tau)
    assert 'joint_1: velocity is 57.3 times the differentiated position, as if in degrees' in rest


def test_missing_velocities_are_reported(robot, moved, tmp_path):
    t, q, _, tau = moved
    _, rest = checked(tmp_path, robot, t, q, None, tau)
    assert 'joint_2: 1600 velocities are missing' in rest


def test_saturation_is_reported(robot, moved, tmp_path):
    t, q, v, tau = moved
    _, rest = checked(tmp_path, robot, t, q, v, np.clip(20 * tau, -100, [10, 50]))
    assert 'joint_2: effort is at its limit of 50 N m' in rest
    assert 'joint_1: effort looks clipped' in rest


def test_currents_in_place_of_torques_are_reported(tmp_path):
    krang = kd.load_robot('krang')
    t, q, v, a = motion(krang, 4.0, rate=100, reach=0.1)
    tau = torques(krang, q, v, a)
    current = krang.motors.command(tau, v)
    _, rest = checked(tmp_path, krang, t, q, v, current)
    assert 'left_1: effort is 0.0534 times the predicted torque: it looks like current' in rest
    assert '--effort current' in rest


def test_an_inverted_sign_is_reported(robot, moved, tmp_path):
    t, q, v, tau = moved
    _, rest = checked(tmp_path, robot, t, q, v, tau * [1, -1])
    assert 'joint_2: the sign of its effort, or of its position and velocity, is inverted' in rest
    assert 'joint_1' not in rest


def test_an_inverted_sign_is_reported_although_friction_outweighs_the_links(robot, moved, tmp_path):
    t, q, v, tau = moved
    tau = tau + 40 * v + 20 * np.sign(v)
    _, rest = checked(tmp_path, robot, t, q, v, tau * [-1, 1])
    assert 'joint_1: the sign of its effort' in rest
    assert 'joint_2: the sign' not in rest
    _, rest = checked(tmp_path / 'q', robot, t, q * [1, -1], v * [1, -1], tau)
    assert 'joint_2: the sign of its effort, or of its position' in rest


@pytest.mark.parametrize('start', [119, 140, 147])
def test_a_recording_may_end_on_the_grid_of_the_search_for_frozen_effort(start):
    t = np.arange(start, start + 301) / 100
    effort = np.column_stack([np.sin(t), np.where(t < t[100], 1.0, t)])
    assert _unchanged(t, effort).sum(axis=0).tolist() == [0, 100]
