"""The inbox: states from any number of publishers until one step takes them all."""

import warnings

import numpy as np
import pytest

with warnings.catch_warnings():
    warnings.simplefilter('ignore')  # the message generator's parser imports a deprecated module
    import rosidl_generator_py  # noqa: F401

from krang_dynamics.nodes.ros.inbox import Inbox
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

import krang_dynamics as kd
from krang_dynamics.control.controller import Inputs
from krang_dynamics.control.guard import GuardInputs
from krang_dynamics.control.message_queue import MOST_LISTS, MOST_STATES
from krang_dynamics.control.sensors import ImuSample, OdomSample
from krang_dynamics.errors import InputError

ARMS = [f'{side}_{i}' for side in ('left', 'right') for i in range(1, 8)]
TURN = np.array([0.0, 0.0, 0.0, 1.0])
WHEELS = ['left_wheel_motor', 'right_wheel_motor']


@pytest.fixture(scope='module')
def krang():
    return kd.load_robot('krang')


@pytest.fixture
def inbox(krang):
    return Inbox(krang)


def state(names, value=0.0, stamp=(0, 0)):
    numbers = [float(value)] * len(names)
    message = JointState(name=list(names), position=numbers, velocity=numbers, effort=numbers)
    message.header.stamp.sec, message.header.stamp.nanosec = stamp
    return serialize_message(message)


def unit(stamp=0.0, arrival=0.0):
    return ImuSample(TURN, np.zeros(3), stamp, arrival)


def emptied(inbox, kind=Inputs):
    inputs = kind(1.0, 1.0)
    inbox.empty_into(inputs)
    return inputs


# -- when a state is whole -----------------------------------------------------------------------------


def test_one_message_with_all_joints_is_a_whole_state(inbox):
    assert inbox.take_states(state(['waist', 'torso', *ARMS]), 1.0)


def test_joints_that_no_encoder_measures_are_not_waited_for(krang):
    """Krang's base_pitch comes from its inertial unit, Otbot's x, y and alpha from odometry."""
    assert Inbox(krang).take_states(state(['waist', 'torso', *ARMS]), 1.0)
    otbot = Inbox(kd.load_robot('otbot'))
    assert not otbot.take_states(state(['right_wheel', 'left_wheel']), 1.0)
    assert otbot.take_states(state(['pivot']), 1.0)


def test_several_publishers_make_one_whole_state_in_any_order(inbox):
    parts = [['waist'], ARMS[:7], ['torso', *WHEELS, 'lamp'], ARMS[7:]]
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]):
        done = [inbox.take_states(state(parts[k]), 1.0) for k in order]
        assert done == [False, False, False, True]
        assert [sample.names for sample in emptied(inbox).samples] == [tuple(parts[k]) for k in order]


def test_the_same_joints_twice_are_not_a_whole_state(inbox):
    assert not any(inbox.take_states(state(ARMS), 0.1 * k) for k in range(5))
    assert inbox.take_states(state(['waist', 'torso']), 1.0)


def test_after_a_step_everything_must_come_again(inbox):
    inbox.take_states(state(['waist', 'torso', *ARMS]), 1.0)
    emptied(inbox)
    assert not inbox.take_states(state(['waist']), 2.0)
    assert inbox.take_states(state(['torso', *ARMS]), 2.0)


def test_once_whole_further_messages_find_it_whole(inbox):
    assert inbox.take_states(state(['waist', 'torso', *ARMS]), 1.0)
    assert inbox.take_states(state(['waist']), 1.0)


def test_drivers_speak_for_their_joints():
    twins = [
        {'name': 'm1', 'joint': 'joint_1', 'share': 0.5},
        {'name': 'm2', 'joint': 'joint_2'},
        {'name': 'm3', 'joint': 'joint_1', 'share': 0.5},
    ]
    inbox = Inbox(kd.load_robot('planar_2r', actuators=twins))
    assert not inbox.take_states(state(['m1', 'm3', 'lamp']), 1.0)
    assert inbox.take_states(state(['m2']), 1.0)
    emptied(inbox)
    assert inbox.take_states(state(['joint_2', 'joint_1']), 1.0)


def test_the_wheel_motors_do_not_speak_for_the_inertial_unit(inbox):
    assert not inbox.take_states(state(WHEELS), 1.0)


def test_messages_without_a_known_name_change_nothing(inbox):
    assert not inbox.take_states(state([]), 1.0)
    assert not inbox.take_states(state(['lamp', 'fan']), 1.0)
    assert len(emptied(inbox).samples) == 2  # for the buffer to judge


# -- what a step gets ----------------------------------------------------------------------------------


@pytest.mark.parametrize('kind', [Inputs, GuardInputs])
def test_a_step_gets_every_message_in_order_with_its_arrival(inbox, kind):
    for k in range(5):
        inbox.take_states(state(['waist', 'torso', *ARMS], k, (k, 7)), 1.0 + k)
    samples = emptied(inbox, kind).samples
    assert [sample.arrival for sample in samples] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert [sample.position[0] for sample in samples] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert inbox.stamp == (4, 7)
    assert list(emptied(inbox, kind).samples) == []


def test_what_a_step_got_stays_as_it_was(inbox):
    inbox.take_states(state(ARMS), 1.0)
    samples = emptied(inbox).samples
    inbox.take_states(state(ARMS), 2.0)
    inbox.forget_states()
    assert [sample.arrival for sample in samples] == [1.0]


@pytest.mark.parametrize('kind', [Inputs, GuardInputs])
def test_a_step_gets_the_newest_of_imu_and_odometry_once(inbox, kind):
    for k in range(3):
        inbox.take_other('imu', unit(stamp=float(k), arrival=float(k)))
        inbox.take_other('odom', OdomSample(float(k), 0.0, TURN, np.zeros(3), np.zeros(3), 0.0, 0.0))
    inputs = emptied(inbox, kind)
    assert [sample.arrival for sample in inputs.imu] == [2.0]
    assert [sample.x for sample in inputs.odom] == [2.0]
    inputs = emptied(inbox, kind)
    assert (list(inputs.imu), list(inputs.odom)) == ([], [])


def test_states_that_nobody_asks_for_may_be_forgotten(inbox):
    inbox.take_states(state(ARMS), 1.0)
    inbox.forget_states()
    assert list(emptied(inbox).samples) == []


def test_a_state_sent_twice_is_nothing_new_unless_time_stands_still(inbox):
    whole = ['waist', 'torso', *ARMS]

    def is_asked(stamp, arrival):
        is_complete = inbox.take_states(state(whole, stamp=(stamp, 0)), arrival)
        if is_complete:
            assert [sample.stamp for sample in emptied(inbox).samples] == [stamp]
        return is_complete

    assert [is_asked(3, 1.0), is_asked(3, 1.001), is_asked(3, 1.002), is_asked(4, 1.003)] == [1, 0, 0, 1]
    assert [is_asked(5, 2.0), is_asked(5, 2.0), is_asked(5, 2.0), is_asked(5, 2.001)] == [1, 1, 1, 0]


# -- what is measured together -------------------------------------------------------------------------

WHOLE = ['waist', 'torso', *ARMS]


def turn(inbox, order, stamp):
    """One period of a robot whose topics come in this order; after which of them a step was made."""
    made = []
    for topic in order:
        if topic == 'imu':
            ready = inbox.take_other('imu', unit(stamp=float(stamp)))
        else:
            ready = inbox.take_states(state(WHOLE, stamp=(stamp, 0)), 1.0)
        if ready:
            made.append((topic, [s.stamp for s in emptied(inbox).imu]))
    return made


def test_states_wait_for_an_imu_of_the_same_stamp_whichever_comes_first(inbox):
    turn(inbox, ('imu', 'states'), 1)
    for stamp, order in enumerate([('imu', 'states'), ('states', 'imu')] * 3, 2):
        assert turn(inbox, order, stamp) == [(order[1], [stamp])]


def test_an_imu_that_always_comes_second_is_soon_waited_for(inbox):
    for stamp in (1, 2, 3):
        turn(inbox, ('states', 'imu'), stamp)
    assert turn(inbox, ('states', 'imu'), 4) == [('imu', [4.0])]


def test_an_imu_with_stamps_of_its_own_is_not_waited_for(inbox):
    for stamp in range(1, 6):
        inbox.take_other('imu', unit(stamp=stamp + 0.5))
        assert inbox.take_states(state(WHOLE, stamp=(stamp, 0)), 1.0)
        emptied(inbox)


def test_what_has_no_stamps_is_not_waited_for(inbox):
    inbox.take_other('imu', unit(stamp=0.0))
    for _ in range(3):
        assert inbox.take_states(state(WHOLE), 1.0)
        emptied(inbox)


def test_an_imu_that_falls_silent_is_waited_for_once(inbox):
    turn(inbox, ('imu', 'states'), 1)
    assert turn(inbox, ('states',), 2) == []
    for stamp in (3, 4, 5):
        assert turn(inbox, ('states',), stamp) == [('states', [])]


# -- rubbish -------------------------------------------------------------------------------------------


def test_what_is_no_message_is_refused_and_what_came_before_is_kept(inbox):
    inbox.take_states(state(['waist'], stamp=(3, 4)), 1.0)
    for rubbish in (b'\0\1', b'\0\1\0\0' + b'\xff' * 50, state(ARMS, stamp=(9, 9))[:60]):
        with pytest.raises(InputError):
            inbox.take_states(rubbish, 1.0)
    assert inbox.stamp == (3, 4)
    assert inbox.take_states(state(['torso', *ARMS]), 2.0)
    assert len(emptied(inbox).samples) == 2


def test_memory_has_a_bound_whoever_floods_the_topic(inbox):
    for k in range(3 * MOST_STATES):
        inbox.take_states(state(['waist', 'torso', *ARMS], k), float(k))
    assert len(emptied(inbox).samples) == MOST_STATES
    for k in range(3 * MOST_LISTS):
        inbox.take_states(state([f'rubbish_{k}']), 1.0)
    assert len(inbox._found) <= MOST_LISTS
    emptied(inbox)
    assert inbox.take_states(state(['waist', 'torso', *ARMS]), 1.0)
