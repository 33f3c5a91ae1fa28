"""krang replay: its arguments; test/bags/replay and test/nodes/test_bag_player.py test what it does."""

import pytest
from bags.bagging import record_model

import krang_dynamics as kd
from krang_dynamics.cli.main import main

pytest.importorskip('rosbags', reason='rosbags is not installed')


@pytest.fixture(scope='module')
def bag(tmp_path_factory):
    path = tmp_path_factory.mktemp('bags') / 'bag'
    return str(record_model(path, kd.load_robot('planar_2r'), duration=0.5))


def test_the_output_is_a_new_bag(bag, tmp_path, capsys):
    command = ['replay', bag, '--robot', 'planar_2r', '--out', str(tmp_path / 'out')]
    assert main(command) == 0
    assert 'commands' in capsys.readouterr().out
    assert main(command) == 2
    assert main([*command, '--force', '--terms', 'gravity,damping', '--param', 'damping=1e-3']) == 0


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        ([], 'has no ~/state that names the robot; give --robot'),
        (['--robot', 'planar_2r', '--out', '/no_such_folder/bag'], 'its folder does not exist'),
        (['--robot', 'planar_2r', '--enable-at', '1e99'], '--enable-at is 1e+99 s; it must be within'),
        (['--robot', 'planar_2r', '--enable-at', '1e300'], '--enable-at is 1e+300 s'),
        (['--robot', 'planar_2r', '--param', 'damping'], 'write NAME=VALUE'),
        (['--robot', 'planar_2r', '--out', '{bag}', '--force'], 'is the recording itself'),
    ],
)
def test_errors_are_one_line_and_status_two(arguments, words, bag, capsys):
    assert main(['replay', bag, *(word.format(bag=bag) for word in arguments)]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count('\n') == 1


def test_a_live_replay_needs_a_positive_rate(bag, capsys):
    pytest.importorskip('rclpy', reason='rclpy is not installed')
    assert main(['replay', bag, '--live', '--rate', '0']) == 2
    assert '--rate is 0.0' in capsys.readouterr().err
