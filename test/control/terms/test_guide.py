"""Hand guiding: forces of the person, energy over closed paths, and limits that push back."""

import re

import numpy as np
import pinocchio as pin
import pytest
from harness import closed_loop, robot_named, term_inputs

import krang_dynamics as kd
from krang_dynamics.control.settings import Settings
from krang_dynamics.control.terms.guide import ZONE, Guide
from krang_dynamics.safety.modes import Mode

HANDLE = 1000.0, 100.0  # of the person's hand [N/m, N s/m]


def scaled(name, factor):
    """A robot whose model has all friction scaled."""
    robot = robot_named(name)
    friction = robot.config.friction
    return kd.load_robot(
        name,
        friction={
            'sign': friction.sign,
            'fitted_with': friction.fitted_with,
            'viscous': {joint: factor * x for joint, x in friction.viscous.items()},
            'coulomb': {joint: factor * x for joint, x in friction.coulomb.items()},
        },
    )


def guided(robot, plant_robot, frame, path, duration, grip=0.0, **settings):
    """Forces of a person who moves a frame along path(t) [m] with a grip [N m/rad], and their work [J]."""
    closed = closed_loop('pinocchio', robot, plant_robot, terms=('guide',), **settings)
    start = plant_robot.frame_pose(closed.plant.q, frame)
    forces, work = [], 0.0
    for i in range(round(1e3 * duration)):
        T, twist = plant_robot.frame_pose(closed.plant.q, frame), plant_robot.jacobian(closed.plant.q, frame)
        twist = twist @ closed.plant.v
        p, p_dot = path(1e-3 * i)
        force = HANDLE[0] * ((start - T)[:3, 3] + p) + HANDLE[1] * (p_dot - twist[:3])
        moment = grip * (pin.log3(start[:3, :3] @ T[:3, :3].T) - 0.1 * twist[3:])
        closed.plant.push(frame, np.concatenate([force, moment]))
        closed.step()
        work += 1e-3 * (force @ twist[:3] + moment @ twist[3:])
        forces.append(np.linalg.norm(force))
    assert closed.outputs.mode is Mode.ACTIVE, closed.outputs.fault
    return np.array(forces), work


def there_and_back(size, axis, speed=0.1):
    """Smoothly out and back along an axis at up to `speed` [m/s], twice."""
    w = speed / (size / 2)

    def path(t):
        direction = np.eye(3)[axis]
        return size / 2 * (1 - np.cos(w * t)) * direction, speed * np.sin(w * t) * direction

    return path, 2 * 2 * np.pi / w


@pytest.mark.parametrize('seed', [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 7))])
def test_the_tip_of_an_arm_is_guided_with_little_force(seed, tmp_path):
    """Every mass of the model is up to 10 % off."""
    robot = robot_named('anthropomorphic')
    random, path = np.random.default_rng(seed), tmp_path / 'wrong.urdf'
    path.write_text(
        re.sub(
            'mass value="([^"]+)"',
            lambda mass: f'mass value="{float(mass[1]) * random.uniform(0.9, 1.1)!r}"',
            robot.urdf.text.decode(),
        )
    )
    wrong = kd.load_robot('anthropomorphic', urdf=str(path))
    path, duration = there_and_back(0.2, 2)
    forces, work = guided(wrong, robot, 'tool', path, duration / 2, grip=1.0)
    print(f'p90 {np.percentile(forces, 90):.1f} N, largest {forces.max():.1f} N')
    assert np.percentile(forces, 90) < 15
    assert work > 0


@pytest.mark.parametrize(
    ('scale', 'bound', 'factor', 'axis'),
    [
        (1.0, 40.0, 1.1, 2),
        *(
            pytest.param(scale, bound, factor, axis, marks=pytest.mark.long)
            for scale, bound in ((1.0, 40.0), (0.8, 150.0))
            for factor in (0.9, 1.1)
            for axis in range(3)
        ),
    ],
)
def test_the_hand_of_krang_is_guided(scale, bound, factor, axis):
    """The model's friction is 10 % off; over closed paths the person never gets energy."""
    path, duration = there_and_back(0.1, axis)
    robot = scaled('krang', factor)
    forces, work = guided(
        robot, robot_named('krang'), 'left_hand', path, duration / 2,
        grip=20.0, friction_scale=scale, wheels_locked=True,
    )  # fmt: skip
    print(f'scale {scale}, {factor}, axis {axis}: p90 {np.percentile(forces, 90):.1f} N, work {work:.2f} J')
    assert np.percentile(forces, 90) < bound
    assert work > 0


def test_a_limit_pushes_back_and_never_gives_more_than_it_took():
    """One joint is pushed into its zone and let out again, slowly and fast."""
    robot = robot_named('anthropomorphic')
    guide = Guide(robot, Settings(terms=('guide',)))
    for speed in (0.05, 0.5, 3.0):
        work, depth = 0.0, np.linspace(0, 0.9 * ZONE, 200)
        for way, direction in ((depth, 1), (depth[::-1], -1)):
            for x in way:
                q, v = robot.home, np.zeros(6)
                q[1], v[1] = robot.upper[1] - ZONE + x, direction * speed
                inputs = term_inputs(robot, q, v)
                torque = (guide.torque(inputs) - inputs.dynamics.gravity)[1]
                work -= torque * direction * depth[1]
        assert work > 0
    q[1] = robot.upper[1]
    inputs = term_inputs(robot, q, np.zeros(6))
    assert (guide.torque(inputs) - inputs.dynamics.gravity)[1] < -50


def test_a_person_who_pushes_against_a_limit_causes_no_fault():
    robot = robot_named('anthropomorphic')
    closed = closed_loop('pinocchio', robot, terms=('guide',), friction=False)
    closed.plant.push('tool', np.array([0, 0, 5.0, 0, 0, 0]))
    closed.run(4.0)
    assert closed.outputs.mode is Mode.ACTIVE, closed.outputs.fault
    assert (closed.plant.q < robot.upper).all()


def test_what_other_terms_compensate_counts_once():
    robot = robot_named('krang')
    inputs = term_inputs(robot, robot.home, np.full(17, 0.1))
    alone = Guide(robot, Settings(terms=('guide',), friction_scale=0.7)).torque(inputs)
    beside = Guide(robot, Settings(terms=('gravity', 'friction', 'guide'))).torque(inputs)
    np.testing.assert_allclose(alone - beside, inputs.dynamics.gravity + 0.7 * inputs.friction, atol=1e-9)
