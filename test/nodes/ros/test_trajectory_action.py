"""The action server on real topics, with the error codes that MoveIt reads."""

import numpy as np
import pytest
from nodes.harness import Controller, Simulator
from trajectory_msgs.msg import JointTrajectoryPoint

import krang_dynamics as kd

pytestmark = pytest.mark.processes
control_msgs = pytest.importorskip('control_msgs.action', reason='control_msgs is not installed')

ROBOT = kd.load_robot('planar_2r')
SUCCEEDED, CANCELED, ABORTED = 4, 5, 6  # action_msgs/GoalStatus


@pytest.fixture(scope='module')
def client(harness):
    from rclpy.action import ActionClient

    Simulator(harness, robot='planar_2r', publish_clock=True, rate=250.0, held=True)
    terms = ['gravity', 'computed_torque']
    controller = Controller(harness, robot='planar_2r', terms=terms, use_sim_time=True, ramp_time=0.2)
    controller.activate()
    controller.drive()
    action = '/torque_controller/follow_joint_trajectory'
    client = ActionClient(harness.node, control_msgs.FollowJointTrajectory, action)
    harness.until(client.server_is_ready, 'the action server')
    return client


def goal(way, duration, names=ROBOT.joint_names, points=500, start=0.0):
    """A quintic from home, or from beside it, with velocities and accelerations, as MoveIt sends it."""
    goal = control_msgs.FollowJointTrajectory.Goal()
    goal.trajectory.joint_names = list(names)
    for u in np.arange(1, points + 1) / points:
        s = u**3 * (10 - 15 * u + 6 * u**2), 30 * u**2 * (1 - u) ** 2, 60 * u * (1 - u) * (1 - 2 * u)
        point = JointTrajectoryPoint(
            positions=(ROBOT.home + start + way * s[0]).tolist(),
            velocities=[way * s[1] / duration] * 2,
            accelerations=[way * s[2] / duration**2] * 2,
        )
        whole, rest = divmod(round(1e9 * duration * u), 10**9)
        point.time_from_start.sec, point.time_from_start.nanosec = whole, rest
        goal.trajectory.points.append(point)
    return goal


@pytest.fixture
def send(harness, client):
    """Sends a goal; returns its handle and the future of its result."""

    def send(goal, feedback=None):
        future = client.send_goal_async(goal, feedback_callback=feedback)
        harness.until(future.done, 'the answer to the goal')
        return future.result(), future.result().get_result_async()

    return send


def outcome(harness, result):
    harness.until(result.done, 'the result')
    return result.result().status, result.result().result.error_code


def test_a_goal_of_500_points_is_reached_with_feedback(harness, send):
    feedback = []
    for way, start in ((0.3, 0.0), (-0.3, 0.3)):
        _, result = send(goal(way, 1.5, start=start), feedback.append)
        assert outcome(harness, result) == (SUCCEEDED, 0)
    assert feedback[0].feedback.joint_names == list(ROBOT.joint_names)


def test_invalid_goals_have_their_codes(harness, send):
    old = goal(0.1, 1.0)
    old.trajectory.header.stamp.nanosec = 1
    old.trajectory.points = old.trajectory.points[:1]
    for request, code in ((goal(0.1, 1.0, points=0), -1), (goal(0.1, 1.0, ('a', 'b')), -2), (old, -3)):
        assert outcome(harness, send(request)[1]) == (ABORTED, code)


def test_a_new_goal_replaces_the_last_and_can_be_cancelled(harness, send):
    _, first = send(goal(0.2, 8.0))
    handle, second = send(goal(0.2, 9.0))
    assert outcome(harness, first) == (ABORTED, -1)
    handle.cancel_goal_async()
    assert outcome(harness, second)[0] == CANCELED
