"""Krang in closed loop at 1 kHz, on the exact plant and on MuJoCo."""

import re

import numpy as np
import pytest
from harness import PLANTS, closed_loop, robot_named

import krang_dynamics as kd
from krang_dynamics.safety.modes import Mode
from krang_dynamics.scenarios.motions import krang_at_full_speed

both_plants = pytest.mark.parametrize('plant', PLANTS)
TRACKING = ('gravity', 'friction', 'computed_torque')
WRONG_MODELS = [(1.2, 1.5), (1.2, 0.5), (0.8, 1.5), (0.8, 0.5)]  # factors of masses and friction


@pytest.fixture(scope='module')
def krang():
    return robot_named('krang')


@pytest.fixture(scope='module')
def motion(krang):
    return krang_at_full_speed(krang)


def loop(model, plant, terms, **settings):
    """An enabled loop on Krang's plant, with a controller that has this model."""
    settings = {'wheels_locked': True, 'friction_scale': 1.0, **settings}
    return closed_loop(plant, model, plant_robot=robot_named('krang'), terms=terms, **settings)


def tracking_error(closed, motion):
    """RMS of the worst joint over the motion [rad]."""
    outputs = closed.step(trajectory=motion.trajectory)
    assert not outputs.refused
    begin = len(closed.history) - 1
    closed.run(motion.times[-1])
    assert closed.outputs.mode is Mode.ACTIVE, closed.outputs.fault
    times, path = closed.path()
    error = path[begin:] - motion.at(times[begin:] - times[begin])
    return np.sqrt((error**2).mean(axis=0)).max()


@pytest.mark.parametrize(
    ('plant', 'duration'),
    [
        ('pinocchio', 2.0),
        ('mujoco', 2.0),
        pytest.param('pinocchio', 10.0, marks=pytest.mark.long),
        pytest.param('mujoco', 10.0, marks=pytest.mark.long),
    ],
)
def test_released_at_home_under_gravity_compensation_it_does_not_drift(krang, plant, duration):
    closed = loop(krang, plant, ('gravity',))
    closed.run(duration)
    assert closed.outputs.mode is Mode.ACTIVE
    assert np.abs(closed.plant.q - krang.home).max() <= 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(('plant', 'bound'), [('pinocchio', 2e-5), ('mujoco', 1e-4)])
def test_sixteen_joints_at_full_speed_are_tracked(krang, motion, plant, bound):
    closed = loop(krang, plant, TRACKING, gains_bandwidth=2 * np.pi * 5)
    assert tracking_error(closed, motion) <= bound


@pytest.mark.slow
@pytest.mark.parametrize(
    ('plant', 'mass', 'friction'),
    [
        ('pinocchio', *WRONG_MODELS[0]),
        *(
            pytest.param(plant, *factors, marks=pytest.mark.long)
            for plant in PLANTS
            for factors in WRONG_MODELS
            if (plant, factors) != ('pinocchio', WRONG_MODELS[0])
        ),
    ],
)
def test_a_model_with_wrong_masses_and_friction_still_tracks(krang, motion, plant, mass, friction, tmp_path):
    """The controller's masses are 20 % and its friction 50 % off those of the robot."""
    wrong = kd.load_robot('krang', urdf=heavier(krang, tmp_path, mass), friction=stronger(krang, friction))
    closed = loop(wrong, plant, TRACKING, gains_bandwidth=2 * np.pi * 5)
    assert tracking_error(closed, motion) <= 0.005


def heavier(robot, folder, factor):
    """The URDF with every mass and inertia scaled."""

    def scale(match):
        return f'{match[1]}="{float(match[2]) * factor!r}"'

    text = re.sub(r'(mass value|i[xyz][xyz])="([^"]+)"', scale, robot.urdf.text.decode())
    path = folder / 'heavy.urdf'
    path.write_text(text)
    return str(path)


def stronger(robot, factor):
    friction = robot.config.friction
    return {
        'sign': friction.sign,
        'fitted_with': friction.fitted_with,
        'viscous': {name: factor * value for name, value in friction.viscous.items()},
        'coulomb': {name: factor * value for name, value in friction.coulomb.items()},
    }


@both_plants
@pytest.mark.parametrize('moving', [False, True], ids=['still', 'full speed'])
def test_a_push_at_the_hand_is_detected_and_measured_without_a_sensor(krang, motion, plant, moving):
    closed = loop(krang, plant, (*TRACKING, 'observer'), observer_gain=25.0)
    if moving:
        closed.step(trajectory=motion.trajectory)
    closed.run(0.7)
    assert closed.outputs.contact == 'none'
    force = np.array([0, 0, -20.0, 0, 0, 0])
    closed.plant.push('left_hand', force)
    closed.run(0.05)
    assert closed.outputs.contact == 'contact'
    closed.run(0.15)
    J = krang.jacobian(closed.plant.q, 'left_hand')
    assert np.linalg.svd(J)[1][-1] >= 0.1
    wrench = np.linalg.lstsq(J.T, closed.outputs.external, rcond=None)[0]
    error = np.linalg.norm(wrench - force) / 20
    assert error <= (0.03 if plant == 'pinocchio' else 0.05)


def test_a_collision_stops_the_robot_where_that_is_configured(krang):
    reaction = {'observer_collision': 10.0, 'observer_reaction': 'stop'}
    closed = loop(krang, 'pinocchio', (*TRACKING, 'observer'), **reaction)
    closed.run(0.2)
    closed.plant.push('left_hand', np.array([0, 0, -60.0, 0, 0, 0]))
    closed.run(0.2)
    assert closed.outputs.mode is Mode.FAULT
    assert closed.fault == 'collision'
