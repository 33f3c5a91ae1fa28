"""Every shipped robot has a demonstration, whose criteria reject each kind of failure."""

from dataclasses import replace

import numpy as np
import pytest
from scenarios.ideal_record import ideal

import krang_dynamics as kd
from krang_dynamics.control.controller import TorqueController
from krang_dynamics.control.settings import Settings
from krang_dynamics.scenarios.demo_record import TopicLog
from krang_dynamics.scenarios.demonstrations import FORCE, PUSH, REACH, reached, scenario_of


@pytest.fixture(scope='module')
def demonstration():
    """Robots and their scenarios by name, built once."""
    made = {}

    def of(name):
        if name not in made:
            robot = kd.load_robot(name)
            made[name] = robot, scenario_of(robot)
        return made[name]

    return of


class FakeOperator:
    """Stores the calls that a scenario makes."""

    def __init__(self, robot):
        self.q = robot.home
        self.calls = []

    def __getattr__(self, name):
        return lambda *values: self.calls.append((name, *values))


def verdicts(scenario, record):
    return {result.name: result.passed for result in scenario.evaluate(record)}


@pytest.mark.parametrize('name', kd.robots())
def test_every_shipped_robot_has_a_scenario_with_valid_events(demonstration, name):
    robot, scenario = demonstration(name)
    assert scenario.duration <= 25
    TorqueController(robot, Settings(terms=scenario.terms, **scenario.controller, **scenario.shared))
    operator = FakeOperator(robot)
    for time, event in scenario.events:
        assert 0 <= time < scenario.duration
        event(operator)
    assert operator.calls
    for call in operator.calls:
        if call[0] == 'push':
            assert call[1] in robot.frames
            assert len(call[2]) == 6
            assert call[3] > 0
        if call[0] == 'follow':
            assert set(call[1].joint_names) <= set(robot.joint_names)
            assert call[1].times[-1] < scenario.duration


@pytest.mark.parametrize('name', kd.robots())
def test_every_part_ends_within_the_scenario(demonstration, name):
    _, scenario = demonstration(name)
    assert scenario.criteria
    assert all(0 < criterion.end <= scenario.duration for criterion in scenario.criteria)
    assert len({criterion.name for criterion in scenario.criteria}) == len(scenario.criteria)


# -- arms ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize('name', ['planar_2r', 'anthropomorphic'])
def test_an_arm_that_holds_and_follows_passes_and_others_do_not(demonstration, name):
    robot, scenario = demonstration(name)
    good = ideal(robot, scenario)
    assert verdicts(scenario, good) == {'hold: drift': True, 'move: worst joint, RMS': True}
    fallen = replace(good, q=good.q + 0.01)
    assert verdicts(scenario, fallen) == {'hold: drift': False, 'move: worst joint, RMS': False}
    late = good.desired.copy()
    late[good.times > 1.0, -1] += 0.002
    assert verdicts(scenario, replace(good, desired=late)) == {
        'hold: drift': True,
        'move: worst joint, RMS': False,
    }


def test_only_completed_parts_are_evaluated(demonstration):
    robot, scenario = demonstration('planar_2r')
    assert list(verdicts(scenario, ideal(robot, scenario, 3.0))) == ['hold: drift']
    assert list(verdicts(scenario, ideal(robot, scenario, 0.5))) == []


@pytest.mark.parametrize('name', kd.robots())
@pytest.mark.parametrize('duration', [0.05, 1.0, 3.0, 6.0, 9.2, 12.0])
def test_a_scenario_can_be_evaluated_wherever_it_was_cut(demonstration, name, duration):
    robot, scenario = demonstration(name)
    record = ideal(robot, scenario, duration)
    if name.startswith('pendubot'):
        record.q[0, 1] = np.pi
    names = [result.name for result in scenario.evaluate(record)]
    assert names == [c.name for c in scenario.criteria if c.end < duration + 0.1]


# -- Krang ---------------------------------------------------------------------------------------------


@pytest.fixture
def krang(demonstration):
    """Krang's scenario, and a record that meets all criteria: the push is detected, the wall is touched."""
    robot, scenario = demonstration('krang')
    record = ideal(robot, scenario)
    record.q[record.times > REACH + 1] = record.desired[record.times > REACH + 1] = reached(robot)
    push = robot.jacobian(robot.home, 'left_hand').T @ [0, 0, -20.0, 0, 0, 0]
    external = np.where((record.times > PUSH)[:, None], push, 0.0)
    force = np.zeros((len(record.times), 6))
    force[:, 1] = -FORCE
    states = ((PUSH + 0.03, {'contact': 'contact'}),)
    touch = np.where((record.times > PUSH)[:, None], [0, 0, -20.0, 0, 0, 0], 0.0)
    wrenches = {'left_hand': TopicLog(record.times, touch), 'right_hand': TopicLog(record.times, force)}
    return scenario, replace(record, external=external, wrenches=wrenches, states=states)


def failed(scenario, record):
    return [name for name, passed in verdicts(scenario, record).items() if not passed]


def test_krang_passes_with_a_good_record(krang):
    assert failed(*krang) == []


def test_krang_fails_in_the_part_that_went_wrong(krang):
    scenario, good = krang
    assert failed(scenario, replace(good, states=())) == ['push: detected after']
    late = ((PUSH + 0.08, {'contact': 'contact'}),)
    assert failed(scenario, replace(good, states=late)) == ['push: detected after']
    assert failed(scenario, replace(good, external=0.9 * good.external)) == [
        'push: error of the estimated force'
    ]
    weak = TopicLog(good.times, 0.9 * good.wrenches['right_hand'].values)
    assert failed(scenario, replace(good, wrenches={**good.wrenches, 'right_hand': weak})) == [
        'wall: error of the contact force'
    ]
    short = good.q - 1e-3 * (good.times > REACH)[:, None]
    assert failed(scenario, replace(good, q=short)) == ['reach: distance from the target']
    drifting = good.q + np.where(good.times < 2.0, 2e-4, 0.0)[:, None]
    assert failed(scenario, replace(good, q=drifting)) == ['hold: drift']
    slack = good.desired + np.where((good.times > 2.0) & (good.times < 8.0), 1e-3, 0.0)[:, None]
    assert failed(scenario, replace(good, desired=slack)) == ['move: worst joint, RMS']


# -- Otbot ---------------------------------------------------------------------------------------------


def test_otbot_fails_in_the_part_that_went_wrong(demonstration):
    robot, scenario = demonstration('otbot')
    good = ideal(robot, scenario)
    assert failed(scenario, good) == []
    for begin, end, way, what in (
        (3.0, 4.5, 0.006, 'path error before the pushes'),
        (6.5, 7.5, 0.31, 'path error while pushed'),
        (19.5, 20.0, 0.011, 'path error 5 s after the last push'),
    ):
        off = good.desired.copy()
        off[(good.times > begin) & (good.times < end), :2] += way * np.array([0.6, 0.8])
        assert failed(scenario, replace(good, desired=off)) == [what]
        assert failed(scenario, replace(good, desired=good.desired + 0.8 * (off - good.desired))) == []


# -- pendubot ------------------------------------------------------------------------------------------


def test_the_pendubot_fails_in_the_part_that_went_wrong(demonstration):
    robot, scenario = demonstration('pendubot')
    good = ideal(robot, scenario)
    good.q[:] = 0.0
    good.q[good.times < 2.0, 1] = np.pi
    good.q[good.times >= 3.0, 1] = 2 * np.pi  # upright, after one turn
    assert failed(scenario, good) == []
    for begin, end, joint, angle, what in (
        (2.0, 5.5, 1, 0.2, 'upright after'),
        (1.0, 1.2, 0, 2.1, 'largest arm angle'),
        (6.2, 6.4, 1, 0.6, 'tap: tilt'),
        (9.5, 10.1, 1, 0.06, 'tap: tilt after 3 s'),
    ):
        q = good.q.copy()
        q[(good.times > begin) & (good.times < end), joint] += angle
        assert failed(scenario, replace(good, q=q)) == [what]
