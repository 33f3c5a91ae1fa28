"""Runs of a campaign: outcomes, and bit-identical repetition."""

from dataclasses import replace

import numpy as np
import pytest
from harness import robot_named

from krang_dynamics.errors import KrangError
from krang_dynamics.safety.stop_policies import Hold
from krang_dynamics.scenarios.campaign import campaign_loop
from krang_dynamics.scenarios.campaign.campaign_loop import Trace, run_once
from krang_dynamics.scenarios.campaign.campaign_monitor import BEYOND, HELD, STOPPED, UNSAFE
from krang_dynamics.scenarios.campaign.campaign_plan import Conditions, load_plan
from krang_dynamics.scenarios.campaign.campaign_robot import fault_time
from krang_dynamics.simulation.pinocchio_plant import PinocchioPlant


def run(name='planar_2r', duration=4.0, seed=1, trace=None, settings=None, **vary):
    robot = robot_named(name)
    plan = load_plan(robot)
    settings = settings or {}
    common = {key: value for key, value in settings.items() if key.startswith('stop_')}
    plan = replace(plan, settings=plan.settings.replace(**settings), guard=plan.guard.replace(**common))
    vary = {key: (value, value) for key, value in vary.items()}
    return run_once(robot, replace(plan, duration=duration, vary=vary), seed, trace)


@pytest.mark.parametrize(
    ('vary', 'outcome', 'reason'),
    [
        ({'mass': 0.05}, HELD, ''),
        ({'killed_controller': 0.0}, STOPPED, 'silence'),
        ({'dead_driver': 0.0}, BEYOND, 'dead_driver'),
    ],
)
def test_a_run_ends_with_its_outcome(vary, outcome, reason):
    result = run(duration=7.0, **vary)
    assert (result.outcome, result.reason) == (outcome, reason)


@pytest.mark.parametrize('name', ['planar_2r', 'anthropomorphic'])
def test_a_loop_that_is_too_slow_for_its_gains_ends_in_a_stop_that_does_not_oscillate(name):
    """States 13 ms late, commands 13 ms, and drivers with a time constant of 19 ms."""
    late = {'delay': 0.019188862517475314, 'jitter': 0.007227361757405557}
    result = run(name, 9.0, 400120, mass=0.04, torque_lag=0.018783149421260376, **late)
    assert (result.outcome, result.reason) == (STOPPED, 'velocity')


def test_gains_that_become_unstable_end_in_a_stop_that_brakes_every_joint_at_once():
    """In proportion, the joint that must change its torque most would delay the other."""
    result = run('planar_2r', 9.0, 900664, requests=6.0)
    assert (result.outcome, result.reason) == (STOPPED, 'velocity')


def test_a_push_that_no_state_shows_is_beyond_control():
    """The clock is set as the states end; the push follows while the last state is not yet too old."""
    gone = {'outage': 3.8637914306425416, 'clock_jump': 1.5236982148853637, 'delay': 0.0067461233186694395}
    result = run('planar_2r', 9.0, 910317, push=12.69957218640947, **gone)
    assert (result.outcome, result.reason) == (BEYOND, 'no states')


def test_a_sensor_that_shifts_when_the_clock_is_set_is_noticed():
    result = run('pendubot', 6.0, 300056, jump=0.7271408480172362, clock_jump=1.3604154356018672)
    assert (result.outcome, result.reason) == (STOPPED, 'state')


def test_a_shift_with_old_stamps_is_noticed_when_the_stamps_are_new():
    """The clock is set back by less than the state timeout: states are ignored until it has caught up."""
    trace = Trace()
    result = run('planar_2r', 6.0, 2010112, trace, jump=0.32, clock_jump=-0.076)
    begin = trace.times[next(k for k, mode in enumerate(trace.mode) if mode == 'fault')]
    assert (result.outcome, result.reason) == (STOPPED, 'state')
    assert 0.07 < begin - fault_time(load_plan(robot_named('planar_2r')).draw(2010112), 6.0) < 0.09


@pytest.mark.parametrize(
    ('name', 'seed', 'vary'),
    [
        ('planar_2r', 430010, {'jump': 0.9912190400666719, 'push': 19.77767616516419}),
        ('anthropomorphic', 30019, {'jump': 0.95}),
    ],
)
def test_a_robot_whose_sensor_has_shifted_is_lowered_slowly_in_any_pose(name, seed, vary):
    """In the pose that the sensor shows, the fastest point would be slower than it is."""
    result = run(name, 9.0, seed, **vary)
    assert (result.outcome, result.reason) == (STOPPED, 'state')


def test_a_contact_just_after_the_states_have_returned_is_one_without_states():
    """The arm has fallen for a second; 5 ms after the first state nothing could have slowed it down."""
    gone = {'killed_controller': 0.0, 'outage': 1.8467981371927429, 'wall': 0.06861782692102252}
    result = run('planar_2r', 9.0, 600055, frozen_controller=0.25740745222241823, **gone)
    assert (result.outcome, result.reason) == (BEYOND, 'no states')
    assert result.force > 280


def test_a_robot_without_torque_and_commands_is_stopped_wherever_it_is():
    """The guard has nothing to stop: Otbot stands still, without torque, when its controller is killed."""
    result = run('otbot', 6.0, 700113, killed_controller=0.0)
    assert (result.outcome, result.reason) == (STOPPED, 'no commands')


def test_a_sensor_without_values_shows_no_jump():
    result = run(seed=4, dead_sensor=1.0, jump=0.5)
    assert (result.outcome, result.reason) == (BEYOND, 'no states')


@pytest.mark.parametrize(
    ('vary', 'outcome', 'reason'),
    [
        ({'wrong_sign': 0.0}, BEYOND, 'wrong_sign'),
        ({'mass': 0.1}, UNSAFE, 'the robot runs away: its simulation diverged'),
    ],
)
def test_a_robot_that_runs_away_is_no_failure_of_the_loop(monkeypatch, vary, outcome, reason):
    def diverge(self, u, dt):
        raise KrangError('the simulation diverged')

    monkeypatch.setattr(PinocchioPlant, 'step', diverge)
    result = run(**vary)
    assert (result.outcome, result.reason) == (outcome, reason)


def test_a_robot_that_falls_while_it_should_be_held_is_unsafe(monkeypatch):
    settings = {'stop_policy': 'hold'}
    assert run(seed=2, duration=6.0, settings=settings, killed_controller=0.0).outcome == STOPPED
    monkeypatch.setattr(Hold, '_with_state', lambda self, elapsed, state: 0.0 * state.gravity)
    result = run(seed=2, duration=6.0, settings=settings, killed_controller=0.0)
    assert (result.outcome, result.reason[:3]) == (UNSAFE, 'P13')


def test_a_robot_whose_terms_follow_no_reference_has_no_goal():
    result = run(duration=8.0, settings={'terms': ('gravity', 'friction', 'damping')}, mass=0.0)
    assert (result.outcome, result.error) == (HELD, 0.0)


@pytest.mark.parametrize('mass', [0.0, 2.0])
def test_a_payload_of_the_settings_is_carried(mass):
    robot = robot_named('planar_2r')
    plan = load_plan(robot)
    plan = replace(plan, settings=plan.settings.replace(**{'payload.tip.mass': mass}), duration=4.0)
    loop = campaign_loop.Loop(robot, plan, Conditions(1))
    assert loop.body.true.total_mass == pytest.approx(robot.total_mass + mass)
    assert loop.run().outcome == HELD


def test_a_robot_that_falls_although_nothing_disturbs_it_is_unsafe(monkeypatch):
    monkeypatch.setattr(campaign_loop, 'as_set_up', lambda robot, settings: robot)
    settings = {'terms': ('gravity', 'friction'), 'payload_tip_mass': 0.2}
    result = run(duration=6.0, settings=settings, mass=0.0)
    assert (result.outcome, result.reason) == (UNSAFE, 'it neither rests nor stops')


@pytest.mark.parametrize(('time', 'outcome'), [(5.0, HELD), (0.0, UNSAFE)])
def test_a_robot_that_is_enabled_again_has_time_to_swing_up(monkeypatch, time, outcome):
    monkeypatch.setattr(campaign_loop, 'SWING_UP', time)
    robot = robot_named('pendubot')
    plan = replace(load_plan(robot), duration=4.0)
    loop = campaign_loop.Loop(robot, plan, Conditions(1))
    loop._script = [(0.6, 'enable'), (2.0, 'release'), (3.5, 'enable')]
    assert loop.run().outcome == outcome


@pytest.mark.parametrize(('seed', 'is_watched'), [(20, True), (21, False)])
def test_one_stop_in_ten_is_watched_to_its_end(seed, is_watched):
    trace = Trace()
    result = run(seed=seed, trace=trace, killed_controller=0.0)
    assert (result.outcome, result.reason) == (STOPPED, 'silence')
    assert (trace.times[-1] > 5.0) == is_watched
    assert (np.abs(trace.torque[-1]).max() < 0.1) == is_watched


def test_a_run_can_be_repeated_bit_by_bit():
    traces = Trace(), Trace()
    results = [run(seed=3, trace=trace, jitter=0.004, loss=0.2, torque_noise=0.02) for trace in traces]
    assert repr(results[0]) == repr(results[1])
    assert np.array_equal(traces[0].q, traces[1].q)
    assert np.array_equal(traces[0].torque, traces[1].torque)
    assert np.abs(traces[0].q[-1] - traces[0].q[0]).max() > 1e-3  # it moved


@pytest.mark.parametrize('name', ['krang', 'otbot', 'pendubot', 'anthropomorphic'])
def test_every_robot_is_held_without_disturbance(name):
    result = run(name, duration=3.0, delay=0.0)
    assert (result.outcome, result.reason) == (HELD, '')
