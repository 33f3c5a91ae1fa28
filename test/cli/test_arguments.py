"""Shared arguments: missing libraries and locked joints are reported by name."""

import pytest

from krang_dynamics.cli import arguments
from krang_dynamics.errors import KrangError


def test_locked_joints_are_read_from_joint_equals_value():
    assert arguments.locked_joints(['a=0.5', 'b=-1']) == {'a': 0.5, 'b': -1.0}
    with pytest.raises(KrangError, match="'a': write JOINT=VALUE"):
        arguments.locked_joints(['a'])
