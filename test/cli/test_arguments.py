"""Shared arguments: missing libraries and locked joints are reported by name."""

import pytest

from krang_dynamics.cli import arguments
from krang_dynamics.errors import KrangError


def test_locked_joints_are_read_from_joint_equals_value():
    assert arguments.locked_joints(['a=0.5', 'b=-1']) == {'a': 0.5, 'b': -1.0}
    with pytest.raises(KrangError, match="'a': write JOINT=VALUE"):
        arguments.locked_joints(['a'])


def test_a_missing_library_is_named(monkeypatch):
    arguments.require_libraries('numpy')
    with pytest.raises(KrangError, match='no_such_library is not installed'):
        arguments.require_libraries('numpy', 'no_such_library')
    monkeypatch.setattr(arguments, 'find_spec', lambda name: None)
    with pytest.raises(KrangError, match='rclpy is not installed; source'):
        arguments.require_ros()
