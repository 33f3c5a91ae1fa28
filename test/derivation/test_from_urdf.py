"""The derivation from any URDF against Pinocchio, and that the check can fail."""

import pytest
from derivation.foreign_robots import FOREIGN, numeric_of

import krang_dynamics as kd
from krang_dynamics.cli import robot_equations as derive


@pytest.mark.parametrize('name', FOREIGN)
def test_foreign_robots_agree_with_pinocchio(name, tmp_path):
    robot = kd.load_robot(FOREIGN[name](tmp_path))
    differences = derive.check(robot, numeric_of(robot, shipped=False), lambda _: None)
    for difference in differences:
        assert difference.value <= derive.TOLERANCE, difference
    found = {difference.matrix for difference in differences}
    assert {'A', 'C', 'Q', 'friction', 'inverse dynamics'} <= found
    assert ('constraint rows' in found) == (name == 'wheels')


def test_a_wrong_mass_in_the_urdf_is_found(tmp_path):
    """The check can fail: it detects a changed mass in the URDF."""
    source = kd.load_robot('planar_2r').urdf
    path = tmp_path / 'heavy.urdf'
    path.write_text(source.text.decode().replace('<mass value="1.5"/>', '<mass value="1.5000001"/>'))
    robot = kd.load_robot('planar_2r', urdf=str(path))
    worst = max(d.value for d in derive.check(robot, numeric_of(robot, shipped=True), lambda _: None))
    assert 1e-9 < worst < 1e-6


@pytest.mark.parametrize('name', ['planar_2r', 'otbot', 'pendubot'])
def test_the_urdf_of_a_shipped_robot_needs_no_symbolic_frames(name):
    robot = kd.load_robot(name)
    for difference in derive.check(robot, numeric_of(robot, shipped=False), lambda _: None):
        assert difference.value <= derive.TOLERANCE, difference
