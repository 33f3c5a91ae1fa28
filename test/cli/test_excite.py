"""krang excite."""

import numpy as np

import krang_dynamics as kd
from krang_dynamics.cli.main import main
from krang_dynamics.robot.self_distance import SelfDistance


def test_excite_writes_what_it_is_asked_for(tmp_path, capsys):
    out = tmp_path / 'motion.csv'
    command = ['excite', 'planar_2r', '--tries', '5', '--duration', '10', '--out', str(out)]
    assert main(command) == 0
    assert out.read_text().startswith('time,q.joint_1,q.joint_2')
    assert main(command) == 2
    assert main([*command[:-1], str(tmp_path / 'motion.yaml')]) == 0
    assert main([*command[:-1], str(tmp_path / 'motion.txt')]) == 2
    assert 'condition number' in capsys.readouterr().out


def test_a_robot_that_cannot_be_excited_is_an_error_of_one_line(refused):
    refused('excite', 'otbot')


def test_excitation_keeps_the_links_apart(tmp_path, capsys):
    """As large as the limits allow, the elbow of this arm would strike its base."""
    out = tmp_path / 'motion.csv'
    assert main(['excite', 'anthropomorphic', '--tries', '4', '--duration', '10', '--out', str(out)]) == 0
    assert 'Smallest distance between links' in capsys.readouterr().out
    robot = kd.load_robot('anthropomorphic')
    q = np.loadtxt(out, delimiter=',', skiprows=1)[:, 1:7]
    distance = SelfDistance(robot)
    assert distance.along(q)[1] > 0.45 * distance.minimum(robot.home)[0]
