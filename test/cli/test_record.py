"""krang record: its arguments; test/nodes/test_recorder.py tests what it does."""

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')
pytest.importorskip('rosbags', reason='rosbags is not installed')


def test_an_existing_bag_is_kept_and_a_missing_folder_is_named(tmp_path, refused):
    for folder in (tmp_path, tmp_path / 'no' / 'bag'):
        assert str(folder) in refused('record', '--out', str(folder))
