"""Replay: the same commands, the same faults, the same bytes."""

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from bags.bagging import START, record_model

from krang_dynamics.bags.io.command_message import TYPE as COMMAND
from krang_dynamics.bags.io.command_message import dimensions, time_label
from krang_dynamics.bags.io.joint_state_codec import TYPE, JointStateReader, encode
from krang_dynamics.bags.io.reader import Bag
from krang_dynamics.bags.io.writer import BagWriter, prepare
from krang_dynamics.bags.replay.replayer import replay
from krang_dynamics.cli.main import main
from krang_dynamics.control import messages
from krang_dynamics.control.node_state import NodeState
from krang_dynamics.control.session import Session, seconds
from krang_dynamics.control.settings import Settings
from krang_dynamics.errors import BagError
from krang_dynamics.robot.library import load_robot

pytest.importorskip('rosbags', reason='rosbags is not installed')

PERIOD = 5_000_000  # of the states [ns]
OFFSET = 1_234_567_890  # from the steady clock to the times of the recording [ns]
LATENCY = 300_000  # from a step to the arrival of its command in the recording [ns]
NODE = '/torque_controller'
EMPTY = np.zeros(0)


class Flight:
    """A Session and a robot in one loop, with every message that a node would send and receive."""

    def __init__(self, name='planar_2r', **settings):
        self.robot = load_robot(name)
        usual = {'terms': ('gravity', 'damping'), 'damping': 2.0, 'limits_state_rate': 0.0}
        self.session = Session(self.robot, Settings(**{**usual, **settings}))
        self.q, self.v = self.robot.home.copy(), np.zeros(self.robot.nv)
        self.time = START
        self.messages = []  # (time, topic, type, bytes)
        self._seen = (self.session.controller.safety.mode, None)
        self._effort = np.zeros(self.robot.nv)
        self._reader = JointStateReader()
        self._stepped_at = START
        self.publish_state('configure', mode='inactive')
        self.session.activate()
        self.publish_state('activate')

    @property
    def fault(self):
        return self.session.controller.safety.fault

    @property
    def now(self):
        """The controller's time and the node's clock [s]."""
        return seconds(self.time - OFFSET), seconds(self.time)

    def run(self, duration, silent=False):
        """States at a steady rate, or the watchdog alone; the robot moves under the last command."""
        for _ in range(round(1e9 * duration / PERIOD)):
            self.time += PERIOD
            if self.session.is_sending:  # until then brakes hold the robot
                self._move(1e-9 * PERIOD)
            if silent:
                outputs = self.session.watch(*self.now)
                if outputs is not None:
                    self.publish(outputs)
                continue
            data = encode(self.robot.joint_names, self.time, self.q, self.v, self._effort)
            self.keep('/joint_states', TYPE, data)
            sample = self._reader.read(data, self.now[0])
            if self.session.take_states(sample, self._reader.stamp):
                self.publish(self.session.step(*self.now))
        return self

    def publish(self, out, event=''):
        """Commands arrive in the recording a little later than their state."""
        self._stepped_at = self.time
        if out.torque is not None:
            self._effort = out.torque
            step, clock = divmod(self.time - OFFSET, 10**9), divmod(self.time, 10**9)
            labels = [time_label(stamp) for stamp in (self.session.answered, step, clock)]
            self.keep_message(
                '/effort_commands', COMMAND, LATENCY, data=out.command, layout=_layout(self.session, labels)
            )
        if out.accepted:
            self.publish_state('trajectory', trajectory=self.session.followed)
        if event or (out.mode, out.fault) != self._seen:
            is_new = out.fault is not None and self._seen[1] is None
            self._seen = (out.mode, out.fault)
            self.publish_state(event or ('fault' if is_new else 'mode'))

    def enable(self, on=True):
        self.time += 1_000_000
        self.publish(self.session.enable(on, *self.now), event='enable' if on else 'disable')
        return self

    def set(self, **changes):
        self.time += 1_000_000
        settings = self.session.controller.settings.replace(**changes)
        self.publish(self.session.change(settings, *self.now))
        self.publish_state('parameters')
        return self

    def follow(self, *points):
        """A trajectory to points (time [s], positions)."""
        types = prepare().types
        point, time = (
            types['trajectory_msgs/msg/JointTrajectoryPoint'],
            types['builtin_interfaces/msg/Duration'],
        )
        stamp = types['builtin_interfaces/msg/Time'](0, 0)
        message = types['trajectory_msgs/msg/JointTrajectory'](
            types['std_msgs/msg/Header'](stamp, ''),
            list(self.robot.joint_names),
            [
                point(np.array(q), EMPTY, EMPTY, EMPTY, time(*divmod(round(1e9 * t), 10**9)))
                for t, q in points
            ],
        )
        self.time += 1_000_000
        self._keep_message('/joint_trajectory', message)
        self.session.take_trajectory(message, self.time)
        return self

    def aim(self, frame, offset, twist=None):
        """A target of a frame: its present pose, moved by an offset [m], or a twist."""
        types = prepare().types
        header = types['std_msgs/msg/Header'](
            types['builtin_interfaces/msg/Time'](0, 0), self.robot.urdf.root
        )
        vector, T = types['geometry_msgs/msg/Vector3'], self.robot.frame_pose(self.q, frame)
        point = types['geometry_msgs/msg/Point'](*(T[:3, 3] + offset))
        turn = types['geometry_msgs/msg/Quaternion'](*pin.Quaternion(T[:3, :3]).coeffs())
        self.time += 1_000_000
        if twist is None:
            pose = types['geometry_msgs/msg/Pose'](point, turn)
            message = types['geometry_msgs/msg/PoseStamped'](header, pose)
            self._keep_message(f'/target_pose/{frame}', message)
            self.session.take_target(messages.pose_sample(frame, message, self.now[0]))
        else:
            both = types['geometry_msgs/msg/Twist'](vector(*twist[:3]), vector(*twist[3:]))
            message = types['geometry_msgs/msg/TwistStamped'](header, both)
            self._keep_message(f'/target_twist/{frame}', message)
            self.session.take_target(messages.twist_sample(frame, message, self.now[0]))
        return self

    def press(self):
        message = prepare().types['std_msgs/msg/Bool'](True)
        self._keep_message('/emergency_stop', message)
        self.session.take_emergency_stop(message)
        return self

    def publish_state(self, event, mode=None, trajectory=0):
        controller = self.session.controller
        state = NodeState(
            event=event,
            time=seconds(self.time),
            step=time_label(divmod(self.time - OFFSET, 10**9)),
            mode=mode or controller.safety.mode.value,
            fault=controller.safety.fault,
            robot=self.robot.name,
            drivers=controller.drivers.names,
            parameters=controller.settings.values,
            limits={'effort': controller.limits.effort.tolist()},
            trajectory=trajectory,
        )
        self.keep_message(f'{NODE}/state', 'std_msgs/msg/String', 2 * LATENCY, data=state.to_json())

    def keep_message(self, topic, kind, latency=0, **fields):
        self._keep_message(topic, prepare().types[kind](**fields), latency)

    def _keep_message(self, topic, message, latency=0):
        kind = message.__msgtype__
        self.keep(topic, kind, bytes(prepare().serialize_cdr(message, kind)), latency)

    def keep(self, topic, kind, data, latency=0):
        self.messages.append((self.time + latency, topic, kind, data))

    def commands(self):
        return [entry for entry in self.messages if entry[1] == '/effort_commands']

    def write(self, path, window=None):
        """All messages, or those of the last seconds, as the flight recorder does."""
        begin = START if window is None else self.messages[-1][0] - round(1e9 * window)
        with BagWriter(path) as bag:
            for time, topic, kind, data in self.messages:
                if time >= begin:
                    bag.write(topic, kind, data, time)
        return str(path)

    def _move(self, dt):
        driven = [self.robot.joint_names.index(name) for name in self.robot.actuated_joint_names]
        self.v = self.v + dt * self.robot.forward_dynamics(self.q, self.v, self._effort[driven])
        self.q = self.q + dt * self.v


def _layout(session, labels):
    types = prepare().types
    dimension = types['std_msgs/msg/MultiArrayDimension']
    dim = [dimension(*entry) for entry in dimensions(session.controller.drivers.names, labels)]
    return types['std_msgs/msg/MultiArrayLayout'](dim=dim, data_offset=0)


def files(path):
    return {entry.name: entry.read_bytes() for entry in Path(path).iterdir()}


def messages_of(path, topic):
    """(time, message) of a topic."""
    return list(Bag(path).read(topic))


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
    """A ramp, changes of parameters, a trajectory, a push and a stop, from configure to the end."""
    terms = ('gravity', 'damping', 'computed_torque', 'observer')
    flight = Flight(ramp_time=0.3, terms=terms, observer_reaction='none')
    flight.run(0.2).enable().run(0.6).set(damping=5.0, payload_tip_mass=0.2).run(0.2)
    flight.follow((0.5, flight.q + 0.1)).run(0.3).set(gains_bandwidth=20.0)
    flight.v += 0.3
    flight.run(0.3).enable(False).run(0.5)
    return flight, flight.write(tmp_path_factory.mktemp('whole') / 'bag')


# -- the same commands -------------------------------------------------------------------------------------


def test_a_replay_gives_the_recorded_commands_bit_by_bit(whole):
    flight, path = whole
    result = replay(Bag(path), flight.robot)
    assert result.comparison.largest == 0.0
    assert result.comparison.count == len(flight.commands()) > 300
    modes = [mode.value for _, mode, _ in result.changes]
    assert modes[:3] == ['ramping', 'active', 'stopping']
    assert 'all are identical' in result.text()
    assert 'reproduced' not in result.text()


def self_enabled():
    """A flight with auto_enable, and the time of its first command [ns]."""
    flight = Flight(ramp_time=0.1, auto_enable=True).run(0.12)
    flight.publish(flight.session.watch(*flight.now))
    flight.run(0.5)
    return flight, flight.commands()[0][0]


def test_a_controller_that_enabled_itself_is_enabled_again(tmp_path):
    flight, _ = self_enabled()
    result = replay(Bag(flight.write(tmp_path / 'bag')), flight.robot)
    assert result.comparison.count == len(flight.commands()) > 90
    assert result.comparison.largest == 0.0


def test_a_state_that_was_recorded_before_activation_enables_the_replay(tmp_path):
    """A recorder may receive the joint state that the controller used earlier than its activation."""
    flight, first = self_enabled()
    (index,) = [i for i, entry in enumerate(flight.messages) if b'"event": "activate"' in entry[3]]
    flight.messages[index] = (first - LATENCY // 2, *flight.messages[index][1:])
    flight.messages.sort(key=lambda entry: entry[0])
    result = replay(Bag(flight.write(tmp_path / 'bag')), flight.robot)
    assert result.comparison.count == len(flight.commands()) > 90
    assert result.comparison.largest == 0.0
    assert not result.refused


@pytest.mark.parametrize('lost', [b'nothing', b'"mode": "ramping"'], ids=['all states', 'enable is lost'])
def test_a_controller_that_enabled_itself_is_enabled_again_without_labels(lost, tmp_path):
    flight, _ = self_enabled()
    types = prepare()
    with BagWriter(tmp_path / 'bag') as bag:
        for time, topic, kind, data in flight.messages:
            if topic == '/effort_commands':
                message = types.deserialize_cdr(data, kind)
                message.layout.dim = []
                bag.write_message(topic, message, time)
            elif not (topic.endswith('/state') and lost in data):
                bag.write(topic, kind, data, time)
    result = replay(Bag(tmp_path / 'bag'), flight.robot)
    assert result.commands >= 95
    assert result.comparison.count >= 95
    assert [mode.value for _, mode, _ in result.changes] == ['ramping', 'active']


def test_every_message_of_the_written_bag_is_the_recorded_one(whole, tmp_path):
    flight, path = whole
    replay(Bag(path), flight.robot, out=str(tmp_path / 'out'))
    recorded = [data for _, _, data in Bag(path).in_order(['/effort_commands'])]
    assert [data for _, _, data in Bag(tmp_path / 'out').in_order(['/replay/effort_commands'])] == recorded
    copied = [data for _, _, data in Bag(tmp_path / 'out').in_order(['/joint_states'])]
    assert copied == [data for _, topic, _, data in flight.messages if topic == '/joint_states']


def test_two_runs_write_the_same_bytes(whole, tmp_path):
    flight, path = whole
    replay(Bag(path), flight.robot, out=str(tmp_path / 'a' / 'bag'))
    replay(Bag(path), load_robot('planar_2r'), out=str(tmp_path / 'b' / 'bag'))
    assert files(tmp_path / 'a' / 'bag') == files(tmp_path / 'b' / 'bag')


def test_another_parameter_gives_another_torque(whole):
    flight, path = whole
    result = replay(Bag(path), flight.robot, {'damping': 50.0})
    assert result.comparison.largest > 0.1
    assert replay(Bag(path), flight.robot, {'terms': ['gravity']}).terms == ('gravity',)


def test_a_bag_of_states_alone_is_enabled_at_its_beginning(tmp_path):
    robot = load_robot('planar_2r')
    path = record_model(tmp_path / 'bag', robot, duration=2.0)
    result = replay(Bag(path), robot, {'ramp_time': 0.0})
    assert result.changes[0][0] < 0.01
    assert replay(Bag(path), robot, enable_at=1.0).changes[0][0] == pytest.approx(1.0, abs=0.006)
    out = tmp_path / 'out'
    replay(Bag(path), robot, {'ramp_time': 0.0}, out=str(out))
    torques = messages_of(out, '/replay/torques')
    q = next(
        m.position
        for _, m in messages_of(path, '/joint_states')
        if m.header.stamp == torques[-1][1].header.stamp
    )
    assert torques[-1][1].effort == pytest.approx(robot.gravity_torque(q), abs=1e-9)


def test_with_a_clock_in_the_bag_time_is_simulated(tmp_path):
    robot, types = load_robot('planar_2r'), prepare()
    clock, kind = types.types['builtin_interfaces/msg/Time'], 'rosgraph_msgs/msg/Clock'
    with BagWriter(tmp_path / 'bag') as bag:
        for k in range(100):
            arrival, stamp = START + 50_000_000 * k, 1_000_000_000 + PERIOD * k  # ten times slower than real
            bag.write_message('/clock', types.types[kind](clock=clock(*divmod(stamp, 10**9))), arrival)
            data = encode(robot.joint_names, stamp, robot.home, np.zeros(2), EMPTY)
            bag.write('/joint_states', TYPE, data, arrival)
    result = replay(Bag(tmp_path / 'bag'), robot)
    assert not result.faults
    assert result.states == 100
    # 0.49 s of simulated time: half a ramp.
    assert [mode.value for _, mode, _ in result.changes] == ['ramping']
    assert result.commands >= 100


# -- the same faults ---------------------------------------------------------------------------------------


def faulted(kind):
    """A flight that ends when its fault latches, as a flight recorder's bag does."""
    flight = Flight(ramp_time=0.0).run(1e-9 * PERIOD).enable().run(2.0)
    assert flight.fault is None
    if kind == 'velocity':
        flight.v += 30.0
        flight.run(1e-9 * PERIOD)
    elif kind == 'state':
        flight.run(0.105, silent=True)
        while flight.fault is None:
            flight.run(1e-9 * PERIOD, silent=True)
    else:
        flight.press().run(1e-9 * PERIOD)
    assert flight.fault.kind == kind
    return flight


@pytest.mark.parametrize('kind', ['velocity', 'state', 'emergency_stop'])
def test_a_flight_recorders_bag_reproduces_its_fault(kind, tmp_path):
    flight = faulted(kind)
    path = flight.write(tmp_path / 'flight', window=1.5)
    states = [NodeState.from_json(m.data) for _, m in messages_of(path, f'{NODE}/state')]
    assert {state.event for state in states} == {'fault'}
    result = replay(Bag(path), flight.robot)
    ((time, fault),) = result.faults
    assert fault.kind == kind
    assert fault == flight.fault
    assert time == pytest.approx(result.duration, abs=0.011)
    assert 'reproduced' in result.text()
    assert 'was active before the recording' in result.text()
    assert result.comparison.count > 50
    assert result.comparison.largest < 1e-6


def test_a_fault_that_does_not_come_again_is_named(tmp_path):
    flight = faulted('velocity')
    path = flight.write(tmp_path / 'flight', window=1.5)
    result = replay(Bag(path), flight.robot, {'limits.velocity': 9999.0})
    assert not [fault for _, fault in result.faults if fault.kind == 'velocity']
    assert 'recorded but not reproduced: velocity' in result.text()


def test_a_gap_of_the_recording_is_named_with_its_time(tmp_path):
    flight = Flight(ramp_time=0.0).run(1e-9 * PERIOD).enable().run(1.0)
    end = START + 645_000_000
    kept = [m for m in flight.messages if m[1] != '/joint_states' or not end - 145_000_000 < m[0] < end]
    flight.messages = [m for m in kept if m[1] != '/effort_commands']
    result = replay(Bag(flight.write(tmp_path / 'bag')), flight.robot)
    assert [fault.kind for _, fault in result.faults] == ['state']
    assert 'gap in the recorded joint states: 0.150 s, until 0.64' in result.text()
    assert 'not in the recording; it has a gap of 0.150 s' in result.text()


def test_a_joint_state_that_the_recorder_missed_is_counted_and_the_replay_continues(tmp_path):
    flight = Flight(ramp_time=0.1).run(1e-9 * PERIOD).enable()
    flight.time += PERIOD - 1_000_000  # so that one state is at a whole second
    flight.run(1.5)
    missed = START + 1_250_000_000
    flight.messages = [m for m in flight.messages if m[1] != '/joint_states' or m[0] != missed]
    result = replay(Bag(flight.write(tmp_path / 'bag')), flight.robot)
    assert result.faults == []
    assert result.comparison.largest < 0.05  # [N m], of the command without its state
    assert result.notes == ['1 joint states that the controller answered are not recorded']


def test_a_trajectory_that_the_recorder_missed_is_named_and_no_other_takes_its_place(tmp_path):
    flight = Flight(ramp_time=0.1, terms=('gravity', 'computed_torque')).run(0.2).enable().run(0.3)
    flight.follow((0.5, flight.q + 0.1)).run(1.5).follow((0.5, flight.q - 0.1)).run(0.3)
    first = next(entry for entry in flight.messages if entry[1] == '/joint_trajectory')
    flight.messages.remove(first)
    result = replay(Bag(flight.write(tmp_path / 'bag')), flight.robot)
    (note,) = result.notes
    assert 'the trajectory that was accepted at' in note
    assert 'is not recorded' in note


def test_another_robot_is_named(tmp_path):
    flight = Flight(payload_tip_mass=0.2).run(0.1).enable().run(0.1)
    with pytest.raises(BagError, match=r"recording of 'planar_2r', and the robot is 'krang': .*'tip'"):
        replay(Bag(flight.write(tmp_path / 'bag')), load_robot('krang'))


# -- the command -------------------------------------------------------------------------------------------


def test_the_command_prints_a_table_and_writes_a_bag(whole, tmp_path, capsys):
    _, path = whole
    out = tmp_path / 'out'
    command = ['replay', path, '--robot', 'planar_2r', '--out', str(out)]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert 'commands' in text
    assert 'all are identical' in text
    assert main(command) == 2
    assert main([*command, '--force', '--param', 'damping=1e-3', '--terms', 'gravity,damping']) == 0
    assert main([*command[:-1], path, '--force']) == 2
    assert Bag(path).topics
    (tmp_path / 'precious').mkdir()
    (tmp_path / 'precious' / 'thesis.tex').write_text('all of it')
    assert main([*command[:-1], str(tmp_path / 'precious'), '--force']) == 2
    assert (tmp_path / 'precious' / 'thesis.tex').exists()


def test_the_robot_is_read_from_the_recording(whole, tmp_path, capsys):
    path = Flight(robot='planar_2r').run(0.1).enable().run(0.1).write(tmp_path / 'bag')
    assert main(['replay', path]) == 0
    assert 'all are identical' in capsys.readouterr().out
    assert main(['replay', whole[1]]) == 2
    assert 'does not name the robot, which came from a topic; give --robot' in capsys.readouterr().err


def test_of_a_damaged_bag_the_rest_is_replayed_and_one_line_says_so(tmp_path, capsys):
    path = Path(Flight().run(0.1).enable().run(1.0).write(tmp_path / 'bag'))
    (file,) = path.glob('*.mcap')
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])
    assert main(['replay', str(path), '--robot', 'planar_2r']) == 0
    assert capsys.readouterr().out.count('its end is missing') == 1
    file.write_bytes(b'invalid data')
    assert main(['replay', str(path), '--robot', 'planar_2r']) == 2
    assert capsys.readouterr().err.count('\n') == 1


def test_a_robot_whose_joints_never_come_is_an_error_that_names_them(tmp_path):
    path = record_model(tmp_path / 'bag', load_robot('planar_2r'), duration=0.5)
    with pytest.raises(BagError, match='joint_6'):
        replay(Bag(path), load_robot('anthropomorphic'))


def test_targets_of_a_hand_are_replayed_bit_by_bit(tmp_path):
    terms = {'terms': ('gravity', 'cartesian_impedance'), 'stream_velocity': 0.5}
    terms['cartesian_tool_stiffness'] = [200.0] * 3 + [0.5] * 3
    flight = Flight('anthropomorphic', **terms)
    flight._effort = flight.robot.gravity_torque(flight.q)
    flight.run(0.2).enable().run(1.2)
    flight.aim('tool', [0.0, 0.05, 0.03]).run(0.5).aim('tool', [0.0, 0.0, 9.0]).run(0.3)
    for _ in range(5):
        flight.aim('tool', 0.0, [0.0, 0.0, 0.05, 0.0, 0.1, 0.0]).run(0.05)
    flight.set(cartesian_tool_stiffness=[100.0] * 3 + [0.3] * 3).run(0.5)
    assert flight.fault is None
    assert np.abs(flight.q - flight.robot.home).max() > 0.05
    result = replay(Bag(flight.write(tmp_path / 'bag')), flight.robot)
    assert result.comparison.largest == 0.0
    assert result.comparison.count == len(flight.commands())
    assert any('out of reach' in reason for reason in result.refused)
