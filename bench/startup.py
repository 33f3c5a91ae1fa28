"""Time from the start of torque_controller's process until it is configured, and its imports alone."""

import os
import subprocess
import sys
import time

from timing import figure

ROUNDS = 5
IMPORTS = 'import os; from krang_dynamics.nodes.torque_controller import TorqueControllerNode; '
CONFIGURE = (
    'import rclpy; '
    'rclpy.init(args="--ros-args -p robot:=krang -p terms:=gravity --log-level fatal".split()); '
    'node = TorqueControllerNode(); assert node.trigger_configure().name == "SUCCESS"; '
)
END = 'os._exit(0)'  # the time of the end does not count


def run():
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    yield figure('start-up of torque_controller until configured s', least(IMPORTS + CONFIGURE + END), 0.7)
    yield {'figure': 'of which imports s', 'value': least(IMPORTS + END)}


def least(code):
    """The shortest time of several runs [s]."""
    return min(seconds(code) for _ in range(ROUNDS))


def seconds(code):
    start = time.perf_counter()
    subprocess.run([sys.executable, '-c', code], check=True)
    return time.perf_counter() - start
