"""The safety stage: enable, ramp, stops and latched faults."""

import numpy as np
import pytest
from harness import PERIOD, Harness

from krang_dynamics.safety.modes import Mode
from krang_dynamics.safety.stop_policies import StopState

ROUNDING = 1e-9  # N m


def torques(outputs):
    """Commands (K, n) of those steps that sent one."""
    return np.array([o.torque for o in outputs if o.torque is not None])


# -- enable and ramp -----------------------------------------------------------------------------------


def test_the_first_command_is_the_measured_effort_then_it_ramps_to_the_terms():
    loop = Harness(ramp_time=1.0)
    loop.effort = np.array([4.0, 4.5])
    assert loop.step(enable=True).torque.tolist() == [4.0, 4.5]
    path = torques(loop.run(0.5))
    wanted = loop.robot.gravity_torque(loop.q)
    np.testing.assert_allclose(path[-1], (loop.effort + wanted) / 2, atol=1e-6)
    assert loop.outputs.mode is Mode.RAMPING
    loop.run(0.51)
    assert loop.outputs.mode is Mode.ACTIVE
    np.testing.assert_allclose(loop.outputs.torque, wanted)


def test_enabling_twice_does_not_begin_the_ramp_again():
    loop = Harness()
    once = loop.run(1.2, enable=True)
    assert once[-1].mode is Mode.ACTIVE
    assert all(o.torque is not None for o in once)


def test_a_robot_that_moves_may_be_enabled_and_starts_at_its_measured_effort():
    loop = Harness(terms=('computed_torque',))
    loop.v, loop.effort = np.array([2.0, -2.0]), np.array([3.0, 1.0])
    assert loop.step(enable=True).torque.tolist() == [3.0, 1.0]


def test_a_robot_beyond_its_bounds_is_not_enabled_and_not_moved():
    loop = Harness()
    loop.v = np.array([50.0, 0.0])
    assert 'velocity' in loop.step(enable=True).refused[0]
    loop.v, loop.q = np.zeros(2), np.array([3.5, 0.0])
    assert 'position' in loop.step(enable=True).refused[0]
    assert loop.outputs.torque is None


@pytest.mark.parametrize('how', ['disable', 'emergency', 'state'])
def test_a_stop_during_the_ramp_starts_from_the_torque_so_far(how):
    loop = Harness(stop_policy='hold')
    loop.step(enable=True)
    before = loop.run(0.3)[-1].torque
    first = {
        'disable': lambda: loop.step(enable=False),
        'emergency': lambda: loop.step(emergency_stop=True),
        'state': lambda: loop.run(0.102, samples=[])[-1],
    }[how]()
    assert first.mode is (Mode.STOPPING if how == 'disable' else Mode.FAULT)
    largest = loop.controller.limits.stop_rate * (0.102 if how == 'state' else PERIOD)
    assert (np.abs(first.torque - before) <= largest + ROUNDING).all()


def test_enable_during_a_stop_continues_from_the_present_torque():
    loop = Harness(stop_policy='lower').start()
    loop.step(enable=False)
    lowered = loop.run(0.3)[-1]
    assert lowered.mode is Mode.STOPPING
    assert loop.step(enable=True).torque.tolist() == lowered.torque.tolist()
    assert loop.outputs.mode is Mode.RAMPING


@pytest.mark.parametrize('policy', ['hold', 'lower', 'zero'])
@pytest.mark.parametrize('is_driving', [True, False], ids=['driving', 'stopping'])
def test_release_brings_torque_to_zero_at_the_stop_rate_from_any_mode(policy, is_driving):
    loop = Harness(stop_policy=policy).start()
    if not is_driving:
        loop.step(enable=False)
        loop.run(0.02)
    before = np.abs(loop.outputs.torque)
    loop.step(release=True)
    outputs = loop.run(float((before / loop.controller.limits.stop_rate).max()) + 0.01)
    assert (outputs[-1].torque, outputs[-1].mode) == (None, Mode.DISABLED)


def test_release_in_a_fault_keeps_the_fault():
    loop = Harness(stop_policy='hold').start()
    loop.v = np.full(2, 100.0)
    loop.step()
    loop.v = np.zeros(2)
    loop.step(release=True)
    loop.run(1.0)
    assert (loop.outputs.torque, loop.outputs.mode, loop.fault) == (None, Mode.FAULT, 'velocity')


@pytest.mark.slow
def test_a_held_robot_is_lowered_at_the_end_of_the_process():
    loop = Harness(stop_policy='hold').start()
    loop.step(lower=True)
    assert loop.run(1.0)[-1].mode is Mode.STOPPING
    loop.q = np.array([-np.pi / 2, 0.0])  # hanging
    loop.run(4.0)
    assert (loop.outputs.torque, loop.outputs.mode) == (None, Mode.DISABLED)


def test_a_stop_that_does_not_end_fades_over_its_time():
    loop = Harness(stop_policy='hold', stop_time=0.5).start()
    loop.step(enable=False)
    loop.run(0.1)
    torque = loop.step(fade=True).torque
    assert loop.run(0.25)[-1].torque == pytest.approx(0.5 * torque, rel=0.02)
    loop.run(0.3)
    assert (loop.outputs.torque, loop.outputs.mode) == (None, Mode.DISABLED)


@pytest.mark.slow
def test_a_held_robot_is_enabled_without_a_jump():
    loop = Harness(stop_policy='hold').start()
    loop.step(enable=False)
    held = loop.run(10.0)[-1]
    assert held.mode is Mode.STOPPING
    assert loop.step(enable=True).torque.tolist() == held.torque.tolist()
    assert loop.outputs.mode is Mode.RAMPING


# -- faults --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_emergency_stop_latches_until_released_and_cleared():
    loop = Harness().start()
    loop.step(emergency_stop=True)
    assert loop.fault == 'emergency_stop'
    loop.stop()
    assert 'still pressed' in loop.step(clear_fault=True).refused[0]
    loop.step(emergency_stop=False)
    assert loop.fault == 'emergency_stop'
    assert 'clear it first' in loop.step(enable=True).refused[0]
    assert loop.step(clear_fault=True).mode is Mode.DISABLED
    assert loop.outputs.torque is None


def test_a_fault_is_not_cleared_before_its_stop_is_over():
    loop = Harness().start()
    loop.step(emergency_stop=True)
    outputs = loop.step(emergency_stop=False, clear_fault=True, enable=True)
    assert 'not over yet' in outputs.refused[0]
    assert outputs.mode is Mode.FAULT


def test_the_first_fault_is_kept():
    loop = Harness().start()
    loop.step(emergency_stop=True)
    loop.run(0.2, samples=[])
    assert loop.fault == 'emergency_stop'


def test_a_missing_heartbeat_stops():
    loop = Harness(deadman_required=True)
    assert 'deadman' in loop.step(enable=True).refused[0]
    loop.step(enable=True, deadman=True)
    loop.run(0.198)
    assert loop.fault is None
    loop.run(0.004)
    assert loop.fault == 'deadman'


def test_a_released_deadman_switch_stops_at_once():
    loop = Harness(deadman_required=True)
    loop.step(enable=True, deadman=True)
    loop.step(deadman=False)
    assert loop.fault == 'deadman'


@pytest.mark.slow
def test_a_deadman_switch_that_bounces_stays_stopped():
    loop = Harness(deadman_required=True)
    loop.step(enable=True, deadman=True)
    for k in range(3000):
        loop.step(deadman=k % 2 == 0)
    assert loop.fault == 'deadman'
    assert loop.stop().outputs.mode is Mode.FAULT


@pytest.mark.parametrize(
    ('kind', 'change'),
    [
        ('velocity', lambda loop: setattr(loop, 'v', np.array([0.0, 6.1]))),
        ('position', lambda loop: loop.move(np.array([0.6, 3.2]))),
        ('following_error', lambda loop: loop.move(loop.q + np.array([0.0, 0.2]))),
    ],
)
def test_a_robot_beyond_a_limit_faults_and_names_the_joint(kind, change):
    loop = Harness(terms=('computed_torque',)).start()
    loop.step(limits={'following_error': 0.1})
    change(loop)
    outputs = loop.step()
    assert loop.fault == kind
    assert "'joint_2'" in outputs.fault.reason


def test_a_position_margin_reduces_the_range():
    loop = Harness().start()
    loop.step(limits={'position_margin': [3.0, 0.0]})
    assert loop.fault == 'position'


def test_limits_may_change_at_every_step():
    loop = Harness().start()
    loop.v = np.array([0.5, 0.5])
    for _ in range(20):  # memory of earlier limits is used again
        for velocity in (9.0, 1.0):
            loop.step(limits={'velocity': velocity})
            assert loop.fault is None
    loop.step(limits={'velocity': 0.1})
    assert loop.fault == 'velocity'


def test_a_normal_stop_is_no_fault_though_the_arm_moves_and_the_stream_ends():
    loop = Harness(terms=('computed_torque',), reference_timeout=0.1, deadman_required=True)
    loop.step(enable=True, deadman=True)
    loop.step(limits={'following_error': 0.1}, deadman=True)
    loop.step(enable=False)
    loop.q = loop.q - 0.5
    assert loop.stop().outputs.mode is Mode.DISABLED


def test_a_collision_stops_where_that_is_configured():
    loop = Harness(terms=('gravity', 'observer'), observer_collision=10.0, observer_reaction='stop')
    loop.start()
    loop.v = np.array([1.0, 0.0])  # no torque of the motors explains this
    loop.run(0.1)
    assert loop.fault == 'collision'


def test_clearing_and_enabling_in_one_step_keeps_the_observer_valid():
    loop = Harness(terms=('gravity', 'observer'), observer_collision=10.0, observer_reaction='stop')
    loop.effort = loop.robot.gravity_torque(loop.q)
    loop.step()
    loop.step(emergency_stop=True)
    loop.step(emergency_stop=False, clear_fault=True, enable=True)
    assert loop.run(0.1)[-1].fault is None
    assert np.isfinite(loop.controller.terms[1].external).all()


@pytest.mark.parametrize('before', ['active', 'stopping', 'fault'])
def test_release_brings_the_torque_to_zero_at_the_stop_rate_in_any_mode(before):
    loop = Harness(stop_policy='hold', stop_rate=100.0).start()
    if before == 'stopping':
        loop.step(enable=False)
    elif before == 'fault':
        loop.step(emergency_stop=True)
    first = loop.step().torque
    loop.safety.release(loop.time)
    path = np.array([first, *torques(loop.run(0.5))])
    np.testing.assert_allclose(np.diff(path[:100, 0]), -100.0 * PERIOD)
    assert not path[-1].any()
    assert loop.outputs.torque is None
    assert loop.outputs.mode is (Mode.FAULT if before == 'fault' else Mode.DISABLED)


@pytest.mark.parametrize('policy', ['hold', 'lower'])
def test_a_stop_whose_computation_fails_goes_on(monkeypatch, policy):
    loop = Harness(stop_policy=policy).start()
    held = loop.step(enable=False).torque

    def fail(*arguments):
        raise np.linalg.LinAlgError('singular')

    monkeypatch.setattr(StopState, 'damping', fail)
    outputs = loop.run(2.2)
    assert outputs[0].fault.kind == 'stop'
    path = np.array([held, *torques(outputs)])
    assert (np.abs(np.diff(path, axis=0)) <= loop.controller.limits.stop_rate * PERIOD + ROUNDING).all()
    assert outputs[500].torque.all()
    assert outputs[-1].torque is None
