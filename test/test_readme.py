"""README.md: its Python runs, its robots are the shipped ones, its picture is small."""

import os
import re
import signal
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from shutil import copy

import numpy as np
import pytest

import krang_dynamics as kd

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / 'README.md'
LARGEST_PICTURE = 1_000_000  # [bytes]


def test_the_python_of_the_readme_runs_and_the_arm_stays_where_it_is(capsys):
    (code,) = re.findall(r'```python\n(.*?)```', README.read_text(), flags=re.DOTALL)
    assert len(code.splitlines()) <= 22
    exec(compile(code, str(README), 'exec'), names := {})
    assert 'krang' in capsys.readouterr().out
    assert np.abs(names['plant'].q - names['arm'].home).max() < 1e-6


def test_the_robots_of_the_readme_are_the_shipped_ones():
    table = README.read_text().partition('## Robots\n')[2].partition('\n## ')[0]
    rows = [line.split('|')[1] for line in table.splitlines() if line.startswith('| `')]
    assert sorted(re.findall(r'`(\w+)`', ' '.join(rows))) == kd.robots()


def test_pictures_are_small():
    pictures = re.findall(r'!\[[^\]]+\]\(([^)]+)\)', README.read_text())
    assert pictures
    for picture in pictures:
        assert (ROOT / picture).stat().st_size < LARGEST_PICTURE


@pytest.mark.long
@pytest.mark.processes
def test_the_commands_for_your_own_robot_run_as_they_are_printed(tmp_path):
    """From a bare URDF to a robot that is recorded, replayed, validated, identified and moved."""
    section = README.read_text().partition('## Your own robot')[2].partition('\n## ')[0]
    blocks = re.findall(r'```sh\n(.*?)```', section, flags=re.DOTALL)
    offline, running, recording, moving, identifying = blocks
    try:
        package = metadata.distribution('example-robot-data')
    except metadata.PackageNotFoundError:
        pytest.skip('example-robot-data is not installed; pip install example-robot-data')
    robots = package.locate_file('cmeel.prefix/share/example-robot-data')
    copy(robots / 'robots/ur_description/urdf/ur5_robot.urdf', tmp_path / 'ur5.urdf')
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ['PATH']])
    search = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    environment = {**os.environ, 'PATH': path, 'PYTHONPATH': search, 'ROS_HOME': str(tmp_path)}

    def shell(commands):
        commands = commands.replace('source .venv/bin/activate', 'true')
        return subprocess.Popen(
            ['bash', '-e', '-c', commands], cwd=tmp_path, env=environment, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def output(process):
        text, _ = process.communicate(timeout=300)
        assert process.returncode == 0, text
        return text

    text = output(shell(offline))
    assert 'NO' not in text.replace('NOT', '')
    assert 'all are identical to the recorded ones' in text
    background = [shell(running), shell(recording)]
    try:
        assert 'largest' in output(shell(moving))
    finally:
        for process in background:
            os.killpg(process.pid, signal.SIGINT)
    assert not re.search(r'\bfault', ''.join(map(output, background)))
    assert not list(tmp_path.glob('flights/*'))
    output(shell(identifying))
    identified = kd.load_robot(tmp_path / 'better.yaml')
    q = np.array([0.3, -1.0, 1.2, 0.4, 0.5, 0.6])
    torques = [robot.gravity_torque(q) for robot in (identified, kd.load_robot(tmp_path / 'ur5.yaml'))]
    np.testing.assert_allclose(*torques, atol=0.05)  # [N m]
