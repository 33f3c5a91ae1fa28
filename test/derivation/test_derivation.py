"""Two routes to the same torques: the derivation against Pinocchio, for every robot and for foreign ones."""

import ctypes
import importlib.util
import shutil
import subprocess
import sys

import numpy as np
import pytest
from reference import lagrange
from reference.robots import REFERENCE
from tools import assert_close, states

import krang_dynamics as kd
from krang_dynamics.cli import robot_equations
from krang_dynamics.derivation.code_generation import c_source, python_module
from krang_dynamics.derivation.engine import CasadiEngine
from krang_dynamics.derivation.equations import derive as derive_equations
from krang_dynamics.derivation.numeric import evaluate


def numeric_of(robot, shipped):
    return evaluate(
        derive_equations(robot_equations.frames_of(robot, CasadiEngine(), shipped)),
        robot_equations.drive_of(robot),
    )


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


@pytest.mark.parametrize('name', kd.robots())
def test_shipped_robots_agree_with_pinocchio(name):
    robot = kd.load_robot(name)
    for difference in robot_equations.check(robot, numeric_of(robot, shipped=True), lambda _: None):
        assert difference.value <= robot_equations.TOLERANCE, difference


@pytest.mark.parametrize('name', FOREIGN)
def test_foreign_robots_agree_with_pinocchio(name, tmp_path):
    robot = kd.load_robot(FOREIGN[name](tmp_path))
    differences = robot_equations.check(robot, numeric_of(robot, shipped=False), lambda _: None)
    for difference in differences:
        assert difference.value <= robot_equations.TOLERANCE, difference
    found = {difference.matrix for difference in differences}
    assert {'A', 'C', 'Q', 'friction', 'inverse dynamics'} <= found
    assert ('constraint rows' in found) == (name == 'wheels')


@pytest.mark.parametrize('name', REFERENCE)
def test_the_derivation_agrees_with_the_equations_of_its_source(name):
    """A third route, that shares nothing with either: test/reference."""
    robot, reference = kd.load_robot(name), REFERENCE[name]
    numeric = numeric_of(robot, shipped=True)
    q, v = states(20, robot.nv, parts=2)
    A = [numeric('mass_matrix', x) for x in q]
    assert_close(A, reference.mass_matrix(q) + np.diag(reference.ROTOR_INERTIA))
    C = [numeric('coriolis_matrix', *x) for x in zip(q, v, strict=True)]
    assert_close(C, lagrange.coriolis_matrix(reference.mass_matrix, q, v))
    assert_close([numeric('gravity', x) for x in q], lagrange.gravity(reference.potential, q))


def test_a_wrong_mass_in_the_urdf_is_found(tmp_path):
    """The check can fail: the derivation's own numbers accuse a URDF that was changed."""
    source = kd.load_robot('planar_2r').urdf
    path = tmp_path / 'heavy.urdf'
    path.write_text(source.text.decode().replace('<mass value="1.5"/>', '<mass value="1.5000001"/>'))
    robot = kd.load_robot('planar_2r', urdf=str(path))
    worst = max(
        d.value for d in robot_equations.check(robot, numeric_of(robot, shipped=True), lambda _: None)
    )
    assert 1e-9 < worst < 1e-6


def test_krang_derives_whole_within_500_megabytes():
    # Linux hands ru_maxrss on from the process that forks, here the test runner; VmHWM starts anew.
    code = (
        'from pathlib import Path; from krang_dynamics.derivation.engine import CasadiEngine\n'
        'from krang_dynamics.derivation.equations import derive\n'
        'from krang_dynamics.derivation.robots.krang import frames\n'
        'equations = derive(frames(CasadiEngine())); assert equations.C.shape == (17, 17)\n'
        'print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])'
    )
    done = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True, timeout=60, check=True
    )
    assert int(done.stdout) < 500_000


def cases(tmp_path):
    yield kd.load_robot('krang'), True
    yield kd.load_robot('otbot'), True
    yield kd.load_robot(tree_with_all_kinds()), False


def arguments(numeric, name, number):
    random = np.random.default_rng(number)
    function = numeric.functions[name]
    return [random.uniform(-1, 1, function.size1_in(i)) for i in range(function.n_in())]


def test_the_generated_module_gives_the_same_numbers_with_numpy_alone(tmp_path):
    for index, (robot, shipped) in enumerate(cases(tmp_path)):
        numeric = numeric_of(robot, shipped)
        path = tmp_path / f'generated_{index}.py'
        source = python_module(numeric, robot.name)
        assert {line for line in source.splitlines() if 'import' in line} == {
            'from math import cos, sin, sqrt, tanh',
            'import numpy as np',
        }
        path.write_text(source)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name in numeric.functions:
            inputs = arguments(numeric, name, index)
            result = getattr(module, name)(*inputs)
            np.testing.assert_allclose(result, numeric(name, *inputs), rtol=1e-12, atol=1e-12)


@pytest.mark.skipif(shutil.which('cc') is None, reason='no C compiler (cc) on this machine')
def test_the_generated_c_gives_the_same_numbers(tmp_path):
    for index, (robot, shipped) in enumerate(cases(tmp_path)):
        numeric = numeric_of(robot, shipped)
        source, library = tmp_path / f'generated_{index}.c', tmp_path / f'generated_{index}.so'
        source.write_text(c_source(numeric, robot.name))
        flags = ['-std=c99', '-O0', '-Wall', '-Werror', '-shared', '-fPIC']
        subprocess.run(['cc', *flags, str(source), '-o', str(library), '-lm'], check=True, timeout=120)
        loaded = ctypes.CDLL(str(library))
        for name in numeric.functions:
            inputs = arguments(numeric, name, index)
            expected = numeric(name, *inputs)
            result = np.zeros(expected.shape)
            pointers = [x.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for x in (*inputs, result)]
            getattr(loaded, name)(*pointers)
            np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)
