"""Every example runs as it stands and prints what it promises."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
TIME_LIMIT = 60.0  # on a loaded machine; each takes about 2 s [s]

PRINTS = {
    '01_robot_dynamics': 'krang: 17 joints',
    '02_gravity_compensation': '2.5 s  active',
    '03_computed_torque': 'mode active, fault None',
    '04_own_robot': "error: unknown frame 'hand'",
    '05_own_term': 'remaining distance to the rest angle: 0.0',
    '06_driver_node': 'braking: no command',
    '07_validate_and_identify': 'friction: [0.8 0.4] N m',
    '08_replay_a_fault': 'limits.velocity = 0.3 rad/s: fault after',
}
ARGUMENTS = {'06_driver_node': ['0.5']}  # [s]
NEEDS = {
    '03_computed_torque': 'mujoco',
    '06_driver_node': 'rclpy',
    '07_validate_and_identify': 'rosbags',
    '08_replay_a_fault': 'rosbags',
}


def test_there_is_a_test_for_every_example():
    assert {path.stem for path in (ROOT / 'examples').glob('*.py')} == set(PRINTS)


def run(name, folder):
    """What an example prints, as a process."""
    environment = {
        **os.environ,
        'PYTHONPATH': f'{ROOT}:{os.environ.get("PYTHONPATH", "")}',
        'ROS_LOG_DIR': str(folder),
    }
    command = [sys.executable, ROOT / 'examples' / f'{name}.py', *ARGUMENTS.get(name, [])]
    process = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=TIME_LIMIT
    )
    assert process.returncode == 0, process.stderr
    assert not process.stderr
    return process.stdout


@pytest.mark.parametrize('name', PRINTS)
def test_the_example_runs(name, tmp_path):
    if name in NEEDS and find_spec(NEEDS[name]) is None:
        pytest.skip(f'{NEEDS[name]} is not installed')
    output = run(name, tmp_path)
    assert PRINTS[name] in output
    if name == '08_replay_a_fault':
        recorded, replayed, *_ = output.splitlines()
        assert replayed.endswith(recorded.removeprefix('recorded: '))
