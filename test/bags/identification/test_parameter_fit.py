"""Noise and gains from exact equations with known noise."""

import numpy as np
import pytest

import krang_dynamics as kd
from krang_dynamics.bags.identification.least_squares import TriangularFactor
from krang_dynamics.bags.identification.parameter_fit import motor_gain, noise_levels
from krang_dynamics.bags.identification.regressor import Regressor, Unknowns, random_motion
from krang_dynamics.errors import KrangError

NOISE = np.array([0.5, 0.05])  # of each joint [N m]


@pytest.fixture(scope='module')
def regressor():
    everywhere = np.ones(2, bool)
    return Regressor(kd.load_robot('planar_2r'), Unknowns(), everywhere, everywhere)


def factors(regressor, theta, scale=(1.0, 1.0)):
    """Equations of 4000 random states, with noise."""
    Y = regressor.matrix(random_motion(regressor.robot, 4000))
    noise = NOISE * np.random.default_rng(4).normal(size=(len(Y), 2))
    effort = (Y @ theta + noise) / scale
    return [TriangularFactor.of(Y[:, j], effort[:, j]) for j in range(2)]


def test_parameters_and_noise_are_recovered(regressor):
    theta = regressor.prior.copy()
    friction = [regressor.names.index(name) for name in ('joint_1.viscous', 'joint_2.coulomb')]
    theta[friction] = 1.5, 0.4
    found, noises = noise_levels(regressor, factors(regressor, theta), np.ones(2, bool))
    np.testing.assert_allclose(noises, NOISE, rtol=0.05)
    assert found[friction] == pytest.approx([1.5, 0.4], rel=0.05)


def test_the_noise_of_few_samples_is_not_too_small():
    """20 samples of each joint of an arm: the first joints have more parameters."""
    robot, everywhere = kd.load_robot('anthropomorphic'), np.ones(6, bool)
    regressor = Regressor(robot, Unknowns(), everywhere, everywhere)
    Y, random, levels = regressor.matrix(random_motion(robot, 20)), np.random.default_rng(4), []
    for _ in range(30):
        effort = Y @ regressor.prior + random.normal(size=(20, 6))
        each = [TriangularFactor.of(Y[:, j], effort[:, j]) for j in range(6)]
        levels.append(noise_levels(regressor, each, everywhere, np.ones(6))[1])
    assert np.sqrt(np.mean(np.square(levels), axis=0)) == pytest.approx(1.0, abs=0.15)


def test_a_motor_gain_is_recovered_with_its_deviation(regressor):
    joints, gains = regressor.robot.joint_names, (1.25, 0.8)
    for factor, joint, gain in zip(factors(regressor, regressor.prior, gains), joints, gains, strict=True):
        found, deviation = motor_gain(regressor, factor, joint)
        assert abs(found - gain) < 4 * deviation
        assert deviation < 0.01


def test_a_gain_that_the_motion_does_not_show_is_refused(regressor):
    standing = np.zeros((100, len(regressor.names)))
    factor = TriangularFactor.of(standing, np.random.default_rng(1).normal(size=100))
    with pytest.raises(KrangError, match='the gain of joint_1 cannot be identified'):
        motor_gain(regressor, factor, 'joint_1')
