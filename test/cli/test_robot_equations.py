"""Derived equations of a robot; test/derivation holds them against Pinocchio and the sources."""

import pytest

import krang_dynamics as kd

pytest.importorskip('casadi', reason='casadi is not installed')
pytest.importorskip('sympy', reason='sympy is not installed')


def test_frames_have_symbols_or_the_numbers_of_the_urdf():
    from krang_dynamics.cli.robot_equations import frames_of
    from krang_dynamics.derivation.engine import SympyEngine

    robot = kd.load_robot('planar_2r')
    assert 'm_1' in {str(symbol) for symbol in frames_of(robot, SympyEngine(), symbolic=True).symbols}
    assert not frames_of(robot, SympyEngine(), symbolic=False).symbols


def test_a_wrong_model_shows_as_a_difference():
    from krang_dynamics.cli import robot_equations
    from krang_dynamics.derivation.engine import CasadiEngine
    from krang_dynamics.derivation.equations import derive
    from krang_dynamics.derivation.numeric import evaluate

    robot = kd.load_robot('planar_2r')
    numeric = evaluate(
        derive(robot_equations.frames_of(robot, CasadiEngine(), symbolic=True)),
        robot_equations.drive_of(robot),
    )
    turned = robot.with_gravity((0, 0, -9.0))
    worst = {d.matrix: d.value for d in robot_equations.check(turned, numeric, lambda _: None)}
    assert worst['A'] <= robot_equations.TOLERANCE
    assert worst['Q'] > 0.05
