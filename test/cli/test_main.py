"""The krang command as a user types it."""

import subprocess
import sys
from pathlib import Path

import pytest

import krang_dynamics as kd
from krang_dynamics.cli.main import main

KRANG = Path(sys.executable).parent / 'krang'


def test_robots_lists_all_of_them(capsys):
    assert main(['robots']) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in kd.robots())


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


@pytest.mark.parametrize(
    'arguments',
    [
        ['info', 'krank'],
        ['info', 'missing.urdf'],
        ['info', '<robot'],
        ['info'],
        [],
        ['inform', 'krang'],
        ['bench', 'x'],
    ],
)
def test_errors_are_one_line_and_status_two(arguments):
    done = subprocess.run([KRANG, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert 'Traceback' not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not done.stdout


def test_help_has_an_example():
    for command in ('robots', 'info', 'derive', 'bench'):
        done = subprocess.run([KRANG, command, '--help'], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0
        assert f'example: krang {command}' in done.stdout


def test_a_closed_pipe_is_no_error():
    done = subprocess.run(
        f'{KRANG} info krang | head -1', shell=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.startswith('krang')
    assert not done.stderr
