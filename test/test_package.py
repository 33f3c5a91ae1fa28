"""The repository is a ROS 2 package that colcon builds and installs completely, with all public names."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import krang_dynamics as kd

ROOT = Path(__file__).resolve().parents[1]
SHARED = ('bench', 'config', 'launch', 'urdf')


def run(*command, cwd):
    environment = {**os.environ, 'PATH': f'{Path(sys.executable).parent}:{os.environ["PATH"]}'}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope='module')
def workspace(tmp_path_factory):
    """A colcon workspace that holds a copy of the tracked sources."""
    folder = tmp_path_factory.mktemp('workspace')
    ignored = shutil.ignore_patterns('.*', 'build', 'install', 'log', '__pycache__', '*.egg-info', '*.so')
    shutil.copytree(ROOT, folder / 'src' / 'krang_dynamics', ignore=ignored)
    return folder


def test_colcon_recognises_an_ament_python_package(workspace):
    listed = run('colcon', 'list', cwd=workspace)
    assert listed.stdout.split() == ['krang_dynamics', 'src/krang_dynamics', '(ros.ament_python)'], (
        listed.stderr
    )


@pytest.mark.slow
def test_colcon_installs_every_executable_and_file_and_they_work(workspace):
    built = run('colcon', 'build', cwd=workspace)
    assert built.returncode == 0, built.stdout + built.stderr
    prefix = workspace / 'install' / 'krang_dynamics'
    scripts = re.findall(r"'(\w+) = krang_dynamics", (ROOT / 'setup.py').read_text())
    assert scripts
    for script in scripts:
        assert os.access(prefix / 'lib' / 'krang_dynamics' / script, os.X_OK)
    share = prefix / 'share' / 'krang_dynamics'
    for folder in SHARED:
        for path in (p for p in (ROOT / folder).rglob('*.*') if p.suffix != '.pyc'):
            assert (share / path.relative_to(ROOT)).read_bytes() == path.read_bytes()
    assert (prefix / 'share/ament_index/resource_index/packages/krang_dynamics').is_file()

    # The installed code uses the installed files, not these sources.
    site = next(prefix.glob('lib/python*/site-packages'))
    assert (site / 'krang_dynamics' / 'py.typed').is_file()
    asked = 'import krang_dynamics.robot.library as l; print(l.share(), l.load_robot("krang"))'
    answer = subprocess.run(
        [sys.executable, '-c', asked],
        cwd=workspace,
        env={**os.environ, 'PYTHONPATH': str(site)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert answer.stdout.startswith(str(share)), answer.stderr


def test_package_xml_and_setup_py_agree():
    package = ElementTree.parse(ROOT / 'package.xml').getroot()
    setup = (ROOT / 'setup.py').read_text()
    assert package.get('format') == '3'
    assert package.findtext('license') == 'Apache-2.0'
    assert package.findtext('export/build_type') == 'ament_python'
    assert package.findtext('version') == kd.__version__
    assert package.find('maintainer').get('email') in setup
    listed = subprocess.run(
        [sys.executable, 'setup.py', '--version'], cwd=ROOT, capture_output=True, text=True
    )
    assert listed.stdout.split()[-1] == kd.__version__


@pytest.mark.slow
def test_the_makefile_runs_pytest_beside_plugins_for_an_older_pytest(tmp_path):
    (tmp_path / 'old_plugin.py').write_text('def pytest_pycollect_makemodule(path, parent):\n    pass\n')
    info = tmp_path / 'old_plugin-1.0.dist-info'
    info.mkdir()
    (info / 'METADATA').write_text('Metadata-Version: 2.1\nName: old_plugin\nVersion: 1.0\n')
    (info / 'entry_points.txt').write_text('[pytest11]\nold_plugin = old_plugin\n')
    environment = {**os.environ, 'PYTHONPATH': f'{tmp_path}:{os.environ.get("PYTHONPATH", "")}'}
    environment.pop('PYTEST_DISABLE_PLUGIN_AUTOLOAD', None)
    arguments = '--collect-only -q test/test_package.py'

    def output(*command):
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        return done.stdout + done.stderr

    # Without the Makefile the plugin ends pytest, as those of launch_testing do.
    assert 'PluginValidationError' in output(sys.executable, '-m', 'pytest', *arguments.split())
    made = output('make', f'VENV={sys.prefix}', '--eval', f'try: ; $(PYTEST) {arguments}', 'try')
    assert 'test_package_xml_and_setup_py_agree' in made


def test_every_public_name_is_defined_by_the_package():
    for name in kd.__all__:
        assert getattr(kd, name).__module__.startswith('krang_dynamics.'), name
    assert set(kd.__all__) <= set(dir(kd))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'load_robots'"):
        kd.load_robots  # noqa: B018


def test_importing_the_package_imports_no_library():
    code = 'import sys; before = set(sys.modules); import krang_dynamics; print(*set(sys.modules) - before)'
    answer = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True, check=True, timeout=60
    )
    assert not {'numpy', 'scipy', 'pinocchio', 'mujoco', 'rclpy'} & set(answer.stdout.split())
