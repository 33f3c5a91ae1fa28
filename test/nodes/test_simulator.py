"""simulator: the same messages at every run, its own time, and what controllers make of its faults."""

import os
import signal
import time

import numpy as np
import pytest
import rclpy
from nav_msgs.msg import Odometry
from nodes.harness import EPOCH, Controller, Simulator, Topic, seconds
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import krang_dynamics as kd
from krang_dynamics.nodes.simulator import SimulatorNode

pytestmark = pytest.mark.processes

ROBOT = kd.load_robot('planar_2r')
SENSORS = QoSProfile(depth=5000, reliability=ReliabilityPolicy.BEST_EFFORT)
FRESH = 4  # tests that need a pair of their own
RATE = 250.0  # of faulty robots: all their messages are to be received here, also on a loaded machine [Hz]
TERMS = ['friction', 'computed_torque', 'observer']


class Pair:
    """A simulated planar_2r in lock step, and its controller."""

    def __init__(self, harness, namespace, **parameters):
        self.harness, self.namespace = harness, namespace
        clock = [('/clock', f'{namespace}/clock')]
        self.simulator = Simulator(
            harness, namespace, clock, robot='planar_2r', publish_clock=True, rate=RATE
        )
        self.controller = Controller(
            harness,
            namespace=namespace,
            remap=clock,
            robot='planar_2r',
            terms=TERMS,
            use_sim_time=True,
            flight_recorder='',
            **{'ramp_time': 0.2, 'stop__time': 0.3, 'stop__blind_time': 0.2, **parameters},
        )

    def drive(self):
        if self.controller.lifecycle == 'unconfigured':
            self.controller.activate()
        self.controller.drive()
        self.simulator.goes_on(0.2)

    def suffer(self, **faults):
        result = self.simulator.set(**{f'faults__{name}': value for name, value in faults.items()})
        assert result.successful, result.reason

    def move(self, way, seconds):
        """Ask for a move of all joints from home by so much [rad]."""
        message = JointTrajectory(joint_names=list(ROBOT.joint_names))
        for share, moment in ((0, 0), (1, seconds)):
            positions = (ROBOT.home + share * way).tolist()
            message.points.append(JointTrajectoryPoint(positions=positions, velocities=[0.0, 0.0]))
            message.points[-1].time_from_start.sec = moment
        publisher = self.harness.node.create_publisher(
            JointTrajectory, f'{self.namespace}/joint_trajectory', 10
        )
        self.harness.until(publisher.get_subscription_count, 'somebody to follow')
        publisher.publish(message)

    def assert_stopped(self, kind, is_released=False):
        """A fault of this kind, which stays, and zero torque at the end or where it is released."""
        self.controller.until_fault(kind)
        if is_released:
            assert self.controller.ask('release').success
        self.harness.until(lambda: not any(self.controller.commands.last.message.data), 'zero torque')
        assert self.controller.fault == kind

    def assert_within_limits(self):
        """P1 and P2 for all that was ever sent."""
        commands = np.array([record.message.data for record in self.controller.commands.records])
        assert np.isfinite(commands).all()
        assert (np.abs(commands) <= ROBOT.effort_limits).all()

    def end(self):
        """As an operator ends them, so that nobody takes them for alive."""
        for process in (self.controller, self.simulator):
            process.send(signal.SIGINT)
            assert process.wait() == 0
            assert 'Traceback' not in process.log
            self.harness.processes.remove(process)


@pytest.fixture(scope='module')
def pairs(harness):
    """Pairs for one test each, and one that holds when it is stopped; started together, which is faster."""
    hold = Pair(harness, '/hold', stop__policy='hold')
    return [Pair(harness, f'/pair_{k}') for k in range(FRESH)], hold


@pytest.fixture
def fresh(pairs):
    """A pair that drives, for a test after which it cannot be used; its commands are checked at the end."""
    pair = pairs[0].pop()
    pair.drive()
    yield pair
    pair.end()
    pair.assert_within_limits()


@pytest.fixture(scope='module')
def lasting(pairs):
    """A pair that is stopped by holding, and so can be driven again."""
    yield pairs[1]
    pairs[1].end()


@pytest.fixture
def pair(lasting):
    if lasting.controller.mode != 'active':
        lasting.drive()
    yield lasting
    lasting.suffer(**dict.fromkeys(('position_noise', 'velocity_noise', 'effort_noise'), 0.0))
    lasting.suffer(quantisation=0.0, lost=0.0, mass=1.0)
    assert lasting.simulator.set(push__frame='', payload__tip__mass=0.0).successful
    assert lasting.controller.set(
        limits__following_error=100.0, observer__reaction='none', payload__tip__mass=0.0
    ).successful
    if lasting.controller.fault:
        lasting.simulator.goes_on(0.5)  # it swings on for a while, which is a fault as well
        lasting.controller.until_cleared()
    lasting.assert_within_limits()


# -- time ----------------------------------------------------------------------------------------------


class NoisyRun:
    """A simulated robot with noise and losses, and a controller that is activated some time later."""

    def __init__(self, harness, namespace):
        self._harness = harness
        clock = [('/clock', f'{namespace}/clock')]
        faults = {'faults__position_noise': 1e-4, 'faults__velocity_noise': 1e-3, 'faults__lost': 0.02}
        arm = {'robot': 'planar_2r', **faults}
        self._states = Topic(harness, JointState, f'{namespace}/joint_states', SENSORS)
        self._simulator = Simulator(harness, namespace, clock, publish_clock=True, **arm)
        self._controller = Controller(
            harness,
            namespace=namespace,
            remap=clock,
            robot='planar_2r',
            terms=TERMS,
            use_sim_time=True,
            auto_enable=True,
            ramp_time=0.2,
        )

    def run(self, seconds, pause):
        """All joint states by stamp, after some repetitions of the first."""
        harness, simulator, count = self._harness, self._simulator, len(self._simulator.truth)
        harness.until(lambda: len(simulator.truth) > count + pause, 'the first state, repeated')
        self._controller.activate()
        harness.until(lambda: simulator.now > seconds, f'{seconds} simulated seconds')
        assert self._controller.mode == 'active'
        for process in (self._controller, simulator):
            process.kill()
        states = {}
        for message in (record.message for record in list(self._states.records)):
            numbers = np.array([message.position, message.velocity, message.effort])
            states.setdefault((message.header.stamp.sec, message.header.stamp.nanosec), numbers.tobytes())
        return {stamp: numbers for stamp, numbers in states.items() if stamp <= (EPOCH, seconds * 1e9)}


def test_in_lock_step_two_runs_give_the_same_messages(harness):
    runs = [NoisyRun(harness, f'/run_{k}') for k in range(2)]
    first, second = (run.run(0.8, pause) for run, pause in zip(runs, (1, 8), strict=True))
    both = sorted(first.keys() & second.keys())
    assert len(both) > 300
    assert both[0] == (EPOCH, 0)
    different = [stamp for stamp in both if first[stamp] != second[stamp]]
    assert not different, f'{len(different)} of {len(both)}, from {different[0]} on'
    assert len({first[stamp] for stamp in both}) > 300  # and it did move


def test_in_real_time_it_keeps_its_rate_and_what_it_was_told_last(harness):
    simulator = Simulator(harness, '/real', robot='planar_2r', lock_step=False, rate=200.0)
    states = Topic(harness, JointState, '/real/joint_states', SENSORS)
    states.next()
    begin = time.time()
    harness.until(lambda: time.time() > begin + 1.5, 'a second and a half')
    records = list(states.records)
    stamps = [seconds(record.message.header.stamp) for record in records]
    assert np.median(np.diff(stamps)) == pytest.approx(1 / 200.0, rel=0.1)
    assert stamps[-1] == pytest.approx(records[-1].sent, abs=0.05)
    commands = harness.node.create_publisher(Float64MultiArray, '/real/effort_commands', 10)
    harness.until(commands.get_subscription_count, 'the simulator to listen')
    for data in ([3.0, 4.0], [1.0], [1.0, float('nan')]):
        commands.publish(Float64MultiArray(data=data))
    harness.until(lambda: 'nan; it must be finite' in simulator.log, 'a refusal')
    assert 'refused: command has shape (1,)' in simulator.log
    assert states.next().message.effort.tolist() == [3.0, 4.0]
    simulator.send(signal.SIGINT)
    assert simulator.wait() == 0
    harness.processes.remove(simulator)


# -- faults that end in a stop and leave the robot lying; they come first, as topics are shared ---------


def test_a_dead_driver_is_a_following_error(fresh):
    assert fresh.controller.set(limits__following_error=0.05, observer__reaction='none').successful
    fresh.suffer(dead_drivers=['joint_2'])
    fresh.assert_stopped('following_error', is_released=True)  # joint_2 never comes to rest
    assert 'joint_2' in fresh.controller.reason


def test_a_frozen_sensor_is_a_following_error_once_it_should_move(fresh):
    assert fresh.controller.set(limits__following_error=0.05, observer__reaction='none').successful
    fresh.suffer(frozen=['joint_1'])
    fresh.simulator.goes_on(0.2)
    assert fresh.controller.fault is None  # nobody can tell
    fresh.move(0.3, 1)
    fresh.assert_stopped('following_error', is_released=True)
    assert 'joint_1' in fresh.controller.reason


def test_nan_ends_in_the_stop_policy_and_the_fault_stays(fresh):
    fresh.suffer(nan=['joint_2'])
    fresh.assert_stopped('state')
    fresh.suffer(nan=[])
    fresh.simulator.goes_on(0.2)
    assert fresh.controller.fault == 'state'


def test_states_too_late_end_in_the_stop_policy(fresh):
    fresh.suffer(delay=0.01)
    fresh.simulator.goes_on(0.5)
    assert fresh.controller.fault is None
    fresh.suffer(delay=0.2)
    fresh.assert_stopped('state')


# -- topics --------------------------------------------------------------------------------------------


def test_every_robot_speaks_on_the_topics_of_its_sensors(harness):
    krang = Simulator(harness, '/k', robot='krang', wheels_locked=True)
    otbot = Simulator(harness, '/o', robot='otbot', publish_clock=True)
    received = {
        '/k/joint_states': JointState,
        '/k/imu': Imu,
        '/o/joint_states': JointState,
        '/o/odom': Odometry,
        '/clock': Clock,
    }
    topics = {name: Topic(harness, kind, name, SENSORS) for name, kind in received.items()}
    harness.until(
        lambda: all(map(len, topics.values())), lambda: f'{ {k: len(t) for k, t in topics.items()} }'
    )
    robot = kd.load_robot('krang')
    message = topics['/k/joint_states'].last.message
    assert set(message.name) == set(robot.joint_names) - {'base_pitch'}
    rows = [robot.joint_names.index(name) for name in message.name]
    np.testing.assert_allclose(message.position, robot.home[rows])
    np.testing.assert_allclose(message.effort, robot.gravity_torque(robot.home)[rows], rtol=1e-9)
    assert topics['/k/imu'].last.message.header.frame_id == robot.config.imu.link
    assert topics['/o/odom'].last.message.child_frame_id == 'chassis'
    assert topics['/o/joint_states'].last.message.header.stamp.sec == EPOCH
    for simulator in (krang, otbot):
        simulator.send(signal.SIGINT)
        assert simulator.wait() == 0
        harness.processes.remove(simulator)


@pytest.mark.parametrize(
    ('values', 'words'),
    [
        ({'faults__nan': ['elbow']}, "unknown joint 'elbow'"),
        ({'push__frame': 'hand', 'faults__lost': 0.5}, "unknown frame 'hand'"),
        ({'wall__frame': 'hand'}, "unknown frame 'hand'"),
        ({'wall__frame': 'tip', 'wall__normal': [0.0, 0.0, 0.0]}, 'normal of a wall is 0'),
        ({'faults__lost': 2.0}, 'faults.lost'),
        ({'engine': 'mujoco'}, 'engine is read when'),
    ],
)
def test_parameters_that_cannot_be_are_refused_together_with_their_company(pair, values, words):
    result = pair.simulator.set(**values)
    assert not result.successful
    assert words in result.reason
    pair.simulator.goes_on(0.05)
    assert pair.simulator.get('faults.lost') == 0.0
    assert pair.controller.mode == 'active'


# -- faults that a controller lives with ---------------------------------------------------------------


def error(pair):
    """How far the robot is from where the controller was enabled [rad]."""
    return np.abs(pair.simulator.q - pair.place).max()


@pytest.fixture
def held(pair):
    """It stands where it is to stay."""
    pair.simulator.goes_on(1.0)
    pair.place = pair.simulator.q
    pair.simulator.goes_on(0.1)
    assert error(pair) < 1e-4
    return pair


@pytest.mark.parametrize(
    'faults',
    [
        {'position_noise': 2e-4, 'velocity_noise': 2e-3, 'effort_noise': 0.5},
        {'quantisation': 1e-3},
        {'lost': 0.3},
    ],
    ids=['noise', 'quantisation', 'lost'],
)
def test_it_goes_on_with_poor_sensors(held, faults):
    held.suffer(**faults)
    held.simulator.goes_on(0.5)
    assert held.controller.mode == 'active'
    assert held.controller.fault is None
    assert error(held) < 3e-3


def test_a_load_that_it_is_not_told_of_pulls_it_down_and_one_that_it_knows_does_not(held):
    assert held.simulator.set(payload__tip__mass=1.0).successful
    held.simulator.goes_on(0.5)
    assert error(held) > 2e-3
    assert held.controller.set(payload__tip__mass=1.0).successful
    held.simulator.goes_on(1.0)
    assert error(held) < 1e-3
    assert held.controller.fault is None


def test_a_push_is_felt_and_over(held):
    wrenches = Topic(held.harness, JointState, f'{held.controller.path}/external_torques', SENSORS)
    wrenches.next()
    assert held.simulator.set(
        push__frame='tip', push__wrench=[0.0, 0.0, -10.0, 0.0, 0.0, 0.0], push__duration=0.3
    ).successful
    held.simulator.goes_on(1.0)
    expected = ROBOT.jacobian(held.place, 'tip').T @ [0, 0, -10, 0, 0, 0]
    largest = min((record.message.effort for record in list(wrenches.records)), key=lambda e: e[0])
    np.testing.assert_allclose(largest, expected, rtol=0.05, atol=0.1)
    assert error(held) < 1e-3
    assert held.controller.fault is None


# -- faults that end in a stop, by holding -------------------------------------------------------------


def test_a_collision_stops_it_where_that_is_asked_for(held):
    assert held.controller.set(observer__reaction='stop').successful
    held.simulator.set(push__frame='tip', push__wrench=[0.0, 0.0, -80.0, 0.0, 0.0, 0.0], push__duration=0.2)
    held.controller.until_fault('collision')


def test_wrong_masses_are_a_following_error(held):
    assert held.controller.set(limits__following_error=5e-3).successful
    held.simulator.goes_on(0.2)
    assert held.controller.fault is None
    held.suffer(mass=2.0)
    held.controller.until_fault('following_error')


def test_a_simulation_that_diverges_starts_again_at_home():
    rclpy.init(
        args='--ros-args -p robot:=planar_2r -p engine:=pinocchio --log-level fatal'.split(),
        domain_id=120 + os.getpid() % 80,
    )
    try:
        node = SimulatorNode()
        node._robot.receive_command(np.array([1e300, -1e300]))
        for _ in range(3):
            node._step()
        assert node._robot.is_held
        assert np.array_equal(node._robot.q, node._robot.robot.home)
        node.destroy_node()
    finally:
        rclpy.shutdown()
