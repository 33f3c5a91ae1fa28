"""Plans of campaigns: defaults for every robot, YAML files, draws by seed."""

from dataclasses import replace

import pytest
from harness import robot_named

import krang_dynamics as kd
from krang_dynamics.errors import KrangError
from krang_dynamics.scenarios.campaign.campaign_loop import Loop
from krang_dynamics.scenarios.campaign.campaign_monitor import STOPPED, UNSAFE
from krang_dynamics.scenarios.campaign.campaign_plan import NAMES, Conditions, load_plan


@pytest.mark.parametrize('name', kd.robots())
def test_every_robot_has_a_default_plan(name):
    plan = load_plan(kd.load_robot(name))
    assert plan.rate >= 250
    assert plan.duration >= 8
    assert set(plan.vary) <= set(NAMES)
    assert plan.vary['push'][1] > 0


def test_by_default_an_arm_stops_at_a_wall():
    """Seed 300011 presses 282 N on it where nothing watches for collisions; the bound is 280 N."""
    robot = robot_named('planar_2r')
    plan = load_plan(robot)
    blind = replace(plan, settings=plan.settings.replace(terms=('gravity', 'friction', 'computed_torque')))
    conditions = Conditions(300011, {'wall': 0.07})
    assert Loop(robot, blind, conditions).run().outcome == UNSAFE
    stopped = Loop(robot, plan, conditions).run()
    assert (stopped.outcome, stopped.reason) == (STOPPED, 'collision')
    assert stopped.force < 200


def test_a_draw_depends_on_the_seed_alone():
    plan = load_plan(robot_named('planar_2r'))
    draws = [plan.draw(seed) for seed in range(300)]
    assert draws == [plan.draw(seed) for seed in range(300)]
    assert {name for draw in draws for name in draw.values} == set(plan.vary)
    for draw in draws:
        for name, value in draw.values.items():
            assert plan.vary[name][0] <= value <= plan.vary[name][1]


def test_a_file_replaces_terms_settings_and_ranges(tmp_path):
    path = tmp_path / 'plan.yaml'
    path.write_text(
        'terms: [gravity, damping]\nsettings: {damping: 2.0}\nduration: 8\n'
        'vary: {delay: [0, 0.03], mass: , outage: 1.0}\n'
    )
    plan = load_plan(robot_named('planar_2r'), str(path))
    assert plan.settings.terms == ('gravity', 'damping')
    assert plan.settings.damping == 2.0
    assert plan.duration == 8
    assert plan.vary == {'delay': (0.0, 0.03), 'mass': (0.0, 0.2), 'outage': (1.0, 1.0)}


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('terms: [nonsense]', 'nonsense'),
        ('vary: {dealy: [0, 1]}', "did you mean 'delay'"),
        ('vary: {delay: [1, 0]}', 'lowest, highest'),
        ('vary: {delay: fast}', 'fast'),
        ('vary: []', 'must name disturbances'),
        ('rates: 3', "did you mean 'rate'"),
        ('rate: 3', '50 Hz'),
        ('rate: .nan', '50 Hz'),
        ('duration: .inf', '3 s or more'),
        ('accuracy: .nan', 'accuracy and contact_force'),
        ('vary: {delay: [0, .inf]}', 'lowest, highest'),
        ('duration: 3\nduration: 9', 'occurs twice'),
        ('- 1', 'must have entries'),
        ('{', 'cannot be read as YAML'),
        ('settings: {gains.kp: x}', 'gains.kp'),
    ],
)
def test_an_invalid_file_is_refused(tmp_path, text, message):
    path = tmp_path / 'plan.yaml'
    path.write_text(text)
    robot = robot_named('planar_2r')
    with pytest.raises(KrangError, match=message):
        kd.TorqueController(robot, load_plan(robot, str(path)).settings)
