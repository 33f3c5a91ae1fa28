"""docs/your-robot.md: its commands and its program run as they are printed."""

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import krang_dynamics as kd

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / 'docs' / 'your-robot.md').read_text()
BLOCKS = re.findall(r'```sh\n(.*?)```', PAGE, flags=re.DOTALL)
DEMO = next(block for block in BLOCKS if 'krang demo' in block)
LONGEST = 180.0  # [s]


def run(commands, folder):
    """Standard output of shell commands, each of which must succeed."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ['PATH']])
    search = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    result = subprocess.run(
        ['bash', '-e', '-c', commands],
        cwd=folder,
        env={**os.environ, 'PATH': path, 'PYTHONPATH': search, 'ROS_HOME': str(folder)},
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """A folder in which all commands of the page have run, except installation and demonstrations."""
    try:
        metadata.distribution('example-robot-data')
    except metadata.PackageNotFoundError:
        pytest.skip('example-robot-data is not installed; pip install example-robot-data')
    folder = tmp_path_factory.mktemp('your_robot')
    longer = ('pip install', 'krang demo', 'krang sim')
    run('\n'.join(block for block in BLOCKS if not any(word in block for word in longer)), folder)
    return folder


def test_the_commands_write_robot_files_that_load(folder):
    ur5, panda = kd.load_robot(folder / 'ur5.yaml'), kd.load_robot(folder / 'panda.yaml')
    assert ur5.home.tolist() == [0, -1.2, 1.5, 0, 0, 0]
    assert panda.joint_names == tuple(f'panda_joint{i}' for i in range(1, 8))


def test_the_arm_floats(folder, monkeypatch, capsys):
    pytest.importorskip('mujoco', reason='mujoco is not installed; pip install mujoco')
    monkeypatch.chdir(folder)
    (code,) = re.findall(r'```python\n(.*?)```', PAGE, flags=re.DOTALL)
    exec(compile(code, 'your-robot.md', 'exec'), {})
    mode, motion = capsys.readouterr().out.split()
    assert mode == 'active'
    assert 0.01 < float(motion) < 1.5


@pytest.mark.slow
def test_the_demonstrations_meet_their_criteria(folder):
    pytest.importorskip('rclpy', reason='rclpy is not installed; source a ROS 2 installation')
    table = run(DEMO, folder)
    assert table.count('push: error 2 s later') == 2
    assert 'NO' not in table.replace('NOT', '')
