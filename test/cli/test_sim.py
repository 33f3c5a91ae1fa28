"""krang sim: its arguments become parameters; test/nodes/test_simulator.py tests the node."""

import pytest

from krang_dynamics.cli.main import main


def test_arguments_become_parameters_of_the_node(monkeypatch):
    pytest.importorskip('rclpy', reason='rclpy is not installed')
    pytest.importorskip('mujoco', reason='mujoco is not installed')
    from krang_dynamics.nodes import simulator

    given = []
    monkeypatch.setattr(simulator, 'main', given.append)
    assert main(['sim', 'krang', '--real-time', '--held', '--ros-args', '-p', 'faults.lost:=0.1']) == 0
    (words,) = given
    assert words[0] == '--ros-args'
    assert words[2::2] == [
        'robot:="krang"', 'engine:="mujoco"', 'lock_step:=false', 'publish_clock:=false', 'held:=true',
        'faults.lost:=0.1',
    ]  # fmt: skip


def test_an_unknown_engine_is_an_error_that_lists_the_others(capsys):
    assert main(['sim', 'krang', '--engine', 'bullet']) == 2
    assert 'mujoco' in capsys.readouterr().err
