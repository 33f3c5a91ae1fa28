"""Which folder may import which, and who may import ROS; the same picture as docs/architecture.md."""

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / 'krang_dynamics'

# A folder may use itself, the leaf modules, and the folders named here.
LAYERS = {
    'derivation': set(),
    'robot': {'derivation'},
    'safety': {'robot'},
    'control': {'safety', 'robot'},
    'simulation': {'safety', 'robot', 'control'},
    'bags': {'control', 'simulation', 'safety', 'robot'},
    'nodes': {'bags', 'control', 'simulation', 'safety', 'robot'},
    'viewer': {'bags', 'control', 'simulation', 'safety', 'robot'},
    'scenarios': {'nodes', 'viewer', 'bags', 'control', 'simulation', 'safety', 'robot'},
    'cli': {
        'scenarios', 'nodes', 'viewer', 'bags', 'control', 'simulation', 'safety', 'robot', 'derivation',
    },
}  # fmt: skip
LEAVES = {'arrays', 'colours', 'errors', 'kernels', 'reading', 'text'}
ROS = re.compile(r'(rclpy|launch|launch_ros|tf2_ros|builtin_interfaces|rcl_interfaces|\w+_(msgs|srvs))$')
MAY_IMPORT_ROS = {'nodes', 'viewer', 'launching'}
MODULES = sorted(PACKAGE.rglob('*.py'))


def imports(path):
    """Absolute names of what a file imports, anywhere in it."""
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = '.'.join([*base, *([node.module] if node.module else [])])
            yield from (f'{module}.{alias.name}' for alias in node.names)


def place(path):
    """The folder of a module, or the module itself where it lies at the top."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix('.py')


def test_every_module_has_its_place_in_the_picture():
    places = {place(path) for path in [*MODULES, PACKAGE / 'kernels' / 'module.c']}
    assert places == {*LAYERS, *LEAVES, '__init__', 'launching'}


@pytest.mark.parametrize('path', MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path):
    where = place(path)
    for name in imports(path):
        top, *parts = name.split('.')
        if top == 'krang_dynamics' and parts and where not in ('__init__',):
            assert parts[0] in LAYERS.get(where, set()) | LEAVES | {where}, f'{path} imports {name}'
        if ROS.match(top):
            assert where in MAY_IMPORT_ROS, f'{path} imports {name}'
        if where == 'derivation':
            assert top != 'pinocchio', f'{path}: derivation must stand alone, to cross-check robot'


@pytest.mark.parametrize('folder', ['bench', 'examples'])
def test_bench_and_examples_use_what_the_package_offers(folder):
    """Nothing in the package imports them; they import what a user can."""
    for path in MODULES:
        assert all(name.split('.')[0] != folder for name in imports(path)), path


def test_the_picture_in_the_documentation_is_the_one_enforced():
    text = (ROOT / 'docs' / 'architecture.md').read_text()
    for folder, allowed in LAYERS.items():
        row = re.search(rf'^\| `{folder}` \|(.*)\|$', text, re.MULTILINE)
        assert row, f'docs/architecture.md has no row for {folder}'
        assert set(re.findall(r'`(\w+)`', row[1])) == allowed, folder


def test_no_two_modules_or_classes_have_the_same_name():
    # The file of a command has the name of the command.
    names = Counter(path.stem for path in MODULES if path.stem != '__init__' and place(path) != 'cli')
    # A robot's equations are in derivation/robots/ under its name.
    assert [name for name, count in names.items() if count > 1] == []
    classes = Counter(
        node.name
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and not node.name.startswith('_')
    )
    assert [name for name, count in classes.items() if count > 1] == []


def test_importing_the_package_needs_neither_ros_nor_mujoco():
    code = (
        'import sys\n'
        "for name in 'rclpy mujoco rosbags casadi sympy matplotlib'.split(): sys.modules[name] = None\n"
        'import krang_dynamics as kd\n'
        "assert kd.load_robot('planar_2r').nv == 2"
    )
    subprocess.run([sys.executable, '-c', code], check=True, timeout=60)
