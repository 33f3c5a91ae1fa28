"""Thousands of invalid messages on every input, with services and parameters between them."""

import random
import time

import numpy as np
import pytest
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import WrenchStamped
from nodes.fake_robot import FakeRobot, time_message
from nodes.harness import Controller, Guard, Harness
from nodes.monitor import Monitor
from std_msgs.msg import Bool, Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

pytestmark = pytest.mark.processes

SAMPLE, CAMPAIGN = 3000, 20_000  # messages
ROUND = 100  # messages between two attempts to get the node going again
BURST = 10  # messages at once, as deep as a queue is
PAUSE = 0.004  # between bursts, so that what is sent is received [s]
NUMBERS = [0.0, -0.0, 0.6, -0.8, 1e-300, 1e3, -1e9, 1e308, -1.7e308, np.nan, np.inf, -np.inf]
NAMES = [
    'joint_1',
    'joint_2',
    'joint_1',
    'joint_2',
    '',
    'ジョイント',
    'joint_1 ',
    'JOINT_2',
    'x' * 5000,
    '/',
    '\n',
]
FRAMES = ['tip', 'link_1', 'link_2', 'world', 'map', '', 'ツール', 'x' * 5000]
EFFORT = np.array([100.0, 50.0])  # [N m]


class InvalidData:
    """Messages of all kinds, most of them invalid."""

    def __init__(self, robot):
        self.robot = robot
        self.dice = random.Random(20)
        self.kinds = {
            'joint_states': self.joint_states,
            'wrench/tip': self.wrench,
            'joint_trajectory': self.trajectory,
            'deadman': self.switch,
            'emergency_stop': self.switch,
            'guard/joint_states': self.joint_states,
            'guard/effort_commands': self.command,
        }

    def message(self):
        """A topic, and something for it."""
        topic = self.dice.choice(list(self.kinds))
        return topic, self.kinds[topic]()

    def number(self):
        return self.dice.choice([*NUMBERS, self.dice.uniform(-2.0, 2.0)])

    def numbers(self, near=2):
        sizes = [near, near, near, 0, 1, near + 1, 17]
        size = 100_000 if self.dice.random() < 0.002 else self.dice.choice(sizes)
        return [self.number()] * size if size > 100 else [self.number() for _ in range(size)]

    def stamp(self):
        now = time.time()
        when = self.dice.choice([0.0, now, now, now + 0.3, now + 2.0, now - 0.05, now - 100.0, 2e9, None])
        if when is None:
            return Time(
                sec=self.dice.choice([-(2**31), -1, 2**31 - 1]), nanosec=self.dice.choice([0, 2**32 - 1])
            )
        return time_message(when)

    def joint_states(self):
        message = self.robot.joint_state()
        if self.dice.random() < 0.5:
            message.name = self.dice.choices(NAMES, k=self.dice.choice([0, 1, 2, 2, 3, 30]))
        for field in ('position', 'velocity', 'effort'):
            if self.dice.random() < 0.4:
                setattr(message, field, self.numbers(len(message.name)))
        if self.dice.random() < 0.5:
            message.header.stamp = self.stamp()
        return message

    def wrench(self):
        message = WrenchStamped()
        message.header.frame_id, message.header.stamp = self.dice.choice(FRAMES), self.stamp()
        for vector in (message.wrench.force, message.wrench.torque):
            vector.x, vector.y, vector.z = (self.number() for _ in range(3))
        return message

    def trajectory(self):
        names = self.dice.choices(NAMES, k=self.dice.choice([0, 1, 2, 2, 3]))
        points = [self.point(len(names)) for _ in range(self.dice.choice([0, 1, 1, 2, 5]))]
        message = JointTrajectory(joint_names=names, points=points)
        message.header.stamp = self.stamp()
        return message

    def point(self, n):
        fields = [
            f for f in ('positions', 'velocities', 'accelerations', 'effort') if self.dice.random() < 0.6
        ]
        when = Duration(
            sec=self.dice.choice([0, 0, 1, -1, 2**31 - 1]), nanosec=self.dice.choice([0, 10**8, 2**32 - 1])
        )
        return JointTrajectoryPoint(time_from_start=when, **{field: self.numbers(n) for field in fields})

    def switch(self):
        return Bool(data=self.dice.random() < 0.5)

    def command(self):
        near = (self.robot.model.gravity_torque(self.robot.q) + self.dice.uniform(-1, 1)).tolist()
        return Float64MultiArray(data=self.dice.choice([near, near, near, self.numbers()]))

    def parameters(self):
        name = self.dice.choice(
            'ramp_time state_timeout gains__bandwidth limits__effort limits__effort_rate gravity robot terms '
            'payload__tip__mass payload__tip__com wrench__tip__max_force damping limits__velocity'.split()
        )
        sane = {'ramp_time': 0.1, 'gravity': [0.0, 0.0, -9.81], 'payload__tip__mass': 1.0}
        invalid = [self.number(), self.numbers(), self.numbers(3), 'x', True, ['a']]
        return {name: self.dice.choice([*invalid, sane.get(name, 1.0)])}


@pytest.fixture(scope='module', params=[SAMPLE, pytest.param(CAMPAIGN, marks=pytest.mark.long)])
def aftermath(request):
    """Both nodes after all messages: robot, controller, guard."""
    with Harness() as harness:
        robot = FakeRobot(harness)
        FakeRobot(harness, namespace='/guard')
        controller = Controller(
            harness,
            robot='planar_2r',
            terms=['gravity', 'damping', 'computed_torque', 'wrench', 'joint_limits', 'observer'],
            ramp_time=0.05,
            stop__time=0.1,
            stop__blind_time=0.1,
            wrench__tip__convention='applied_by_robot',
        )
        guard = Guard(harness, '/guard', robot='planar_2r', stop__time=0.1, stop__blind_time=0.1)
        controller.activate()
        controller.drive()
        invalid = InvalidData(robot)
        for k in range(request.param):
            topic, message = invalid.message()
            robot.publish(message, topic)
            if k % BURST == 0:
                time.sleep(PAUSE)
            if k % ROUND == 0:
                recover(robot, controller, guard, invalid)
        controller.messages = request.param
        yield robot, controller, guard


def recover(robot, controller, guard, invalid):
    """Release, clear, enable, and change a parameter."""
    robot.publish(Bool(data=False), 'emergency_stop')
    controller.ask('release')  # a stop would last until the robot is at rest
    guard.ask('release')
    controller.clear_fault()
    guard.clear_fault()
    controller.set(**invalid.parameters())
    controller.enable(invalid.dice.random() < 0.9)
    robot.says(10)


def test_p1_the_nodes_answer_after_thousands_of_invalid_messages(aftermath):
    _, controller, guard = aftermath
    assert controller.is_alive
    assert guard.is_alive
    assert controller.lifecycle == 'active'
    assert 'Traceback' not in controller.log
    assert 'Traceback' not in guard.log


def test_p1_the_controller_was_active_among_invalid_messages(aftermath):
    _, controller, _ = aftermath
    assert len(controller.torques) > controller.messages / 20
    assert sum(record.message.data.count('"mode": "ramping"') for record in controller.states.records) > (
        controller.messages / 1000
    )


def test_p1_p2_p3_p5_p9_no_promise_was_broken(aftermath):
    robot, controller, guard = aftermath
    Monitor(controller, robot.model).check()
    for record in guard.passed.records:
        data = np.array(record.message.data)
        assert data.shape == EFFORT.shape
        assert np.isfinite(data).all()
        assert (np.abs(data) <= EFFORT).all()


def test_p4_the_controller_recovers_when_the_invalid_messages_end(aftermath):
    robot, controller, _ = aftermath
    robot.be_honest()
    robot.publish(Bool(data=False), 'emergency_stop')
    robot.says(40)
    controller.rest()
    assert controller.transition('deactivate')
    assert controller.transition('cleanup')
    sane = {
        'ramp_time': 0.1,
        'state_timeout': 0.1,
        'damping': [0.0, 0.0],
        'gravity': [0.0, 0.0, -9.81],
        'gains__bandwidth': 10.0,
        'limits__effort': [100.0, 50.0],
        'limits__effort_rate': [1000.0, 500.0],
        'limits__velocity': [6.0, 6.0],
        'payload__tip__mass': 0.0,
        'payload__tip__com': [0.0, 0.0, 0.0],
    }
    result = controller.set(**sane)
    assert result.successful, result.reason
    controller.activate()
    controller.drive()
    weight = robot.model.gravity_torque(robot.q)
    robot.harness.until(lambda: np.allclose(controller.commands.last.message.data, weight), f'{weight} N m')
