"""Krang in closed loop at 1 kHz, on the exact plant and on MuJoCo."""

import numpy as np
import pytest
from closed_loop import Loop

import krang_dynamics as kd
from krang_dynamics.control.controller import TorqueController
from krang_dynamics.control.settings import Settings
from krang_dynamics.control.terms.observer import ObserverSettings
from krang_dynamics.safety.modes import Mode
from krang_dynamics.scenarios.motions import krang_at_full_speed
from krang_dynamics.simulation.mujoco_plant import MujocoPlant
from krang_dynamics.simulation.pinocchio_plant import PinocchioPlant

PLANTS = {'pinocchio': PinocchioPlant, 'mujoco': MujocoPlant}
both_plants = pytest.mark.parametrize('plant', PLANTS)
TRACKING = ('gravity', 'friction', 'computed_torque')


@pytest.fixture(scope='module')
def krang():
    return kd.load_robot('krang')


@pytest.fixture(scope='module')
def motion(krang):
    return krang_at_full_speed(krang)


def loop(model, plant_robot, plant, terms, **settings):
    """An enabled loop from home, held by the torque that is measured there."""
    controller = TorqueController(model, Settings(terms=terms, ramp_time=0.0, wheels_locked=True, **settings))
    body = PLANTS[plant](plant_robot, friction=True)
    body.reset(model.home, np.zeros(model.nv))
    closed = Loop(controller, body)
    closed.effort = model.gravity_torque(model.home)
    closed.step(enable=True)
    return closed


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


@both_plants
def test_released_at_home_under_gravity_compensation_it_does_not_drift(krang, plant):
    closed = loop(krang, krang, plant, ('gravity',))
    closed.run(10.0)
    assert closed.outputs.mode is Mode.ACTIVE
    assert np.abs(closed.plant.q - krang.home).max() <= 1e-6


@pytest.mark.parametrize(('plant', 'bound'), [('pinocchio', 2e-5), ('mujoco', 1e-4)])
def test_sixteen_joints_at_full_speed_are_tracked(krang, motion, plant, bound):
    closed = loop(krang, krang, plant, TRACKING, bandwidth=2 * np.pi * 5)
    assert tracking_error(closed, motion) <= bound


@both_plants
@pytest.mark.parametrize(('mass', 'friction'), [(1.2, 1.5), (1.2, 0.5), (0.8, 1.5), (0.8, 0.5)])
def test_a_model_with_wrong_masses_and_friction_still_tracks(krang, motion, plant, mass, friction, tmp_path):
    """The controller believes in masses 20 % and in friction 50 % off those of the robot."""
    wrong = kd.load_robot('krang', urdf=heavier(krang, tmp_path, mass), friction=stronger(krang, friction))
    closed = loop(wrong, krang, plant, TRACKING, bandwidth=2 * np.pi * 5)
    assert tracking_error(closed, motion) <= 0.005


def heavier(robot, folder, factor):
    """The URDF with every mass and inertia scaled."""
    import re

    def scale(match):
        return f'{match[1]}="{float(match[2]) * factor!r}"'

    text = robot.urdf.text.decode()
    text = re.sub(r'(mass value|i[xyz][xyz])="([^"]+)"', scale, text)
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
def test_a_push_at_the_hand_is_found_and_measured_without_a_sensor(krang, motion, plant, moving):
    closed = loop(krang, krang, plant, (*TRACKING, 'observer'), observer=ObserverSettings(gain=25.0))
    if moving:
        closed.step(trajectory=motion.trajectory)
    closed.run(0.7)
    observer = closed.controller.terms[-1]
    assert observer.event() == 'none'
    force = np.array([0, 0, -20.0, 0, 0, 0])
    closed.plant.push('left_hand', force)
    closed.run(0.05)
    assert observer.event() == 'contact'
    closed.run(0.15)
    J = krang.jacobian(closed.plant.q, 'left_hand')
    assert np.linalg.svd(J)[1][-1] >= 0.1
    error = np.linalg.norm(observer.wrench(J) - force) / 20
    assert error <= (0.03 if plant == 'pinocchio' else 0.05)


def test_near_a_singularity_the_observer_says_that_it_cannot_see(krang):
    closed = loop(krang, krang, 'pinocchio', ('gravity', 'observer'))
    stretched = krang.jacobian(np.zeros(17), 'left_hand')[:, 3:10]
    assert np.linalg.svd(stretched)[1][-1] < 0.1
    assert (
        closed.controller.terms[-1].wrench(np.hstack([np.zeros((6, 3)), stretched, np.zeros((6, 7))])) is None
    )


def test_a_collision_stops_the_robot_where_that_is_asked_for(krang):
    settings = ObserverSettings(collision=10.0, reaction='stop')
    closed = loop(krang, krang, 'pinocchio', (*TRACKING, 'observer'), observer=settings)
    closed.run(0.2)
    closed.plant.push('left_hand', np.array([0, 0, -60.0, 0, 0, 0]))
    closed.run(0.2)
    assert closed.outputs.mode is Mode.FAULT
    assert closed.outputs.fault.kind == 'collision'
