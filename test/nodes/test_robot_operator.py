"""The operator: simulated time, recorded topics, references, and failures of nodes."""

import json

import numpy as np
import pytest
import rclpy
from geometry_msgs.msg import WrenchStamped
from rclpy.executors import SingleThreadedExecutor
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from krang_dynamics.control.reference.trajectory import JointTrajectory as Trajectory
from krang_dynamics.errors import KrangError
from krang_dynamics.nodes.robot_operator import EPOCH, RobotOperator
from krang_dynamics.nodes.ros import qos

pytestmark = pytest.mark.processes

STEPS = 200  # of the operator, at most, until a message arrives


class Robot:
    """Publishes what a controller and a simulator would; keeps what it receives."""

    def __init__(self, context):
        self.node = rclpy.create_node('robot', context=context)
        self.executor = SingleThreadedExecutor(context=context)
        self.executor.add_node(self.node)
        self.trajectories, self.wrenches = [], []
        self._publishers = {}
        subscribe = self.node.create_subscription
        subscribe(JointTrajectory, 'joint_trajectory', self.trajectories.append, qos.RELIABLE)
        subscribe(WrenchStamped, 'wrench/tip', self.wrenches.append, qos.RELIABLE)

    def publish(self, topic, message):
        if topic not in self._publishers:
            profile = qos.LATCHED if topic.endswith('state') else qos.RELIABLE
            self._publishers[topic] = self.node.create_publisher(type(message), topic, profile)
        self._publishers[topic].publish(message)

    def tick(self, time):
        message = Clock()
        message.clock.sec, message.clock.nanosec = divmod(round((EPOCH + time) * 1e9), 10**9)
        self.publish('/clock', message)

    def close(self):
        self.executor.shutdown()
        self.node.destroy_node()


@pytest.fixture
def robot(context):
    robot = Robot(context)
    yield robot
    robot.close()


@pytest.fixture
def ended():
    """Descriptions of processes that have ended."""
    return []


@pytest.fixture
def operator(context, monkeypatch, ended):
    monkeypatch.setenv('ROS_DOMAIN_ID', str(context.get_domain_id()))
    operator = RobotOperator(['gravity'], ['tip'], lambda: ended[0] if ended else None)
    yield operator
    operator.close()


def until(condition, operator, robot, act=lambda: None):
    for _ in range(STEPS):
        act()
        robot.executor.spin_once(0.01)
        operator.step()
        if condition():
            return
    raise AssertionError('the condition never held')


def joint_state(time, position):
    message = JointState(name=['b', 'a'], position=position)
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(round((EPOCH + time) * 1e9), 10**9)
    return message


def test_topics_are_recorded_by_simulated_time(operator, robot):
    until(lambda: operator.now == 0.25, operator, robot, lambda: robot.tick(0.25))
    for time, x in ((0.5, 1.0), (0.25, 0.0), (0.5, 9.0)):  # late, and twice
        robot.publish('simulator/truth', joint_state(time, [x, 2.0]))
    until(lambda: len(list(operator.messages())) == 3, operator, robot)
    times, values = operator.joint_values('simulator/truth', 'position')
    np.testing.assert_allclose(times, [0.25, 0.5], atol=1e-9)
    np.testing.assert_array_equal(values, [[0.0, 2.0], [1.0, 2.0]])
    np.testing.assert_array_equal(operator.q, [9.0, 2.0])
    assert operator.joint_names('simulator/truth') == ('b', 'a')
    assert {entry[:2] for entry in operator.messages()} == {
        ('/simulator/truth', 'sensor_msgs/msg/JointState')
    }
    times, values = operator.joint_values('torque_controller/torques', 'effort')
    assert len(times) == len(values) == 0


def test_trajectories_and_wrenches_arrive(operator, robot):
    x = np.array([[0.0], [1.0]])
    trajectory = Trajectory(('a',), np.array([0.0, 1.5]), x, 2 * x, 3 * x)
    until(lambda: robot.trajectories, operator, robot, lambda: operator.follow(trajectory, 2.5))
    message = robot.trajectories[0]
    assert list(message.joint_names) == ['a']
    assert message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec == EPOCH + 2.5
    last = message.points[-1]
    assert (last.positions[0], last.velocities[0], last.accelerations[0]) == (1.0, 2.0, 3.0)
    assert (last.time_from_start.sec, last.time_from_start.nanosec) == (1, 500_000_000)

    operator.stream_wrench('tip', np.arange(6.0))
    ticks = iter(np.arange(1, STEPS + 1) * 0.03)
    until(lambda: len(robot.wrenches) > 1, operator, robot, lambda: robot.tick(next(ticks)))
    assert robot.wrenches[0].header.frame_id == 'tip'
    assert robot.wrenches[0].wrench.torque.z == 5.0


def test_faults_and_ended_processes_are_errors(operator, robot, ended):
    state = {'time': EPOCH, 'fault': {'kind': 'over_speed', 'reason': 'joint a'}}
    with pytest.raises(KrangError, match=r'faulted at 0\.000 s: over_speed: joint a'):
        until(
            lambda: False,
            operator,
            robot,
            lambda: robot.publish('torque_controller/state', String(data=json.dumps(state))),
        )
    ended.append('simulator ended with status 2: no robot')
    with pytest.raises(KrangError, match='simulator ended with status 2'):
        operator.step()
