"""The derivation from any URDF against Pinocchio, and that the check can fail."""

import numpy as np
import pytest
from derivation.derived import TREE, numeric_of
from robot.rolling_robots import ROLLING, Rolling
from robot.urdf_text import random_tree

import krang_dynamics as kd
from krang_dynamics.cli import robot_equations as derive


def assert_agrees_with_pinocchio(robot):
    """All that was compared."""
    differences = derive.check(robot, numeric_of(robot, shipped=False))
    for difference in differences:
        assert difference.value <= derive.TOLERANCE, difference
    found = {difference.matrix for difference in differences}
    assert {'A', 'C', 'Q', 'friction', 'inverse dynamics'} <= found
    return found


@pytest.mark.parametrize('text', [TREE, *(random_tree(np.random.default_rng(k))[0] for k in range(3))])
def test_a_foreign_tree_agrees(text):
    robot = kd.load_robot(text)
    assert {f'J {frame}' for frame in robot.config.end_effectors} <= assert_agrees_with_pinocchio(robot)


@pytest.mark.parametrize('name', ROLLING)
def test_a_foreign_robot_on_wheels_agrees(name, tmp_path):
    found = assert_agrees_with_pinocchio(Rolling(tmp_path, *ROLLING[name]).robot)
    assert {'constraint rows', 'constraint rate', 'forward dynamics'} <= found


def test_a_wrong_mass_in_the_urdf_is_found(tmp_path):
    source = kd.load_robot('planar_2r').urdf
    path = tmp_path / 'heavy.urdf'
    path.write_text(source.text.decode().replace('<mass value="1.5"/>', '<mass value="1.5000001"/>'))
    robot = kd.load_robot('planar_2r', urdf=str(path))
    worst = max(d.value for d in derive.check(robot, numeric_of(robot, shipped=True)))
    assert 1e-9 < worst < 1e-6
