"""The repository is a ROS 2 package that colcon builds and installs whole."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHARED = ('bench', 'config', 'launch', 'urdf')


def run(*command, cwd):
    environment = {**os.environ, 'PATH': f'{Path(sys.executable).parent}:{os.environ["PATH"]}'}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope='module')
def workspace(tmp_path_factory):
    """A colcon workspace that holds a copy of the tracked sources."""
    folder = tmp_path_factory.mktemp('workspace')
    ignored = shutil.ignore_patterns('.*', 'build', 'install', 'log', '__pycache__', '*.egg-info')
    shutil.copytree(ROOT, folder / 'src' / 'krang_dynamics', ignore=ignored)
    return folder


def test_colcon_takes_it_for_an_ament_python_package(workspace):
    listed = run('colcon', 'list', cwd=workspace)
    assert listed.stdout.split() == ['krang_dynamics', 'src/krang_dynamics', '(ros.ament_python)'], (
        listed.stderr
    )


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

    # The installed code runs on the installed files, not on these sources.
    site = next(prefix.glob('lib/python*/site-packages'))
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


def test_package_xml_and_setup_py_tell_the_same_story():
    package = ElementTree.parse(ROOT / 'package.xml').getroot()
    setup = (ROOT / 'setup.py').read_text()
    assert package.get('format') == '3'
    assert package.findtext('license') == 'Apache-2.0'
    assert package.findtext('export/build_type') == 'ament_python'
    assert f"version='{package.findtext('version')}'" in setup
    assert package.find('maintainer').get('email') in setup
