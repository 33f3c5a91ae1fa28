"""Robots without a part of their tree."""

import numpy as np
import pytest
from tools import assert_close

import krang_dynamics as kd
from krang_dynamics.errors import KrangError
from krang_dynamics.robot.variant import without_subtree


def test_what_is_left_moves_as_before_with_a_massless_part():
    krang = kd.load_robot('krang')
    smaller = without_subtree(krang, 'left_link_4')
    assert smaller.joint_names == tuple(
        n for n in krang.joint_names if n not in ('left_4', 'left_5', 'left_6', 'left_7')
    )
    assert 'left_hand' not in smaller.frames
    assert smaller.total_mass == pytest.approx(krang.total_mass - 1.477 - 1.369 - 1.470 - 2.300)
    kept = [krang.joint_names.index(name) for name in smaller.joint_names]
    np.testing.assert_array_equal(smaller.home, krang.home[kept])
    np.testing.assert_array_equal(smaller.friction.viscous, krang.friction.viscous[kept])
    # The right arm is on the same trunk, so the left arm has no influence.
    right = [i for i, name in enumerate(smaller.joint_names) if name.startswith('right')]
    before = krang.gravity_torque(krang.home)[
        [krang.joint_names.index(smaller.joint_names[i]) for i in right]
    ]
    assert_close(smaller.gravity_torque(smaller.home)[right], before)


def test_the_root_a_wheel_and_unknown_links_stay():
    with pytest.raises(KrangError, match='unknown link'):
        without_subtree(kd.load_robot('planar_2r'), 'hand')
    with pytest.raises(KrangError, match='whole robot'):
        without_subtree(kd.load_robot('planar_2r'), 'world')
    otbot = kd.load_robot('otbot')
    with pytest.raises(KrangError, match='wheel'):
        without_subtree(otbot, 'chassis')
