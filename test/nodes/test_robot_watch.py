"""The source of the page: what it sees of nodes that come and go, and what it costs."""

import asyncio
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
import rclpy
from nodes.harness import Harness, claim_domain
from nodes.krang_command import Command
from std_msgs.msg import Bool

from krang_dynamics.nodes.robot_watch import RobotWatch
from krang_dynamics.nodes.ros.qos import LATCHED
from krang_dynamics.robot.library import load_robot

pytestmark = pytest.mark.processes

PUBLISHER = Path(__file__).with_name('publish_states.py')
BOUND = 25.0  # of one core [%]
SPAN = 10.0  # of the measurement [s]


@pytest.mark.long
def test_the_page_takes_less_than_a_quarter_of_a_core_at_1_khz():
    """Krang's states, torques, reference and terms at 1 kHz, and the connection of one browser."""
    with Harness() as harness:
        page = Command(harness, 'view', 'krang', '--port', '8471')
        harness.until(lambda: 'http' in page.log, 'the address of the page')
        url = re.search(r'http\S+', page.log)[0]
        environment = dict(page.environment)
        publisher = subprocess.Popen(
            [sys.executable, str(PUBLISHER), str(SPAN + 10)],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        received = []
        Thread(target=lambda: asyncio.run(_browse(url, SPAN + 6, received)), daemon=True).start()
        time.sleep(4.0)
        before, start = _cpu_time(page.popen.pid), time.monotonic()
        time.sleep(SPAN)
        used = 100 * (_cpu_time(page.popen.pid) - before) / (time.monotonic() - start)
        rate = float(publisher.communicate()[0])
        print(f'{used:.1f} % of a core, states at {rate:.0f} Hz, {len(received) / (SPAN + 6):.0f} frames/s')
        assert rate > 950
        assert np.sum(received) > 100_000
        assert used < BOUND


def test_the_page_releases_only_an_emergency_stop_that_nobody_else_can_have_pressed(monkeypatch):
    domain, lock = claim_domain()
    monkeypatch.setenv('ROS_DOMAIN_ID', str(domain))
    watch, answers, pressed = RobotWatch(load_robot('planar_2r')), [], []
    other = rclpy.create_node('switch')
    other.create_subscription(Bool, 'emergency_stop', lambda message: pressed.append(message.data), LATCHED)

    def answer_is(success, words):
        watch.release_emergency_stop(lambda *answer: answers.append(answer))
        watch.poll()
        return answers[-1][0] == success and answers[-1][1].startswith(words)

    try:
        watch.operate()
        assert answer_is(False, 'this page has not pressed it')
        watch.press_emergency_stop()
        switch = other.create_publisher(Bool, 'emergency_stop', LATCHED)
        _until(lambda: answer_is(False, 'switch can have pressed it too'))
        other.destroy_publisher(switch)
        _until(lambda: answer_is(True, 'released'))
        _until(lambda: rclpy.spin_once(other, timeout_sec=0.01) or pressed[-1:] == [False])
    finally:
        other.destroy_node()
        watch.close()
        lock.close()


def _until(condition, patience=20.0):
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _cpu_time(pid):
    """Of a process and its threads, user and system [s]."""
    fields = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


async def _browse(url, seconds, received):
    """Receive what a browser with the token receives."""
    import viser
    import websockets

    host = url.split('/')[2]
    address, protocol = f'ws{url[4:].rstrip("/")}', websockets.Subprotocol(f'viser-v{viser.__version__}')
    async with websockets.connect(
        address, origin=f'http://{host}', subprotocols=[protocol], max_size=None
    ) as socket:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            received.append(len(await socket.recv()))
