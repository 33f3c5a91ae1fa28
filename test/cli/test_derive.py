"""krang derive: text, files, the check, and robots without symbolic equations."""

import shutil

import pytest

import krang_dynamics as kd
from krang_dynamics.cli.main import main
from krang_dynamics.robot import library

pytest.importorskip('casadi', reason='casadi is not installed; pip install casadi sympy')
pytest.importorskip('sympy', reason='sympy is not installed; pip install casadi sympy')


@pytest.mark.slow
def test_check_prints_the_largest_difference_per_matrix(capsys):
    assert main(['derive', 'krang', '--check']) == 0
    out, progress = capsys.readouterr()
    for matrix in ('A', 'C', 'Q', 'friction', 'J left_hand'):
        assert f'\n{matrix} ' in out
    assert out.count(' ok') == 7
    assert 'mass matrix A' in progress


@pytest.mark.slow
def test_a_large_robot_prints_its_structure(capsys):
    assert main(['derive', 'krang']) == 0
    out = capsys.readouterr().out
    assert 'coriolis_matrix' in out
    assert '   left_1 x x x x x x x x x x . . . . . . .' in out


@pytest.mark.slow
def test_a_urdf_derives_with_its_own_numbers(capsys):
    assert main(['derive', kd.load_robot('planar_2r').urdf.source]) == 0
    assert 'A[1,1] = 2.5 + 1.2 cos(q_joint_2)' in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize('original', ['planar_2r', 'otbot', 'pendubot'])
def test_a_new_shipped_robot_needs_only_its_two_data_files(original, tmp_path, monkeypatch, capsys):
    """A robot without symbolic equations is derived from its URDF."""
    source = library.share()
    for folder in ('config/robots', 'urdf'):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(source / 'urdf' / f'{original}.urdf', tmp_path / 'urdf' / 'copy.urdf')
    text = (source / 'config' / 'robots' / f'{original}.yaml').read_text()
    text = text.replace(f'name: {original}', 'name: copy').replace(f'{original}.urdf', 'copy.urdf')
    (tmp_path / 'config' / 'robots' / 'copy.yaml').write_text(text)
    monkeypatch.setattr(library, 'share', lambda: tmp_path)
    assert kd.robots() == ['copy']
    assert main(['derive', 'copy', '--check']) == 0
    assert main(['derive', 'copy']) == 0
    assert 'DIFFERS' not in capsys.readouterr().out


@pytest.mark.slow
def test_files_are_written_once_and_again_only_by_force(tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    command = ['derive', 'pendubot', '--python', 'm.py', '--c', 'm.c', '--latex', 'm.tex']
    assert main(command) == 0
    assert {path.name for path in tmp_path.iterdir()} == {'m.py', 'm.c', 'm.tex'}
    assert 'm.py exists already; choose another name, or add --force' in refused(*command)
    assert main([*command, '--force']) == 0


@pytest.mark.parametrize('arguments', [['nobody'], ['planar_2r', '--c', '/nowhere/m.c']])
def test_errors_are_one_line(arguments, refused):
    refused('derive', *arguments)


def test_a_full_disk_is_an_error_of_one_line(capsys):
    assert main(['derive', 'planar_2r', '--c', '/dev/full', '--force']) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith('krang: /dev/full: ')
