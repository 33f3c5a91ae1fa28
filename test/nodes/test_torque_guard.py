"""P11: torque_guard stands between controller and driver, and outlives the controller."""

import signal
import time

import numpy as np
import pytest
from nodes.fake_robot import RATE, FakeRobot
from nodes.harness import Controller, Guard, Harness
from std_msgs.msg import Float64MultiArray

pytestmark = pytest.mark.processes

REACTION = 0.050 + 1.0 / RATE  # P11 [s]
LONGEST_STOP = 4.0  # [s]
EFFORT = np.array([100.0, 50.0])  # of planar_2r [N m]
QUICK = {'stop__time': 0.3, 'stop__blind_time': 0.2, 'state_timeout': 0.8}
TURNS = 40  # of the robot, 0.2 s


def data(record):
    return np.array(record.message.data)


def check(guard, begin=0.0):
    """P1 and P2 for all that it lets through or makes itself."""
    for record in guard.passed.since(begin):
        assert data(record).shape == EFFORT.shape
        assert np.isfinite(data(record)).all()
        assert (np.abs(data(record)) <= EFFORT).all()
    assert guard.is_alive
    assert 'Traceback' not in guard.log


def longest_gap(guard, begin):
    """The longest time without a command to the driver, until the stop is over [s]."""
    times = [record.sent for record in guard.passed.since(begin)]
    return np.diff(times).max()


def lowers(harness, guard, robot, begin, stop_time=QUICK['stop__time']):
    """The stop policy of the robot, made by the guard: its weight, let go in time, then zero."""
    harness.until(lambda: not data(guard.passed.last).any(), 'zero torque')
    records = guard.passed.since(begin)
    weight = robot.model.gravity_torque(robot.q)
    for record in records:
        assert (data(record) <= weight + 1e-6).all()
    half = [data(r)[0] for r in records if 0.4 * stop_time < r.sent - begin < 0.7 * stop_time]
    assert half, 'it let go at once'
    assert all(0.15 * weight[0] < torque < 0.95 * weight[0] for torque in half)
    assert (np.diff([data(r)[0] for r in records]) <= 1e-6).all()


# -- with a controller --------------------------------------------------------------------------------


@pytest.fixture(scope='module')
def line():
    """Robot, controller and guard, one behind the other."""
    with Harness() as harness:
        robot = FakeRobot(harness)
        guard = Guard(harness, robot='planar_2r', **QUICK)
        controller = Controller(harness, robot='planar_2r', terms=['gravity'], ramp_time=0.2, **QUICK)
        controller.activate()
        yield harness, robot, controller, guard


@pytest.fixture
def relaying(line):
    """The controller drives, the guard lets it."""
    harness, robot, _, guard = line
    robot.be_honest()
    begin = time.time()
    harness.until(lambda: relays(*line), 'the weight to come through')
    yield line
    check(guard, begin)


def relays(harness, robot, controller, guard):
    """Whether the weight came through, from a controller that was enabled after the guard was cleared."""
    robot.says()
    controller.rest()
    guard.until_cleared()
    controller.drive()
    harness.until(lambda: guard.fault or holds(guard, robot), 'the weight to come through')
    return guard.mode == 'relaying'


def holds(guard, robot):
    """Whether the driver gets the robot's weight."""
    return guard.passed.last and np.allclose(data(guard.passed.last), weight(robot))


def weight(robot):
    return robot.model.gravity_torque(robot.q)


def is_latched(harness, controller, guard):
    """Whatever the controller sends, nothing passes before the guard is cleared."""
    count = len(guard.passed)
    heard = len(controller.commands)
    harness.until(lambda: len(controller.commands) > heard + 10, 'commands of the controller')
    assert len(guard.passed) == count
    assert guard.mode == 'fault'
    assert guard.state['fault']['reason']


def test_p11_commands_pass_unchanged(relaying):
    harness, robot, controller, guard = relaying
    begin = time.time()
    robot.q = robot.q + 0.2
    harness.until(lambda: holds(guard, robot), 'the new weight')
    sent = {tuple(r.message.data) for r in controller.commands.records}
    assert {tuple(r.message.data) for r in guard.passed.since(begin)} <= sent
    assert guard.fault is None


def test_p11_a_stop_of_the_controller_passes_and_is_no_fault(relaying):
    harness, robot, controller, guard = relaying
    controller.enable(False)
    controller.until_mode('disabled')
    robot.says(TURNS)
    assert not data(guard.passed.last).any()
    assert guard.fault is None
    controller.drive()
    harness.until(lambda: holds(guard, robot), 'the weight to come through')


def test_p11_a_frozen_controller_is_followed_by_the_stop_policy_and_stays_out(relaying):
    harness, robot, controller, guard = relaying
    begin = time.time()
    controller.send(signal.SIGSTOP)
    try:
        lowers(harness, guard, robot, begin)
        assert longest_gap(guard, begin - 0.05) <= REACTION
        guard.until_mode('fault')
        count = len(guard.passed)
    finally:
        controller.send(signal.SIGCONT)
    controller.rest()
    controller.drive()
    is_latched(harness, controller, guard)
    assert len(guard.passed) == count


def test_p11_a_killed_controller_is_followed_by_the_stop_policy(relaying):
    harness, robot, controller, guard = relaying
    begin = time.time()
    controller.send(signal.SIGKILL)
    controller.wait()
    lowers(harness, guard, robot, begin)
    assert longest_gap(guard, begin - 0.05) <= REACTION
    guard.until_mode('fault')
    assert guard.is_alive
    assert guard.log.strip()  # it says so


# -- with this process as the controller --------------------------------------------------------------


class Pretender:
    """Sends what a controller would, once per state of the robot, until told otherwise."""

    def __init__(self, harness, robot, namespace=''):
        node = harness.add_node('pretender', namespace)
        self._publisher = node.create_publisher(Float64MultiArray, 'effort_commands', 1)
        self._robot = robot
        self.torque = weight(robot).tolist()  # None: silence
        robot.say = self.speak

    def send(self, numbers):
        self._publisher.publish(Float64MultiArray(data=numbers))

    def speak(self):
        self._robot.honest()
        if self.torque is not None:
            self.send(self.torque)

    def ramps(self, guard):
        """From nothing to the weight, within the rate; whether the guard lets it through."""
        self.torque = None
        guard.until_cleared()
        for share in np.linspace(0.0, 1.0, 20):
            self.torque = (share * weight(self._robot)).tolist()
            self._robot.says(2)
        self._robot.says(5)
        return guard.mode == 'relaying' and holds(guard, self._robot)


@pytest.fixture(scope='module')
def fresh_guard(line):
    """A guard that has received nothing yet, in the namespace /fresh."""
    return Guard(line[0], '/fresh', robot='planar_2r', **QUICK)


@pytest.fixture(scope='module')
def pretence(line, fresh_guard):
    harness = line[0]
    robot = FakeRobot(harness, namespace='/pretence')
    guard = Guard(harness, '/pretence', robot='planar_2r', **QUICK)
    return harness, robot, guard, Pretender(harness, robot, '/pretence')


@pytest.fixture
def fooled(pretence):
    """The guard relays what this process sends."""
    harness, robot, guard, pretender = pretence
    robot.be_honest()
    robot.say = pretender.speak
    begin = time.time()
    harness.until(lambda: pretender.ramps(guard), 'the weight to come through')
    yield pretence
    check(guard, begin)


@pytest.mark.parametrize(
    'invalid',
    [
        [np.nan, 0.0],
        [0.0, np.inf],
        [1e308, -1e308],
        [],
        [21.0],
        [21.0, 0.6, 0.0],
        [0.0] * 10_000,
        [100.1, 0.0],
        [0.0, -50.1],
    ],
    ids=['nan', 'inf', 'huge', 'empty', 'short', 'long', 'endless', 'above', 'below'],
)
def test_p11_invalid_commands_do_not_pass_and_start_the_stop_policy(fooled, invalid):
    harness, robot, guard, pretender = fooled
    begin = time.time()
    pretender.torque = invalid
    lowers(harness, guard, robot, begin)
    assert longest_gap(guard, begin - 0.05) <= REACTION
    guard.until_fault()
    assert guard.state['fault']['reason']


def test_p11_a_command_that_jumps_faster_than_the_rate_does_not_pass_as_it_is(fooled):
    _, robot, guard, pretender = fooled
    begin = time.time()
    pretender.torque = [-100.0, 50.0]
    robot.says(1)
    robot.says(TURNS)
    torque = np.array([data(record) for record in guard.passed.since(begin - 0.02)])
    times = np.array([record.sent for record in guard.passed.since(begin - 0.02)])
    fastest = 10.0 * EFFORT * (np.diff(times)[:, None] + 0.02)  # and a moment of jitter
    assert (np.abs(np.diff(torque, axis=0)) <= fastest).all()


def test_p11_the_guard_needs_its_own_states(fooled):
    """Blind, it lets go of the last weight over stop.blind_time once the controller falls silent too."""
    harness, robot, guard, _ = fooled
    robot.hushes()
    guard.until_fault()
    harness.until(lambda: not data(guard.passed.last).any(), 'zero torque')


def test_p11_silence_after_zero_torque_is_no_fault(fooled):
    _, robot, guard, pretender = fooled
    for share in np.linspace(1.0, 0.0, 20):
        pretender.torque = (share * weight(robot)).tolist()
        robot.says(2)
    pretender.torque = None
    robot.says(TURNS)
    assert guard.fault is None


def test_p11_a_fresh_guard_sends_nothing_before_the_first_command_and_then_at_once(line, fresh_guard):
    harness, guard = line[0], fresh_guard
    robot = FakeRobot(harness, namespace='/fresh')
    guard.until_mode('idle')
    robot.says(TURNS)
    assert not guard.passed.records
    pretender = Pretender(harness, robot, '/fresh')
    pretender.torque = [0.1, 0.0]
    harness.until(lambda: len(guard.passed) > 20, 'commands to come through')
    times = [record.sent for record in guard.passed.records]
    pretender.torque = [0.0, 0.0]
    robot.says(5)
    guard.send(signal.SIGINT)
    assert guard.wait(LONGEST_STOP) == 0
    assert np.diff(times).max() <= REACTION
    robot.leave()


def test_p8_a_signal_to_the_guard_ends_in_the_stop_policy(pretence):
    """Nobody is left to relay after it."""
    harness, robot, guard, pretender = pretence
    robot.be_honest()
    robot.say = pretender.speak
    harness.until(lambda: pretender.ramps(guard), 'the weight to come through')
    begin = time.time()
    guard.send(signal.SIGTERM)
    assert guard.wait() == 0
    assert time.time() - begin <= LONGEST_STOP
    lowers(harness, guard, robot, begin)
    assert 'Traceback' not in guard.log


def test_p11_a_new_controller_does_not_get_through_before_the_guard_is_cleared(line):
    """Late in this file: a killed publisher stays in the graph for a while, and P12 keeps the new one out."""
    harness, robot, controller, guard = line
    controller.kill()
    robot.be_honest()
    guard.until_mode('fault')
    controller.start()
    controller.activate()
    controller.drive()
    is_latched(harness, controller, guard)
    harness.until(lambda: relays(*line), 'the weight to come through')
    check(guard)
