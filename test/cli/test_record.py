"""krang record: its arguments; test/nodes/test_recorder.py tests what it does."""

import pytest

from krang_dynamics.cli.main import main

pytest.importorskip('rclpy', reason='rclpy is not installed')
pytest.importorskip('rosbags', reason='rosbags is not installed')


def test_an_existing_bag_is_kept_and_a_missing_folder_is_named(tmp_path, capsys):
    assert main(['record', '--out', str(tmp_path)]) == 2
    assert main(['record', '--out', str(tmp_path / 'no' / 'bag')]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith(f'krang: {tmp_path}') for line in lines)
