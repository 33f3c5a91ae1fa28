"""krang info."""

import pytest

import krang_dynamics as kd
from krang_dynamics.cli.main import main


@pytest.mark.parametrize('name', kd.robots())
def test_info_of_every_robot_names_every_joint_and_link(name, capsys):
    assert main(['info', name]) == 0
    report = capsys.readouterr().out
    robot = kd.load_robot(name)
    for word in (*robot.joint_names, *robot.frames, 'Sign test', 'Gravity at home', 'Warnings'):
        assert word in report


def test_info_takes_a_urdf_file(capsys):
    assert main(['info', kd.load_robot('planar_2r').urdf.source]) == 0
    assert 'link_2' in capsys.readouterr().out
