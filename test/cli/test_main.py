"""The krang command: help, version, errors of one line, and exit status."""

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from krang_dynamics.cli import info
from krang_dynamics.cli import main as entry
from krang_dynamics.cli.main import HELPERS, main

KRANG = Path(sys.executable).parent / 'krang'
FOLDER = Path(entry.__file__).parent
COMMANDS = sorted(path.stem for path in FOLDER.glob('*.py') if path.stem not in (*HELPERS, '__init__'))


def one_error_line(capsys):
    """The only line on standard error, with nothing on standard output."""
    out, error = capsys.readouterr()
    assert out == ''
    assert error.startswith('krang: ')
    assert error.count('\n') == 1
    return error


def test_every_file_that_is_no_helper_is_a_command_of_its_name(capsys):
    assert [module.__name__.rpartition('.')[2] for module in entry.commands()] == COMMANDS
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
    'arguments',
    [['info', 'krank'], ['info', 'missing.urdf'], ['info', '<robot'], ['info'], ['inform', 'krang']],
)
def test_errors_are_one_line_and_status_two(arguments, capsys):
    assert main(arguments) == 2
    one_error_line(capsys)


@pytest.mark.parametrize(
    ('error', 'status', 'line'),
    [
        (KeyboardInterrupt(), 130, '\nkrang: stopped\n'),
        (BrokenPipeError(), 0, ''),
        (PermissionError(13, 'Permission denied', 'x.csv'), 2, 'krang: x.csv: Permission denied\n'),
        (OSError('no device'), 2, 'krang: no device\n'),
    ],
)
def test_interrupts_and_system_errors_are_reported_in_one_line(monkeypatch, capsys, error, status, line):
    def fail(_):
        raise error

    monkeypatch.setattr(info, 'run', fail)
    assert main(['info', 'krang']) == status
    assert capsys.readouterr().err == line


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
