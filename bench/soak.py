"""Memory of torque_controller at 1 kHz for ten minutes, Krang with all terms and the flight recorder."""

import os
from pathlib import Path

import node

MINUTES = 10


def run():
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    os.environ['ROS_DOMAIN_ID'] = str(1 + os.getpid() % 100)
    with node.Client() as client, node.answering('torque_controller', client) as process:
        for minute in range(1, MINUTES + 1):
            share = client.share_answered(60.0)
            yield {'minute': minute, 'megabytes': resident(process.pid), 'answered %': 100 * share}


def resident(pid):
    """Resident memory of a process [MB], from /proc."""
    return int(Path(f'/proc/{pid}/statm').read_text().split()[1]) * os.sysconf('SC_PAGE_SIZE') / 1e6
