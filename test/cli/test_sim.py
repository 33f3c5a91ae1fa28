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


def test_an_unknown_engine_is_an_error_that_lists_the_others(refused):
    assert 'mujoco' in refused('sim', 'krang', '--engine', 'bullet')


@pytest.mark.parametrize('option', [[], ['--control']])
@pytest.mark.parametrize('word', ['faults.lots:=0.1', 'simulator:faults.lots:=0.1'])
def test_a_parameter_of_no_node_is_an_error_that_names_it(refused, option, word):
    pytest.importorskip('rclpy', reason='rclpy is not installed')
    words = ['sim', 'planar_2r', '--engine', 'pinocchio', *option, '--ros-args', '-p', word]
    assert "there is no parameter 'faults.lots'; did you mean 'faults.lost'?" in refused(*words)


@pytest.mark.filterwarnings('ignore::DeprecationWarning')  # of libraries of rclpy
@pytest.mark.parametrize(
    ('text', 'words'),
    [
        (
            '/**: {ros__parameters: {damping: 1.0, push.fram: tip}}',
            "there is no parameter 'push.fram'; did you mean 'push.frame'?",
        ),
        ('a: [', "ROS arguments: Couldn't parse params file"),
    ],
)
def test_an_error_in_a_parameter_file_is_one_line(capfd, tmp_path, text, words):
    pytest.importorskip('rclpy', reason='rclpy is not installed')
    file = tmp_path / 'file.yaml'
    file.write_text(text)
    with pytest.raises(SystemExit, match='2'):
        main(['sim', 'planar_2r', '--engine', 'pinocchio', '--ros-args', '--params-file', str(file)])
    line = capfd.readouterr().err
    assert line.startswith(f'krang: {words}')
    assert line.count('\n') == 1
