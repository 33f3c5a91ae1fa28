"""krang derive as a user types it."""

import subprocess
import sys
from pathlib import Path

import pytest

import krang_dynamics as kd

KRANG = Path(sys.executable).parent / 'krang'


def krang(*arguments, cwd=None):
    return subprocess.run([KRANG, *arguments], capture_output=True, text=True, timeout=120, cwd=cwd)


def test_check_prints_the_largest_difference_per_matrix():
    done = krang('derive', 'krang', '--check')
    assert done.returncode == 0
    for matrix in ('A', 'C', 'Q', 'friction', 'J left_hand'):
        assert f'\n{matrix} ' in done.stdout
    assert done.stdout.count(' ok') == 7
    assert 'mass matrix A' in done.stderr  # progress


def test_a_large_robot_prints_its_structure():
    done = krang('derive', 'krang')
    assert done.returncode == 0
    assert 'coriolis_matrix' in done.stdout
    assert '   left_1 x x x x x x x x x x . . . . . . .' in done.stdout


def test_a_urdf_derives_with_its_own_numbers():
    done = krang('derive', kd.load_robot('planar_2r').urdf.source)
    assert 'A[1,1] = 2.5 + 1.2 cos(q_joint_2)' in done.stdout


def test_files_are_written_once_and_again_only_by_force(tmp_path):
    outputs = ['--python', 'm.py', '--c', 'm.c', '--latex', 'm.tex']
    assert krang('derive', 'pendubot', *outputs, cwd=tmp_path).returncode == 0
    assert {path.name for path in tmp_path.iterdir()} == {'m.py', 'm.c', 'm.tex'}
    again = krang('derive', 'pendubot', *outputs, cwd=tmp_path)
    assert again.returncode == 2
    assert (
        again.stderr.strip().splitlines()[-1]
        == 'krang: m.py exists already; choose another name, or add --force'
    )
    assert krang('derive', 'pendubot', *outputs, '--force', cwd=tmp_path).returncode == 0


@pytest.mark.parametrize('arguments', [['nobody'], ['planar_2r', '--c', '/nowhere/m.c']])
def test_errors_are_one_line(arguments):
    done = krang('derive', *arguments)
    assert done.returncode == 2
    assert 'Traceback' not in done.stderr
    assert done.stderr.splitlines()[-1].startswith('krang: ')
