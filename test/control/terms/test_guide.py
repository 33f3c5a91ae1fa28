"""Hand guiding: forces of the person, energy over closed paths, and limits that push back."""

import re

import numpy as np
import pinocchio as pin
import pytest
from harness import closed_loop, robot_named, term_inputs

import krang_dynamics as kd
from krang_dynamics.control.settings import Settings
from krang_dynamics.control.terms.cartesian_impedance import arm_joints
from krang_dynamics.control.terms.guide import ZONE, Guide
from krang_dynamics.errors import InputError
from krang_dynamics.safety.modes import Mode

HANDLE = 1000.0, 100.0  # of the person's hand [N/m, N s/m]
GRIP = 1.0, 0.1  # [N m/rad, N m s/rad]


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


def guided(robot, plant_robot, frame, seed, **settings):
    """Forces of a person who moves a frame at up to 0.1 m/s out and back, and their work [J].

    The way is that of joints within 0.6 rad of home. A handle connects the person with the frame.
    """
    closed = closed_loop('pinocchio', robot, plant_robot, terms=('guide',), **settings)
    arm = arm_joints(plant_robot, frame)
    way = arm * np.random.default_rng(seed).uniform(-0.5, 0.5, plant_robot.nv)
    largest = max(
        np.linalg.norm((plant_robot.jacobian(plant_robot.home + s * way, frame) @ way)[:3])
        for s in np.linspace(0, 1, 20)
    )
    w, forces, work = 2 * 0.1 / largest, [], 0.0  # of s = (1 - cos w t) / 2 [rad/s]
    for i in range(round(1e3 * 2 * np.pi / w)):
        s, rate = (1 - np.cos(1e-3 * w * i)) / 2, w * np.sin(1e-3 * w * i) / 2
        desired = plant_robot.home + s * way
        T_d, twist_d = (
            plant_robot.frame_pose(desired, frame),
            plant_robot.jacobian(desired, frame) @ way * rate,
        )
        T, twist = plant_robot.frame_pose(closed.plant.q, frame), plant_robot.jacobian(closed.plant.q, frame)
        twist = twist @ closed.plant.v
        force = HANDLE[0] * (T_d - T)[:3, 3] + HANDLE[1] * (twist_d - twist)[:3]
        moment = GRIP[0] * pin.log3(T_d[:3, :3] @ T[:3, :3].T) + GRIP[1] * (twist_d - twist)[3:]
        closed.plant.push(frame, np.concatenate([force, moment]))
        closed.step()
        work += 1e-3 * (force @ twist[:3] + moment @ twist[3:])
        forces.append(np.linalg.norm(force))
    assert closed.outputs.mode is Mode.ACTIVE, closed.outputs.fault
    return np.percentile(forces, 90), work


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
    force, _ = guided(wrong, robot, 'tool', seed)
    print(f'anthropomorphic: p90 {force:.1f} N')
    assert force < 15


@pytest.mark.parametrize(
    ('scale', 'bound', 'factor', 'seed'),
    [
        (1.0, 40.0, 1.1, 1),
        *(
            pytest.param(scale, bound, factor, seed, marks=pytest.mark.long)
            for scale, bound in ((1.0, 40.0), (0.8, 150.0))
            for factor in (0.9, 1.1)
            for seed in range(1, 6)
        ),
    ],
)
def test_the_hand_of_krang_is_guided(scale, bound, factor, seed):
    """The model's friction is 10 % off; over a closed path the person never gets energy."""
    settings = {'friction_scale': scale, 'wheels_locked': True}
    force, work = guided(scaled('krang', factor), robot_named('krang'), 'left_hand', seed, **settings)
    print(f'krang, scale {scale}, friction x {factor}: p90 {force:.1f} N, work {work:.2f} J')
    assert force < bound
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
    closed.run(2.0)
    assert closed.outputs.mode is Mode.ACTIVE, closed.outputs.fault
    assert (closed.plant.q < robot.upper).all()


def test_a_joint_that_cannot_carry_the_robot_is_held_where_it_was_at_enable():
    """Krang's base_pitch tips beyond 0.09 rad; all other joints yield."""
    robot = robot_named('krang')
    guide = Guide(robot, Settings(terms=('guide',), wheels_locked=True))
    guide.torque(term_inputs(robot, robot.home, np.zeros(17)))
    inputs = term_inputs(robot, robot.home + 0.01, np.zeros(17))
    torque = guide.torque(inputs) - inputs.dynamics.gravity
    assert torque[0] < -10
    assert not torque[1:].any()
    guide.reset()
    np.testing.assert_allclose(guide.torque(inputs), inputs.dynamics.gravity)
    free = Guide(robot, Settings(terms=('guide',)))  # the wheels roll: the joint has no motor
    assert free.gains is None


@pytest.mark.parametrize('other', ['computed_torque', 'cartesian_impedance'])
def test_a_robot_that_follows_a_reference_is_not_guided(other):
    with pytest.raises(InputError, match='cannot guide a robot that follows a reference'):
        Guide.from_settings(robot_named('anthropomorphic'), Settings(terms=('guide', other)))


def test_what_other_terms_compensate_counts_once():
    robot = robot_named('krang')
    inputs = term_inputs(robot, robot.home, np.full(17, 0.1))
    alone = Guide(robot, Settings(terms=('guide',), friction_scale=0.7)).torque(inputs)
    beside = Guide(robot, Settings(terms=('gravity', 'friction', 'guide'))).torque(inputs)
    np.testing.assert_allclose(alone - beside, inputs.dynamics.gravity + 0.7 * inputs.friction, atol=1e-9)
