"""The promises of the library: P1 to P10 and P12, and how the code ensures them. P11 is in test_guard.py."""

import ast
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from harness import PERIOD, Harness

import krang_dynamics
from krang_dynamics.safety.modes import Mode
from krang_dynamics.safety.safety_stage import LONGEST_STEP

ROUNDING = 1e-9  # N m
PACKAGE = Path(krang_dynamics.__file__).parent


def torques(outputs):
    """Commands (K, n) of those steps that sent one."""
    return np.array([o.torque for o in outputs if o.torque is not None])


def constant_term(loop, torque):
    """Let the first term return `torque`, or raise it."""

    def answer(state):
        if isinstance(torque, Exception):
            raise torque
        return torque

    loop.controller.terms[0].torque = answer
    return loop


# -- P1: never a number that is not finite -------------------------------------------------------------


@pytest.mark.parametrize('invalid', [np.nan, np.inf, -np.inf, 1e308])
def test_p1_an_invalid_number_in_a_sample_is_never_sent(invalid):
    loop = Harness('pendubot', stop_policy='hold').start()
    for field in ('position', 'velocity', 'effort'):
        outputs = loop.step([loop.sample(**{field: np.full(2, invalid)})])
        assert np.isfinite(outputs.torque).all()
        assert np.isfinite(outputs.command).all()


@pytest.mark.parametrize('invalid', [np.nan, np.inf])
def test_p1_a_term_that_is_not_finite_faults_into_the_stop_policy(invalid):
    loop = Harness().start()
    constant_term(loop, np.array([invalid, 0.0]))
    outputs = loop.step()
    assert loop.fault == 'term'
    assert 'gravity' in outputs.fault.reason
    assert np.isfinite(outputs.torque).all()


def test_p1_terms_whose_sum_overflows_fault():
    loop = Harness(terms=('gravity', 'damping')).start()
    for term in loop.controller.terms:
        term.torque = lambda state: np.full(2, 1.5e308)
    assert np.isfinite(loop.step().torque).all()
    assert loop.fault == 'term'


def test_p1_a_measured_effort_that_is_not_finite_counts_as_none():
    loop = Harness()
    loop.effort = np.array([np.nan, 4.0])
    assert loop.step(enable=True).torque.tolist() == [0.0, 4.0]


# -- P2: within the effort limit -----------------------------------------------------------------------


def test_p2_torque_stays_within_the_effort_limit():
    loop = Harness(ramp_time=0.0)
    constant_term(loop, np.array([1e6, -1e6]))
    loop.step(enable=True)
    last = loop.run(0.5)[-1]
    assert last.torque.tolist() == [100.0, -50.0]
    assert last.limited


def test_p2_a_measured_effort_beyond_the_limit_is_clipped_at_enable():
    loop = Harness(limits_effort=[3.0, 50.0])
    loop.effort = loop.robot.gravity_torque(loop.q)
    assert loop.effort[0] > 3.0
    assert loop.step(enable=True).torque[0] == 3.0


def test_p2_no_limit_can_be_set_above_the_urdf():
    loop = Harness('krang')
    loop.step(limits={'effort': 1e6})
    peak = [loop.robot.urdf.joints[name].effort for name in loop.robot.joint_names]
    assert loop.controller.limits.effort.tolist() == peak


def test_p2_volts_stay_within_the_supply_at_any_speed():
    loop = Harness('pendubot', ramp_time=0.0, missing_velocity='zero')  # positions are not compared
    constant_term(loop, np.array([1e6, 0.0]))
    loop.step(enable=True)
    loop.v = np.array([27.0, 0.0])
    assert max(abs(o.command[0]) for o in loop.run(0.5)) == 15.0


def test_p2_a_limit_lowered_below_the_torque_is_reached_at_the_stop_rate():
    loop = Harness(ramp_time=0.0)
    constant_term(loop, np.array([80.0, 0.0]))
    loop.step(enable=True)
    loop.run(0.2)
    path = torques(loop.run(0.1, limits={'effort': [10.0, 50.0], 'effort_rate': 0.0}))[:, 0]
    stop_rate = loop.controller.limits.stop_rate[0]
    expected = np.maximum(10.0, 80.0 - stop_rate * PERIOD * np.arange(1, 101))
    np.testing.assert_allclose(path, expected, atol=1e-6)


def test_p2_a_limit_lowered_above_the_torque_holds_at_once():
    loop = Harness(ramp_time=0.0)
    constant_term(loop, np.array([5.0, 0.0]))
    loop.step(enable=True)
    loop.run(0.2)
    loop.step(limits={'effort': [10.0, 50.0]})
    constant_term(loop, np.array([80.0, 0.0]))
    assert torques(loop.run(0.2))[:, 0].max() == 10.0


def test_p2_a_limit_of_zero_ends_in_zero_torque():
    loop = Harness().start()
    loop.step(limits={'effort': 0.0})
    assert not loop.run(0.2)[-1].torque.any()


# -- P3: no faster than the rate -----------------------------------------------------------------------


def test_p3_torque_changes_no_faster_than_the_rate():
    loop = Harness(ramp_time=0.0)
    loop.step(enable=True)
    constant_term(loop, np.array([100.0, -50.0]))
    steps = np.abs(np.diff(torques(loop.run(0.2)), axis=0)) / PERIOD
    assert (steps <= loop.controller.limits.effort_rate + 1e-6).all()
    assert steps.max() > 0.99 * loop.controller.limits.effort_rate[0]


def test_p3_the_first_step_after_a_long_pause_does_not_jump_and_faults():
    loop = Harness(ramp_time=0.0)
    loop.step(enable=True)
    before = loop.step().torque
    constant_term(loop, np.array([100.0, -50.0]))
    jump = np.abs(loop.step(dt=10.0).torque - before)
    assert (jump <= loop.controller.limits.stop_rate * LONGEST_STEP + ROUNDING).all()
    assert loop.fault == 'state'


def test_p3_a_step_in_no_time_changes_nothing():
    loop = Harness().start()
    before = loop.outputs.torque
    constant_term(loop, np.array([100.0, -50.0]))
    assert loop.step(dt=0.0).torque.tolist() == before.tolist()


def test_p3_stamps_that_go_slower_than_the_steady_clock_count():
    loop = Harness().start()
    before, stamp = loop.outputs.torque, loop.clock
    constant_term(loop, np.array([100.0, -50.0]))
    jump = np.abs(loop.step([loop.sample(stamp=stamp + 1e-5)], dt=0.01).torque - before)
    assert (jump <= loop.controller.limits.effort_rate * 1e-5 + ROUNDING).all()


def test_p3_the_stamps_of_all_states_that_came_since_the_last_step_count_together():
    loop = Harness().start()
    before = loop.outputs.torque
    constant_term(loop, np.array([100.0, -50.0]))
    times = PERIOD * np.arange(1, 11)
    drained = [loop.sample(stamp=loop.clock + t, arrival=loop.time + t) for t in times]
    change = loop.step(drained, dt=10 * PERIOD).torque - before
    assert change[0] == pytest.approx(loop.controller.limits.effort_rate[0] * 10 * PERIOD)


def test_p3_an_effort_rate_of_zero_holds_the_torque_but_not_the_stop():
    loop = Harness().start()
    before = loop.step(limits={'effort_rate': 0.0}).torque
    constant_term(loop, np.array([100.0, -50.0]))
    assert loop.run(0.1)[-1].torque.tolist() == before.tolist()
    loop.step(enable=False)
    loop.stop()


def test_p3_the_caller_cannot_change_the_torque_that_the_next_step_starts_from():
    loop = Harness().start()
    with pytest.raises(ValueError, match='read-only'):
        loop.outputs.torque[0] = -100.0


def test_p3_another_ramp_time_while_active_does_not_lower_the_arm():
    loop = Harness().start()
    before = loop.outputs.torque
    loop.safety.ramp_time = 100.0
    assert loop.run(0.2)[-1].torque.tolist() == before.tolist()


# -- P4: old states ------------------------------------------------------------------------------------


def test_p4_missing_states_end_in_the_stop_policy_and_a_latched_fault():
    loop = Harness().start()
    loop.run(0.099, samples=[])
    assert loop.fault is None
    loop.run(0.003, samples=[])
    assert loop.fault == 'state'
    loop.stop()  # with states again
    assert loop.fault == 'state'


def test_p4_one_missing_joint_is_enough():
    loop = Harness().start()
    for _ in range(110):
        alone = {'names': ['joint_1'], 'position': loop.q[:1], 'velocity': loop.v[:1], 'effort': []}
        loop.time += PERIOD
        sample = loop.sample(**alone)
        loop.time -= PERIOD
        loop.step([sample])
    assert loop.fault == 'state'
    assert "'joint_2'" in loop.outputs.fault.reason


def test_p4_old_stamps_count_though_they_arrive_now():
    loop = Harness().start()
    for _ in range(3):
        loop.step([loop.sample(stamp=loop.clock - 0.2)])
    loop.run(0.101, samples=[])
    assert loop.fault == 'state'


def test_p4_a_stamp_that_stands_still_is_no_new_state():
    loop = Harness().start()
    frozen = loop.clock
    for _ in range(110):
        loop.step([loop.sample(stamp=frozen)])
    assert loop.fault == 'state'


def test_p4_an_arrival_in_the_future_does_not_keep_a_state_fresh():
    loop = Harness().start()
    loop.step([loop.sample(stamp=0.0, arrival=1e300)])
    loop.run(0.102, samples=[])
    assert loop.fault == 'state'


@pytest.mark.parametrize('jump', [-50.0, 50.0])
def test_p4_a_jump_of_the_steady_clock_faults(jump):
    loop = Harness().start()
    loop.step(samples=[], dt=jump)
    assert loop.fault == 'state'


@pytest.mark.parametrize('time', [np.nan, np.inf, -np.inf])
def test_p4_a_time_that_is_no_number_faults(time):
    loop = Harness().start()
    before, loop.time = loop.time, time
    outputs = loop.step(samples=[])
    assert loop.fault == 'clock'
    assert np.isfinite(outputs.torque).all()
    loop.time = before
    loop.stop()


def test_p4_a_clock_that_is_no_number_faults():
    loop = Harness().start()
    loop.step([loop.sample(stamp=loop.clock + PERIOD)], clock=np.nan)
    assert loop.fault == 'state'


# -- P5: nothing before enable -------------------------------------------------------------------------


def test_p5_nothing_is_sent_before_enable():
    loop = Harness('krang', terms=('gravity', 'computed_torque'))
    assert not len(torques(loop.run(0.05)))
    assert loop.outputs.mode is Mode.DISABLED


def test_p5_enable_without_a_state_is_refused_by_name():
    loop = Harness()
    outputs = loop.step(samples=[], enable=True)
    assert outputs.torque is None
    assert "'joint_1' was never received" in outputs.refused[0]


# -- P6: names -----------------------------------------------------------------------------------------


def test_p6_a_missing_joint_is_named():
    loop = Harness()
    alone = loop.sample(names=['joint_1'], position=[0.6], velocity=[0.0], effort=[])
    assert "'joint_2'" in loop.step([alone], enable=True).refused[0]


def test_p6_a_joint_that_comes_twice_is_refused_by_name():
    loop = Harness()
    twice = loop.sample(names=['joint_1', 'joint_1'])
    assert "joint 'joint_1' occurs twice" in loop.step([twice]).refused[0]


def test_p6_joints_are_found_by_name_and_extra_ones_are_ignored():
    loop = Harness()
    shuffled = loop.sample(
        names=['gripper', 'joint_2', 'joint_1'], position=[9.0, 0.8, 0.6], velocity=[9.0, 0.0, 0.0], effort=[]
    )
    assert loop.step([shuffled], enable=True).refused == []
    one, other = loop.run(0.01)[-1].torque, Harness().start()
    assert one is not None
    np.testing.assert_array_equal(
        loop.run(1.1)[-1].torque, other.run(0.1)[-1].torque, err_msg='the order of names matters'
    )


@pytest.mark.parametrize('field', ['position', 'velocity', 'effort'])
def test_p6_a_wrong_length_is_refused(field):
    loop = Harness()
    assert 'for 2 names' in loop.step([loop.sample(**{field: [1.0, 2.0, 3.0]})]).refused[0]


def test_p6_a_state_may_come_in_parts_from_two_publishers():
    loop = Harness()
    parts = [
        loop.sample(names=[name], position=[q], velocity=[0.0], effort=[], arrival=loop.time + PERIOD)
        for name, q in zip(loop.robot.joint_names, loop.q, strict=True)
    ]
    assert loop.step(parts, enable=True).mode is Mode.RAMPING


# -- P7: stamps ----------------------------------------------------------------------------------------


@pytest.mark.parametrize('back', [0.0, 1e-3, 50.0])
def test_p7_repeated_and_backward_stamps_are_ignored(back):
    loop = Harness().start()
    before, last = loop.outputs.torque, loop.clock
    moved = loop.sample(stamp=last - back, position=loop.q + 0.5)
    assert loop.step([moved]).torque.tolist() == before.tolist()


def test_p7_a_stamp_of_zero_means_the_time_of_arrival():
    loop = Harness()
    for _ in range(1200):
        loop.step([loop.sample(stamp=0.0, arrival=loop.time + PERIOD)], enable=True)
    assert loop.outputs.mode is Mode.ACTIVE


@pytest.mark.parametrize('stamp', [-1.0, np.nan, np.inf, 1e300])
def test_p7_an_impossible_stamp_is_refused(stamp):
    loop = Harness()
    assert 'stamp' in loop.step([loop.sample(stamp=stamp)]).refused[0]


def test_p7_clear_fault_accepts_a_clock_that_was_set_back():
    loop = Harness().start()
    back = 500.0  # s

    def step(**inputs):
        clock = loop.clock + PERIOD - back
        loop.step([loop.sample(stamp=clock)], clock=clock, **inputs)

    for _ in range(5000):
        step()
    assert loop.fault == 'state'
    step(clear_fault=True)
    step()
    step(enable=True)
    assert loop.outputs.mode is Mode.RAMPING


def test_p7_clear_fault_does_not_admit_old_stamps_while_active():
    loop = Harness().start()
    before = loop.outputs.torque
    loop.step(clear_fault=True)
    moved = loop.sample(stamp=loop.clock - 50.0, position=loop.q + 0.5)
    assert loop.step([moved]).torque.tolist() == before.tolist()


# -- P8 and P9 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize('error', [ValueError('x'), ZeroDivisionError(), KeyError('x'), RuntimeError()])
def test_p8_a_term_that_raises_stops_the_whole_controller(error):
    loop = constant_term(Harness().start(), error)
    loop.step()
    assert loop.fault == 'term'
    assert loop.stop().outputs.mode is Mode.FAULT


@pytest.mark.parametrize('answer', [None, np.zeros(3), 'torque', np.float64(1.0), 1.0])
def test_p8_a_term_with_an_invalid_torque_stops_the_whole_controller(answer):
    loop = constant_term(Harness().start(), answer)
    loop.step()
    assert loop.fault == 'term'


@pytest.mark.parametrize('part', ['state', 'reference', 'limits', 'settings'])
def test_p8_nothing_that_breaks_inside_throws_into_the_loop(part):
    loop = Harness(terms=('gravity', 'computed_torque')).start()
    setattr(loop.controller, part, None)
    assert np.isfinite(loop.step().torque).all()
    assert loop.fault == 'exception'


@pytest.mark.parametrize('name', ['otbot', 'pendubot'])
def test_p9_passive_joints_never_get_effort(name):
    loop = Harness(name, ramp_time=0.0)
    driven = np.isin(loop.robot.joint_names, loop.robot.actuated_joint_names)
    constant_term(loop, np.full(loop.robot.nv, 1e6))
    loop.effort = np.where(driven, 0.0, 1e6)
    loop.step(enable=True)
    sent = torques([loop.outputs, *loop.run(0.1), loop.step(enable=False), *loop.run(1.0)])
    assert not sent[:, ~driven].any()
    assert sent[:, driven].any(axis=0).all()


@pytest.mark.parametrize('wheels_locked', [False, True])
def test_p9_the_base_of_krang_gets_effort_only_with_its_wheels_locked(wheels_locked):
    loop = Harness('krang', wheels_locked=wheels_locked, ramp_time=0.0)
    constant_term(loop, np.full(17, 10.0))
    loop.step(enable=True)
    assert (loop.run(0.1)[-1].torque[0] != 0) == wheels_locked
    assert ('base_pitch' in loop.controller.command_joints) == wheels_locked


# -- P10: the same again -------------------------------------------------------------------------------


def test_p10_the_same_inputs_give_the_same_bits():
    def run():
        loop = Harness('krang', terms=('gravity', 'computed_torque', 'friction', 'observer'))
        random = np.random.default_rng(3)
        loop.step(enable=True)
        for _ in range(200):
            loop.q = loop.robot.home + random.normal(0, 1e-3, 17)
            yield loop.step()

    for one, other in zip(run(), run(), strict=True):
        assert one.torque.tobytes() == other.torque.tobytes()
        assert one.command.tobytes() == other.command.tobytes()


def test_p10_outputs_do_not_change_after_their_step():
    loop = Harness(terms=('gravity', 'observer')).start()
    terms = loop.outputs.terms
    kept = {name: torque.copy() for name, torque in terms.items()}
    with suppress(ValueError):  # whether it can be changed or not
        terms['observer'] += 50.0
    loop.q = loop.q + 0.01
    after = loop.step().terms
    assert terms['gravity'].tolist() == kept['gravity'].tolist()
    assert not after['observer'].any()


# -- P12: another publisher ----------------------------------------------------------------------------


def test_p12_another_publisher_refuses_enable_and_faults_a_running_controller():
    loop = Harness()
    assert 'another publisher' in loop.step(enable=True, other_publisher=True).refused[0]
    loop.start().step(other_publisher=True)
    assert loop.fault == 'publisher'


# -- by construction -----------------------------------------------------------------------------------


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
    assert ast.unparse(given['command']) == 'None if command is None else self._driver_command(command)'


def test_the_safety_stage_sends_only_what_the_output_limiter_returns():
    step = method('safety/safety_stage.py', 'step')
    for node in (n for n in ast.walk(step) if isinstance(n, ast.Return)):
        value = ast.unparse(node.value)
        if value == 'command':
            (value,) = assigned(step, 'command')
        assert value == 'None' or value.startswith('self._out(')
    (source,) = assigned(method('safety/safety_stage.py', '_out'), 'command')
    assert source.startswith('self._limiter.limit(')


def test_no_other_module_makes_outputs_or_writes_the_last_command():
    for path in PACKAGE.rglob('*.py'):
        name = path.relative_to(PACKAGE).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ('Outputs', 'controller.Outputs'):
                assert name == 'control/controller.py'
            if isinstance(node, ast.Call) and ast.unparse(node.func).split('.')[-1] == 'OutputLimiter':
                assert name == 'safety/safety_stage.py'
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr == 'last':
                assert name == 'safety/output_limiter.py'


def test_every_change_of_the_last_command_goes_through_the_bound():
    def written(function, name):
        assigned = [node for node in ast.walk(function) if isinstance(node, ast.Assign)]
        return [ast.unparse(n.value) for n in assigned if name in map(ast.unparse, n.targets)]

    functions = [n for n in ast.walk(tree('safety/output_limiter.py')) if isinstance(n, ast.FunctionDef)]
    sources = {f.name: values for f in functions if (values := written(f, 'self.last'))}
    assert {name: [source.partition('(')[0] for source in values] for name, values in sources.items()} == {
        '__init__': ['np.zeros_like'],
        'start': ['np.zeros_like'],
        'limit': ['command'],
    }
    (limit,) = (function for function in functions if function.name == 'limit')
    assert written(limit, '(command, is_limited)') == ['limited(torque, self.last, rate, dt, bound)']
    raised = 'np.maximum(bound, np.abs(self.last) - self._limits.stop_rate * dt)'  # after a limit was lowered
    assert written(limit, 'bound') == ['self._limit', raised]
