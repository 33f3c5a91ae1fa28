"""The monitor of the node tests sees every kind of command that breaks a promise."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from nodes.fake_robot import robot_named, time_message
from nodes.harness import Record
from nodes.monitor import Monitor
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

PERIOD = 0.005  # [s]
START = 1.7e9  # [s]


class Records(list):
    """A topic that was recorded by hand."""

    @property
    def records(self):
        return self

    def since(self, begin):
        return [record for record in self if record.sent >= begin]


def flight(torques, name='planar_2r', joints=('joint_1', 'joint_2'), mode='active'):
    """A monitor of a controller that sent these torques [N m], one per period."""
    times = [START + PERIOD * k for k in range(len(torques))]
    sent, beside = Records(), Records()
    for k, (time, torque) in enumerate(zip(times, torques, strict=True)):
        message = JointState(name=list(joints), effort=[float(t) for t in torque])
        message.header.stamp = time_message(time - 1e-4)
        beside.append(Record(time, k, message))
        sent.append(Record(time, k, Float64MultiArray(data=message.effort)))
    states = Records([Record(START - 1.0, 0, String(data=json.dumps({'mode': mode})))])
    controller = SimpleNamespace(torques=beside, commands=sent, states=states, enabled_at=[START - 2.0])
    return Monitor(controller, robot_named(name))


SLOPE = np.outer(np.arange(20), [4.9, 2.4])  # just within 1000 and 500 N m/s


def test_a_flight_within_all_limits_is_found_good():
    flight(SLOPE).check()


@pytest.mark.parametrize(
    ('promise', 'torques'),
    [
        ('P1', [[np.nan, 0.0]]),
        ('P1', [[0.0, np.inf]]),
        ('P2', [[100.1, 0.0]]),
        ('P2', [[0.0, -50.1]]),
        ('P3', [[0.0, 0.0], [5.2, 0.0]]),
        ('P3', 1.1 * SLOPE[:18]),
        ('P3', -1.1 * SLOPE[:18]),
    ],
)
def test_a_torque_that_breaks_a_promise_is_seen(promise, torques):
    with pytest.raises(AssertionError, match=promise):
        flight(torques).check()


def test_p5_a_command_while_disabled_is_seen():
    with pytest.raises(AssertionError, match='P5'):
        flight(SLOPE, mode='disabled').check()


def test_p9_effort_on_a_passive_joint_is_seen():
    with pytest.raises(AssertionError, match='P9'):
        flight([[0.1, 0.1]], 'pendubot', ('arm', 'pendulum')).check()


def test_p2_a_driver_that_is_told_something_else_is_seen():
    monitor = flight(SLOPE)
    record = monitor.controller.commands[3]
    monitor.controller.commands[3] = record._replace(message=Float64MultiArray(data=[0.0, 0.0]))
    with pytest.raises(AssertionError, match='P2'):
        monitor.check()
