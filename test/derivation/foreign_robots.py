"""Robots that no file ships, as URDF text, and the derivation of a robot with its numbers."""

from functools import cache

import krang_dynamics as kd
from krang_dynamics.cli import robot_equations as derive
from krang_dynamics.derivation.engine import CasadiEngine
from krang_dynamics.derivation.equations import derive as derive_equations
from krang_dynamics.derivation.numeric import evaluate


def numeric_of(robot, shipped):
    return evaluate(
        derive_equations(derive.frames_of(robot, CasadiEngine(), shipped)), derive.drive_of(robot)
    )


@cache
def shipped_numeric(name):
    """The derivation of a shipped robot from the symbols of its source."""
    return numeric_of(kd.load_robot(name), shipped=True)


def link(name, mass=1.0, com='0.05 0.02 0.1', rpy='0.1 0.2 0.3'):
    return (
        f'<link name="{name}"><inertial><origin xyz="{com}" rpy="{rpy}"/><mass value="{mass}"/>'
        '<inertia ixx="0.02" iyy="0.03" izz="0.015" ixy="0.001" ixz="-0.002" iyz="0.003"/></inertial></link>'
    )


def joint(name, parent, child, kind='revolute', axis='0 0 1', xyz='0 0 0.2', rpy='0.3 -0.2 0.1', extra=''):
    limit = (
        '' if kind in ('fixed', 'continuous') else '<limit lower="-2" upper="2" effort="50" velocity="3"/>'
    )
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/>{limit}{extra}</joint>'
    )


def seven_joint_arm():
    axes = ['0 0 1', '0 1 0', '0 0 1', '0 -1 0', '0 0 1', '0 -1 0', '0.6 0 0.8']
    parts = [
        link(f'l{i}', mass=3 - 0.3 * i)
        + joint(f'j{i}', f'l{i - 1}' if i > 1 else 'base', f'l{i}', axis=axes[i - 1])
        for i in range(1, 8)
    ]
    flange = '<link name="flange"/>' + joint('mount', 'l7', 'flange', 'fixed')
    return f'<robot name="seven">{link("base", 5.0)}{"".join(parts)}{flange}</robot>'


def tree_with_all_kinds():
    dynamics = '<dynamics damping="0.4" friction="0.7"/>'
    mimic = '<mimic joint="grip" multiplier="-1.5" offset="0.1"/>'
    return (
        '<robot name="tree"><link name="world"/>'
        + link('slider') + joint('lift', 'world', 'slider', 'prismatic', axis='0 0.6 0.8', extra=dynamics)
        + link('wheel') + joint('spin', 'slider', 'wheel', 'continuous', axis='1 2 2')
        + link('b_arm') + joint('b', 'slider', 'b_arm', axis='0 1 0', extra=dynamics)
        + link('a_arm') + joint('a', 'slider', 'a_arm', axis='1 0 0')
        + link('finger') + joint('grip', 'a_arm', 'finger', 'prismatic', axis='1 0 0')
        + link('thumb') + joint('follow', 'a_arm', 'thumb', 'prismatic', axis='-1 0 0', extra=mimic)
        + link('camera', 0.2) + joint('bolt', 'b_arm', 'camera', 'fixed')
        + '</robot>'
    )  # fmt: skip


BASE = """
name: two_wheels
urdf: base.urdf
joints:
  x: {driven: false}
  y: {driven: false}
  yaw: {driven: false}
  left: {driven: true}
  right: {driven: true}
  lean: {driven: false}
home: {x: 0, y: 0, yaw: 0, left: 0, right: 0, lean: 0}
stop: {policy: zero}
end_effectors: [rod]
actuators: [{name: left, joint: left}, {name: right, joint: right}]
friction: {viscous: {left: 0.1, right: 0.1}}
rolling:
  - {link: left_wheel, radius: 0.08, axle: [0, 1, 0]}
  - {link: right_wheel, radius: 0.08, axle: [0, 1, 0]}
"""


def two_wheeled_base(folder):
    wheel = (
        '<link name="{}"><inertial><mass value="0.5"/>'
        '<inertia ixx="0.001" iyy="0.0016" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )
    level = {'rpy': '0 0 0'}
    (folder / 'base.urdf').write_text(
        '<robot name="two_wheels"><link name="world"/><link name="sx"/><link name="sy"/>'
        + joint('x', 'world', 'sx', 'prismatic', '1 0 0', '0 0 0.08', **level)
        + joint('y', 'sx', 'sy', 'prismatic', '0 1 0', '0 0 0', **level)
        + link('body', 4.0) + joint('yaw', 'sy', 'body', 'continuous', '0 0 1', '0 0 0', **level)
        + wheel.format('left_wheel')
        + joint('left', 'body', 'left_wheel', 'continuous', '0 1 0', '0 0.15 0', **level)
        + wheel.format('right_wheel')
        + joint('right', 'body', 'right_wheel', 'continuous', '0 1 0', '0 -0.15 0', **level)
        + link('rod', 0.7) + joint('lean', 'body', 'rod', 'revolute', '0 1 0', '0 0 0.1', **level)
        + '</robot>'
    )  # fmt: skip
    path = folder / 'two_wheels.yaml'
    path.write_text(BASE)
    return path


FOREIGN = {
    'seven': lambda folder: seven_joint_arm(),
    'tree': lambda folder: tree_with_all_kinds(),
    'wheels': two_wheeled_base,
}
