"""The derivation of a robot with its numbers, and a tree with joints of all kinds."""

from functools import cache

import numpy as np
from robot.urdf_text import dynamics, inertial, joint, link, mimic, urdf

import krang_dynamics as kd
from krang_dynamics.cli.robot_equations import frames_of
from krang_dynamics.derivation.engine import CasadiEngine
from krang_dynamics.derivation.equations import derive
from krang_dynamics.derivation.numeric import evaluate
from krang_dynamics.robot.compiled import drive_of


def numeric_of(robot, shipped):
    return evaluate(derive(frames_of(robot, CasadiEngine(), shipped)), drive_of(robot))


@cache
def shipped_numeric(name):
    """The derivation of a shipped robot from the symbols of its source."""
    return numeric_of(kd.load_robot(name), shipped=True)


INERTIA = np.array([[0.02, 0.001, -0.002], [0.001, 0.03, 0.003], [-0.002, 0.003, 0.015]])
BODY = inertial(1.0, (0.05, 0.02, 0.1), INERTIA, rpy=(0.1, 0.2, 0.3))
PLACE = {'xyz': (0, 0, 0.2), 'rpy': (0.3, -0.2, 0.1)}
FRICTION = dynamics(0.4, 0.7)
TREE = urdf(
    *(link(name, BODY) for name in 'slider wheel b_arm a_arm finger thumb camera'.split()),
    link('world'),
    joint('lift', 'prismatic', 'world', 'slider', FRICTION, axis=(0, 0.6, 0.8), **PLACE),
    joint('spin', 'continuous', 'slider', 'wheel', axis=(1, 2, 2), **PLACE),
    joint('b', 'revolute', 'slider', 'b_arm', FRICTION, axis=(0, 1, 0), **PLACE),
    joint('a', 'revolute', 'slider', 'a_arm', axis=(1, 0, 0), **PLACE),
    joint('grip', 'prismatic', 'a_arm', 'finger', axis=(1, 0, 0), **PLACE),
    joint('follow', 'prismatic', 'a_arm', 'thumb', mimic('grip', -1.5, 0.1), axis=(-1, 0, 0), **PLACE),
    joint('bolt', 'fixed', 'b_arm', 'camera', **PLACE),
)
