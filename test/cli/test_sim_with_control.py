"""Controller, guard and simulator as processes: they wait for each other, and ^C ends them quietly."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')
from nodes.harness import claim_domain

from krang_dynamics.scenarios.processes import Processes

pytestmark = pytest.mark.processes

KRANG = Path(sys.executable).parent / 'krang'
PATIENCE = 60.0  # deadline; a loaded machine is slow [s]
SHARED = {'robot': 'planar_2r', 'use_sim_time': True}
CONTROLLER = {
    **SHARED,
    'terms': ['gravity'],
    'guard': 'torque_guard',
    'auto_activate': True,
    'auto_enable': True,
    'flight_recorder': '',
}
GUARDED = ('-r', 'effort_commands:=guarded/effort_commands')


@pytest.fixture(autouse=True)
def domain(monkeypatch):
    number, lock = claim_domain()
    monkeypatch.setenv('ROS_DOMAIN_ID', str(number))
    monkeypatch.setenv('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    yield
    lock.close()


def until(condition, what):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.05)


def test_the_controller_waits_for_a_guard_that_has_states_and_a_driver():
    with Processes() as processes:

        def log():
            return processes.log('torque_controller')

        processes.start('torque_controller', CONTROLLER)
        processes.start('torque_guard', SHARED, '-r', 'joint_states:=nowhere')
        processes.start('simulator', {'robot': 'planar_2r', 'publish_clock': True}, *GUARDED)
        until(lambda: re.search("waiting to enable: 'torque_guard': .* was never received", log()), log)
        assert 'ramping' not in log()
        assert 'fault' not in log()


def test_the_last_to_start_completes_the_line():
    with Processes() as processes:

        def log():
            return processes.log('torque_controller')

        processes.start('torque_controller', CONTROLLER)
        processes.start('torque_guard', SHARED)
        until(lambda: 'waiting to enable: no /clock' in log(), log)
        processes.start('simulator', {'robot': 'planar_2r', 'publish_clock': True}, *GUARDED)
        until(lambda: '[torque_controller]: active' in log(), log)
        assert 'fault' not in log()


def test_control_c_of_krang_sim_is_quiet(tmp_path):
    file = tmp_path / 'output.txt'
    with file.open('w') as log:
        process = subprocess.Popen(
            [KRANG, 'sim', 'planar_2r', '--control', 'gravity'],
            env={**os.environ, 'ROS_HOME': str(tmp_path)},
            stdout=log,
            stderr=log,
        )
    try:
        until(lambda: '[torque_controller]: active' in file.read_text(), file.read_text)
    finally:
        process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 0
    assert 'fault' not in file.read_text()
    assert not list(tmp_path.glob('flights/*'))
