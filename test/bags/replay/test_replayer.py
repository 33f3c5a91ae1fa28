"""Replay: the same torques, the same faults, the same bytes."""

import json
from pathlib import Path

import numpy as np
import pytest
from bags.bagging import START, record_model

from krang_dynamics.bags.io.joint_state_codec import TYPE, encode
from krang_dynamics.bags.io.reader import Bag
from krang_dynamics.bags.io.writer import BagWriter, prepare
from krang_dynamics.bags.replay.replayer import replay, values_of
from krang_dynamics.cli.main import main
from krang_dynamics.control.controller import Inputs
from krang_dynamics.control.making import controller_of, new_values
from krang_dynamics.errors import BagError
from krang_dynamics.robot.library import load_robot
from krang_dynamics.safety.joint_buffer import JointSamples

pytest.importorskip('rosbags')

PERIOD = 5_000_000  # of the states [ns]
NODE = '/torque_controller'
EMPTY = np.zeros(0)


class Flight:
    """A controller and a plant in one loop, with every message that the node would send and hear.

    Steps, watch and ~/state are written here as the node has them, in the time of the bag.
    """

    def __init__(self, name='planar_2r', **parameters):
        self.robot = load_robot(name)
        self.values = values_of(
            {}, self.robot, {'terms': ['gravity', 'damping'], 'damping': 2.0, **parameters}
        )
        self.controller = controller_of(self.values, self.robot)
        self.q, self.v = self.robot.home.copy(), np.zeros(self.robot.nv)
        self.time = START
        self.messages = []  # (time, topic, type, bytes)
        self._seen = (self.controller.safety.mode, None)
        self._effort = np.zeros(self.robot.nv)
        self._stamp = self._stepped_at = START
        self._pending = {}  # what the next step is told
        self.say('configure', mode='inactive')
        self.say('activate')

    @property
    def fault(self):
        return self.controller.safety.fault

    def run(self, duration, silent=False):
        """States at a steady rate, or the watch alone; the robot falls where nothing holds it."""
        for _ in range(round(1e9 * duration / PERIOD)):
            self.time += PERIOD
            self._move(1e-9 * PERIOD)
            if not silent:
                q, v = self.q.copy(), self.v.copy()
                data = encode(self.robot.joint_names, self.time, q, v, self._effort)
                self.keep('/joint_states', TYPE, data)
                sample = JointSamples(
                    self.robot.joint_names,
                    q,
                    v,
                    self._effort.copy(),
                    _seconds(self.time),
                    _seconds(self.time),
                )
                self._stamp = self.time
                self.step(samples=[sample])
            elif self.time - self._stepped_at >= 10_000_000:
                self.step()
        return self

    def step(self, event='', **inputs):
        now = _seconds(self.time)
        inputs, self._pending = {**self._pending, **inputs}, {}
        before = self.fault
        out = self.controller.step(Inputs(now, now, **inputs))
        self._stepped_at = self.time
        if out.torque is not None:
            self._effort = out.torque
            self.keep_message('/effort_commands', 'Float64MultiArray', data=out.command, layout=_layout())
            self.keep(
                f'{NODE}/torques', TYPE, encode(self.robot.joint_names, self._stamp, EMPTY, EMPTY, out.torque)
            )
        if event or (out.mode, out.fault) != self._seen:
            self._seen = (out.mode, out.fault)
            self.say(event or ('fault' if out.fault and not before else 'mode'))
        return out

    def enable(self, on=True):
        self.step(event='enable' if on else 'disable', enable=on)
        return self

    def set(self, **parameters):
        after = values_of(self.values, self.robot, parameters)
        self.step(**new_values(after, self.values, self.robot))
        self.values = after
        self.say('parameters')
        return self

    def press(self):
        self.keep_message('/emergency_stop', 'Bool', data=True)
        self._pending['emergency_stop'] = True
        return self

    def say(self, event, mode=None):
        safety = self.controller.safety
        fault = safety.fault and {'kind': safety.fault.kind, 'reason': safety.fault.reason}
        state = {'event': event, 'mode': mode or safety.mode.value, 'fault': fault, 'limits': {}}
        state |= {'robot': self.robot.name, 'parameters': self.values}
        self.keep_message(f'{NODE}/state', 'String', data=json.dumps(state))

    def keep_message(self, topic, kind, **fields):
        types, kind = prepare(), f'std_msgs/msg/{kind}'
        self.keep(topic, kind, bytes(types.serialize_cdr(types.types[kind](**fields), kind)))

    def keep(self, topic, kind, data):
        self.messages.append((self.time, topic, kind, data))

    def write(self, path, window=None):
        """All of it, or the last seconds, as the flight recorder does."""
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


def _seconds(ns):
    """As a reader of messages has it."""
    return ns // 1_000_000_000 + 1e-9 * (ns % 1_000_000_000)


def _layout():
    return prepare().types['std_msgs/msg/MultiArrayLayout'](dim=[], data_offset=0)


def files(path):
    return {entry.name: entry.read_bytes() for entry in Path(path).iterdir()}


def spoken(path, topic):
    """(time, message) of a topic of a bag."""
    return list(Bag(path).read(topic))


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
    """A ramp, a change of parameters, a push and a stop, from configure to the end."""
    flight = Flight(ramp_time=0.3)
    flight.run(0.2).enable().run(0.6).set(damping=5.0).run(0.2)
    flight.v += 0.3
    flight.run(0.3).enable(False).run(0.5)
    return flight, flight.write(tmp_path_factory.mktemp('whole') / 'bag')


# -- the same torques --------------------------------------------------------------------------------------


def test_the_recorded_torques_come_again(whole):
    flight, path = whole
    result = replay(Bag(path), flight.robot)
    recorded = [entry for entry in flight.messages if entry[1] == f'{NODE}/torques']
    assert result.comparison.count > 200
    assert result.comparison.largest < 1e-9
    assert result.commands >= len(recorded)
    modes = [mode.value for _, mode, _ in result.changes]
    assert modes[:3] == ['ramping', 'active', 'stopping']
    assert 'reproduced' not in result.text()


def test_every_torque_of_the_written_bag_is_the_recorded_one(whole, tmp_path):
    flight, path = whole
    replay(Bag(path), flight.robot, out=str(tmp_path / 'out'))
    recorded = {m.header.stamp.nanosec: m.effort for _, m in spoken(path, f'{NODE}/torques')}
    again = {m.header.stamp.nanosec: m.effort for _, m in spoken(tmp_path / 'out', '/replay/torques')}
    assert set(recorded) <= set(again)
    assert max(np.abs(again[stamp] - effort).max() for stamp, effort in recorded.items()) < 1e-9
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
    torques = spoken(out, '/replay/torques')
    q = next(
        m.position for _, m in spoken(path, '/joint_states') if m.header.stamp == torques[-1][1].header.stamp
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
    # 0.49 s of simulated time: half a ramp, and what the watch did before the clock began.
    assert [mode.value for _, mode, _ in result.changes] == ['ramping']
    assert result.commands == 101


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
    assert {m['event'] for m in (json.loads(m.data) for _, m in spoken(path, f'{NODE}/state'))} == {'fault'}
    result = replay(Bag(path), flight.robot)
    ((time, fault),) = result.faults
    assert fault.kind == kind
    if kind != 'state':  # whose reason tells an age
        assert fault == flight.fault
    assert time == pytest.approx(result.duration, abs=0.011)
    assert 'reproduced' in result.text()
    assert result.comparison.count > 50
    assert result.comparison.largest < 1e-6


def test_a_fault_that_does_not_come_again_is_named(tmp_path):
    flight = faulted('velocity')
    path = flight.write(tmp_path / 'flight', window=1.5)
    result = replay(Bag(path), flight.robot, {'limits.velocity': 9999.0})
    assert not [fault for _, fault in result.faults if fault.kind == 'velocity']
    assert 'recorded but not reproduced: velocity' in result.text()


# -- the command -------------------------------------------------------------------------------------------


def test_the_command_prints_a_table_and_writes_a_bag(whole, tmp_path, capsys):
    _, path = whole
    out = tmp_path / 'out'
    command = ['replay', path, '--robot', 'planar_2r', '--out', str(out)]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert 'commands' in text
    assert 'largest difference' in text
    assert main(command) == 2
    assert main([*command, '--force', '--param', 'damping=1e-3', '--terms', 'gravity,damping']) == 0
    assert main([*command[:-1], path, '--force']) == 2
    assert Bag(path).topics
    (tmp_path / 'precious').mkdir()
    (tmp_path / 'precious' / 'thesis.tex').write_text('all of it')
    assert main([*command[:-1], str(tmp_path / 'precious'), '--force']) == 2
    assert (tmp_path / 'precious' / 'thesis.tex').exists()


@pytest.mark.parametrize(
    'arguments',
    [
        ['nowhere', '--robot', 'planar_2r'],
        ['{bag}'],
        ['{bag}', '--robot', 'krang'],
        ['{bag}', '--robot', 'planar_2r', '--param', 'dampin=1'],
        ['{bag}', '--robot', 'planar_2r', '--param', 'damping'],
        ['{bag}', '--robot', 'planar_2r', '--terms', 'gravitation'],
        ['{bag}', '--robot', 'planar_2r', '--node', 'other'],
    ],
)
def test_errors_are_one_line_and_status_two(arguments, whole, capsys):
    assert main(['replay', *(word.format(bag=whole[1]) for word in arguments)]) == 2
    error = capsys.readouterr().err
    assert error.startswith('krang: ')
    assert error.count('\n') == 1


def test_of_a_damaged_bag_the_rest_is_replayed_and_one_line_says_so(tmp_path, capsys):
    path = Path(Flight().run(0.1).enable().run(1.0).write(tmp_path / 'bag'))
    (file,) = path.glob('*.mcap')
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])
    assert main(['replay', str(path), '--robot', 'planar_2r']) == 0
    assert capsys.readouterr().out.count('its end is missing') == 1
    file.write_bytes(b'rubbish')
    assert main(['replay', str(path), '--robot', 'planar_2r']) == 2
    assert capsys.readouterr().err.count('\n') == 1


def test_a_robot_whose_joints_never_come_is_an_error_that_names_them(tmp_path):
    path = record_model(tmp_path / 'bag', load_robot('planar_2r'), duration=0.5)
    with pytest.raises(BagError, match='joint_6'):
        replay(Bag(path), load_robot('anthropomorphic'))
