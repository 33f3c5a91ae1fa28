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
