"""`krang validate` and `krang identify` on one hour of Krang at 1 kHz: times real time, and memory.

It writes 2.4 GB to the temporary folder, and takes about two minutes.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from timing import figure

import krang_dynamics as kd
from krang_dynamics.bags.io.joint_state_codec import TYPE, encode
from krang_dynamics.bags.io.writer import BagWriter

HOUR, RATE = 3600, 1000  # s, Hz
PERIOD = 20  # of the motion, which repeats [s]
KRANG = 'from krang_dynamics.cli.main import command; command()'


def run():
    with tempfile.TemporaryDirectory() as folder:
        bag = Path(folder) / 'hour'
        record(bag, HOUR)
        for command, goal in (('validate', 400), ('validate --cutoff 10', 400), ('identify', 60)):
            seconds, megabytes = measured(bag, *command.split())
            what = f'krang {command}, times real time'
            details = {'seconds': seconds, 'megabytes': megabytes}
            yield figure(what, HOUR / seconds, goal, at_least=True, **details)


def record(bag, duration):
    """A smooth motion of all joints with its torques, and noise."""
    robot, random = kd.load_robot('krang'), np.random.default_rng(4)
    t = np.arange(0, PERIOD, 1 / RATE)[:, None]
    omega = 2 * np.pi / PERIOD * random.integers(1, 6, robot.nv)
    q = robot.home + 0.2 * np.sin(omega * t)
    v, a = 0.2 * omega * np.cos(omega * t), -0.2 * omega**2 * np.sin(omega * t)
    tau = np.array([robot.inverse_dynamics(*state, friction=True) for state in zip(q, v, a, strict=True)])
    tau += random.normal(0, 0.1, tau.shape)
    messages = [encode(robot.joint_names, 0, *state) for state in zip(q, v, tau, strict=True)]
    with BagWriter(bag) as writer:
        for k in range(duration * RATE):
            now = k * 1_000_000_000 // RATE + 1
            seconds, nanoseconds = divmod(now, 1_000_000_000)
            stamp = seconds.to_bytes(4, 'little') + nanoseconds.to_bytes(4, 'little')
            message = messages[k % len(messages)]
            writer.write('/joint_states', TYPE, message[:4] + stamp + message[12:], now)


def measured(bag, name, *options):
    """Seconds of a command, and the largest memory of all its processes together [MB]."""
    command = [sys.executable, '-c', KRANG, name, str(bag), '--robot', 'krang', *options]
    start, most = time.perf_counter(), 0.0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            most = max(most, sum(map(resident, family(process.pid))))
            time.sleep(0.05)
    if process.returncode:
        raise RuntimeError(f'krang {name} ended with status {process.returncode}')
    return time.perf_counter() - start, most


def family(pid):
    """A process and all its descendants, from /proc."""
    try:
        children = Path(f'/proc/{pid}/task/{pid}/children').read_text().split()
    except OSError:
        return []
    return [pid, *(found for child in children for found in family(int(child)))]


def resident(pid):
    """Memory of a process [MB], shared memory counted in proportion, where the kernel reports it."""
    try:
        lines = Path(f'/proc/{pid}/smaps_rollup').read_text().splitlines()
        return next(float(line.split()[1]) / 1000 for line in lines if line.startswith('Pss:'))
    except (OSError, StopIteration):
        return 0.0
