"""krang replay: its arguments; test/bags/replay and test/nodes/test_bag_player.py test what it does."""

import pytest

pytest.importorskip('rosbags', reason='rosbags is not installed')


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        ([], 'has no ~/state that names the robot; give --robot'),
        (['--robot', 'krang'], '/joint_states never has all joints of krang'),
        (['--out', '/no_such_folder/bag'], 'its folder does not exist'),
        (['--enable-at', '1e99'], '--enable-at is 1e+99 s; it must be within'),
        (['--enable-at', '1e300'], '--enable-at is 1e+300 s'),
        (['--param', 'damping'], 'write NAME=VALUE'),
        (['--param', 'dampin=1'], "did you mean 'damping'"),
        (['--terms', 'gravitation'], "'gravitation'"),
        (['--node', 'other'], "has no controller 'other'"),
        (['--out', '{bag}', '--force'], 'is the recording itself'),
    ],
)
def test_errors_are_one_line_and_status_two(arguments, words, bag, refused):
    robot = ['--robot', 'planar_2r'] if arguments and '--robot' not in arguments else []
    assert words in refused('replay', bag, *robot, *(word.format(bag=bag) for word in arguments))


def test_a_live_replay_needs_a_positive_rate(bag, refused):
    pytest.importorskip('rclpy', reason='rclpy is not installed')
    assert '--rate is 0.0' in refused('replay', bag, '--live', '--rate', '0')
