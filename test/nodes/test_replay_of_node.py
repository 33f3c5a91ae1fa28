"""P10: the replay of a recording of the real node gives the node's commands, bit by bit."""

import signal
import time
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
from nodes.fake_robot import FakeRobot
from nodes.harness import Controller, Harness, Simulator
from nodes.krang_command import Command
from rclpy.qos import QoSProfile
from std_msgs.msg import Bool
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import krang_dynamics as kd
from krang_dynamics.bags.io.command_message import state_key, step_of
from krang_dynamics.bags.io.joint_state_codec import JointStateReader
from krang_dynamics.bags.io.reader import Bag
from krang_dynamics.bags.io.writer import BagWriter
from krang_dynamics.bags.replay.replayer import SETTLING, replay

pytestmark = pytest.mark.processes

RATE = 200.0  # of the states [Hz]
TERMS = ['gravity', 'computed_torque', 'observer']
QUICK = {
    'ramp_time': 0.2,
    'stop__time': 0.3,
    'stop__blind_time': 0.2,
    'state_timeout': 0.8,
    'stop__limit': 0.3,  # a stop would last until the robot is at rest
    'limits__following_error': 1.0,  # the payload is not there
}
MOVE = 0.04  # of every commanded joint along the trajectory [rad]
HOLD = {'stop__policy': 'hold'}
# Robot and frame of its payload, parameters of the controller, parameters of the simulator.
CASES = {
    'stamped': ('planar_2r', 'tip', {}, {'lock_step': False}),
    'unstamped': ('planar_2r', 'tip', HOLD, None),
    'auto': ('planar_2r', 'tip', {'auto_enable': True, **HOLD}, {}),
    'lock_step': ('anthropomorphic', 'tool', {'use_sim_time': True, **HOLD}, {'publish_clock': True}),
    'imu': ('krang', 'left_hand', {'wheels_locked': True, **HOLD}, {'wheels_locked': True}),
}
# A recorder may receive imu and joint_states in another order than the node.
RECORDED = [name for name in CASES if name != 'imu']


class Flight:
    """One controller and its robot in a namespace of their own."""

    def __init__(self, harness, name):
        robot, self.frame, parameters, simulated = CASES[name]
        self.harness, self.name, self.robot = harness, name, kd.load_robot(robot)
        self.folder = harness.folder / f'flights_{name}'
        if simulated is None:
            unstamped_robot(harness, robot, f'/{name}')
            self.processes = []
        else:
            self.processes = [Simulator(harness, f'/{name}', robot=robot, rate=RATE, **simulated)]
        self.controller = Controller(
            harness,
            namespace=f'/{name}',
            robot=robot,
            terms=TERMS,
            observer__reaction='none',
            flight_recorder=str(self.folder),
            **QUICK,
            **parameters,
        )
        self.processes.insert(0, self.controller)

    def publisher(self, kind, topic):
        publisher = self.harness.node.create_publisher(kind, f'/{self.name}/{topic}', QoSProfile(depth=10))
        self.harness.until(lambda: publisher.get_subscription_count() >= 2, f'subscribers of {topic}')
        return publisher

    def activate(self):
        assert self.controller.transition('configure')
        self.harness.until(lambda: is_recorded(self.harness, f'/{self.name}/effort_commands'), 'the recorder')
        assert self.controller.transition('activate')

    def run(self):
        """Enable, trajectory, parameters in flight, a stop where it holds, and a fault at the end."""
        controller, harness = self.controller, self.harness
        trajectories = self.publisher(JointTrajectory, 'joint_trajectory')
        switch = self.publisher(Bool, 'emergency_stop')
        if CASES[self.name][2].get('auto_enable'):
            self.controller.until_mode('active')
        else:
            controller.drive()
        trajectories.publish(self.trajectory())
        harness.until(lambda: any('"trajectory"' in r.message.data for r in controller.states.records), 'it')
        assert controller.set(gains__bandwidth=6.0).successful
        time.sleep(0.2)
        load = {f'payload__{self.frame}__mass': 0.2, f'payload__{self.frame}__com': [0.0, 0.05, 0.0]}
        assert controller.set(**load).successful
        time.sleep(0.6)  # past the end of the trajectory
        assert controller.fault is None, controller.reason
        if controller.state['parameters']['stop.policy'] == 'hold':
            assert controller.enable(False).success
            time.sleep(0.05)
            assert controller.enable().success  # during the stop
            time.sleep(0.2)
        time.sleep(0.2)
        switch.publish(Bool(data=True))
        controller.until_fault()
        assert controller.fault == 'emergency_stop', controller.reason
        harness.until(lambda: 'flight recorder: ' in controller.log, 'the flight recorder')

    def end(self):
        """End controller and robot, so that the next flight has the machine to itself."""
        for process in self.processes:
            process.send(signal.SIGTERM)
            assert process.wait() == 0
        (path,) = self.folder.iterdir()
        self.bag = Bag(path)

    def trajectory(self):
        names = list(self.controller.state['drivers'])
        joints = [name for name in self.robot.actuated_joint_names if name in names]
        home = [self.robot.home[self.robot.joint_names.index(name)] for name in joints]
        message = JointTrajectory(joint_names=joints)
        for share, when in ((0.0, 0.0), (1.0, 0.6)):
            message.points.append(JointTrajectoryPoint(positions=[x + share * MOVE for x in home]))
            message.points[-1].time_from_start.nanosec = round(1e9 * when)
        return message


def unstamped_robot(harness, name, namespace):
    """A fake robot that swings; its joint states have no stamp."""
    robot, turns = FakeRobot(harness, name, namespace, RATE), count()

    def swing():
        phase = 0.05 * next(turns)
        robot.q = robot.model.home + 0.05 * np.sin(phase)
        robot.v = np.full(robot.model.nv, 0.05 * 0.05 * RATE * np.cos(phase))
        robot.publish(robot.joint_state(stamp=0.0))

    robot.say = swing


def is_recorded(harness, topic):
    return any(info.node_name == 'recorder' for info in harness.node.get_subscriptions_info_by_topic(topic))


@pytest.fixture(scope='module')
def flights():
    """All flights in one recording, each with the flight recorder's bag of its own."""
    with Harness() as harness:
        path = harness.folder / 'recording'
        recorder = Command(harness, 'record', '--out', str(path))
        flights = {name: Flight(harness, name) for name in CASES}
        for flight in flights.values():
            topics = [f'/{flight.name}/torque_controller/state', f'/{flight.name}/joint_states']
            harness.until(lambda t=topics: all(is_recorded(harness, topic) for topic in t), 'the recorder')
        for flight in flights.values():
            flight.activate()
            flight.run()
            flight.end()
        assert recorder.control_c() == 0, recorder.log
        yield SimpleNamespace(recording=Bag(path), by_name=flights)


def commands_in(bag, name):
    return [message for _, message in bag.read(f'/{name}/effort_commands')]


def replayed(bag, name):
    return replay(bag, kd.load_robot(CASES[name][0]), node=f'/{name}/torque_controller')


def cropped(bag, path, start=0, stop=2**63):
    """A copy of the messages within a time [ns]."""
    with BagWriter(path) as writer:
        for topic, when, data in bag.messages(bag.topics):
            if start <= when < stop:
                writer.write(topic, bag.topics[topic].type, data, when)
    return Bag(path)


def first_loss(recording, name):
    """When recorder or node lost the first message, as they may on a busy machine [ns].

    Every joint state in flight has a command that answers it.
    """
    reader, order = JointStateReader(), {}
    for _, _, data in recording.messages([f'/{name}/joint_states']):
        reader.read(data, 0.0)
        order.setdefault(state_key(data, reader.stamp), len(order))
    last = None
    for when, command in recording.read(f'/{name}/effort_commands'):
        label = step_of(command)[0]
        index = order.get(label, order.get(label // 10**9 * 10**9))
        if index is None or (last is not None and index > last + 1):
            return when
        last = index
    return None


@pytest.mark.parametrize('name', CASES)
def test_a_flight_recording_is_replayed_bit_by_bit(flights, name):
    bag = flights.by_name[name].bag
    commands = commands_in(bag, name)
    assert len(commands) > 100
    assert all(step_of(message) for message in commands)
    result = replayed(bag, name)
    assert result.comparison.largest == 0.0
    assert result.comparison.count == result.commands == len(commands)
    assert [fault.kind for _, fault in result.faults] == ['emergency_stop']


@pytest.mark.parametrize('name', RECORDED)
def test_a_recording_is_replayed_bit_by_bit(flights, name, tmp_path):
    recording = flights.recording
    loss = first_loss(recording, name)
    if loss is not None:
        recording = cropped(recording, tmp_path / 'bag', stop=loss)
    commands = commands_in(recording, name)
    assert len(commands) > 50
    result = replayed(recording, name)
    assert result.comparison.largest == 0.0
    assert result.comparison.count == len(commands)


@pytest.mark.parametrize('name', ['stamped', 'lock_step'])
def test_a_recording_that_begins_in_flight_is_compared_once_it_has_settled(flights, name, tmp_path):
    """Without a state the replay cannot take over, and the ramp is not in the recording."""
    whole, topic = flights.by_name[name].bag, f'/{name}/effort_commands'
    ramping = [when for when, _ in whole.read(topic)][5]
    bag = cropped(whole, tmp_path / 'bag', start=ramping)
    result = replayed(bag, name)
    settled = [when for when, _ in bag.read(topic) if when > bag.start + SETTLING]
    assert result.comparison.count == len(settled) > 0
    assert result.commands >= len(settled)
    assert [fault.kind for _, fault in result.faults] == ['emergency_stop']
