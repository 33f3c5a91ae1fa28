"""Latency that torque_guard adds between controller and driver, against the round trip of an echo node."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import node
import numpy as np
from timing import figure

ROUNDS = 3


class GuardedClient(node.Client):
    """A driver behind the guard."""

    commands = 'guarded/effort_commands'


def run():
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    os.environ['ROS_DOMAIN_ID'] = str(1 + os.getpid() % 100)
    trips = {}
    # In turn, so that changes of the machine's load affect all.
    for _ in range(ROUNDS):
        with node.Client() as client:
            for name in ('echo', 'torque_controller'):
                with node.answering(name, client):
                    trips.setdefault(name, []).append(client.round_trips())
        with GuardedClient() as client, guarding(), node.answering('torque_controller', client):
            trips.setdefault('guarded', []).append(client.round_trips())
    median = {name: np.median(parts) * 1e6 for name, parts in trips.items()}
    added = median['guarded'] - median['torque_controller']
    yield figure('guard, added round trip / echo', added / median['echo'], 0.6, **{'added us': added})


@contextmanager
def guarding():
    """A guard in its own process."""
    guard = str(Path(sys.executable).parent / 'torque_guard')
    options = '--ros-args -p robot:=krang -p state_timeout:=2.0 -p silence:=0.5 --log-level fatal'
    process = subprocess.Popen([guard, *options.split()])
    try:
        yield
    finally:
        process.terminate()
        process.wait(10)
