"""Missing libraries are named in one line, with what to install, before any work."""

import subprocess
import sys

import pytest

from krang_dynamics.cli import libraries
from krang_dynamics.errors import KrangError

# Runs krang in a Python that lacks one library.
WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] == sys.argv[1]:
            raise ModuleNotFoundError(f'No module named {name!r}', name=name)
sys.meta_path.insert(0, Missing())
from krang_dynamics.cli.main import main
sys.exit(main(sys.argv[2:]))
"""


def test_a_missing_library_is_named(monkeypatch):
    libraries.require_libraries('numpy')
    with pytest.raises(KrangError, match='no_such_library is not installed'):
        libraries.require_libraries('numpy', 'no_such_library')
    with pytest.raises(KrangError, match='no_a and no_b are not installed; pip install no_a no_b'):
        libraries.require_libraries('no_a', 'no_b')
    monkeypatch.setattr(libraries, 'find_spec', lambda name: None)
    with pytest.raises(KrangError, match='rclpy is not installed; source'):
        libraries.require_ros()


@pytest.mark.parametrize(
    ('library', 'arguments', 'line'),
    [
        ('pinocchio', ['robots'], 'krang: pinocchio is not installed; pip install pin\n'),
        ('matplotlib', ['demo', 'planar_2r'], 'krang: matplotlib is not installed; pip install matplotlib\n'),
        (
            'sensor_msgs',
            ['sim', 'planar_2r', '--engine', 'pinocchio'],
            'krang: sensor_msgs is not installed;',
        ),
    ],
)
def test_without_a_library_a_command_ends_at_once_with_one_line(library, arguments, line):
    done = subprocess.run(
        [sys.executable, '-c', WITHOUT, library, *arguments], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, '')
    assert done.stderr.startswith(line)
    assert done.stderr.count('\n') == 1


def test_the_version_needs_no_library():
    done = subprocess.run(
        [sys.executable, '-c', WITHOUT, 'numpy', '--version'], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.startswith('krang ')
