"""The promises P1 to P10, one after the other, then the state machine, as a user meets them."""

import ast
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from safety.feeding import PERIOD, Fed

import krang_dynamics
from krang_dynamics.control.reference.trajectory import JointTrajectory
from krang_dynamics.control.terms.observer import ObserverSettings
from krang_dynamics.control.terms.wrench import WrenchSample, WrenchSettings
from krang_dynamics.safety.modes import Mode
from krang_dynamics.safety.safety_stage import LONGEST_STEP

ROUNDING = 1e-9  # N m
PACKAGE = Path(krang_dynamics.__file__).parent
LONGEST_STOP = 4.0  # s


def torques(outputs):
    """Commands (K, n) of those steps that sent one."""
    return np.array([o.torque for o in outputs if o.torque is not None])


def fault(fed):
    return fed.outputs.fault.kind if fed.outputs.fault else None


def stopped(fed):
    """The same controller after its stop."""
    for _ in range(round(LONGEST_STOP / PERIOD)):
        if fed.step().torque is None:
            return fed
    raise AssertionError('it never falls silent')


def constant_term(fed, torque):
    """Let the first term say `torque`, or raise it."""

    def say(moment):
        if isinstance(torque, Exception):
            raise torque
        return torque

    fed.controller.terms[0].torque = say
    return fed


# -- P1: never a number that is not finite ------------------------------------------------------------


@pytest.mark.parametrize('rubbish', [np.nan, np.inf, -np.inf, 1e308])
def test_p1_no_rubbish_in_a_sample_comes_out_again(rubbish):
    fed = Fed('pendubot', stop_policy='hold').started()
    for field in ('position', 'velocity', 'effort'):
        outputs = fed.step([fed.sample(**{field: np.full(2, rubbish)})])
        assert np.isfinite(outputs.torque).all()
        assert np.isfinite(outputs.command).all()


@pytest.mark.parametrize('rubbish', [np.nan, np.inf])
def test_p1_a_term_that_is_not_finite_faults_into_the_stop_policy(rubbish):
    fed = Fed().started()
    constant_term(fed, np.array([rubbish, 0.0]))
    outputs = fed.step()
    assert fault(fed) == 'term'
    assert 'gravity' in outputs.fault.reason
    assert np.isfinite(outputs.torque).all()


def test_p1_terms_whose_sum_overflows_fault():
    fed = Fed(terms=('gravity', 'damping')).started()
    for term in fed.controller.terms:
        term.torque = lambda moment: np.full(2, 1.5e308)
    assert np.isfinite(fed.step().torque).all()
    assert fault(fed) == 'term'


def test_p1_a_measured_effort_that_is_not_finite_counts_as_none():
    fed = Fed()
    fed.effort = np.array([np.nan, 7.0])
    assert fed.step(enable=True).torque.tolist() == [0.0, 7.0]


# -- P2: within the effort limit ----------------------------------------------------------------------


def test_p2_torque_stays_within_the_effort_limit():
    fed = Fed(ramp_time=0.0)
    constant_term(fed, np.array([1e6, -1e6]))
    fed.step(enable=True)
    last = fed.run(0.5)[-1]
    assert last.torque.tolist() == [100.0, -50.0]
    assert last.limited


def test_p2_a_measured_effort_beyond_the_limit_is_clipped_at_enable():
    fed = Fed()
    fed.effort = np.array([1e4, -1e4])
    assert fed.step(enable=True).torque.tolist() == [100.0, -50.0]


def test_p2_no_limit_can_be_set_above_the_urdf():
    fed = Fed('krang')
    fed.controller.limits.set(fed.robot, effort=np.full(17, 1e9))
    peak = [fed.robot.urdf.joints[name].effort for name in fed.robot.joint_names]
    assert fed.controller.limits.effort.tolist() == peak


def test_p2_volts_stay_within_the_supply_whatever_the_speed():
    fed = Fed('pendubot', ramp_time=0.0)
    constant_term(fed, np.array([1e6, 0.0]))
    fed.step(enable=True)
    fed.v = np.array([27.0, 0.0])
    assert max(abs(o.command[0]) for o in fed.run(0.5)) == 15.0


def test_p2_a_limit_lowered_below_the_torque_is_reached_at_the_stop_rate():
    fed = Fed(ramp_time=0.0)
    constant_term(fed, np.array([80.0, 0.0]))
    fed.step(enable=True)
    fed.run(0.2)
    fed.controller.limits.set(fed.robot, effort=[10.0, 50.0], effort_rate=[0.0, 0.0])
    path = torques(fed.run(0.1))[:, 0]
    stop_rate = fed.controller.limits.stop_rate[0]
    expected = np.maximum(10.0, 80.0 - stop_rate * PERIOD * np.arange(1, 101))
    np.testing.assert_allclose(path, expected, atol=1e-6)


def test_p2_a_limit_lowered_above_the_torque_holds_at_once():
    fed = Fed(ramp_time=0.0)
    constant_term(fed, np.array([5.0, 0.0]))
    fed.step(enable=True)
    fed.run(0.2)
    fed.controller.limits.set(fed.robot, effort=[10.0, 50.0])
    constant_term(fed, np.array([80.0, 0.0]))
    assert torques(fed.run(0.2))[:, 0].max() == 10.0


def test_p2_a_limit_of_zero_ends_in_zero_torque():
    fed = Fed().started()
    fed.controller.limits.set(fed.robot, effort=[0.0, 0.0])
    assert not fed.run(0.2)[-1].torque.any()


# -- P3: no faster than the rate ----------------------------------------------------------------------


def test_p3_torque_changes_no_faster_than_the_rate():
    fed = Fed(ramp_time=0.0)
    fed.step(enable=True)
    constant_term(fed, np.array([100.0, -50.0]))
    steps = np.abs(np.diff(torques(fed.run(0.2)), axis=0)) / PERIOD
    assert (steps <= fed.controller.limits.effort_rate + 1e-6).all()
    assert steps.max() > 0.99 * fed.controller.limits.effort_rate[0]


def test_p3_the_first_step_after_a_long_silence_does_not_jump_and_faults():
    fed = Fed(ramp_time=0.0)
    fed.step(enable=True)
    before = fed.step().torque
    constant_term(fed, np.array([100.0, -50.0]))
    jump = np.abs(fed.step(dt=10.0).torque - before)
    assert (jump <= fed.controller.limits.stop_rate * LONGEST_STEP + ROUNDING).all()
    assert fault(fed) == 'state'


def test_p3_a_step_in_no_time_changes_nothing():
    fed = Fed().started()
    before = fed.outputs.torque
    constant_term(fed, np.array([100.0, -50.0]))
    assert fed.step(dt=0.0).torque.tolist() == before.tolist()


def test_p3_stamps_that_go_slower_than_the_steady_clock_count():
    fed = Fed().started()
    before, stamp = fed.outputs.torque, fed.clock
    constant_term(fed, np.array([100.0, -50.0]))
    jump = np.abs(fed.step([fed.sample(stamp=stamp + 1e-5)], dt=0.01).torque - before)
    assert (jump <= fed.controller.limits.effort_rate * 1e-5 + ROUNDING).all()


def test_p3_the_stamps_of_all_states_that_came_since_the_last_step_count_together():
    fed = Fed().started()
    before = fed.outputs.torque
    constant_term(fed, np.array([100.0, -50.0]))
    drained = [fed.sample(stamp=fed.clock + k * PERIOD, arrival=fed.time + k * PERIOD) for k in range(1, 11)]
    change = fed.step(drained, dt=10 * PERIOD).torque - before
    assert change[0] == pytest.approx(fed.controller.limits.effort_rate[0] * 10 * PERIOD)


def test_p3_an_effort_rate_of_zero_holds_the_torque_but_not_the_stop():
    fed = Fed().started()
    fed.controller.limits.set(fed.robot, effort_rate=[0.0, 0.0])
    before = fed.outputs.torque
    constant_term(fed, np.array([100.0, -50.0]))
    assert fed.run(0.1)[-1].torque.tolist() == before.tolist()
    fed.step(enable=False)
    stopped(fed)


def test_p3_the_caller_cannot_change_the_torque_that_the_next_step_starts_from():
    fed = Fed().started()
    with pytest.raises(ValueError, match='read-only'):
        fed.outputs.torque[0] = -100.0


def test_p3_the_ramp_time_may_change_while_active_without_letting_the_arm_down():
    fed = Fed().started()
    before = fed.outputs.torque
    fed.safety.ramp_time = 100.0
    assert fed.run(0.2)[-1].torque.tolist() == before.tolist()


# -- P4: old states -----------------------------------------------------------------------------------


def test_p4_silence_ends_in_the_stop_policy_and_a_latched_fault():
    fed = Fed().started()
    fed.run(0.099, samples=[])
    assert fault(fed) is None
    fed.run(0.003, samples=[])
    assert fault(fed) == 'state'
    stopped(fed)  # with states again
    assert fault(fed) == 'state'


def test_p4_one_silent_joint_is_enough():
    fed = Fed().started()
    for _ in range(110):
        alone = {'names': ['joint_1'], 'position': fed.q[:1], 'velocity': fed.v[:1], 'effort': []}
        fed.time += PERIOD
        sample = fed.sample(**alone)
        fed.time -= PERIOD
        fed.step([sample])
    assert fault(fed) == 'state'
    assert "'joint_2'" in fed.outputs.fault.reason


def test_p4_old_stamps_count_though_they_arrive_now():
    fed = Fed().started()
    for _ in range(3):
        fed.step([fed.sample(stamp=fed.clock - 0.2)])
    fed.run(0.101, samples=[])
    assert fault(fed) == 'state'


def test_p4_a_stamp_that_stands_still_is_silence():
    fed = Fed().started()
    frozen = fed.clock
    for _ in range(110):
        fed.step([fed.sample(stamp=frozen)])
    assert fault(fed) == 'state'


def test_p4_an_arrival_in_the_future_does_not_keep_a_state_young():
    fed = Fed().started()
    fed.step([fed.sample(stamp=0.0, arrival=1e300)])
    fed.run(0.102, samples=[])
    assert fault(fed) == 'state'


@pytest.mark.parametrize('jump', [-50.0, 50.0])
def test_p4_a_jump_of_the_steady_clock_faults(jump):
    fed = Fed().started()
    fed.step(samples=[], dt=jump)
    assert fault(fed) == 'state'


@pytest.mark.parametrize('time', [np.nan, np.inf, -np.inf])
def test_p4_a_time_that_is_no_number_faults(time):
    fed = Fed().started()
    before, fed.time = fed.time, time
    outputs = fed.step(samples=[])
    assert fault(fed) == 'clock'
    assert np.isfinite(outputs.torque).all()
    fed.time = before
    stopped(fed)


def test_p4_a_clock_that_is_no_number_faults():
    fed = Fed().started()
    message = fed.sample(stamp=fed.clock + PERIOD)
    inputs = fed.controller.step
    outputs = inputs(krang_dynamics.control.controller.Inputs(fed.time + PERIOD, np.nan, [message]))
    assert outputs.fault.kind == 'state'


# -- P5: nothing before enable ------------------------------------------------------------------------


def test_p5_nothing_is_sent_before_enable():
    fed = Fed('krang', terms=('gravity', 'computed_torque'))
    assert not len(torques(fed.run(0.05)))
    assert fed.outputs.mode is Mode.DISABLED


def test_p5_enable_without_a_state_is_refused_by_name():
    fed = Fed()
    outputs = fed.step(samples=[], enable=True)
    assert outputs.torque is None
    assert "'joint_1' has never been received" in outputs.refused[0]


# -- P6: names ----------------------------------------------------------------------------------------


def test_p6_a_missing_joint_is_named():
    fed = Fed()
    alone = fed.sample(names=['joint_1'], position=[0.6], velocity=[0.0], effort=[])
    assert "'joint_2'" in fed.step([alone], enable=True).refused[0]


def test_p6_a_joint_that_comes_twice_is_refused_by_name():
    fed = Fed()
    twice = fed.sample(names=['joint_1', 'joint_1'])
    assert "joint 'joint_1' comes twice" in fed.step([twice]).refused[0]


def test_p6_joints_are_found_by_name_and_extra_ones_are_ignored():
    fed = Fed()
    shuffled = fed.sample(
        names=['gripper', 'joint_2', 'joint_1'], position=[9.0, 0.8, 0.6], velocity=[9.0, 0.0, 0.0], effort=[]
    )
    assert fed.step([shuffled], enable=True).refused == []
    one, other = fed.run(0.01)[-1].torque, Fed().started()
    assert one is not None
    np.testing.assert_array_equal(
        fed.run(1.1)[-1].torque, other.run(0.1)[-1].torque, err_msg='the order of names matters'
    )


@pytest.mark.parametrize('field', ['position', 'velocity', 'effort'])
def test_p6_a_wrong_length_is_refused(field):
    fed = Fed()
    assert 'for 2 names' in fed.step([fed.sample(**{field: [1.0, 2.0, 3.0]})]).refused[0]


def test_p6_a_state_may_come_in_parts_from_two_publishers():
    fed = Fed()
    parts = [
        fed.sample(names=[name], position=[q], velocity=[0.0], effort=[], arrival=fed.time + PERIOD)
        for name, q in zip(fed.robot.joint_names, fed.q, strict=True)
    ]
    assert fed.step(parts, enable=True).mode is Mode.RAMPING


# -- P7: stamps ---------------------------------------------------------------------------------------


@pytest.mark.parametrize('back', [0.0, 1e-3, 50.0])
def test_p7_repeated_and_backward_stamps_are_ignored(back):
    fed = Fed().started()
    before, last = fed.outputs.torque, fed.clock
    moved = fed.sample(stamp=last - back, position=fed.q + 0.5)
    assert fed.step([moved]).torque.tolist() == before.tolist()


def test_p7_a_stamp_of_zero_means_the_time_of_arrival():
    fed = Fed()
    for _ in range(1200):
        fed.step([fed.sample(stamp=0.0, arrival=fed.time + PERIOD)], enable=True)
    assert fed.outputs.mode is Mode.ACTIVE


@pytest.mark.parametrize('stamp', [-1.0, np.nan, np.inf, 1e300])
def test_p7_an_impossible_stamp_is_refused(stamp):
    fed = Fed()
    assert 'stamp' in fed.step([fed.sample(stamp=stamp)]).refused[0]


def test_p7_clear_fault_accepts_a_clock_that_was_set_back():
    fed = Fed().started()
    earlier = lambda: [fed.sample(stamp=fed.clock - 500.0)]  # noqa: E731
    back = krang_dynamics.control.controller.Inputs

    def step(**inputs):
        fed.time += PERIOD
        fed.outputs = fed.controller.step(back(fed.time, fed.clock - 500.0, earlier(), **inputs))

    for _ in range(5000):
        step()
    assert fault(fed) == 'state'
    step(clear_fault=True)
    step()
    step(enable=True)
    assert fed.outputs.mode is Mode.RAMPING


def test_p7_clear_fault_does_not_open_the_door_to_old_stamps_while_active():
    fed = Fed().started()
    before = fed.outputs.torque
    fed.step(clear_fault=True)
    moved = fed.sample(stamp=fed.clock - 50.0, position=fed.q + 0.5)
    assert fed.step([moved]).torque.tolist() == before.tolist()


# -- P8 and P9 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize('error', [ValueError('x'), ZeroDivisionError(), KeyError('x'), RuntimeError()])
def test_p8_a_term_that_raises_stops_the_whole_controller(error):
    fed = constant_term(Fed().started(), error)
    fed.step()
    assert fault(fed) == 'term'
    assert stopped(fed).outputs.mode is Mode.FAULT


@pytest.mark.parametrize('answer', [None, np.zeros(3), 'torque', np.float64(1.0), 1.0])
def test_p8_a_term_that_answers_nonsense_stops_the_whole_controller(answer):
    fed = constant_term(Fed().started(), answer)
    fed.step()
    assert fault(fed) == 'term'


@pytest.mark.parametrize('part', ['dynamics', 'reference', 'limits', 'settings'])
def test_p8_nothing_that_breaks_inside_throws_into_the_loop(part):
    fed = Fed(terms=('gravity', 'computed_torque')).started()
    setattr(fed.controller, part, None)
    assert np.isfinite(fed.step().torque).all()
    assert fault(fed) == 'exception'


@pytest.mark.parametrize('name', ['otbot', 'pendubot'])
def test_p9_passive_joints_never_get_effort(name):
    fed = Fed(name, ramp_time=0.0)
    driven = np.isin(fed.robot.joint_names, fed.robot.actuated_joint_names)
    constant_term(fed, np.full(fed.robot.nv, 1e6))
    fed.effort = np.full(fed.robot.nv, 1e6)
    fed.step(enable=True)
    sent = torques([fed.outputs, *fed.run(0.1), fed.step(enable=False), *fed.run(1.0)])
    assert not sent[:, ~driven].any()
    assert sent[:, driven].any(axis=0).all()


@pytest.mark.parametrize('wheels_locked', [False, True])
def test_p9_the_base_of_krang_gets_effort_only_with_its_wheels_locked(wheels_locked):
    fed = Fed('krang', wheels_locked=wheels_locked, ramp_time=0.0)
    constant_term(fed, np.full(17, 10.0))
    fed.step(enable=True)
    assert (fed.run(0.1)[-1].torque[0] != 0) == wheels_locked
    assert ('base_pitch' in fed.controller.command_joints) == wheels_locked


# -- P10: the same again ------------------------------------------------------------------------------


def test_p10_the_same_inputs_give_the_same_bits():
    def run():
        fed = Fed('krang', terms=('gravity', 'computed_torque', 'friction', 'observer'))
        random = np.random.default_rng(3)
        fed.step(enable=True)
        for _ in range(200):
            fed.q = fed.robot.home + random.normal(0, 1e-3, 17)
            yield fed.step()

    for one, other in zip(run(), run(), strict=True):
        assert one.torque.tobytes() == other.torque.tobytes()
        assert one.command.tobytes() == other.command.tobytes()


def test_p10_what_was_handed_out_stays_as_it_was():
    fed = Fed(terms=('gravity', 'observer')).started()
    terms = fed.outputs.terms
    kept = {name: torque.copy() for name, torque in terms.items()}
    with suppress(ValueError):  # whether it can be changed or not
        terms['observer'] += 50.0
    fed.q = fed.q + 0.01
    after = fed.step().terms
    assert terms['gravity'].tolist() == kept['gravity'].tolist()
    assert not after['observer'].any()


# -- enable and ramp ----------------------------------------------------------------------------------


def test_the_first_command_is_the_measured_effort_then_it_ramps_to_the_terms():
    fed = Fed(ramp_time=1.0)
    fed.effort = np.array([4.0, 7.0])
    assert fed.step(enable=True).torque.tolist() == [4.0, 7.0]
    path = torques(fed.run(0.5))
    wanted = fed.robot.gravity_torque(fed.q)
    np.testing.assert_allclose(path[-1], (fed.effort + wanted) / 2, atol=1e-6)
    assert fed.outputs.mode is Mode.RAMPING
    fed.run(0.51)
    assert fed.outputs.mode is Mode.ACTIVE
    np.testing.assert_allclose(fed.outputs.torque, wanted)


def test_enabling_twice_does_not_begin_the_ramp_again():
    fed = Fed()
    once = fed.run(1.2, enable=True)
    assert once[-1].mode is Mode.ACTIVE
    assert all(o.torque is not None for o in once)


def test_a_robot_that_moves_may_be_enabled_and_starts_at_its_measured_effort():
    fed = Fed(terms=('computed_torque',))
    fed.v, fed.effort = np.array([2.0, -2.0]), np.array([3.0, 1.0])
    assert fed.step(enable=True).torque.tolist() == [3.0, 1.0]


def test_a_robot_beyond_its_bounds_is_not_enabled_and_not_moved():
    fed = Fed()
    fed.v = np.array([50.0, 0.0])
    assert 'velocity' in fed.step(enable=True).refused[0]
    fed.v, fed.q = np.zeros(2), np.array([3.5, 0.0])
    assert 'position' in fed.step(enable=True).refused[0]
    assert fed.outputs.torque is None


@pytest.mark.parametrize('how', ['disable', 'emergency', 'state'])
def test_a_stop_during_the_ramp_starts_from_the_torque_so_far(how):
    fed = Fed(stop_policy='hold')
    fed.step(enable=True)
    before = fed.run(0.3)[-1].torque
    first = {
        'disable': lambda: fed.step(enable=False),
        'emergency': lambda: fed.step(emergency_stop=True),
        'state': lambda: fed.run(0.102, samples=[])[-1],
    }[how]()
    assert first.mode is (Mode.STOPPING if how == 'disable' else Mode.FAULT)
    largest = fed.controller.limits.stop_rate * (0.102 if how == 'state' else PERIOD)
    assert (np.abs(first.torque - before) <= largest + ROUNDING).all()


def test_enable_waits_until_a_stop_is_over():
    fed = Fed().started()
    fed.step(enable=False)
    assert 'still stopping' in fed.step(enable=True).refused[0]
    assert fed.outputs.mode is Mode.STOPPING
    stopped(fed)
    assert fed.step(enable=True).mode is Mode.RAMPING


def test_a_held_robot_is_enabled_without_a_jump():
    fed = Fed(stop_policy='hold').started()
    fed.step(enable=False)
    held = fed.run(10.0)[-1]
    assert held.mode is Mode.STOPPING
    assert fed.step(enable=True).torque.tolist() == held.torque.tolist()
    assert fed.outputs.mode is Mode.RAMPING


# -- faults -------------------------------------------------------------------------------------------


def test_an_emergency_stop_latches_until_released_and_cleared():
    fed = Fed().started()
    fed.step(emergency_stop=True)
    assert fault(fed) == 'emergency_stop'
    stopped(fed)
    assert 'still pressed' in fed.step(clear_fault=True).refused[0]
    fed.step(emergency_stop=False)
    assert fault(fed) == 'emergency_stop'
    assert 'clear it first' in fed.step(enable=True).refused[0]
    assert fed.step(clear_fault=True).mode is Mode.DISABLED
    assert fed.outputs.torque is None


def test_a_fault_is_not_cleared_before_its_stop_is_over():
    fed = Fed().started()
    fed.step(emergency_stop=True)
    outputs = fed.step(emergency_stop=False, clear_fault=True, enable=True)
    assert 'not over yet' in outputs.refused[0]
    assert outputs.mode is Mode.FAULT


def test_the_first_fault_is_kept():
    fed = Fed().started()
    fed.step(emergency_stop=True)
    fed.run(0.2, samples=[])
    assert fault(fed) == 'emergency_stop'


def test_a_deadman_that_falls_silent_stops():
    fed = Fed(deadman_required=True)
    assert 'deadman' in fed.step(enable=True).refused[0]
    fed.step(enable=True, deadman=True)
    fed.run(0.198)
    assert fault(fed) is None
    fed.run(0.004)
    assert fault(fed) == 'deadman'


def test_a_deadman_that_is_let_go_stops_at_once():
    fed = Fed(deadman_required=True)
    fed.step(enable=True, deadman=True)
    fed.step(deadman=False)
    assert fault(fed) == 'deadman'


def test_a_deadman_that_chatters_stays_stopped():
    fed = Fed(deadman_required=True)
    fed.step(enable=True, deadman=True)
    for k in range(3000):
        fed.step(deadman=k % 2 == 0)
    assert fault(fed) == 'deadman'
    assert stopped(fed).outputs.mode is Mode.FAULT


def test_another_publisher_refuses_enable_and_faults_a_running_controller():
    fed = Fed()
    assert 'another publisher' in fed.step(enable=True, other_publisher=True).refused[0]
    fed.started().step(other_publisher=True)
    assert fault(fed) == 'publisher'


def test_a_streamed_set_point_that_is_not_renewed_faults():
    fed = Fed(terms=('computed_torque',), reference_timeout=0.1).started()
    fed.step(trajectory=JointTrajectory(fed.robot.joint_names, np.zeros(1), fed.q[None]))
    assert fed.outputs.refused == []
    fed.run(0.09)
    assert fault(fed) is None
    fed.run(0.02)
    assert fault(fed) == 'reference'


@pytest.mark.parametrize(
    ('kind', 'change'),
    [
        ('velocity', lambda fed: setattr(fed, 'v', np.array([0.0, 6.1]))),
        ('position', lambda fed: setattr(fed, 'q', np.array([0.6, 3.2]))),
        ('following_error', lambda fed: setattr(fed, 'q', fed.q + np.array([0.0, 0.2]))),
    ],
)
def test_a_robot_beyond_a_limit_faults_and_names_the_joint(kind, change):
    fed = Fed(terms=('computed_torque',)).started()
    fed.controller.limits.set(fed.robot, following_error=[0.1, 0.1])
    change(fed)
    outputs = fed.step()
    assert fault(fed) == kind
    assert "'joint_2'" in outputs.fault.reason


def test_a_position_margin_makes_the_room_smaller():
    fed = Fed().started()
    fed.controller.limits.set(fed.robot, position_margin=[3.0, 0.0])
    fed.step()
    assert fault(fed) == 'position'


def test_limits_may_change_any_number_of_times_between_two_steps():
    fed = Fed().started()
    fed.v = np.array([0.5, 0.5])
    for _ in range(20):  # memory of the limits of before is used again
        fed.controller.limits.set(fed.robot, velocity=[9.0, 9.0])
        fed.controller.limits.set(fed.robot, velocity=[1.0, 1.0])
        fed.step()
        assert fault(fed) is None
        fed.controller.limits.set(fed.robot, velocity=[9.0, 9.0])
    fed.controller.limits.set(fed.robot, velocity=[0.1, 0.1])
    fed.step()
    assert fault(fed) == 'velocity'


def test_a_normal_stop_is_no_fault_though_the_arm_sinks_and_the_stream_ends():
    fed = Fed(terms=('computed_torque',), reference_timeout=0.1, deadman_required=True)
    fed.step(enable=True, deadman=True)
    fed.controller.limits.set(fed.robot, following_error=[0.1, 0.1])
    fed.step(enable=False)
    fed.q = fed.q - 0.5
    assert stopped(fed).outputs.mode is Mode.DISABLED


def test_a_collision_stops_where_the_observer_is_told_so():
    fed = Fed(terms=('gravity', 'observer'), observer=ObserverSettings(collision=10.0, reaction='stop'))
    fed.started()
    fed.v = np.array([1.0, 0.0])  # no torque of the motors explains this
    fed.run(0.1)
    assert fault(fed) == 'collision'


def test_clearing_and_enabling_in_one_step_does_not_blind_the_observer():
    fed = Fed(terms=('gravity', 'observer'), observer=ObserverSettings(collision=10.0, reaction='stop'))
    fed.effort = fed.robot.gravity_torque(fed.q)
    fed.step()
    fed.step(emergency_stop=True)
    fed.step(emergency_stop=False, clear_fault=True, enable=True)
    assert fed.run(0.1)[-1].fault is None
    assert np.isfinite(fed.controller.terms[1].external).all()


# -- what could move the arm when it should not -------------------------------------------------------


def test_a_trajectory_is_forgotten_at_disable_and_enable_holds_the_present_position():
    fed = Fed(terms=('computed_torque',)).started()
    goal = np.array([fed.q, fed.q + 1.0])
    fed.step(trajectory=JointTrajectory(fed.robot.joint_names, np.array([0.0, 5.0]), goal))
    assert fed.outputs.refused == []
    fed.run(0.01)
    fed.step(enable=False)
    stopped(fed)
    fed.q = fed.q + 0.3
    fed.started()
    np.testing.assert_allclose(fed.outputs.torque, fed.robot.gravity_torque(fed.q), atol=1e-6)


def test_a_trajectory_while_disabled_is_refused():
    fed = Fed(terms=('computed_torque',))
    there = JointTrajectory(fed.robot.joint_names, np.zeros(1), fed.q[None])
    assert 'enable it first' in fed.step(trajectory=there).refused[0]


def wrench(fed, arrival=None):
    push = np.array([0.0, 0.0, 100.0, 0.0, 0.0, 0.0])
    return WrenchSample('tip', 'tip', push, fed.time if arrival is None else arrival)


def test_a_wrench_that_came_before_enable_is_not_applied():
    fed = Fed(terms=('wrench',), wrenches={'tip': WrenchSettings('applied_by_robot')}, ramp_time=0.0)
    fed.step(wrenches=[wrench(fed)])
    fed.step(wrenches=[wrench(fed)], enable=True)
    assert not torques(fed.run(0.1)).any()


def test_a_wrench_from_the_future_fades_like_any_other():
    fed = Fed(terms=('wrench',), wrenches={'tip': WrenchSettings('applied_by_robot')}, ramp_time=0.0)
    fed.step(enable=True)
    fed.step(wrenches=[wrench(fed, arrival=1e300)])
    assert fed.run(0.05)[-1].torque.any()
    assert not fed.run(0.5)[-1].torque.any()


@pytest.mark.parametrize(
    'gravity', [[np.nan, 0, -9.81], [0, 0, np.inf], [0, 0, 1e9], [0, -9.81], 'down', [0, 0, 1e308]]
)
def test_a_gravity_that_cannot_be_is_refused_and_the_last_one_kept(gravity):
    fed = Fed().started()
    before = fed.outputs.torque
    outputs = fed.step(gravity=gravity)
    assert 'gravity' in outputs.refused[0]
    assert outputs.torque.tolist() == before.tolist()
    assert outputs.fault is None


def test_a_measured_gravity_is_used():
    fed = Fed().started()
    fed.run(0.3, gravity=np.array([0.0, 0.0, 9.81]))
    np.testing.assert_allclose(fed.outputs.torque, -fed.robot.gravity_torque(fed.q))


@pytest.mark.parametrize(('policy', 'fine'), [('error', False), ('zero', True), ('differentiate', True)])
def test_missing_velocities_are_treated_as_configured(policy, fine):
    fed = Fed(missing_velocity=policy)
    fed.step([fed.sample(velocity=[], stamp=fed.clock)], enable=True)
    assert (fed.outputs.mode is Mode.RAMPING) == fine
    if not fine:
        assert 'velocity is missing' in fed.outputs.refused[0]


# -- by construction ----------------------------------------------------------------------------------


def tree(path):
    return ast.parse((PACKAGE / path).read_text())


def method(path, name):
    (found,) = (n for n in ast.walk(tree(path)) if isinstance(n, ast.FunctionDef) and n.name == name)
    return found


def assigned(function, name):
    """Sources of all that a local variable is ever assigned."""
    for node in ast.walk(function):
        targets = node.targets if isinstance(node, ast.Assign) else []
        for target in targets:
            if name in {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}:
                yield ast.unparse(node.value)


def test_the_torque_of_the_outputs_comes_from_the_safety_stage_only():
    step = method('control/controller.py', 'step')
    (outputs,) = (n for n in ast.walk(step) if isinstance(n, ast.Call) and ast.unparse(n.func) == 'Outputs')
    given = {**dict(zip(('mode', 'fault', 'torque', 'command'), outputs.args, strict=False))}
    given |= {keyword.arg: keyword.value for keyword in outputs.keywords}
    assert ast.unparse(given['torque']) == 'command'
    (source,) = assigned(step, 'command')
    assert source.startswith('self.safety.step(')
    assert ast.unparse(given['command']) == 'None if command is None else self._driver(command)'


def test_the_safety_stage_sends_only_what_the_release_lets_out():
    step = method('safety/safety.py', 'step')
    for node in (n for n in ast.walk(step) if isinstance(n, ast.Return)):
        value = ast.unparse(node.value)
        if value == 'command':
            (value,) = assigned(step, 'command')
        assert value == 'None' or value.startswith('self._out(')
    (source,) = assigned(method('safety/safety.py', '_out'), 'command')
    assert source.startswith('self._release.release(')


def test_nobody_else_makes_outputs_or_writes_the_last_command():
    for path in PACKAGE.rglob('*.py'):
        name = path.relative_to(PACKAGE).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ('Outputs', 'controller.Outputs'):
                assert name == 'control/controller.py'
            if isinstance(node, ast.Call) and ast.unparse(node.func).split('.')[-1] == 'OutputLimiter':
                assert name == 'safety/safety.py'
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr == 'last':
                assert name == 'safety/release.py'


def test_every_change_of_the_last_command_goes_through_the_bound():
    writers = {
        function.name: [
            ast.unparse(n.value)
            for n in ast.walk(function)
            if isinstance(n, ast.Assign) and any(ast.unparse(t) == 'self.last' for t in n.targets)
        ]
        for function in ast.walk(tree('safety/release.py'))
        if isinstance(function, ast.FunctionDef)
    }
    sources = {name: values for name, values in writers.items() if values}
    assert set(sources) == {'__init__', 'start', '_within'}
    assert sources['__init__'][0].startswith('np.zeros_like(')
    assert sources['start'][0].startswith('np.zeros_like(')
