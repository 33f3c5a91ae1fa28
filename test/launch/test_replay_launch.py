"""replay.launch.py: which processes it starts, with which parameters, and how it ends."""

import pytest
from bags.bagging import record_model
from launching import Launch, Loaded, defaults, launch_file, needs_launch
from nodes.harness import Topic
from std_msgs.msg import Float64MultiArray

from krang_dynamics.robot.library import load_robot

pytestmark = pytest.mark.processes

REPLAY = launch_file('replay')


def test_it_declares_its_arguments_with_defaults_and_descriptions():
    assert defaults(REPLAY) == {
        'bag': None,
        'robot': 'krang',
        'rate': '1.0',
        'terms': 'gravity',
        'namespace': '',
        'enclave': '',
    }


@needs_launch
def test_it_loads_with_a_bag_and_not_without():
    assert list(Loaded(REPLAY, bag='my_bag').nodes()) == ['torque_controller']
    with pytest.raises(RuntimeError, match='bag'):
        Loaded(REPLAY)


@needs_launch
def test_the_controller_is_enabled_although_nobody_subscribes_to_its_commands(ros, environment, tmp_path):
    path = record_model(tmp_path / 'bag', load_robot('planar_2r'), duration=2.0)
    for_drivers = Topic(ros, Float64MultiArray, '/effort_commands')
    launched = Launch(ros, environment, REPLAY, bag=path, robot='planar_2r')
    assert launched.status() == 0, launched.log
    assert 'played 400 messages' in launched.log
    assert '[torque_controller]: active' in launched.log
    assert not len(for_drivers)


@needs_launch
def test_a_bag_that_is_none_ends_it_with_the_reason(ros, environment):
    launched = Launch(ros, environment, REPLAY, bag='nowhere', robot='planar_2r')
    assert launched.status() == 1
    assert 'nowhere: does not exist' in launched.log
