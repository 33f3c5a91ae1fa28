"""The check of single commands: shape, order, limits and rate. test_guard.py has it behind a guard."""

import numpy as np
import pytest
from harness import robot_named

from krang_dynamics.control.command_check import JITTER, Command, CommandCheck, SpeedRange
from krang_dynamics.control.drivers import Drivers
from krang_dynamics.safety.limits import Limits

UNKNOWN = np.full(2, np.nan)  # measured effort [N m]
WEIGHT = np.array([20.0, 0.0])  # Q [N m]
SPAN = 0.1  # [s]
DT = 1e-3  # [s]


class Checked:
    """A check of the two-link arm at rest, one period per command."""

    def __init__(self):
        robot = robot_named('planar_2r')
        self.limits = Limits.of(robot)
        self.check = CommandCheck(robot, Drivers(robot, robot.joint_names), self.limits)
        self.time = 100.0

    def reason(self, values, label='', measured=UNKNOWN, dt=DT):
        self.time += dt
        self.check.advance(self.time, np.zeros(2), SPAN)
        fault = self.check.check(Command(values, label, self.time), measured, WEIGHT)
        return fault and fault.reason


@pytest.fixture
def checked():
    return Checked()


def test_a_command_within_limits_and_rate_is_right(checked):
    first = np.array([100.0, -50.0])
    assert checked.reason(first, 'joint_1,joint_2', measured=first) is None
    assert checked.reason(np.array([100.0 - 1000.0 * DT, -50.0])) is None


@pytest.mark.parametrize(
    ('values', 'label', 'reason'),
    [
        (np.zeros(3), '', '3'),
        (np.zeros(2), 'joint_2,joint_1', "'joint_2,joint_1'"),
        (np.zeros(2), 10_000 * 'x', f"it is for '{200 * 'x'}', but"),
        (np.array([0.0, np.nan]), '', "driver 'joint_2': nan is not finite"),
        (np.array([100.1, 0.0]), '', "driver 'joint_1': 100.1 is outside -100 .. 100"),
    ],
)
def test_a_wrong_command_has_a_reason(checked, values, label, reason):
    assert reason in checked.reason(values, label)


def test_a_jump_beyond_the_rate_is_wrong_and_what_was_not_used_accumulates(checked):
    checked.reason(np.zeros(2) + 1.0)
    allowed = checked.limits.effort_rate[0] * JITTER
    for _ in range(40):  # until the full allowance is there again
        assert checked.reason(np.array([1.0, 1.0])) is None
    assert checked.reason(np.array([1.0 + 0.99 * allowed, 1.0])) is None
    assert "joint 'joint_1': its torque jumps by" in checked.reason(np.array([1.0 - 0.1 * allowed, 1.0]))


def test_after_a_pause_or_at_the_measured_effort_a_command_begins_anew(checked):
    assert checked.reason(np.array([20.0, 0.0])) is None
    checked.check.forget()
    assert checked.reason(np.array([-80.0, 0.0]), measured=np.array([-80.0, 0.0])) is None
    checked.check.forget()
    assert checked.reason(np.zeros(2)) is None
    assert checked.reason(np.array([80.0, 0.0]), measured=np.array([81.0, 0.0])) is None


def test_a_first_command_without_measured_effort_is_between_zero_and_the_weight(checked):
    assert "'joint_1': its first torque is 30.1 N m" in checked.reason(np.array([30.1, 0.0]))
    assert 'within -10 .. 30 N m' in checked.reason(np.array([-10.1, 0.0]))
    assert checked.reason(np.array([29.9, 5.0])) is None


def test_a_message_that_cannot_be_read_is_invalid(checked):
    command = Command(np.zeros(2), '', checked.time, 'it cannot be read: x')
    checked.check.advance(checked.time, np.zeros(2), SPAN)
    assert checked.check.check(command, UNKNOWN, WEIGHT).reason == 'it cannot be read: x'


def test_a_command_of_the_guard_itself_is_followed(checked):
    checked.reason(np.array([10.0, 0.0]))
    checked.check.follow(np.array([60.0, 0.0]), np.array([60.0, 0.0]))
    assert checked.reason(np.array([60.5, 0.0])) is None


def test_the_range_of_speeds_covers_the_span_and_at_most_twice_of_it():
    speeds = SpeedRange(1)
    low, high = speeds.take(0.0, np.array([5.0]), SPAN)
    assert (low, high) == (0.0, 5.0)
    for k in range(1, 100):
        low, high = speeds.take(k * DT, np.array([-1.0]), SPAN)
        assert high == 5.0
    for k in range(100, 301):
        low, high = speeds.take(k * DT, np.array([-1.0]), SPAN)
    assert (low, high) == (-1.0, -1.0)
