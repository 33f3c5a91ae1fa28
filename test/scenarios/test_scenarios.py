"""Stories: every shipped robot has one, and its judge says yes to what went well and NO to what did not."""

from dataclasses import replace

import numpy as np
import pytest
from scenarios.made_up import perfect

import krang_dynamics as kd
from krang_dynamics.control.builder import settings_of
from krang_dynamics.control.settings import Settings
from krang_dynamics.errors import UnknownNameError
from krang_dynamics.scenarios.scenarios import FORCE, PUSH, Row, scenario_of
from krang_dynamics.scenarios.trace import Series


@pytest.fixture(scope='module')
def told():
    """Robots and their scenarios by name, made once."""
    made = {}

    def of(name):
        if name not in made:
            robot = kd.load_robot(name)
            made[name] = robot, scenario_of(robot)
        return made[name]

    return of


class Witness:
    """A stage that remembers what was asked of it."""

    def __init__(self, robot):
        self.q = robot.home
        self.calls = []

    def __getattr__(self, name):
        return lambda *values: self.calls.append((name, *values))


def verdicts(scenario, record):
    return {row.what: row.held for row in scenario.judge(record)}


@pytest.mark.parametrize('name', kd.robots())
def test_every_shipped_robot_has_a_story_that_can_be_told(told, name):
    robot, scenario = told(name)
    assert scenario.duration <= 25
    settings_of({'terms': scenario.terms.split(','), **scenario.controller, **scenario.shared}, robot, Settings)
    witness = Witness(robot)
    for time, event in scenario.events:
        assert 0 <= time < scenario.duration
        event(witness)
    assert witness.calls
    for call in witness.calls:
        if call[0] == 'push':
            assert call[1] in robot.frames
            assert len(call[2]) == 6
            assert call[3] > 0
        if call[0] == 'follow':
            assert set(call[1].names) <= set(robot.joint_names)
            assert call[1].times[-1] < scenario.duration


@pytest.mark.parametrize('name', kd.robots())
def test_every_part_ends_within_the_story(told, name):
    _, scenario = told(name)
    assert scenario.checks
    assert all(0 < check.end <= scenario.duration for check in scenario.checks)
    assert len({check.what for check in scenario.checks}) == len(scenario.checks)


def test_a_robot_without_a_story_is_named():
    robot = kd.load_robot('planar_2r', name='robbie')
    with pytest.raises(UnknownNameError, match=r"'robbie'.*krang"):
        scenario_of(robot)


def test_a_bound_is_held_up_to_itself_and_never_by_what_is_no_number():
    assert Row('x', 1.0, 1.0, 'rad').held
    assert not Row('x', 1.0 + 1e-9, 1.0, 'rad').held
    assert not Row('x', np.nan, 1.0, 'rad').held
    assert not Row('x', np.inf, 1.0, 'rad').held


# -- arms ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize('name', ['planar_2r', 'anthropomorphic'])
def test_an_arm_that_holds_and_follows_passes_and_others_do_not(told, name):
    robot, scenario = told(name)
    good = perfect(robot, scenario)
    assert verdicts(scenario, good) == {'hold: drift': True, 'move: worst joint': True}
    fallen = replace(good, q=good.q + 0.01)
    assert verdicts(scenario, fallen) == {'hold: drift': False, 'move: worst joint': False}
    late = good.desired.copy()
    late[good.times > 1.0, -1] += 0.002
    assert verdicts(scenario, replace(good, desired=late)) == {'hold: drift': True, 'move: worst joint': False}


def test_only_parts_that_were_played_are_judged(told):
    robot, scenario = told('planar_2r')
    assert list(verdicts(scenario, perfect(robot, scenario, 3.0))) == ['hold: drift']
    assert list(verdicts(scenario, perfect(robot, scenario, 0.5))) == []


@pytest.mark.parametrize('name', kd.robots())
@pytest.mark.parametrize('duration', [0.05, 1.0, 3.0, 6.0, 9.2, 12.0])
def test_a_story_can_be_judged_wherever_it_was_cut(told, name, duration):
    robot, scenario = told(name)
    record = perfect(robot, scenario, duration)
    if name.startswith('pendubot'):
        record.q[0, 1] = np.pi
    rows = scenario.judge(record)
    assert [row.what for row in rows] == [c.what for c in scenario.checks if c.end < duration + 0.1]


# -- Krang ---------------------------------------------------------------------------------------------


@pytest.fixture
def krang(told):
    """Krang's scenario, and a record of it that is good: push seen, wall felt."""
    robot, scenario = told('krang')
    record = perfect(robot, scenario)
    push = robot.jacobian(robot.home, 'left_hand').T @ [0, 0, -20.0, 0, 0, 0]
    external = np.where((record.times > PUSH)[:, None], push, 0.0)
    force = np.zeros((len(record.times), 6))
    force[:, 1] = -FORCE
    states = ((PUSH + 0.03, {'contact': 'contact'}),)
    touch = np.where((record.times > PUSH)[:, None], [0, 0, -20.0, 0, 0, 0], 0.0)
    wrenches = {'left_hand': Series(record.times, touch), 'right_hand': Series(record.times, force)}
    return scenario, replace(record, external=external, wrenches=wrenches, states=states)


def failed(scenario, record):
    return [what for what, held in verdicts(scenario, record).items() if not held]


def test_krang_passes_where_all_goes_well(krang):
    assert failed(*krang) == []


def test_krang_fails_by_the_part_that_went_wrong(krang):
    scenario, good = krang
    assert failed(scenario, replace(good, states=())) == ['push: found after']
    late = ((PUSH + 0.08, {'contact': 'contact'}),)
    assert failed(scenario, replace(good, states=late)) == ['push: found after']
    assert failed(scenario, replace(good, external=0.9 * good.external)) == ['push: 20 N seen, error']
    weak = Series(good.times, 0.9 * good.wrenches['right_hand'].values)
    assert failed(scenario, replace(good, wrenches={**good.wrenches, 'right_hand': weak})) == [
        'wall: 15 N asked, error'
    ]
    drifting = good.q + np.where(good.times < 2.0, 2e-4, 0.0)[:, None]
    assert failed(scenario, replace(good, q=drifting)) == ['hold: drift']
    slack = good.desired + np.where((good.times > 2.0) & (good.times < 8.0), 1e-3, 0.0)[:, None]
    assert failed(scenario, replace(good, desired=slack)) == ['move: worst joint']


# -- Otbot ---------------------------------------------------------------------------------------------


def test_otbot_fails_by_the_part_that_went_wrong(told):
    robot, scenario = told('otbot')
    good = perfect(robot, scenario)
    assert failed(scenario, good) == []
    for begin, end, way, what in (
        (1.5, 3.0, 0.006, 'eight before the pushes'),
        (5.0, 6.0, 0.31, 'farthest off while pushed'),
        (18.0, 18.5, 0.011, 'five seconds after the last push'),
    ):
        off = good.desired.copy()
        off[(good.times > begin) & (good.times < end), :2] += way * np.array([0.6, 0.8])
        assert failed(scenario, replace(good, desired=off)) == [what]
        assert failed(scenario, replace(good, desired=good.desired + 0.8 * (off - good.desired))) == []


# -- pendubot ------------------------------------------------------------------------------------------


def test_the_pendubot_fails_by_the_part_that_went_wrong(told):
    robot, scenario = told('pendubot')
    good = perfect(robot, scenario)
    good.q[:] = 0.0
    good.q[good.times < 2.0, 1] = np.pi
    good.q[good.times >= 3.0, 1] = 2 * np.pi  # upright, once round
    assert failed(scenario, good) == []
    for begin, end, joint, angle, what in (
        (2.0, 5.5, 1, 0.2, 'upright after'),
        (1.0, 1.2, 0, 2.1, 'arm, farthest'),
        (6.2, 6.4, 1, 0.6, 'tap: tilt'),
        (9.5, 10.1, 1, 0.06, 'tap: tilt later'),
    ):
        q = good.q.copy()
        q[(good.times > begin) & (good.times < end), joint] += angle
        assert failed(scenario, replace(good, q=q)) == [what]
