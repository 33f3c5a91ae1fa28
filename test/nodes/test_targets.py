"""Targets of hands and the payload measurement on a node in this process: topics, services, refusals."""

import os
import time

import numpy as np
import pytest
import rclpy
from geometry_msgs.msg import PoseStamped, TwistStamped
from nodes.harness import claim_domain
from rclpy.serialization import serialize_message
from std_srvs.srv import Trigger

from krang_dynamics.bags.io.joint_state_codec import encode


@pytest.fixture
def node(monkeypatch):
    """A controller of anthropomorphic with a soft tool, enabled."""
    from krang_dynamics.nodes.torque_controller import TorqueControllerNode

    domain, lock = claim_domain()
    monkeypatch.setitem(os.environ, 'ROS_DOMAIN_ID', str(domain))
    parameters = (
        'robot:=anthropomorphic', 'terms:=[gravity,cartesian_impedance]', 'flight_recorder:=""',
        'cartesian.tool.stiffness:=[200.0,200.0,200.0,0.5,0.5,0.5]',
    )  # fmt: skip
    rclpy.init(args=['--ros-args', *(word for entry in parameters for word in ('-p', entry))])
    node = TorqueControllerNode()
    node.trigger_configure()
    node.trigger_activate()
    node.session.controller.state.buffer.state_rate.assume()
    state(node)
    assert node.session.enable(True, node.now(), node.clock_now).mode.value == 'ramping'
    yield node
    node.destroy_node()
    rclpy.shutdown()
    lock.close()


def state(node, robot=None):
    """A joint state at home, held by gravity compensation."""
    model = node.session.controller.robot
    effort = (robot or model).gravity_torque(model.home)
    data = encode(model.joint_names, time.time_ns(), model.home, model.home * 0, effort)
    node._on_states(data, 0)


def send(node, topic, message):
    (subscription,) = (s for s in node.subscriptions if s.topic_name == topic)
    subscription.callback(serialize_message(message), {'received_timestamp': 0})
    state(node)


def pose(node, offset, frame_id='world'):
    model, message = node.session.controller.robot, PoseStamped()
    T = model.frame_pose(model.home, 'tool')
    message.header.frame_id = model.urdf.root if frame_id == 'world' else frame_id
    message.pose.position.x, message.pose.position.y, message.pose.position.z = (T[:3, 3] + offset).tolist()
    w = np.sqrt(max(1 + np.trace(T[:3, :3]), 1e-9)) / 2
    R = T[:3, :3]
    x, y, z = (np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / (4 * w)).tolist()
    turn = message.pose.orientation
    turn.x, turn.y, turn.z, turn.w = x, y, z, float(w)
    return message


def test_a_pose_and_a_twist_move_the_reference_of_the_hand(node):
    reference, home = node.session.controller.reference, node.session.controller.robot.home
    send(node, '/target_pose/tool', pose(node, [0.0, 0.05, 0.0]))
    while node.session.controller.targets.is_searching:
        state(node)
    now = node.now()
    assert np.abs(reference.sample(now + 20)[0] - home).max() > 0.01
    message = TwistStamped()
    message.header.frame_id, message.twist.linear.z = 'tool', 0.05
    send(node, '/target_twist/tool', message)
    assert np.abs(reference.sample(node.now() + 0.4)[1]).max() > 0.01


@pytest.mark.parametrize(('change', 'reason'), [('norm', 'norm 2'), ('frame', "frame_id 'nowhere'")])
def test_an_invalid_target_is_refused_by_name(node, change, reason):
    message = pose(node, 0.0, 'nowhere' if change == 'frame' else 'world')
    if change == 'norm':
        turn = message.pose.orientation
        turn.x, turn.y, turn.z, turn.w = 0.0, 0.0, 0.0, 2.0
    refused = []
    node._statistics.refuse = refused.extend
    send(node, '/target_pose/tool', message)
    assert 'target_pose/tool' in refused[0]
    assert reason in refused[0]


def test_the_payload_service_counts_poses(node):
    answer = node._on_estimate_payload(Trigger.Request(), Trigger.Response())
    assert answer.success, answer.message
    assert answer.message == 'tool: 1 of at least 3 poses'
