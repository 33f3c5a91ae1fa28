"""krang validate."""

import json

import pytest
from bags.bagging import motion, record, torques

import krang_dynamics as kd
from krang_dynamics.cli.main import main

pytest.importorskip('rosbags', reason='rosbags is not installed')


def test_validate_prints_a_table_and_writes_json(bag, tmp_path, capsys):
    out = tmp_path / 'out.json'
    assert main(['validate', bag, '--robot', 'planar_2r', '--cutoff', '10', '--json', str(out)]) == 0
    assert 'joint_2' in capsys.readouterr().out
    joints = json.loads(out.read_text())['joints']
    assert set(joints) == {'joint_1', 'joint_2'}
    for levels in joints.values():
        assert set(levels) == {'gravity', 'inverse_dynamics', 'rotor', 'friction'}
        assert set(levels['friction']) == {'rmse', 'correlation', 'r2', 'bias'}


def test_missed_demands_are_status_one(bag, capsys):
    assert main(['validate', bag, '--robot', 'planar_2r', '--max-rmse', '1']) == 0
    assert main(['validate', bag, '--robot', 'planar_2r', '--max-rmse', '0.001']) == 1
    assert main(['validate', bag, '--robot', 'planar_2r', '--min-r2', '0.99999']) == 1
    assert 'Missed' in capsys.readouterr().out


def test_nothing_is_written_over_without_force(bag, tmp_path, refused):
    out = tmp_path / 'out.json'
    out.write_text('precious')
    command = ['validate', bag, '--robot', 'planar_2r', '--json', str(out)]
    refused(*command)
    assert out.read_text() == 'precious'
    assert main([*command, '--force']) == 0
    assert out.read_text() != 'precious'


def test_maps_locks_and_removed_subtrees_work_together(tmp_path):
    robot = kd.load_robot('anthropomorphic')
    t, q, v, a = motion(robot, 3.0)
    for x, value in ((q, 0.3), (v, 0.0), (a, 0.0)):
        x[:, 4] = value
    tau = torques(robot, q, v, a)
    names = ['axis1', 'axis2', 'axis3', 'axis4', 'axis6']
    columns = [0, 1, 2, 3, 5]
    path = str(record(tmp_path / 'a', names, t, q[:, columns], v[:, columns], tau[:, columns]))
    common = ['validate', path, '--robot', 'anthropomorphic', '--map', 'axis*=joint_*', '--max-rmse', '0.05']
    assert main(common) == 2
    assert main([*common, '--lock', 'joint_5=0.3']) == 0
    assert main([*common, '--lock', 'joint_5=1.3']) == 1
    assert main([*common, '--lock', 'joint_5=x']) == 2
    link = robot.urdf.joints['joint_4'].child
    assert main([*common, '--remove-subtree', link]) == 1


@pytest.mark.parametrize(
    'arguments',
    [
        ['nowhere', '--robot', 'planar_2r'],
        ['{bag}', '--robot', 'krang'],
        ['{bag}', '--robot', 'planar_2r', '--topic', '/states'],
        ['{bag}', '--robot', 'planar_2r', '--cutoff', '1000'],
        ['{bag}', '--robot', 'planar_2r', '--effort', 'current'],
        ['{bag}', '--robot', 'planar_2r', '--html', '/nowhere/at/all.html'],
    ],
)
def test_errors_are_one_line_and_status_two(arguments, bag, refused):
    refused('validate', *(word.format(bag=bag) for word in arguments))
