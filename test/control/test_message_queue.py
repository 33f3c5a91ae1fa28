"""The state collector: states from any number of publishers, until one step takes them all."""

import numpy as np
import pytest
from harness import robot_named

import krang_dynamics as kd
from krang_dynamics.control.controller import Inputs
from krang_dynamics.control.guard import GuardInputs
from krang_dynamics.control.message_queue import MOST_LISTS, MOST_STATES, StateCollector
from krang_dynamics.control.sensors import ImuSample, OdomSample
from krang_dynamics.safety.joint_buffer import JointSamples

ARMS = [f'{side}_{i}' for side in ('left', 'right') for i in range(1, 8)]
TURN = np.array([0.0, 0.0, 0.0, 1.0])
WHEELS = ['left_wheel_motor', 'right_wheel_motor']


@pytest.fixture
def krang():
    return robot_named('krang')


@pytest.fixture
def collector(krang):
    return StateCollector(krang)


def state(names, arrival=0.0, value=0.0, stamp=0.0):
    numbers = np.full(len(names), float(value))
    return JointSamples(tuple(names), numbers, numbers, numbers, float(stamp), arrival)


def unit(stamp=0.0, arrival=0.0):
    return ImuSample(TURN, np.zeros(3), stamp, arrival)


def emptied(collector, kind=Inputs):
    inputs = kind(1.0, 1.0)
    collector.empty_into(inputs)
    return inputs


# -- when a state is whole -----------------------------------------------------------------------------


def test_one_message_with_all_joints_is_a_whole_state(collector):
    assert collector.take_sample(state(['waist', 'torso', *ARMS], arrival=1.0))


def test_joints_that_no_encoder_measures_are_not_waited_for(krang):
    """Krang's base_pitch comes from its inertial unit, Otbot's x, y and alpha from odometry."""
    assert StateCollector(krang).take_sample(state(['waist', 'torso', *ARMS], arrival=1.0))
    otbot = StateCollector(kd.load_robot('otbot'))
    assert not otbot.take_sample(state(['right_wheel', 'left_wheel'], arrival=1.0))
    assert otbot.take_sample(state(['pivot'], arrival=1.0))


def test_several_publishers_make_one_whole_state_in_any_order(collector):
    parts = [['waist'], ARMS[:7], ['torso', *WHEELS, 'lamp'], ARMS[7:]]
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]):
        done = [collector.take_sample(state(parts[k], arrival=1.0)) for k in order]
        assert done == [False, False, False, True]
        assert [sample.names for sample in emptied(collector).samples] == [tuple(parts[k]) for k in order]


def test_the_same_joints_twice_are_not_a_whole_state(collector):
    assert not any(collector.take_sample(state(ARMS, arrival=0.1 * k)) for k in range(5))
    assert collector.take_sample(state(['waist', 'torso'], arrival=1.0))


def test_after_a_step_a_whole_state_is_needed_again(collector):
    collector.take_sample(state(['waist', 'torso', *ARMS], arrival=1.0))
    emptied(collector)
    assert not collector.take_sample(state(['waist'], arrival=2.0))
    assert collector.take_sample(state(['torso', *ARMS], arrival=2.0))


def test_a_whole_state_stays_whole_with_further_messages(collector):
    assert collector.take_sample(state(['waist', 'torso', *ARMS], arrival=1.0))
    assert collector.take_sample(state(['waist'], arrival=1.0))


def test_drivers_count_as_their_joints():
    twins = [
        {'name': 'm1', 'joint': 'joint_1', 'share': 0.5},
        {'name': 'm2', 'joint': 'joint_2'},
        {'name': 'm3', 'joint': 'joint_1', 'share': 0.5},
    ]
    collector = StateCollector(kd.load_robot('planar_2r', actuators=twins))
    assert not collector.take_sample(state(['m1', 'm3', 'lamp'], arrival=1.0))
    assert collector.take_sample(state(['m2'], arrival=1.0))
    emptied(collector)
    assert collector.take_sample(state(['joint_2', 'joint_1'], arrival=1.0))


def test_the_wheel_motors_do_not_replace_the_inertial_unit(collector):
    assert not collector.take_sample(state(WHEELS, arrival=1.0))


def test_messages_without_a_known_name_change_nothing(collector):
    assert not collector.take_sample(state([], arrival=1.0))
    assert not collector.take_sample(state(['lamp', 'fan'], arrival=1.0))
    assert len(emptied(collector).samples) == 2  # for the buffer to check


# -- what a step gets ----------------------------------------------------------------------------------


@pytest.mark.parametrize('kind', [Inputs, GuardInputs])
def test_a_step_gets_every_message_in_order_with_its_arrival(collector, kind):
    for k in range(5):
        collector.take_sample(state(['waist', 'torso', *ARMS], 1.0 + k, k, float(k)))
    samples = emptied(collector, kind).samples
    assert [sample.arrival for sample in samples] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert [sample.position[0] for sample in samples] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert [sample.stamp for sample in samples] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert list(emptied(collector, kind).samples) == []


def test_the_samples_of_a_step_do_not_change_later(collector):
    collector.take_sample(state(ARMS, arrival=1.0))
    samples = emptied(collector).samples
    collector.take_sample(state(ARMS, arrival=2.0))
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


def test_states_that_no_step_needs_are_discarded(collector):
    collector.take_sample(state(ARMS, arrival=1.0))
    collector.forget_states()
    assert list(emptied(collector).samples) == []


def test_a_repeated_state_is_ignored_unless_time_stands_still(collector):
    whole = ['waist', 'torso', *ARMS]

    def makes_step(stamp, arrival):
        is_complete = collector.take_sample(state(whole, stamp=stamp, arrival=arrival))
        if is_complete:
            assert [sample.stamp for sample in emptied(collector).samples] == [stamp]
        return is_complete

    later = [(3, 1.0), (3, 1.001), (3, 1.002), (4, 1.003)]
    assert [makes_step(*each) for each in later] == [1, 0, 0, 1]
    frozen = [(5, 2.0), (5, 2.0), (5, 2.0), (5, 2.001)]
    assert [makes_step(*each) for each in frozen] == [1, 1, 1, 0]


# -- what is measured together -------------------------------------------------------------------------

WHOLE = ['waist', 'torso', *ARMS]


def turn(collector, order, stamp):
    """One period of a robot whose topics come in this order; after which of them a step was made."""
    made = []
    for topic in order:
        if topic == 'imu':
            ready = collector.take_other('imu', unit(stamp=float(stamp)))
        else:
            ready = collector.take_sample(state(WHOLE, stamp=stamp, arrival=1.0))
        if ready:
            made.append((topic, [s.stamp for s in emptied(collector).imu]))
    return made


def test_states_wait_for_an_imu_of_the_same_stamp_in_any_order(collector):
    turn(collector, ('imu', 'states'), 1)
    for stamp, order in enumerate([('imu', 'states'), ('states', 'imu')] * 3, 2):
        assert turn(collector, order, stamp) == [(order[1], [stamp])]


def test_an_imu_that_always_comes_second_is_soon_waited_for(collector):
    for stamp in (1, 2, 3):
        turn(collector, ('states', 'imu'), stamp)
    assert turn(collector, ('states', 'imu'), 4) == [('imu', [4.0])]


def test_an_imu_with_stamps_of_its_own_is_not_waited_for(collector):
    for stamp in range(1, 6):
        collector.take_other('imu', unit(stamp=stamp + 0.5))
        assert collector.take_sample(state(WHOLE, stamp=stamp, arrival=1.0))
        emptied(collector)


def test_unstamped_messages_are_not_waited_for(collector):
    collector.take_other('imu', unit(stamp=0.0))
    for _ in range(3):
        assert collector.take_sample(state(WHOLE, arrival=1.0))
        emptied(collector)


def test_an_imu_that_stops_publishing_is_waited_for_once(collector):
    turn(collector, ('imu', 'states'), 1)
    assert turn(collector, ('states',), 2) == []
    for stamp in (3, 4, 5):
        assert turn(collector, ('states',), stamp) == [('states', [])]


# -- bounds --------------------------------------------------------------------------------------------


def test_memory_has_a_bound_when_a_topic_is_flooded(collector):
    for k in range(3 * MOST_STATES):
        collector.take_sample(state(['waist', 'torso', *ARMS], float(k), k))
    assert len(emptied(collector).samples) == MOST_STATES
    for k in range(3 * MOST_LISTS):
        collector.take_sample(state([f'invalid_{k}'], 1.0))
    assert len(collector._found) <= MOST_LISTS
    emptied(collector)
    assert collector.take_sample(state(['waist', 'torso', *ARMS], 1.0))
