"""Planar joints to a free joint and back, and robots whose base cannot float."""

import numpy as np
import pytest
from simulation.tractor import TEXT, tractor

import krang_dynamics as kd
from krang_dynamics.simulation.planar_base import PlanarBase


@pytest.mark.parametrize('robot', [tractor(), kd.load_robot('otbot')], ids=lambda robot: robot.name)
def test_given_any_state_then_there_and_back_is_the_same(robot):
    base = PlanarBase(robot)
    random = np.random.default_rng(3)
    for q, v in random.uniform(-9, 9, (20, 2, robot.nv)):
        near = q[base.joints[2]] + random.uniform(-1, 1)
        joints, rates = base.joint_state(*base.free_state(q, v), near)
        np.testing.assert_allclose(joints, q[base.joints], atol=1e-12)
        np.testing.assert_allclose(rates, v[base.joints], atol=1e-12)


def test_given_a_state_then_the_free_velocity_is_the_derivative_of_the_free_position():
    robot = tractor()
    base, h = PlanarBase(robot), 1e-6
    q, v = np.random.default_rng(4).uniform(-2, 2, (2, robot.nv))
    (before, _), (now, rate), (after, _) = (base.free_state(q + k * h * v, v) for k in (-1, 0, 1))
    np.testing.assert_allclose((after - before)[:3] / (2 * h), rate[:3], atol=1e-8)
    w, *xyz = now[3:]
    dw, *dxyz = (after - before)[3:] / (2 * h)
    # Angular velocity in the body's axes is twice the vector part of conj(quaternion) times its rate.
    spin = 2 * (w * np.array(dxyz) - dw * np.array(xyz) - np.cross(xyz, dxyz))
    np.testing.assert_allclose(spin, rate[3:], atol=1e-8)


def changed(old, new):
    assert old in TEXT
    return tractor(TEXT.replace(old, new))


LEFT = '<parent link="{}"/><child link="left_rim"/>'


@pytest.mark.parametrize(
    ('make', 'words'),
    [
        (lambda: kd.load_robot('krang'), 'does not roll'),
        (lambda: changed('<axis xyz="1 0 0"/>', '<axis xyz="1 0 0.1"/>'), 'along the ground'),
        (lambda: changed('<axis xyz="0 0 -1"/>', '<axis xyz="0 0.1 -1"/>'), 'about the vertical'),
        (lambda: changed(LEFT.format('body'), LEFT.format('cart')), "'left' is not attached to 'body'"),
        (lambda: tractor().with_payload('cart', 1.0), 'have mass'),
    ],
)
def test_given_a_base_that_cannot_float_then_it_is_refused(make, words):
    with pytest.raises(kd.KrangError, match=words):
        PlanarBase(make())
