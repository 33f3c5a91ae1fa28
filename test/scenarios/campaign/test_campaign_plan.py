"""Plans of campaigns: defaults for every robot, YAML files, draws by seed."""

from dataclasses import replace

import numpy as np
import pytest
from harness import robot_named

import krang_dynamics as kd
from krang_dynamics.errors import ConfigError
from krang_dynamics.scenarios.campaign.campaign_loop import Loop, Trace, run_once
from krang_dynamics.scenarios.campaign.campaign_monitor import HELD, STOPPED, UNSAFE
from krang_dynamics.scenarios.campaign.campaign_plan import (
    MOVE,
    NAMES,
    SETTLING,
    Conditions,
    any_pose,
    hands,
    load_plan,
)

GRIPPER = """<robot name="gripper"><link name="base"/>{links}
<joint name="elbow" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" effort="50" velocity="3"/></joint>
<joint name="slide" type="prismatic"><parent link="arm"/><child link="finger"/><axis xyz="0 1 0"/>
<origin xyz="0 0 0.5"/><limit lower="0" upper="0.04" effort="50" velocity="0.2"/></joint></robot>"""
LINK = """<link name="{}"><inertial><mass value="{}"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>"""


@pytest.mark.parametrize('name', kd.robots())
def test_every_robot_has_a_default_plan(name):
    plan = load_plan(kd.load_robot(name))
    assert plan.rate >= 250
    assert plan.duration >= 8
    assert set(plan.vary) <= set(NAMES)
    assert plan.vary['push'][1] > 0


@pytest.mark.parametrize(('mass', 'pushed'), [(0.5, 'finger'), (0.005, 'arm')])
def test_a_link_as_light_as_a_finger_is_not_pushed(mass, pushed):
    """A push on a hand would throw it."""
    links = LINK.format('arm', 2.0) + LINK.format('finger', mass)
    assert hands(kd.load_robot(GRIPPER.format(links=links))) == [pushed]


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


def written(tmp_path, text, robot='planar_2r'):
    path = tmp_path / 'plan.yaml'
    path.write_text(text)
    return load_plan(robot_named(robot), str(path))


def test_a_file_replaces_terms_settings_and_ranges(tmp_path):
    plan = written(
        tmp_path,
        'terms: [gravity, damping]\nsettings: {damping: 2.0}\nduration: 8\n'
        'vary: {delay: [0, 0.03], mass: , outage: 1.0}\n',
    )
    assert plan.settings.terms == ('gravity', 'damping')
    assert plan.settings.damping == 2.0
    assert plan.duration == 8
    assert plan.vary == {'delay': (0.0, 0.03), 'mass': (0.0, 0.2), 'outage': (1.0, 1.0)}


def test_a_size_may_be_normally_distributed(tmp_path):
    plan = written(tmp_path, 'vary: {mass: {normal: [0.1, 0.02]}, delay: {normal: [0, 0.01]}}')
    assert plan.vary == {'mass': pytest.approx((0.04, 0.16)), 'delay': pytest.approx((0.0, 0.03))}
    masses, delays = (
        [draw.values[name] for draw in map(plan.draw, range(4000)) if name in draw.values]
        for name in ('mass', 'delay')
    )
    assert (np.mean(masses), np.std(masses)) == pytest.approx((0.1, 0.02), rel=0.05)
    assert min(delays) == 0  # a delay is not negative, and half of the drawn ones are
    assert np.mean(np.array(delays) == 0) == pytest.approx(0.5, abs=0.05)


ARM = """<robot name="arm"><link name="base"/>
<link name="rod"><inertial><origin xyz="0.5 0 0"/><mass value="2"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>LIMIT</joint>
</robot>"""


def arm(effort=None, **overrides):
    """A horizontal rod of 2 kg at a hinge that turns without end; 9.81 N m hold it."""
    limit = '' if effort is None else f'<limit effort="{effort}" velocity="5"/>'
    return kd.load_robot(ARM.replace('LIMIT', limit), **overrides)


def test_a_setting_by_its_field_reaches_the_guard_too(tmp_path):
    plan = written(tmp_path, 'settings: {stop_policy: hold}')
    assert plan.settings.stop_policy == plan.guard.stop_policy == 'hold'


def test_a_motor_without_a_real_limit_gives_sizes_that_a_run_can_have(tmp_path):
    plan = load_plan(arm(1e9))
    assert plan.vary['push'] == pytest.approx((0, 2 * 9.81))  # the weight
    assert plan.vary['payload'] == pytest.approx((0, 0.4))  # a fifth of it
    assert plan.settings.observer_collision == [1e6]
    path = tmp_path / 'plan.yaml'
    path.write_text('settings: {limits.effort: 40}')
    assert load_plan(arm(1e9), str(path)).settings.observer_collision == [12]


def test_a_joint_that_turns_without_end_starts_within_half_a_turn():
    poses = [any_pose(arm(20), np.random.default_rng(seed))[0] for seed in range(100)]
    assert 3 < np.abs(poses).max() <= np.pi


@pytest.mark.parametrize(
    ('robot', 'message'),
    [
        (
            {'effort': None},
            "arm: joint 'hinge' .* effort limit is inf; set its nominal_torque",
        ),
        ({'effort': 0}, 'arm: no motor at hinge: .* driven: false'),
        (
            {'effort': 9},
            r'cannot hold it .*: hinge has 9 N m for a weight of 9\.81 N m; raise',
        ),
        ({'effort': 20, 'joints': {'hinge': {'driven': False}}}, 'arm: balance needs .* `terms` in a plan'),
    ],
)
def test_a_robot_without_a_default_plan_is_refused_with_the_remedy(robot, message):
    with pytest.raises(ConfigError, match=message):
        load_plan(arm(**robot))


def test_a_motion_may_begin_where_the_motors_can_hold_the_robot(tmp_path):
    (tmp_path / 'motion.csv').write_text('time,hinge\n0,1.57\n3,1.2\n')
    (tmp_path / 'plan.yaml').write_text('scenario: motion.csv')
    assert load_plan(arm(9), str(tmp_path / 'plan.yaml')).vary['push'][1] > 0


def test_terms_of_a_plan_replace_those_that_do_not_suit(tmp_path):
    plan = written(tmp_path, 'terms: [gravity]', 'pendubot')
    assert plan.settings.terms == ('gravity',)


def test_what_both_nodes_have_in_common_is_given_once(tmp_path):
    plan = written(
        tmp_path,
        'settings: {state_timeout: 0.05, stop.policy: hold, payload.tip.mass: 0.5}\nguard: {silence: 0.03}',
    )
    assert (plan.settings.state_timeout, plan.guard.state_timeout) == (0.05, 0.05)
    assert (plan.settings.stop_policy, plan.guard.stop_policy) == ('hold', 'hold')
    assert plan.settings.frames('payload') == plan.guard.frames('payload') == {'tip': {'mass': 0.5}}
    assert plan.guard.silence == 0.03


MOTION = 'time,q.joint_1,q.joint_2\n0,0.2,0.3\n1.5,0.4,0.1\n3,0.8,-0.4\n4.5,0.6,-0.2\n'


def test_the_scenario_may_be_a_motion_in_a_file(tmp_path):
    (tmp_path / 'motion.csv').write_text(MOTION)
    plan = written(tmp_path, 'scenario: motion.csv\nvary: {delay: 0.002}')
    trace = Trace()
    assert run_once(robot_named('planar_2r'), plan, 1, trace).outcome == HELD
    at = np.searchsorted(trace.times, [MOVE, MOVE + 1.5, MOVE + 3.0, 9.0 - 1 / plan.rate])
    expected = [[0.2, 0.3], [0.4, 0.1], [0.8, -0.4], [0.6, -0.2]]
    np.testing.assert_allclose(np.array(trace.q)[at], expected, atol=0.02)


def test_a_run_is_as_long_as_its_motion(tmp_path):
    (tmp_path / 'motion.csv').write_text(MOTION.replace('4.5,', '20,'))
    assert written(tmp_path, 'scenario: motion.csv').duration == MOVE + 20.0 + SETTLING


def test_the_scenario_may_be_to_hold_the_robot(tmp_path):
    trace = Trace()
    plan = written(tmp_path, 'scenario: hold\nduration: 5\nvary: {delay: 0.002}')
    assert run_once(robot_named('planar_2r'), plan, 1, trace).outcome == HELD
    assert np.ptp(trace.q, axis=0).max() < 1e-3


@pytest.mark.parametrize(
    ('scenario', 'message'),
    [
        ('scenario: nowhere.csv', 'cannot be read'),
        ('scenario: 3', 'must be hold or the file'),
        ('scenario: fast.csv', 'velocity'),
        ('scenario: point.csv', 'has no point after'),
        ('scenario: other.csv', "unknown joint 'elbow'"),
        ('scenario: motion.csv\nvary: {start: }', 'start cannot be varied'),
        ('scenario: motion.csv\nduration: 6.2', r'duration must be within 6\.3 \.\. 3600 s'),
    ],
)
def test_a_scenario_that_is_not_possible_is_refused(tmp_path, scenario, message):
    (tmp_path / 'motion.csv').write_text(MOTION)
    (tmp_path / 'fast.csv').write_text(MOTION.replace('1.5,', '0.02,'))
    (tmp_path / 'point.csv').write_text('time,q.joint_1\n0,0.2\n')
    (tmp_path / 'other.csv').write_text(MOTION.replace('joint_2', 'elbow'))
    with pytest.raises(ConfigError, match=message):
        written(tmp_path, scenario)


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('terms: [nonsense]', "plan.yaml: unknown term 'nonsense'"),
        ('terms:', 'terms has no value'),
        ('terms: [wrench]', 'wrench.tip.convention'),
        ('settings: {command_joints: [elbow]}', "'elbow' gets no torque"),
        ('settings: {command_unit: current}', 'torque_constant is missing'),
        ('settings: {limits.velocity: [1, 2, 3]}', 'limits.velocity has 3 numbers'),
        ('guard: {limits.velocity: [1, 2]}', 'give it in settings'),
        ('guard: {payload.tip.mass: 1}', 'give it in settings'),
        ('guard: {silence: 100}', 'silence'),
        ('settings: {gains.bandwidth: }', 'gains.bandwidth has no value'),
        ('settings: {robot: krang}', 'robot has no effect in a campaign'),
        ('settings: {auto_enable: true}', 'auto_enable has no effect in a campaign'),
        ('settings: {deadman.required: true}', 'deadman.required has no effect in a campaign'),
        ('settings: {gains.bandwidth: 5, gains_bandwidth: 20}', 'are the same parameter'),
        ('terms: [gravity]\nsettings: {terms: [gravity]}', 'terms is given twice'),
        ('vary: {requests: 0.2}', r'within 1 \.\. inf'),
        ('duration: 6', '7 .. 3600 s'),
        ('guard: {controller: x}', 'controller has no effect in a campaign'),
        ('settings: 0', 'must be parameters and their values'),
        ('settings: {limits.effort: 5}', 'joint_1 has 5 N m for a weight of 21.24 N m'),
        ('vary: {dealy: [0, 1]}', "did you mean 'delay'"),
        ('vary: {delay: [1, 0]}', 'lowest, highest'),
        ('vary: {delay: fast}', 'fast'),
        ('vary: {mass: 2}', r'within 0 \.\. 0\.9'),
        ('vary: {loss: -0.1}', r'within 0 \.\. 1'),
        ('vary: {mass: {normal: [0, 0]}}', 'mean, deviation'),
        ('vary: {mass: {normal: [0, .inf]}}', 'mean, deviation'),
        ('vary: {mass: {normal: [0, 0.1], foo: 3}}', 'mean, deviation'),
        ('vary: {clock_jump: -5000}', r'within -900 \.\. inf'),
        ('vary: {mass: {normal: 0.1}}', 'must be two numbers'),
        ('vary: {mass: {gaussian: [0, 1]}}', 'must be two numbers'),
        ('vary: []', 'must name disturbances'),
        ('rates: 3', "did you mean 'rate'"),
        ('rate: 3', '50 .. 5000 Hz'),
        ('rate: .nan', '50 .. 5000 Hz'),
        ('rate: fast', 'must be a number'),
        ('duration: .inf', '7 .. 3600 s'),
        ('accuracy: .nan', 'accuracy and contact_force'),
        ('vary: {delay: [0, .inf]}', 'lowest, highest'),
        ('duration: 3\nduration: 9', 'occurs twice'),
        ('- 1', 'must have entries'),
        ('{', 'cannot be read as YAML'),
        ('vary: ' + '[' * 3000, 'it is nested too deeply'),
        ('settings: {gains.kp: x}', 'gains.kp'),
    ],
)
def test_an_invalid_file_is_refused(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message):
        written(tmp_path, text)
