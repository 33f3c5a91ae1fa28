"""krang identify."""

import json

import numpy as np
import pytest
from bags.bagging import motion, record, record_model, torques

import krang_dynamics as kd
from krang_dynamics.cli.main import main

pytest.importorskip('rosbags', reason='rosbags is not installed')


def test_identify_writes_a_robot_that_loads_and_fits(bag, tmp_path, capsys):
    out, urdf = tmp_path / 'found.yaml', tmp_path / 'found.urdf'
    command = ['identify', bag, '--robot', 'planar_2r', '--out', str(out), '--urdf', str(urdf)]
    assert main([*command, '--html', str(tmp_path / 'report.html'), '--json', str(tmp_path / 'a.json')]) == 0
    assert 'condition number' in capsys.readouterr().out
    assert kd.load_robot(out).joint_names == ('joint_1', 'joint_2')
    assert main(['validate', bag, '--robot', str(out), '--cutoff', '10', '--max-rmse', '0.2']) == 0
    assert main(command) == 2
    assert '--html' not in capsys.readouterr().err
    figures = json.loads((tmp_path / 'a.json').read_text())
    assert figures['rmse']['joint_1']['after'] < 0.1


def test_the_written_model_scores_what_was_printed(tmp_path, capsys):
    """Offset, width and direction of friction are part of the robot file."""
    robot = kd.load_robot('planar_2r')
    t, q, v, a = motion(robot, 20.0)
    tau = torques(robot, q, v, a) + [1.5, 0] + np.where(v > 0, 2.0, -1.0) * [0, 1]
    bag = str(record(tmp_path / 'bag', robot.joint_names, t, q, v, tau))
    out, urdf, figures = (str(tmp_path / name) for name in ('a.yaml', 'a.urdf', 'a.json'))
    command = ['identify', bag, '--robot', 'planar_2r', '--out', out, '--urdf', urdf, '--held-out', bag]
    assert main([*command, '--cutoff', '5', '--json', figures]) == 0
    printed = json.loads((tmp_path / 'a.json').read_text())['rmse']
    assert main(['validate', bag, '--robot', out, '--cutoff', '5', '--json', str(tmp_path / 'b.json')]) == 0
    scored = json.loads((tmp_path / 'b.json').read_text())['joints']
    for name in robot.joint_names:
        assert scored[name]['friction']['rmse'] == pytest.approx(printed[name]['after'], rel=1e-6)
        assert printed[name]['after'] < 0.1 * printed[name]['before']
    assert kd.load_robot(out).friction.offset == pytest.approx([1.5, 0.5], abs=0.1)


def test_a_model_that_is_worse_on_held_out_data_is_not_written(tmp_path, capsys):
    robot = kd.load_robot('planar_2r')
    t, q, v, a = motion(robot, 10.0)
    wrong = record(tmp_path / 'wrong', robot.joint_names, t, q, v, 1.5 * torques(robot, q, v, a))
    right, out = record_model(tmp_path / 'right', robot), tmp_path / 'out.yaml'
    command = ['identify', str(wrong), '--robot', 'planar_2r', '--held-out', str(right), '--out', str(out)]
    assert main(command) == 1
    assert 'Worse on held-out data' in capsys.readouterr().out
    assert not out.exists()
    assert main([*command, '--force']) == 1
    assert out.exists()


@pytest.mark.parametrize(
    'arguments',
    [
        ['{bag}', '--remove-subtree', 'tip', '--out', 'x.yaml'],
        ['{bag}', '--out', 'x.txt'],
        ['{bag}', '--out', 'x.yaml', '--urdf', 'x.yaml'],
        ['{bag}', '--lock', 'joint_1=inf'],
        ['{bag}', 'nowhere'],
        ['{bag}', '--held-out', 'nowhere'],
        ['{bag}', '--payload', 'tip'],
        ['{bag}', '--total-mass', '0'],
        ['{bag}', '--find-gravity'],
        ['{bag}', '--cutoff', '1e-9'],
        ['{bag}', '--share', 'nan'],
        ['{bag}', '--loaded', '{bag}'],
        ['{bag}', '--loaded', 'nowhere', '--payload', 'tip=1'],
    ],
)
def test_errors_are_one_line_and_status_two(arguments, bag, refused):
    refused('identify', *(word.format(bag=bag) for word in arguments), '--robot', 'planar_2r')
