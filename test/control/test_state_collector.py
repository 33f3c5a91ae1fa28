"""State collection: joint states of any number of publishers until one step uses them."""

import numpy as np
import pytest
from krang_dynamics.control.state_collector import MOST_LISTS, MOST_STATES, StateCollector

import krang_dynamics as kd
from krang_dynamics.bags.io.joint_state_codec import JointStateReader, encode
from krang_dynamics.control.controller import Inputs
from krang_dynamics.control.guard import GuardInputs
from krang_dynamics.control.sensors import ImuSample, OdomSample
from krang_dynamics.control.session import Session
from krang_dynamics.control.settings import Settings
from krang_dynamics.errors import InputError
from krang_dynamics.safety.joint_buffer import JointSamples

ARMS = [f'{side}_{i}' for side in ('left', 'right') for i in range(1, 8)]
TURN = np.array([0.0, 0.0, 0.0, 1.0])
WHEELS = ['left_wheel_motor', 'right_wheel_motor']


@pytest.fixture(scope='module')
def krang():
    return kd.load_robot('krang')


@pytest.fixture
def collector(krang):
    return StateCollector(krang)


def state(names, arrival=1.0, value=0.0, stamp=0.0):
    numbers = np.full(len(names), float(value))
    return JointSamples(tuple(names), numbers, numbers, numbers, float(stamp), arrival)


def unit(stamp=0.0, arrival=0.0):
    return ImuSample(TURN, np.zeros(3), stamp, arrival)


def emptied(collector, kind=Inputs):
    inputs = kind(1.0, 1.0)
    collector.empty_into(inputs)
    return inputs


# -- when a state is complete --------------------------------------------------------------------------


def test_one_message_with_all_joints_is_complete(collector):
    assert collector.take_sample(state(['waist', 'torso', *ARMS]))


def test_joints_without_an_encoder_are_not_required(krang):
    """Krang's base_pitch comes from its inertial unit, Otbot's x, y and alpha from odometry."""
    assert StateCollector(krang).take_sample(state(['waist', 'torso', *ARMS]))
    otbot = StateCollector(kd.load_robot('otbot'))
    assert not otbot.take_sample(state(['right_wheel', 'left_wheel']))
    assert otbot.take_sample(state(['pivot']))


def test_several_publishers_make_one_complete_state_in_any_order(collector):
    parts = [['waist'], ARMS[:7], ['torso', *WHEELS, 'lamp'], ARMS[7:]]
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]):
        done = [collector.take_sample(state(parts[k])) for k in order]
        assert done == [False, False, False, True]
        assert [sample.names for sample in emptied(collector).samples] == [tuple(parts[k]) for k in order]


def test_the_same_joints_twice_are_not_a_complete_state(collector):
    assert not any(collector.take_sample(state(ARMS, 0.1 * k)) for k in range(5))
    assert collector.take_sample(state(['waist', 'torso']))


def test_after_a_step_every_joint_is_required_again(collector):
    collector.take_sample(state(['waist', 'torso', *ARMS]))
    emptied(collector)
    assert not collector.take_sample(state(['waist'], 2.0))
    assert collector.take_sample(state(['torso', *ARMS], 2.0))


def test_a_complete_state_stays_complete_until_the_step(collector):
    assert collector.take_sample(state(['waist', 'torso', *ARMS]))
    assert collector.take_sample(state(['waist']))


def test_names_of_drivers_count_for_their_joints():
    twins = [
        {'name': 'm1', 'joint': 'joint_1', 'share': 0.5},
        {'name': 'm2', 'joint': 'joint_2'},
        {'name': 'm3', 'joint': 'joint_1', 'share': 0.5},
    ]
    collector = StateCollector(kd.load_robot('planar_2r', actuators=twins))
    assert not collector.take_sample(state(['m1', 'm3', 'lamp']))
    assert collector.take_sample(state(['m2']))
    emptied(collector)
    assert collector.take_sample(state(['joint_2', 'joint_1']))


def test_the_wheel_motors_do_not_replace_the_inertial_unit(collector):
    assert not collector.take_sample(state(WHEELS))


def test_messages_without_a_known_name_change_nothing(collector):
    assert not collector.take_sample(state([]))
    assert not collector.take_sample(state(['lamp', 'fan']))
    assert len(emptied(collector).samples) == 2  # the buffer checks them


# -- samples of a step ----------------------------------------------------------------------------------


@pytest.mark.parametrize('kind', [Inputs, GuardInputs])
def test_a_step_gets_every_message_in_order_with_its_arrival(collector, kind):
    for k in range(5):
        collector.take_sample(state(['waist', 'torso', *ARMS], 1.0 + k, k, k + 1.0))
    samples = emptied(collector, kind).samples
    assert [sample.arrival for sample in samples] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert [sample.position[0] for sample in samples] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert [sample.stamp for sample in samples] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert list(emptied(collector, kind).samples) == []


def test_samples_of_a_step_do_not_change_afterwards(collector):
    collector.take_sample(state(ARMS))
    samples = emptied(collector).samples
    collector.take_sample(state(ARMS, 2.0))
    collector.forget_states()
    assert [sample.arrival for sample in samples] == [1.0]


@pytest.mark.parametrize('kind', [Inputs, GuardInputs])
def test_a_step_gets_the_newest_of_imu_and_odometry_once(collector, kind):
    for k in range(3):
        collector.take_other('imu', unit(stamp=float(k), arrival=float(k)))
        collector.take_other('odom', OdomSample(float(k), 0.0, TURN, np.zeros(3), np.zeros(3), 0.0, 0.0))
    inputs = emptied(collector, kind)
    assert [sample.arrival for sample in inputs.imu] == [2.0]
    assert [sample.x for sample in inputs.odom] == [2.0]
    inputs = emptied(collector, kind)
    assert (list(inputs.imu), list(inputs.odom)) == ([], [])


def test_unused_states_can_be_discarded(collector):
    collector.take_sample(state(ARMS))
    collector.forget_states()
    assert list(emptied(collector).samples) == []


def test_a_repeated_state_is_ignored_unless_time_stands_still(collector):
    whole = ['waist', 'torso', *ARMS]

    def is_asked(stamp, arrival):
        is_complete = collector.take_sample(state(whole, arrival, stamp=stamp))
        if is_complete:
            assert [sample.stamp for sample in emptied(collector).samples] == [stamp]
        return is_complete

    assert [is_asked(3, 1.0), is_asked(3, 1.001), is_asked(3, 1.002), is_asked(4, 1.003)] == [1, 0, 0, 1]
    assert [is_asked(5, 2.0), is_asked(5, 2.0), is_asked(5, 2.0), is_asked(5, 2.001)] == [1, 1, 1, 0]


# -- topics of one measurement ----------------------------------------------------------------------

WHOLE = ['waist', 'torso', *ARMS]


def turn(collector, order, stamp):
    """One period of a robot whose topics come in this order; after which of them a step was made."""
    made = []
    for topic in order:
        if topic == 'imu':
            ready = collector.take_other('imu', unit(stamp=float(stamp)))
        else:
            ready = collector.take_sample(state(WHOLE, stamp=stamp))
        if ready:
            made.append((topic, [s.stamp for s in emptied(collector).imu]))
    return made


def test_states_wait_for_an_imu_of_the_same_stamp_whichever_comes_first(collector):
    turn(collector, ('imu', 'states'), 1)
    for stamp, order in enumerate([('imu', 'states'), ('states', 'imu')] * 3, 2):
        assert turn(collector, order, stamp) == [(order[1], [stamp])]


def test_states_soon_wait_for_an_imu_that_always_comes_second(collector):
    for stamp in (1, 2, 3):
        turn(collector, ('states', 'imu'), stamp)
    assert turn(collector, ('states', 'imu'), 4) == [('imu', [4.0])]


def test_states_do_not_wait_for_an_imu_with_other_stamps(collector):
    for stamp in range(1, 6):
        collector.take_other('imu', unit(stamp=stamp + 0.5))
        assert collector.take_sample(state(WHOLE, stamp=stamp))
        emptied(collector)


def test_states_do_not_wait_for_an_imu_without_stamps(collector):
    collector.take_other('imu', unit(stamp=0.0))
    for _ in range(3):
        assert collector.take_sample(state(WHOLE))
        emptied(collector)


def test_states_wait_once_for_an_imu_that_stops(collector):
    turn(collector, ('imu', 'states'), 1)
    assert turn(collector, ('states',), 2) == []
    for stamp in (3, 4, 5):
        assert turn(collector, ('states',), stamp) == [('states', [])]


# -- invalid data --------------------------------------------------------------------------------------


def test_bytes_that_are_no_message_are_refused_and_earlier_states_are_kept(krang):
    """As a node does it: bytes, reader, session."""
    session, reader = Session(krang, Settings()), JointStateReader()
    session.activate()

    def receive(names, stamp=0):
        zero = np.zeros(len(names))
        return session.take_states(reader.read(encode(names, stamp, zero, zero, zero), 1.0), reader.stamp)

    assert not receive(['waist'], 3_000_000_004)
    cut = encode(ARMS, 9_000_000_009, *np.zeros((3, 14)))[:60]
    for invalid in (b'\0\1', b'\0\1\0\0' + b'\xff' * 50, cut):
        with pytest.raises(InputError):
            reader.read(invalid, 1.0)
    assert session.answered == reader.stamp == (3, 4)
    assert receive(['torso', *ARMS])
    inputs = Inputs(1.0, 1.0)
    session._collector.empty_into(inputs)
    assert len(inputs.samples) == 2


def test_memory_is_bounded_when_a_topic_is_flooded(collector):
    for k in range(3 * MOST_STATES):
        collector.take_sample(state(['waist', 'torso', *ARMS], float(k), k))
    assert len(emptied(collector).samples) == MOST_STATES
    for k in range(3 * MOST_LISTS):
        collector.take_sample(state([f'unknown_{k}']))
    assert len(collector._found) <= MOST_LISTS
    emptied(collector)
    assert collector.take_sample(state(['waist', 'torso', *ARMS]))
