"""P11: torque_guard stands between controller and driver, and outlives the controller."""

import signal
import time
from contextlib import suppress

import numpy as np
import pytest
from nodes.fake_robot import RATE, FakeRobot, time_message
from nodes.harness import LATCHED, NEWEST, Controller, Guard, Harness, Topic
from rclpy._rclpy_pybind11 import RCLError
from rclpy.qos import DurabilityPolicy, QoSProfile
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray, String
from std_srvs.srv import Trigger

from krang_dynamics.control.node_state import HAND_OVER, NodeState

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
    assert half, f'it let go at once: {[(r.sent - begin, data(r)[0]) for r in records]}'
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


def is_silent(harness, robot, guard):
    """Wait until the guard sends nothing more: after a stop it checks for a second that the robot rests."""

    def silent():
        count = len(guard.passed)
        robot.says(TURNS)
        return len(guard.passed) == count

    harness.until(silent, 'the end of the stop')


def holds(guard, robot):
    """Whether the driver gets the robot's weight."""
    return guard.passed.last and np.allclose(data(guard.passed.last), weight(robot))


def weight(robot):
    return robot.model.gravity_torque(robot.q)


def is_latched(harness, controller, guard):
    """Whatever the controller sends, nothing passes before the guard is cleared."""
    count = len(guard.passed)
    known = len(controller.commands)
    harness.until(lambda: len(controller.commands) > known + 10, 'commands of the controller')
    assert len(guard.passed) == count
    assert guard.mode == 'fault'
    assert guard.state['fault']['reason']


def test_p11_commands_pass_unchanged(relaying):
    harness, robot, controller, guard = relaying
    begin = time.time()
    goal = robot.q + 0.2
    robot.move(goal, 0.1)
    harness.until(lambda: np.array_equal(robot.q, goal) and holds(guard, robot), 'the new weight')
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
    # Fast DDS can block a reliable subscriber for 1 s if its publisher freezes right after a state event.
    robot.says(TURNS)
    begin = time.time()
    controller.send(signal.SIGSTOP)
    try:
        lowers(harness, guard, robot, begin)
        assert longest_gap(guard, begin - 0.05) <= REACTION
        guard.until_mode('fault')
        is_silent(harness, robot, guard)
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
        self._robot.says(15)  # longer than the guard's silence: a new stream begins
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
    """Without states, the last weight decays over stop.blind_time once commands end too."""
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


# -- the robot, the switches, and bytes of any kind ------------------------------------------------------

TOPICS = {
    'joint_states': JointState,
    'deadman': Bool,
    'emergency_stop': Bool,
    'torque_controller/state': String,
}


def too_fast(harness, robot):
    robot.v = np.array([0.0, 6.1])


def too_far(harness, robot):
    robot.q, robot.v = robot.model.upper + 0.03, np.array([0.1, 0.1])


def pressed(harness, robot):
    publisher(harness, Bool, 'emergency_stop').publish(Bool(data=True))


def publisher(harness, kind, name, qos=10):
    """A publisher in the namespace of the guard; each is made once, and before it is needed."""
    known = harness.__dict__.setdefault('known_publishers', {})
    if name not in known:
        known[name] = harness.node.create_publisher(kind, f'/pretence/{name}', qos)
        harness.until(known[name].get_subscription_count, f'a subscription of {name}')
        time.sleep(0.1)
    return known[name]


@pytest.mark.parametrize(
    ('cause', 'kind'), [(too_fast, 'velocity'), (too_far, 'position'), (pressed, 'emergency_stop')]
)
def test_p11_a_violation_is_followed_by_the_stop_policy_at_once(fooled, cause, kind):
    harness, robot, guard, _ = fooled
    button = publisher(harness, Bool, 'emergency_stop')
    q, v, begin = robot.q, robot.v, time.time()
    try:
        cause(harness, robot)
        guard.until_fault(kind)
        assert guard.faulted_at(begin) - begin <= REACTION
        assert longest_gap(guard, begin - 0.05) <= REACTION
    finally:
        robot.q, robot.v = q, v
        button.publish(Bool(data=False))


def test_p14_bytes_of_any_kind_do_not_disturb_the_guard(fooled):
    harness, robot, guard, _ = fooled
    for name, kind in TOPICS.items():
        out = publisher(harness, kind, name, LATCHED if name.endswith('state') else 10)
        for data in (b'', b'\0', b'\0\1\0\0', b'\0\1\0\0' + b'\xff' * 8, b'\xff' * 100):
            with suppress(RCLError):  # the middleware refuses some at the sender
                out.publish(data)
        robot.says(2)
    publisher(harness, String, 'torque_controller/state').publish(String(data='[' * 10_000))
    robot.says(TURNS)
    assert guard.fault in (None, 'silence')  # on a loaded machine this process may pause between commands
    assert guard.is_alive


def test_p14_a_command_that_cannot_be_read_is_a_fault(fooled):
    _, _, guard, pretender = fooled
    begin = time.time()
    pretender.torque = None
    pretender._publisher.publish(b'\0\1\0\0\xff\xff')
    guard.until_fault('command')
    assert 'cannot be read' in guard.reason
    assert longest_gap(guard, begin - 0.05) <= REACTION


def test_p13_the_payload_of_the_controller_is_adopted_and_its_stop_taken_over(fooled):
    harness, _, guard, pretender = fooled
    payload = [{'frame': 'tip', 'mass': 3.0, 'com': [0.0] * 3, 'inertia': [[0.0] * 3] * 3}]
    fields = {'time': 0.0, 'step': '', 'mode': 'active', 'fault': None, 'robot': 'planar_2r', 'drivers': ()}
    fields |= {'parameters': {}, 'payload': payload, 'gravity': [0.0, 0.0, -9.81]}
    out = publisher(harness, String, 'torque_controller/state', LATCHED)
    out.publish(String(data=NodeState(event='mode', **fields).to_json()))
    harness.until(lambda: [p['mass'] for p in guard.state['payload']] == [3.0], 'the payload')
    begin = time.time()
    out.publish(String(data=NodeState(event=HAND_OVER, **fields).to_json()))
    guard.until_mode('stopping')
    pretender.torque = None  # the controller has ended
    guard.until_mode('idle')
    assert not data(guard.passed.last).any()
    assert guard.fault is None
    assert longest_gap(guard, begin - 0.05) <= REACTION
    out.publish(String(data=NodeState(event='mode', **{**fields, 'payload': []}).to_json()))
    harness.until(lambda: not guard.state['payload'], 'no payload')


def test_release_of_the_guard_brings_the_torque_to_zero_without_a_fault(fooled):
    harness, robot, guard, _ = fooled
    begin = time.time()
    assert harness.call(Trigger, '/pretence/torque_guard/release').success
    is_silent(harness, robot, guard)
    records = guard.passed.since(begin)
    assert not data(records[-1]).any()
    first = next(r.sent for r in records if not np.allclose(data(r), weight(robot)))
    last = next(r.sent for r in records if not data(r).any())
    assert last - first <= weight(robot)[0] / 1000.0 + 0.05
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


def test_an_idle_guard_takes_a_state_while_simulated_time_stands_still(line):
    harness = line[0]
    beats = Topic(harness, String, '/still/torque_guard/heartbeat', NEWEST)
    guard = Guard(harness, '/still', robot='planar_2r', use_sim_time=True)
    clock = harness.node.create_publisher(Clock, '/clock', NEWEST)
    states = harness.node.create_publisher(JointState, '/still/joint_states', NEWEST)
    stamp = time_message(1.0)

    def reports(word, *messages):
        for publisher, message in messages:
            publisher.publish(message)
        return beats.last and word in beats.last.message.data

    harness.until(lambda: reports('was never received', (clock, Clock(clock=stamp))), 'the clock to be taken')
    state = JointState(name=['joint_1', 'joint_2'], position=[0.6, 0.8], velocity=[0.0, 0.0])
    state.header.stamp = stamp
    harness.until(
        lambda: reports('idle', (states, state)) and ':' not in beats.last.message.data, 'the state'
    )
    guard.send(signal.SIGINT)
    assert guard.wait(LONGEST_STOP) == 0
    harness.node.destroy_publisher(clock)
    harness.node.destroy_publisher(states)


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


# -- a controller that knows its guard -------------------------------------------------------------------


@pytest.fixture(scope='module')
def watched(line):
    """A controller that needs its guard, and an emergency stop that was pressed before they started."""
    harness = line[0]
    robot = FakeRobot(harness, namespace='/watched')
    kept = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    button = harness.node.create_publisher(Bool, '/watched/emergency_stop', kept)
    button.publish(Bool(data=True))
    guard = Guard(harness, '/watched', robot='planar_2r', **QUICK)
    controller = Controller(
        harness, namespace='/watched', robot='planar_2r', guard='torque_guard', ramp_time=0.2, **QUICK
    )
    controller.activate()
    guard.until_fault('emergency_stop')
    button.publish(Bool(data=False))
    harness.until(lambda: watched_relays(controller, guard), 'the guard to relay')
    return harness, robot, controller, guard


def watched_relays(controller, guard):
    if not controller.is_alive:  # a test that ended it is repeated
        controller.start()
        controller.activate()
    controller.enable(False)
    controller.until_cleared()
    guard.until_cleared()
    controller.until_mode('disabled')
    controller.drive()
    return guard.mode == 'relaying'


def test_p12_a_controller_faults_with_the_reason_of_its_guard(watched):
    harness, _, controller, guard = watched
    harness.until(lambda: watched_relays(controller, guard), 'the guard to relay')
    assert harness.call(Trigger, '/watched/torque_guard/release').success
    controller.until_fault('guard')
    assert 'the robot is released' in controller.reason


def test_p12_a_controller_faults_within_half_a_second_when_its_guard_is_gone(watched):
    harness, _, controller, guard = watched
    harness.until(lambda: watched_relays(controller, guard), 'the guard to relay')
    begin = time.time()
    guard.send(signal.SIGSTOP)
    try:
        controller.until_fault('guard')
        assert controller.faulted_at(begin) - begin <= 0.5
        assert 'no heartbeat' in controller.reason
        harness.until(lambda: controller.clear_fault().success, 'the end of the stop')
        answer = controller.enable()
        assert not answer.success
        assert 'no heartbeat' in answer.message
    finally:
        guard.send(signal.SIGCONT)


def test_p8_a_controller_that_ends_hands_its_stop_over_to_the_guard(watched):
    harness, robot, controller, guard = watched
    harness.until(lambda: watched_relays(controller, guard), 'the guard to relay')
    begin = time.time()
    controller.send(signal.SIGTERM)
    assert controller.wait() == 0
    assert any('"stopping"' in record.message.data for record in guard.states.since(begin))
    lowers(harness, guard, robot, begin)
    guard.until_mode('idle')
    assert guard.fault is None
