"""Child processes: they end with their parent, however it ends, and report why they ended."""

import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from krang_dynamics.scenarios import processes
from krang_dynamics.scenarios.processes import Processes, signals_as

pytestmark = pytest.mark.slow

LONGEST = 20.0  # for what has no promised time [s]
CHILD = (
    'import os, sys, time\n'
    'from krang_dynamics.scenarios.processes import end_with_parent\n'
    'end_with_parent(int(sys.argv[1]))\n'
    'print(os.getpid(), flush=True)\n'
    'time.sleep(100)'
)
PARENT = (
    'import os, subprocess, sys, time\n'
    f'subprocess.Popen([sys.executable, "-c", {CHILD!r}, str(os.getpid())])\n'
    'time.sleep(100)'
)
linux_only = pytest.mark.skipif(sys.platform != 'linux', reason='PR_SET_PDEATHSIG is a feature of Linux')


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f'/proc/{pid}/stat') as stat:
        return stat.read().rpartition(')')[2].split()[0] != 'Z'


@linux_only
def test_a_child_ends_when_its_parent_is_killed():
    parent = subprocess.Popen([sys.executable, '-c', PARENT], stdout=subprocess.PIPE, text=True)
    with parent.stdout:
        child = int(parent.stdout.readline())
        assert is_running(child)
        parent.kill()
        parent.wait()
        deadline = time.monotonic() + 5.0
        while is_running(child):
            assert time.monotonic() < deadline
            time.sleep(0.02)


@linux_only
def test_a_child_whose_parent_has_ended_already_ends_at_once():
    done = subprocess.run([sys.executable, '-c', CHILD, '1'], capture_output=True, text=True, timeout=LONGEST)
    assert done.returncode == 1
    assert done.stderr == 'process 1 has ended\n'


def test_a_node_that_ends_is_reported_with_its_last_line():
    pytest.importorskip('rclpy', reason='rclpy is not installed')
    with Processes() as processes:
        processes.start('simulator', {'robot': 'nobody'})
        deadline = time.monotonic() + LONGEST
        while processes.dead() is None:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert processes.dead().startswith('simulator ended with status 2: ')
        assert 'nobody' in processes.dead()
        assert processes.dead().endswith(processes.log('simulator').strip().splitlines()[-1])


def test_signals_are_handled_and_restored_also_where_they_were_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(KeyboardInterrupt), signals_as(signal.default_int_handler):
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_domain_that_another_process_uses_is_not_chosen(monkeypatch):
    monkeypatch.setenv('ROS_AUTOMATIC_DISCOVERY_RANGE', 'SUBNET')
    monkeypatch.delenv('ROS_DOMAIN_ID', raising=False)
    monkeypatch.setattr(processes, 'DOMAINS', (7, 8))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as port:
        port.bind(('', 7410 + 250 * 7 + 2))
        processes.private_domain()
    chosen = os.environ.pop('ROS_DOMAIN_ID')
    assert chosen == '8'
    assert os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] == 'LOCALHOST'
