"""P12: two robots in two namespaces are independent. P10: two controllers of one robot agree bit by bit."""

import numpy as np
import pytest
from nodes.fake_robot import FakeRobot
from nodes.harness import Controller
from nodes.monitor import Monitor
from std_msgs.msg import Bool

pytestmark = pytest.mark.processes

ARM = {
    'robot': 'planar_2r',
    'terms': ['gravity'],
    'ramp_time': 0.1,
    'stop__time': 0.2,
    'state_timeout': 0.8,
    'limits__state_rate': 5.0,  # the robot is a thread of the tests, which may pause
}


def weight(robot):
    return robot.model.gravity_torque(robot.q)


@pytest.fixture(scope='module')
def controllers(harness):
    """Two controllers with a robot each, and two that share a robot; started together, which is faster."""
    remap = [('joint_states', '/joint_states')]
    own = [Controller(harness, namespace=name, **ARM) for name in ('/left', '/right')]
    twins = [Controller(harness, namespace=name, remap=remap, **ARM) for name in ('/one', '/two')]
    return own, twins


def test_p12_two_robots_in_two_namespaces_do_not_receive_each_other(harness, controllers):
    robots = [FakeRobot(harness, namespace=name) for name in ('/left', '/right')]
    robots[1].q = np.array([-0.4, 0.3])
    left, right = controllers[0]
    for controller in (left, right):
        controller.activate()
    left.drive()
    assert right.mode == 'disabled'
    assert not right.commands.records
    right.drive()
    robots[0].says(60)
    for robot, controller in zip(robots, (left, right), strict=True):
        assert np.allclose(controller.commands.last.message.data, weight(robot))
    robots[0].publish(Bool(data=True), 'emergency_stop')
    left.until_fault('emergency_stop')
    robots[0].says(60)
    assert right.mode == 'active'
    assert np.allclose(right.commands.last.message.data, weight(robots[1]))
    for robot, controller in zip(robots, (left, right), strict=True):
        Monitor(controller, robot.model).check()
        robot.leave()


def test_p10_two_controllers_with_the_same_states_send_the_same_bits(harness, robot, controllers):
    twins = controllers[1]
    for twin in twins:
        twin.activate()
        twin.drive()

    begin, w = robot.now(), np.array([3.0, 5.0])  # [s], [rad/s]

    def swing():
        """Slow enough that no rate limit acts, however long a period takes."""
        angle = w * (robot.now() - begin)
        robot.q, robot.v = robot.model.home + 0.3 * np.sin(angle), 0.3 * w * np.cos(angle)
        robot.honest()

    robot.say = swing
    robot.says(20)  # the ramps are over
    counts = [len(twin.torques) for twin in twins]
    robot.says(200)
    sent = [
        {stamp_of(r.message): r.message.effort.tobytes() for r in twin.torques.records[start:]}
        for twin, start in zip(twins, counts, strict=True)
    ]
    both = sent[0].keys() & sent[1].keys()
    assert len(both) > 100
    assert len({sent[0][stamp] for stamp in both}) > 100
    assert all(sent[0][stamp] == sent[1][stamp] for stamp in both)


def stamp_of(message):
    return message.header.stamp.sec, message.header.stamp.nanosec
