"""The krang command: help, version, errors of one line, and exit status."""

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from krang_dynamics.cli import info
from krang_dynamics.cli import main as entry
from krang_dynamics.cli.main import HELPERS, main
from krang_dynamics.robot.library import load_robot

OPTIONS = ('--duration', '--frequency', '--harmonics', '--rate')
BAGS = ('validate', 'replay', 'identify')
KRANG = Path(sys.executable).parent / 'krang'
FOLDER = Path(entry.__file__).parent
FILES = sorted(path.stem for path in FOLDER.glob('*.py') if path.stem not in (*HELPERS, '__init__'))
COMMANDS = [name.removesuffix('_') for name in FILES]  # import_, because import is a keyword


def test_every_file_that_is_no_helper_is_a_command_of_its_name(capsys):
    assert [module.__name__.rpartition('.')[2] for module in entry.commands()] == FILES
    assert main([]) == 0
    listed = capsys.readouterr().out
    assert all(f'\n    {name} ' in listed for name in COMMANDS)


@pytest.mark.parametrize('command', COMMANDS)
def test_help_has_an_example(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main([command, '--help'])
    assert ended.value.code == 0
    assert f'\nexample: krang {command}' in capsys.readouterr().out


def test_the_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit) as ended:
        main(['--version'])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f'krang {metadata.version("krang_dynamics")}\n'


@pytest.mark.parametrize(
    ('error', 'status', 'line'),
    [
        (KeyboardInterrupt(), 130, '\nkrang: stopped\n'),
        (BrokenPipeError(), 0, ''),
        (PermissionError(13, 'Permission denied', 'x.csv'), 2, 'krang: x.csv: Permission denied\n'),
        (OSError('no device'), 2, 'krang: no device\n'),
        (MemoryError(), 2, 'krang: not enough memory; use less data at once\n'),
        (TypeError('two\nlines'), 2, r'krang: internal error: TypeError: two lines \(test_main.py:\d+\)\n'),
    ],
)
def test_interrupts_system_errors_and_defects_are_one_line(monkeypatch, capsys, error, status, line):
    def fail(_):
        raise error

    monkeypatch.setattr(info, 'run', fail)
    assert main(['info', 'krang']) == status
    assert re.fullmatch(line, capsys.readouterr().err)


@pytest.mark.parametrize('environment', [{}, {'PYTHONUNBUFFERED': '1'}], ids=['buffered', 'unbuffered'])
def test_a_full_disk_is_an_error_of_one_line(environment):
    kept = {name: value for name, value in os.environ.items() if name != 'PYTHONUNBUFFERED'}
    with open('/dev/full', 'w') as full:
        done = subprocess.run(
            [KRANG, 'robots'],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            env={**kept, **environment},
        )
    assert done.returncode == 2
    assert done.stderr == 'krang: No space left on device\n'


@pytest.mark.slow
@pytest.mark.parametrize(
    ('arguments', 'redirections', 'status'),
    [
        ('robots', '>&-', 0),  # no standard output at all
        ('info nosuch', '2>/dev/full', 2),
        ('derive planar_2r', '>/dev/null 2>/dev/full', 2),  # its progress cannot be written
    ],
)
def test_streams_that_are_closed_or_full_cause_no_traceback(arguments, redirections, status, tmp_path):
    command = f'{KRANG} {arguments} {redirections}'
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)
    assert done.returncode == status
    assert 'Traceback' not in done.stderr


def test_an_ascii_terminal_shows_names_with_escapes(tmp_path):
    urdf = Path(load_robot('planar_2r').urdf.source).read_text()
    (tmp_path / 'arm.urdf').write_text(urdf.replace('planar_2r', 'pl\u00e4nar'), encoding='utf-8')
    environment = {**os.environ, 'PYTHONIOENCODING': 'ascii:strict', 'PYTHONUTF8': '0'}
    done = subprocess.run(
        [KRANG, 'info', tmp_path / 'arm.urdf'], capture_output=True, text=True, env=environment, timeout=60
    )
    assert done.stdout.startswith('pl\\xe4nar')
    assert (done.returncode, done.stderr) == (0, '')


NUMBERS = ('nan', 'inf', '-inf', '1e400', '1e300', '-1', 'abc', '')
INVALID = (
    *(['excite', 'planar_2r', '--tries', '1', option, x] for x in NUMBERS for option in OPTIONS),
    *(['excite', 'planar_2r', '--tries', '1', '--lock', f'joint_1={x}'] for x in ('abc', '')),
    ['excite', 'planar_2r', '--duration', '1e9'],
    ['excite', 'planar_2r', '--rate', '1e12'],
    ['excite', 'planar_2r', '--harmonics', '1000'],
    *([command, 'planar_2r', '--duration', x] for x in NUMBERS[:4] for command in ('demo',)),
    *(['send', name, '--timeout', '0.1'] for name in ('nosuch.csv', '/', '', 'm.txt', '/dev/null')),
    *(
        [command, name, '--robot', 'planar_2r']
        for name in ('', '/', 'nosuch', '/dev/null')
        for command in BAGS
    ),
    *([command, name] for name in ('', '/', '.', '/dev/null', '<robot') for command in ('info', 'derive')),
    ['info'],
    ['info', 'krank'],
    ['info', 'missing.urdf'],
    ['inform', 'krang'],
    ['sim', 'planar_2r', '--engine', 'pinocchio', '--ros-args', '--params-file', 'nosuch.yaml'],
    ['sim', 'planar_2r', '--engine', 'pinocchio', '--ros-args', '--nosuch'],
    ['sim', 'planar_2r', '--engine', 'pinocchio', '--control', '--ros-args', '-p', 'damping'],
    ['payload', '--node', '/nö'],
    ['record', '--out', '/nowhere/bag'],
)


def status_of(arguments):
    try:
        return main(arguments)
    except SystemExit as ended:  # of a node
        return ended.code


@pytest.mark.filterwarnings('ignore::DeprecationWarning')  # of libraries of rclpy
@pytest.mark.parametrize('arguments', INVALID, ids=' '.join)
def test_invalid_numbers_and_files_are_one_line_and_status_two(arguments, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert status_of(arguments) == 2
    out, error = capfd.readouterr()
    assert 'internal error' not in error
    assert error.splitlines()[-1].startswith('krang: ')
    assert error.count('\n') == 1
    assert out == ''


def test_a_closed_pipe_is_no_error():
    done = subprocess.run(
        f'{KRANG} info krang | head -1', shell=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.startswith('krang')
    assert not done.stderr


def test_listing_robots_imports_no_heavy_library():
    code = (
        'import sys\n'
        'from krang_dynamics.cli.main import main\n'
        "assert main(['robots']) == 0\n"
        "heavy = {'rclpy', 'rosbags', 'casadi', 'sympy', 'matplotlib', 'mujoco'}\n"
        'sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)'
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
