"""References on real topics: streams, stops, stamps, and trajectories that are long."""

import json
import time

import numpy as np
import pytest
from nodes.harness import Controller, Harness, Simulator
from rclpy.qos import QoSProfile
from trajectory_msgs.msg import JointTrajectory as JointTrajectoryMessage

import krang_dynamics as kd
from krang_dynamics.bags.io.trajectory_codec import encode_trajectory

pytestmark = pytest.mark.processes

RATE = 500.0  # of the states [Hz]
POINTS = 5000
SENDS, SAMPLE = 20, 6  # of the long trajectory; in a short run
WINDOW = 0.4  # after a send, in which the largest gap is found [s]
ALLOWED = 5e-3  # by which a long trajectory may lengthen it [s]
KRANG = kd.load_robot('krang')
ARM = kd.load_robot('planar_2r')


@pytest.fixture
def harness():
    """One per test, so that a test can be repeated after a fault."""
    with Harness() as harness:
        yield harness


class Loop:
    """A simulated robot and its controller, enabled."""

    def __init__(self, harness, robot, **both):
        self.harness, self.robot = harness, robot
        name = f'/{robot.name}'
        self.simulator = Simulator(harness, name, robot=robot.name, rate=RATE, lock_step=False, **both)
        self.controller = Controller(
            harness, namespace=name, robot=robot.name, terms=['computed_torque'], gains__bandwidth=10.0,
            ramp_time=0.1, state_timeout=0.5, flight_recorder='', **both,
        )  # fmt: skip
        topic = f'{name}/joint_trajectory'
        self._publisher = harness.node.create_publisher(JointTrajectoryMessage, topic, QoSProfile(depth=10))
        self.controller.activate()
        self.controller.drive()
        harness.until(lambda: self._publisher.get_subscription_count() == 1, 'the subscription')
        self.joints, self.home = robot.joint_names, robot.home

    def send(self, times, offsets, stamp=(0, 0), **fields):
        """Positions relative to home."""
        trajectory = kd.JointTrajectory(self.joints, np.asarray(times), self.home + offsets, **fields)
        self._publisher.publish(encode_trajectory(trajectory, stamp))

    def publish(self, data):
        self._publisher.publish(data)

    def followed(self):
        """How many trajectories took effect."""
        records = list(self.controller.states.records)
        return sum(json.loads(record.message.data)['event'] == 'trajectory' for record in records)

    def offset(self):
        """Of the robot from home."""
        names = list(self.simulator.truth.last.message.name)
        return self.simulator.q[[names.index(name) for name in self.joints]] - self.home

    def largest_gap(self, begin):
        """Between two commands in the window that began at a time of time.time() [s]."""
        time.sleep(max(0.0, begin + WINDOW + 0.1 - time.time()))
        sent = [r.sent for r in self.controller.commands.since(begin) if r.sent <= begin + WINDOW]
        return np.diff(sent).max()


@pytest.mark.parametrize('sends', [SAMPLE, pytest.param(SENDS, marks=pytest.mark.long)])
def test_a_trajectory_of_5000_points_does_not_delay_commands(harness, sends):
    """First in this file: no other robot takes time meanwhile."""
    krang = Loop(harness, KRANG, wheels_locked=True)
    t = np.linspace(0.0, 20.0, POINTS)
    wave = np.tile(1e-3 * (1 - np.cos(np.pi * t))[:, None], len(krang.joints))  # it hardly moves
    long = encode_trajectory(kd.JointTrajectory(krang.joints, t, krang.home + wave))
    stop = encode_trajectory(kd.JointTrajectory((), np.zeros(0), np.zeros((0, 0))))
    assert len(krang.joints) == 17
    gaps = {'without': [], 'with': []}
    for _ in range(sends):
        gaps['without'].append(krang.largest_gap(time.time()))
        count = krang.followed()
        begin = time.time()
        krang.publish(long)
        gaps['with'].append(krang.largest_gap(begin))
        harness.until(lambda count=count: krang.followed() == count + 1, 'the trajectory')
        krang.publish(stop)
        time.sleep(0.1)
    assert krang.controller.mode == 'active', krang.controller.reason
    for process in (krang.controller, krang.simulator):
        process.kill()
        harness.processes.remove(process)
    without, with_long = (np.median(gaps[key]) for key in ('without', 'with'))
    print(f'largest gap: median {1e3 * without:.2f} ms without, {1e3 * with_long:.2f} ms with the trajectory')
    assert with_long <= without + ALLOWED


@pytest.fixture
def arm(harness):
    return Loop(harness, ARM)


def test_a_fast_stream_is_followed_without_delay_to_its_last_set_point(arm):
    """One second of set-points at 500 Hz; after the last one the arm arrives within 0.3 s."""
    arm.send([0.5], np.zeros((1, 2)))
    time.sleep(1.0)
    begin, lags = time.time(), []
    while (t := time.time() - begin) < 1.0:
        goal = 0.3 * np.sin(np.pi / 2 * t)
        arm.send([0.0], np.full((1, 2), goal))
        lags.append(goal - arm.offset().mean())
        time.sleep(1 / 500)
    arm.send([0.0], np.full((1, 2), 0.3))
    time.sleep(0.3)
    assert arm.controller.mode == 'active', arm.controller.log
    np.testing.assert_allclose(arm.offset(), 0.3, atol=0.01)
    lag = np.percentile(lags, 95)  # this process may pause, and then compares old positions
    print(f'lag of the arm behind the newest set-point: {lag:.4f} rad at 0.47 rad/s')
    assert lag < 0.06
    assert arm.controller.mode == 'active'


def test_a_stream_that_ends_on_its_way_comes_to_rest_and_the_next_goal_is_reached(arm):
    assert arm.controller.set(stream__velocity=0.2).successful
    start = arm.offset()
    arm.send([0.0], np.full((1, 2), 1.0))
    time.sleep(1.0)
    rested = arm.offset()
    np.testing.assert_allclose(rested - start, 0.2 * 0.5, atol=0.03)
    time.sleep(0.3)
    np.testing.assert_allclose(arm.offset(), rested, atol=2e-3)
    arm.send([1.5], np.zeros((1, 2)))
    time.sleep(2.0)
    np.testing.assert_allclose(arm.offset(), 0.0, atol=0.01)
    assert arm.controller.mode == 'active'


def test_the_empty_trajectory_stops_a_motion_and_a_stamp_delays_one(arm):
    later = time.time() + 0.5
    arm.send([1.0], np.full((1, 2), 0.8), (int(later), int(1e9 * (later % 1))))
    time.sleep(0.45)
    np.testing.assert_allclose(arm.offset(), 0.0, atol=0.01)
    time.sleep(0.45)
    assert (np.abs(arm.offset()) > 0.05).all()
    arm.publish(encode_trajectory(kd.JointTrajectory((), np.zeros(0), np.zeros((0, 0)))))
    time.sleep(1.2)
    rested = arm.offset()
    assert (np.abs(rested) < 0.7).all()
    time.sleep(0.3)
    np.testing.assert_allclose(arm.offset(), rested, atol=2e-3)
    before = time.time() - 2.0
    arm.send([1.0], np.zeros((1, 2)), (int(before), int(1e9 * (before % 1))))
    arm.harness.until(lambda: 'it is over' in arm.controller.log, 'the refusal of a trajectory that is over')
    time.sleep(1.1)  # refusals are logged once per second
    arm.send([0.1], rested[None] + 1.0)
    arm.harness.until(lambda: 'would be feasible' in arm.controller.log, 'the refusal of a fast goal')
    assert arm.controller.mode == 'active'
