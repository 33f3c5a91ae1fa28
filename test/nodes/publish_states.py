"""Krang's joint states, torques, reference and three terms at 1 kHz, for a time given in seconds."""

import sys
import time

import numpy as np
import rclpy
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from krang_dynamics.bags.io.joint_state_codec import JointStateWriter
from krang_dynamics.control.node_state import NodeState
from krang_dynamics.nodes.ros import qos
from krang_dynamics.robot.library import load_robot

PERIOD = 1e-3  # [s]
TERMS = ('gravity', 'friction', 'computed_torque')


def main(duration):
    rclpy.init()
    robot, node = load_robot('krang'), rclpy.create_node('torque_controller')
    names, joints = robot.joint_names, np.arange(robot.nv)
    state = NodeState(
        'mode', 0.0, '', 'active', None, robot.name, (), {'terms': TERMS}, gravity=[0, 0, -9.81],
        limits={'effort': [100.0] * robot.nv},
    )  # fmt: skip
    latched = node.create_publisher(String, 'torque_controller/state', qos.LATCHED)
    latched.publish(String(data=state.to_json()))

    def publisher(topic):
        return node.create_publisher(JointState, f'torque_controller/{topic}', qos.RELIABLE)

    states = node.create_publisher(JointState, 'joint_states', qos.STATES)
    reference = publisher('reference')
    efforts = [publisher(f'{topic}') for topic in ('torques', *(f'terms/{term}' for term in TERMS))]
    measured = JointStateWriter(names, ('position', 'velocity', 'effort'))
    desired, effort = JointStateWriter(names, ('position', 'velocity')), JointStateWriter(names, ('effort',))
    start, count = time.monotonic(), 0
    while (now := time.monotonic() - start) < duration:
        stamp = divmod(time.time_ns(), 10**9)
        q, v = robot.home + 0.2 * np.sin(now + joints), 0.2 * np.cos(now + joints)
        torque = 50 * np.sin(now + joints)
        states.publish(measured.stamped(stamp, q, v, torque))
        reference.publish(desired.stamped(stamp, q + 0.01, v))
        data = effort.stamped(stamp, torque)
        for each in efforts:
            each.publish(data)
        count += 1
        time.sleep(max(0.0, start + count * PERIOD - time.monotonic()))
    print(count / duration)


main(float(sys.argv[1]))
