"""The files that a joint state passes on its way to a command are the ones in docs/architecture.md."""

import os
import re
import sys
import time
from pathlib import Path

import pytest
import rclpy
from nodes.harness import claim_domain

from krang_dynamics.bags.io.joint_state_codec import encode

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = f'{ROOT}/krang_dynamics/'
LEAVES = {'arrays.py', 'errors.py', 'text.py'}  # used everywhere
MOST = 18


@pytest.fixture
def node(monkeypatch):
    """A controller of planar_2r in this process, enabled."""
    from krang_dynamics.nodes.torque_controller import TorqueControllerNode

    domain, lock = claim_domain()
    monkeypatch.setitem(os.environ, 'ROS_DOMAIN_ID', str(domain))
    parameters = ('robot:=planar_2r', 'terms:=[gravity,computed_torque]', 'flight_recorder:=""')
    rclpy.init(args=['--ros-args', *(word for entry in parameters for word in ('-p', entry))])
    node = TorqueControllerNode()
    node.trigger_configure()
    node.trigger_activate()
    yield node
    node.destroy_node()
    rclpy.shutdown()
    lock.close()


def joint_state(node):
    """The bytes of a joint state at home."""
    robot = node.session.controller.robot
    return encode(robot.joint_names, time.time_ns(), robot.home, robot.home * 0, robot.home * 0)


def files_until_published(node, monkeypatch):
    """Files of the package in which a function is called, in order, until the command is published."""
    found = []

    def note(frame, event, arg):
        path = frame.f_code.co_filename
        if event == 'call' and path.startswith(PACKAGE) and path[len(PACKAGE) :] not in found:
            found.append(path[len(PACKAGE) :])

    send = node._topics.send

    def sent(*args):
        result = send(*args)
        sys.setprofile(None)
        return result

    monkeypatch.setattr(node._topics, 'send', sent)
    data = joint_state(node)
    sys.setprofile(note)
    try:
        node._on_states(data, 0)
    finally:
        sys.setprofile(None)
    return found


def test_a_joint_state_passes_the_documented_files_in_order(node, monkeypatch):
    node.session.controller.state.buffer.state_rate.assume()
    node._on_states(joint_state(node), 0)
    assert node.session.enable(True, node.now(), node.clock_now).mode.value == 'ramping'
    node._on_states(joint_state(node), 0)
    found = [
        re.sub(r'^control/terms/.*', 'control/terms/', path)
        for path in files_until_published(node, monkeypatch)
    ]
    found = [path for path in dict.fromkeys(found) if path not in LEAVES]
    text = (ROOT / 'docs' / 'architecture.md').read_text()
    assert found == re.findall(r'^\d+\. `([\w/.]+)`', text, re.MULTILINE)
    assert len(found) <= MOST
