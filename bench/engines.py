"""Agreement of the engines: the same robot, torques and initial state in both, steps of 1 ms."""

import numpy as np

import krang_dynamics as kd
from krang_dynamics.simulation import make_plant


def run():
    for robot, what, seconds, options, torque, q in cases():
        plants = [make_plant(robot, engine, **options) for engine in ('pinocchio', 'mujoco')]
        for plant in plants:
            plant.reset(q, np.zeros(robot.nv))
            for k in range(round(seconds / 1e-3)):
                plant.step(torque(k * 1e-3, plant), 1e-3)
        exact, other = (plant.q for plant in plants)
        yield {
            'robot': robot.name,
            'motion': what,
            'seconds': seconds,
            'moved rad or m': np.abs(exact - q).max(),
            'differ': np.abs(other - exact).max(),
        }


def cases():
    """Robot, motion, duration [s], options of the plant, torque(time, plant) [N m], initial position."""
    krang = kd.load_robot('krang')
    rates, hold = np.linspace(1, 3, 17), krang.gravity_torque(krang.home)
    yield (
        krang,
        'small torques, no friction',
        2.0,
        {'friction': False},
        lambda t, p: hold + 2 * np.sin(rates * t),
        krang.home,
    )
    yield (
        krang,
        'smooth friction',
        2.0,
        {},
        lambda t, p: p.robot.gravity_torque(p.q) + 30 * np.sin(rates * t),
        krang.home,
    )
    dry = kd.load_robot('krang_exact_sign')
    yield (
        dry,
        'dry friction, sticks and slides',
        2.0,
        {},
        lambda t, p: p.robot.gravity_torque(p.q) + 60 * np.sin(rates * t),
        dry.home,
    )
    for name in ('pendubot', 'planar_2r', 'anthropomorphic'):
        robot = kd.load_robot(name)
        yield robot, 'released 0.3 rad off home', 1.0, {}, released, robot.home + 0.3
    otbot = kd.load_robot('otbot')
    yield otbot, 'drives an arc, wheels on the ground', 5.0, {}, arc, otbot.home


def released(time, plant):
    return np.zeros(len(plant.robot.actuated_joint_names))


def arc(time, plant):
    return np.array([6 * np.sin(time) + 2, 6 * np.sin(time) - 1, 3 * np.sin(2 * time)])
