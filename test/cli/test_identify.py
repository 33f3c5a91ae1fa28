"""krang identify."""

import json

import pytest
from bags.bagging import record_model

import krang_dynamics as kd
from krang_dynamics.cli.main import main

pytest.importorskip('rosbags', reason='rosbags is not installed')


@pytest.fixture(scope='module')
def bag(tmp_path_factory):
    return str(record_model(tmp_path_factory.mktemp('bags') / 'bag', kd.load_robot('planar_2r'), noise=0.1))


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


@pytest.mark.parametrize(
    'arguments',
    [
        ['{bag}', '--robot', 'planar_2r', '--remove-subtree', 'tip', '--out', 'x.yaml'],
        ['{bag}', 'nowhere', '--robot', 'planar_2r'],
    ],
)
def test_errors_are_one_line_and_status_two(arguments, bag, capsys):
    assert main(['identify', *(word.format(bag=bag) for word in arguments)]) == 2
    error = capsys.readouterr().err
    assert error.startswith('krang: ')
    assert error.count('\n') == 1
