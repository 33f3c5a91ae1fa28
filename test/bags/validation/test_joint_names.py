"""Joint names of recordings mapped to those of the robot."""

import pytest

from krang_dynamics.bags.validation.joint_names import hint, renamed
from krang_dynamics.errors import BagError


def test_patterns_and_single_names_rename():
    names = ['fer_joint1', 'fer_joint2', 'gripper']
    assert renamed(names, ['fer_joint*=panda_joint*', 'gripper=hand']) == {
        'fer_joint1': 'panda_joint1',
        'fer_joint2': 'panda_joint2',
        'gripper': 'hand',
    }


@pytest.mark.parametrize(
    ('rule', 'reason'),
    [
        ('a', 'FROM=TO'),
        ('a*=b', 'one \\*'),
        ('=b', 'FROM=TO'),
        ('x*=y*', 'no joint'),
        ('fer_1=fer_2', 'become'),
    ],
)
def test_wrong_rules_are_refused(rule, reason):
    with pytest.raises(BagError, match=reason):
        renamed(['fer_1', 'fer_2'], [rule])


def test_a_likely_rule_is_suggested():
    ours = [f'panda_joint{i}' for i in range(1, 8)]
    assert "--map 'fer_joint*=panda_joint*'" in hint(ours, [f'fer_joint{i}' for i in range(1, 8)])
    assert "--map 'elbw=elbow'" in hint(['elbow'], ['elbw', 'wrist'])
    assert hint(['elbow'], []) == ''
    assert hint(['elbow'], ['zzz']) == ''
