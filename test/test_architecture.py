"""Which folder may import which; the same picture as docs/architecture.md."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / 'krang_dynamics'

# Every folder may use the two leaf modules errors and text, and the folders named here.
ALLOWED = {
    'robot': set(),
    'lagrange': set(),
    'control': {'robot', 'safety'},
    'safety': {'robot'},
    'simulation': {'robot'},
    'bags': {'robot', 'control', 'safety', 'simulation'},
    'nodes': {'robot', 'control', 'safety', 'simulation', 'bags'},
    'viewer': {'robot', 'control', 'safety', 'simulation', 'bags'},
    'demo': {'robot', 'control', 'safety', 'simulation', 'bags', 'nodes', 'viewer'},
}
LEAVES = {'errors', 'text'}
WITHOUT_ROS = ('robot', 'lagrange', 'control', 'safety')


def imports(path):
    """Absolute names of the modules that a file imports, anywhere in it."""
    package = ['krang_dynamics', *path.relative_to(PACKAGE).parent.parts]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            yield '.'.join([*base, *([node.module] if node.module else [])])


@pytest.mark.parametrize(
    'folder', [path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name in ALLOWED]
)
def test_imports_point_one_way(folder):
    for path in (PACKAGE / folder).rglob('*.py'):
        for name in imports(path):
            parts = name.split('.')
            if parts[0] == 'krang_dynamics' and len(parts) > 1:
                assert parts[1] in ALLOWED[folder] | LEAVES | {folder}, f'{path} imports {name}'
            if folder in WITHOUT_ROS:
                assert parts[0] not in ('rclpy', 'mujoco'), f'{path} imports {name}'
            if folder == 'lagrange':
                assert parts[0] != 'pinocchio', f'{path} imports {name}'


def test_every_folder_has_its_place_in_the_picture():
    folders = {path.parent.name for path in PACKAGE.glob('*/__init__.py')}
    assert folders <= set(ALLOWED)


def test_importing_the_package_needs_neither_ros_nor_mujoco():
    code = (
        'import sys\n'
        "for name in 'rclpy mujoco rosbags casadi sympy matplotlib'.split(): sys.modules[name] = None\n"
        'import krang_dynamics as kd\n'
        "assert kd.load_robot('planar_2r').nv == 2"
    )
    subprocess.run([sys.executable, '-c', code], check=True, timeout=60)
