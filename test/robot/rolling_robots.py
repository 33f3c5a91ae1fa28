"""Bases on the ground z = 0, as a user declares them, with the velocity of their contact points."""

import numpy as np
from robot.urdf_text import BALL, RANK, inertial, joint, link, slope, urdf
from scipy.linalg import null_space

import krang_dynamics as kd

CHASSIS = inertial(10.0, (0.1, 0.02, 0.2), np.diag([0.3, 0.4, 0.5]))
WHEEL = inertial(1.0, (0, 0, 0), np.diag([0.01, 0.02, 0.01]))
FLAT_WHEEL = inertial(1.0, (0, 0, 0), np.diag([0.01, 0.01, 0.02]))


def planar_base(height):
    return (
        link('ground'),
        link('slide_x'),
        link('slide_y'),
        joint('x', 'prismatic', 'ground', 'slide_x', xyz=(0, 0, height), axis=(1, 0, 0)),
        joint('y', 'prismatic', 'slide_x', 'slide_y', axis=(0, 1, 0)),
    )


def balancing_base():
    """Two wheels of one axle on a body that pitches; one wheel's axle is its link's z, at length 2."""
    text = urdf(
        *planar_base(0.2),
        link('turn'),
        link('body', CHASSIS),
        link('left', WHEEL),
        link('right', FLAT_WHEEL),
        joint('heading', 'continuous', 'slide_y', 'turn'),
        joint('pitch', 'continuous', 'turn', 'body', axis=(0, 1, 0)),
        joint('left_spin', 'continuous', 'body', 'left', xyz=(0, 0.3, 0), axis=(0, 1, 0)),
        joint('right_spin', 'continuous', 'body', 'right', xyz=(0, -0.3, 0), rpy=(-np.pi / 2, 0, 0)),
    )
    wheels = [('left', 0.2, (0, 1, 0)), ('right', 0.2, (0, 0, 2))]
    return text, wheels, ['left_spin', 'right_spin'], 3


def tricycle():
    text = urdf(
        *planar_base(0.3),
        link('frame', CHASSIS),
        link('left', WHEEL),
        link('right', WHEEL),
        link('fork', BALL),
        link('front', WHEEL),
        joint('heading', 'continuous', 'slide_y', 'frame'),
        joint('left_spin', 'continuous', 'frame', 'left', xyz=(0, 0.4, 0), axis=(0, 1, 0)),
        joint('right_spin', 'continuous', 'frame', 'right', xyz=(0, -0.4, 0), axis=(0, 1, 0)),
        joint('steer', 'revolute', 'frame', 'fork', xyz=(0.9, 0, -0.15)),
        joint('front_spin', 'continuous', 'fork', 'front', xyz=(-0.05, 0, 0), axis=(0, 1, 0)),
    )
    wheels = [('left', 0.3, (0, 1, 0)), ('right', 0.3, (0, 1, 0)), ('front', 0.15, (0, 1, 0))]
    return text, wheels, ['steer', 'front_spin'], 5


def leaning_wheel():
    """A unicycle's wheel that leans about the line through its contact."""
    text = urdf(
        *planar_base(0.0),
        link('turn'),
        link('lean'),
        link('rim', inertial(2.0, (0, 0, 0), np.diag([0.05, 0.1, 0.05]))),
        joint('heading', 'continuous', 'slide_y', 'turn'),
        joint('leaning', 'revolute', 'turn', 'lean', axis=(1, 0, 0)),
        joint('spin', 'continuous', 'lean', 'rim', xyz=(0, 0, 0.25), axis=(0, 1, 0)),
    )
    return text, [('rim', 0.25, (0, 1, 0))], ['spin'], 2


def car():
    """Two pairs of wheels on two axles, which cannot turn: six conditions on seven joints."""
    text = urdf(
        *planar_base(0.2),
        link('frame', CHASSIS),
        *(link(name, WHEEL) for name in 'abcd'),
        joint('heading', 'continuous', 'slide_y', 'frame'),
        *(
            joint(f'{name}_spin', 'continuous', 'frame', name, xyz=xyz, axis=(0, 1, 0))
            for name, xyz in zip('abcd', [(0, 0.3, 0), (0, -0.3, 0), (1, 0.3, 0), (1, -0.3, 0)], strict=True)
        ),
    )
    return text, [(name, 0.2, (0, 1, 0)) for name in 'abcd'], ['a_spin'], 6


ROLLING = {
    'balancing base': balancing_base(),
    'tricycle': tricycle(),
    'leaning wheel': leaning_wheel(),
    'car': car(),
}


def car_with_steered_wheels():
    """Two front wheels that steer by themselves: parallel, they share their sideways condition."""
    front = [
        part
        for name, y in (('c', 0.3), ('d', -0.3))
        for part in (
            link(f'{name}_fork', BALL),
            link(name, WHEEL),
            joint(f'{name}_steer', 'revolute', 'frame', f'{name}_fork', xyz=(1, y, 0)),
            joint(f'{name}_spin', 'continuous', f'{name}_fork', name, axis=(0, 1, 0)),
        )
    ]
    text = urdf(
        *planar_base(0.2),
        link('frame', CHASSIS),
        link('a', WHEEL),
        link('b', WHEEL),
        joint('heading', 'continuous', 'slide_y', 'frame'),
        joint('a_spin', 'continuous', 'frame', 'a', xyz=(0, 0.3, 0), axis=(0, 1, 0)),
        joint('b_spin', 'continuous', 'frame', 'b', xyz=(0, -0.3, 0), axis=(0, 1, 0)),
        *front,
    )
    return text, [(name, 0.2, (0, 1, 0)) for name in 'abcd'], ['a_spin'], 7


class Rolling:
    """A rolling robot from a user's YAML, with the velocity of its contact points from geometry."""

    def __init__(self, folder, text, wheels, driven, rows):
        (folder / 'robot.urdf').write_text(text)
        names = kd.load_robot(text).joint_names
        lines = ['name: rolling', 'urdf: robot.urdf', 'gravity: [0.0, 0.0, -9.81]', 'command_unit: torque']
        lines += ['end_effectors: []', 'stop: {policy: zero, time: 2.0, blind_time: 0.5}', 'joints:']
        lines += [f'  {name}: {{driven: {str(name in driven).lower()}}}' for name in names]
        lines += ['home: {' + ', '.join(f'{name}: 0.0' for name in names) + '}', 'actuators:']
        lines += [f'  - {{name: {name}, joint: {name}}}' for name in driven] + ['rolling:']
        lines += [f'  - {{link: {name}, radius: {r}, axle: {list(axle)}}}' for name, r, axle in wheels]
        (folder / 'robot.yaml').write_text('\n'.join(lines) + '\n')
        self.robot = kd.load_robot(folder / 'robot.yaml')
        self.wheels, self.rows = wheels, rows

    def contact_jacobian(self, q):
        """Velocity of the material point of each wheel that touches the ground, by central differences."""
        blocks = []
        for name, radius, axle in self.wheels:
            rotation = self.robot.frame_pose(q, name)[:3, :3]
            axle_in_world = rotation @ axle / np.linalg.norm(axle)
            down = axle_in_world * axle_in_world[2] - [0, 0, 1]
            point = [*(rotation.T @ down * radius / np.linalg.norm(down)), 1.0]

            def place(at, name=name, point=point):
                return (self.robot.frame_pose(at, name) @ point)[:3]

            blocks.append(np.transpose([slope(place, q, direction) for direction in np.eye(self.robot.nv)]))
        return np.vstack(blocks)

    def state(self, rng):
        q = rng.uniform(-1, 1, self.robot.nv)
        return q, null_space(self.contact_jacobian(q), rcond=RANK) @ rng.normal(
            size=self.robot.nv - self.rows
        )
