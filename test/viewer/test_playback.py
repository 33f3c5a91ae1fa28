"""Time of a recording."""

from dataclasses import replace

import pytest
from bags.bagging import record_model

from krang_dynamics.bags.io.reader import Bag
from krang_dynamics.bags.recorded_snapshots import recorded_snapshots
from krang_dynamics.bags.replay.recorded_controller import RecordedController, StateRecord
from krang_dynamics.bags.validation.validation import validate
from krang_dynamics.control.node_state import NodeState
from krang_dynamics.robot.library import load_robot
from krang_dynamics.safety.modes import Fault
from krang_dynamics.viewer.playback import Playback

ARM = load_robot('planar_2r')
ACTIVE = NodeState('mode', 0.0, '', 'active', None, 'planar_2r', (), {})
FAULT = replace(ACTIVE, mode='fault', fault=Fault('state', 'joint_1 is old'))


@pytest.fixture(scope='module')
def playback(tmp_path_factory):
    path = record_model(tmp_path_factory.mktemp('bags') / 'bag', ARM, duration=2.0, noise=0.1)
    bag = Bag(path)
    states = tuple(StateRecord(bag.start + t, s) for t, s in ((0, ACTIVE), (1_500_000_000, FAULT)))
    controller = RecordedController('/torque_controller', '', states)
    snapshots = recorded_snapshots(bag, ARM, controller, None, ())
    return Playback(snapshots, controller, bag.start, validate(path, ARM))


def test_it_shows_the_snapshot_of_its_time(playback):
    playback.is_playing = False
    for time in (0.0, 0.7, 99.0, -1.0):
        playback.jump(time)
        assert playback.poll().time == pytest.approx(min(max(time, 0.0), playback.duration), abs=0.04)


def test_it_plays_to_the_end_and_stops(playback):
    playback.jump(0.0)
    playback.is_playing, playback.speed = True, 1e6
    assert playback.poll() is playback.poll()
    assert playback.time == playback.duration
    assert not playback.is_playing


def test_faults_and_the_largest_errors_are_moments(playback):
    (fault,) = [moment for moment in playback.moments if moment.is_fault]
    assert (fault.time, fault.text) == (1.5, 'fault state: joint_1 is old')
    worst = {time for errors in playback.validation.worst.values() for time, _ in errors}
    others = [moment for moment in playback.moments if not moment.is_fault]
    assert len(others) == sum(len(errors[:3]) for errors in playback.validation.worst.values())
    assert {moment.time for moment in others} <= worst
