"""The controller: inputs beyond states, changes of settings, references, and what must not move the robot."""

import gc
import sys
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from harness import PERIOD, Harness, closed_loop, robot_named

import krang_dynamics as kd
from krang_dynamics.control.controller import Inputs, TorqueController
from krang_dynamics.control.reference.trajectory import JointTrajectory
from krang_dynamics.control.settings import Settings
from krang_dynamics.control.terms.wrench import FADE, WrenchSample
from krang_dynamics.robot.payload import Payload
from krang_dynamics.safety.joint_buffer import JointSamples
from krang_dynamics.safety.modes import Mode

TERMS = ('gravity', 'damping', 'computed_torque', 'wrench', 'observer')
TIP = {'wrench_tip_convention': 'applied_by_robot', 'wrench_tip_max_force': 50.0}
PUSH = np.array([8.0, 0.0, -15.0, 0.0, 1.0, 0.0])  # at the tip, in its axes [N, N m]
DUMBBELL = Payload('tip', 2.0, np.array([0.0, 0.0, 0.1]), np.eye(3) * 0.01)
ONE_KIND = 1e-12  # relative, of torques that are computed in two ways


def standing(robot='planar_2r', **settings):
    """An enabled controller of a robot that stands still at home."""
    loop = Harness(robot, **{'ramp_time': 0.0, **settings})
    loop.step(enable=True)
    return loop


def settled(loop, **inputs):
    """The torque when the rate limit no longer matters."""
    loop.step(**inputs)
    return loop.run(0.3)[-1].torque


def torques(outputs):
    """Commands (K, n) of those steps that sent one."""
    return np.array([o.torque for o in outputs if o.torque is not None])


def busy(**settings):
    """An active two-link arm with every term that has live parameters."""
    usual = {'terms': TERMS, 'ramp_time': 0.0, 'damping': 1.0, 'gains_bandwidth': 5.0, **TIP}
    return Harness(**{**usual, **settings}).start()


def wrench(loop, arrival=None):
    return WrenchSample('tip', 'tip', PUSH, loop.time if arrival is None else arrival)


def moving(loop, count=20):
    """Steps along a smooth path with a wrench; all outputs."""
    home, out = loop.robot.home, []
    for _ in range(count):
        phase = 3.0 * loop.time + np.arange(loop.robot.nv)
        loop.q, loop.v = home + 0.02 * np.sin(phase), 0.06 * np.cos(phase)
        outputs = loop.step(wrenches=[wrench(loop)])
        assert outputs.refused == []
        out.append(np.concatenate([outputs.torque, outputs.command, *outputs.terms.values()]))
    return np.array(out)


def changed(loop, **changes):
    """The settings of a controller with some changes."""
    return loop.settings.replace(**changes)


def refusal(loop, **inputs):
    """Why a change was refused, in a step without a fault."""
    outputs = loop.step(**inputs)
    assert outputs.fault is None
    (reason,) = outputs.refused
    return reason


# -- payloads, gravity and outputs ---------------------------------------------------------------------


def test_a_payload_is_compensated_and_removed_exactly():
    loop = standing()
    empty = settled(loop)
    loaded = settled(loop, payloads=[DUMBBELL])
    expected = loop.robot.with_payload('tip', 2.0, (0, 0, 0.1), np.eye(3) * 0.01)
    np.testing.assert_allclose(loaded, expected.gravity_torque(loop.robot.home), rtol=1e-12)
    np.testing.assert_array_equal(settled(loop, payloads=[]), empty)


def test_a_payload_at_an_unknown_frame_is_refused_and_nothing_changes():
    loop = standing()
    before = settled(loop)
    unknown = Payload('nowhere', 1.0, np.zeros(3), np.zeros((3, 3)))
    assert 'nowhere' in loop.step(payloads=[unknown]).refused[0]
    np.testing.assert_array_equal(settled(loop), before)


def test_measured_gravity_is_used_and_survives_a_payload():
    loop = standing()
    sideways = np.array([-9.81, 0.0, 0.0])
    tilted = settled(loop, gravity=sideways)
    np.testing.assert_allclose(
        tilted, loop.robot.with_gravity(sideways).gravity_torque(loop.robot.home), rtol=1e-12
    )
    settled(loop, payloads=[DUMBBELL])
    np.testing.assert_array_equal(settled(loop, payloads=[]), tilted)


def test_a_refused_trajectory_has_a_reason_and_the_robot_keeps_its_position():
    loop = standing(terms=('computed_torque',))
    far = JointTrajectory(('joint_1',), np.array([0.0, 1.0]), np.array([[3.0], [2.0]]))
    outputs = loop.step(trajectory=far)
    assert 'farther than' in outputs.refused[0]
    assert outputs.mode is Mode.ACTIVE


def test_each_term_is_reported_by_itself_and_they_add_up():
    loop = standing(terms=('gravity', 'damping', 'computed_torque'), damping=2.0)
    settled(loop)
    outputs = loop.step()
    assert list(outputs.terms) == ['gravity', 'damping', 'computed_torque']
    np.testing.assert_allclose(sum(outputs.terms.values()), outputs.torque, atol=1e-12)


@pytest.mark.parametrize(
    ('name', 'unit'), [('krang', 'current'), ('pendubot', 'voltage'), ('otbot', 'torque')]
)
def test_commands_have_the_unit_and_order_of_the_drivers(name, unit):
    joints = tuple(reversed(TorqueController(robot_named(name), Settings()).command_joints))
    loop = standing(name, command_joints=joints)
    settled(loop)
    outputs = loop.step()
    assert loop.robot.config.command_unit == unit
    expected = loop.robot.motor_command(outputs.torque, np.zeros(loop.robot.nv))
    rows = [loop.robot.joint_names.index(joint) for joint in joints]
    np.testing.assert_allclose(outputs.command, expected[rows])


# -- changes of the settings ---------------------------------------------------------------------------


def test_inputs_without_a_change_have_no_new_settings():
    present = Settings()
    assert Inputs(0.0, 0.0).settings_after(present) is None
    requests = {'enable': True, 'clear_fault': True, 'deadman': True, 'other_publisher': True}
    assert Inputs(0.0, 0.0, **requests).settings_after(present) is None


def test_settings_limits_payloads_and_gravity_are_one_change():
    after = Inputs(
        0.0, 0.0, settings=Settings(damping=2.0), limits={'effort': 5.0}, payloads=[DUMBBELL],
        gravity=np.array([0.0, 1.0, -9.0]),
    ).settings_after(Settings(payload_tip_mass=9.0, ramp_time=0.3))  # fmt: skip
    assert after == Settings(
        damping=2.0, limits_effort=5.0, gravity=[0.0, 1.0, -9.0], payload_tip_mass=2.0,
        payload_tip_com=[0.0, 0.0, 0.1], payload_tip_inertia=[0.01, 0.01, 0.01, 0.0, 0.0, 0.0],
    )  # fmt: skip


@pytest.mark.parametrize('inputs', [{'payloads': []}, {'limits': {}}, {'settings': Settings()}])
def test_an_empty_change_is_one_too(inputs):
    assert Inputs(0.0, 0.0, **inputs).settings_after(Settings()) == Settings()


# -- changes that take effect --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('gains', 'kp', 'kd'),
    [
        ({'gains_bandwidth': 12.0}, [144.0, 144.0], [24.0, 24.0]),
        ({'gains_damping_ratio': 0.5}, [25.0, 25.0], [5.0, 5.0]),
        ({'gains_kp': [9.0, 16.0], 'gains_kd': [3.0, 4.0]}, [9.0, 16.0], [3.0, 4.0]),
    ],
)
def test_new_gains_act_from_the_step_that_sets_them(gains, kp, kd):
    loop = Harness(terms=('computed_torque',), gains_bandwidth=5.0).start()
    held = loop.q
    loop.q, loop.v = held + np.array([0.02, -0.02]), np.array([0.1, 0.2])
    outputs = loop.step(settings=changed(loop, **gains))
    assert outputs.refused == []
    acceleration = kp * (held - loop.q) - np.array(kd) * loop.v
    expected = loop.robot.inverse_dynamics(loop.q, loop.v, acceleration)
    np.testing.assert_allclose(outputs.terms['computed_torque'], expected, rtol=ONE_KIND)


def test_new_damping_acts_from_the_step_that_sets_it():
    loop = Harness(terms=('gravity', 'damping'), damping=1.0).start()
    loop.v = np.array([0.5, -0.25])
    np.testing.assert_array_equal(loop.step().terms['damping'], [-0.5, 0.25])
    outputs = loop.step(settings=changed(loop, damping=np.array([4.0, 8.0])))
    np.testing.assert_array_equal(outputs.terms['damping'], [-2.0, 2.0])


def test_a_stiffer_controller_follows_with_its_new_gains():
    """The error obeys e'' + 2 w e' + w^2 e = 0 before and after the change, in closed loop."""
    settings = {'terms': ('computed_torque',), 'gains_bandwidth': 3.0}
    loop = closed_loop('pinocchio', 'planar_2r', friction=False, **settings)
    for bandwidth in (3.0, 9.0):
        step = 0.01 * np.array([1.0, -1.0])
        goal = loop.plant.q + step
        there = JointTrajectory(loop.robot.joint_names, np.array([0.0, 1.0]), np.array([goal, goal]))
        begin = len(loop.history)
        loop.step(trajectory=there, settings=changed(loop, gains_bandwidth=bandwidth))
        assert loop.outputs.refused == []
        loop.run(5 / bandwidth)
        times, path = (x[begin:] for x in loop.path())
        decay = bandwidth * (times - times[0])
        expected = goal - np.outer((1 + decay) * np.exp(-decay), step)
        assert np.abs(path - expected).max() <= 0.03 * 0.01


def pushed_observer(gain):
    """A standing arm whose motors push with a wrench: the surroundings must push back."""
    loop = Harness(
        terms=('gravity', 'wrench', 'observer'), observer_gain=gain, observer_collision=1e3, **TIP
    ).start()
    push = loop.robot.wrench_to_torque(loop.q, {'tip': PUSH}, reference='local')
    return loop, loop.controller.terms[2], -push


def estimates(loop, observer, duration):
    out = []
    for _ in range(round(duration / PERIOD)):
        loop.step(wrenches=[wrench(loop)])
        out.append(observer.external)
    return np.array(out)


def test_another_gain_of_the_observer_continues_from_the_present_estimate():
    loop, observer, external = pushed_observer(gain=4.0)
    estimates(loop, observer, 0.3)
    before = observer.external.copy()
    assert (np.abs(before) < 0.8 * np.abs(external)).all()
    loop.step(wrenches=[wrench(loop)], settings=changed(loop, observer_gain=40.0))
    np.testing.assert_allclose(observer.external, before, rtol=1e-9)
    path = estimates(loop, observer, 0.1)
    decay = np.exp(-40.0 * PERIOD * np.arange(1, len(path) + 1))
    expected = external + np.outer(decay, before - external)
    np.testing.assert_allclose(path, expected, atol=0.05 * np.abs(external).max())


def test_thresholds_and_reaction_of_the_observer_change():
    loop, observer, external = pushed_observer(gain=20.0)
    estimates(loop, observer, 0.5)
    largest = np.abs(external).max()
    assert loop.outputs.contact == 'contact'
    loop.step(wrenches=[wrench(loop)], settings=changed(loop, observer_contact=2 * largest))
    assert loop.outputs.contact == 'none'
    stop = changed(loop, observer_collision=0.5 * largest, observer_reaction='stop')
    loop.step(wrenches=[wrench(loop)], settings=stop)
    loop.step(wrenches=[wrench(loop)])
    assert loop.outputs.fault.kind == 'collision'


@pytest.mark.parametrize(('timeout', 'faults'), [(0.05, True), (0.3, False)])
def test_another_state_timeout_counts(timeout, faults):
    loop = Harness(state_timeout=0.15).start()
    loop.step(settings=changed(loop, state_timeout=timeout))
    loop.run(0.1, samples=[])
    assert (loop.outputs.fault is not None) == faults
    if faults:
        assert (loop.outputs.fault.kind, '0.05 s' in loop.outputs.fault.reason) == ('state', True)


@pytest.mark.parametrize(('timeout', 'faults'), [(0.05, True), (0.3, False)])
def test_another_deadman_timeout_counts(timeout, faults):
    loop = Harness(deadman_required=True, deadman_timeout=0.15)
    loop.step(enable=True, deadman=True)
    loop.step(deadman=True, settings=changed(loop, deadman_timeout=timeout))
    loop.run(0.1)
    assert (loop.outputs.fault.kind == 'deadman') if faults else (loop.outputs.fault is None)


@pytest.mark.parametrize(('before', 'after', 'rests'), [(2.0, 0.05, True), (0.05, 2.0, False)])
def test_another_reference_timeout_counts_for_a_set_point_that_is_followed(before, after, rests):
    loop = Harness(terms=('computed_torque',), reference_timeout=before, stream_velocity=0.1).start()
    loop.step(trajectory=JointTrajectory(loop.robot.joint_names, np.zeros(1), loop.q[None] + 1.0))
    loop.step(settings=changed(loop, reference_timeout=after))
    loop.run(0.15)
    assert loop.outputs.fault is None
    assert (loop.outputs.reference[1] == 0).all() == rests


def test_streamed_motion_obeys_the_stream_parameters_which_are_live():
    limits = {'stream_velocity': [0.2, 0.1], 'stream_acceleration': 1.0}
    loop = Harness(terms=('computed_torque',), reference_timeout=5.0, **limits).start()
    far = JointTrajectory(loop.robot.joint_names, np.zeros(1), loop.q[None] + 1.0)
    loop.step(trajectory=far)
    assert loop.outputs.refused == []
    v = np.array([loop.step().reference[1].copy() for _ in range(300)])
    np.testing.assert_allclose(v.max(axis=0), [0.2, 0.1])
    assert np.abs(np.diff(v, axis=0)).max() <= 1.0 * 1e-3 + 1e-9
    loop.step(settings=changed(loop, stream_velocity=0.3), trajectory=far)
    loop.run(0.3)
    np.testing.assert_allclose(loop.outputs.reference[1], 0.3)


def test_a_fast_stream_is_never_late():
    """500 Hz into a loop of 100 Hz: the newest set-point counts, and the last one is reached."""
    loop = Harness(terms=('computed_torque',)).start()
    home, last = loop.q.copy(), 0.0
    for k in range(500):
        last = 0.2 * np.sin(2 * np.pi * 0.25 * k / 500)
        point = JointTrajectory(loop.robot.joint_names, np.zeros(1), home[None] + last)
        loop.session.take_trajectory(point, k)
        if k % 5 == 4:
            outputs = loop.step(dt=0.01)
            assert (outputs.accepted, loop.session.followed) == (True, k)
            # At 0.31 rad/s: the way of 10 ms, and of the jerk-limited 0.06 s in which it gets that fast.
            assert np.abs(outputs.reference[0] - home - last).max() < 0.31 * (0.01 + 0.06)
    loop.run(0.3)
    np.testing.assert_array_equal(loop.outputs.reference[0], home + last)
    assert loop.fault is None


def test_a_stream_that_ends_comes_to_rest_and_the_controller_stays_active():
    loop = Harness(terms=('computed_torque',), stream_velocity=0.1).start()
    loop.step(trajectory=JointTrajectory(loop.robot.joint_names, np.zeros(1), loop.q[None] + 1.0))
    loop.run(0.49)
    np.testing.assert_allclose(loop.outputs.reference[1], 0.1)
    loop.run(0.1)
    np.testing.assert_array_equal(loop.outputs.reference[1], 0.0)
    assert (loop.outputs.mode, loop.outputs.fault) == (Mode.ACTIVE, None)


def test_the_empty_trajectory_stops_a_motion():
    loop = Harness(terms=('computed_torque',)).start()
    loop.step(trajectory=JointTrajectory(loop.robot.joint_names, np.array([1.0]), loop.q[None] + 0.5))
    loop.run(0.1)
    outputs = loop.step(trajectory=JointTrajectory((), np.zeros(0), np.zeros((0, 0))))
    assert (outputs.accepted, outputs.refused) == (True, [])
    assert outputs.reference[1].all()
    loop.run(0.5)
    np.testing.assert_array_equal(loop.outputs.reference[1], 0.0)
    assert np.abs(loop.outputs.reference[0] - loop.q).max() < 0.1


def test_a_stamp_is_on_the_clock_of_the_node():
    loop = Harness(terms=('computed_torque',)).start()
    goal = JointTrajectory(loop.robot.joint_names, np.array([0.5]), loop.q[None] + 0.01)
    loop.step(trajectory=replace(goal, start=loop.clock + 0.1))
    assert loop.outputs.accepted
    moves = [loop.step().reference[1].any() for _ in range(200)]
    assert 98 <= moves.index(True) <= 102
    assert 'it is over' in loop.step(trajectory=replace(goal, start=loop.clock - 1.0)).refused[0]


def test_another_wrench_timeout_counts():
    silent = {}
    for timeout in (0.05, 0.5):
        loop = Harness(terms=('gravity', 'wrench'), wrench_timeout=0.2, **TIP).start()
        loop.step(wrenches=[wrench(loop)])
        loop.step(settings=changed(loop, wrench_timeout=timeout))
        silent[timeout] = loop.run(0.05 + FADE + 0.01)[-1].terms['wrench']
    assert not silent[0.05].any()
    push = robot_named('planar_2r').wrench_to_torque(loop.q, {'tip': PUSH}, reference='local')
    np.testing.assert_allclose(silent[0.5], push, rtol=ONE_KIND)


def test_another_largest_force_counts_for_the_next_wrench():
    loop = Harness(terms=('gravity', 'wrench'), **TIP).start()
    before = loop.step(wrenches=[wrench(loop)]).terms['wrench']
    force = np.linalg.norm(PUSH[:3])
    half = changed(loop, wrench_tip_max_force=force / 2, wrench_tip_max_moment=0.0)
    loop.step(settings=half)
    after = loop.step(wrenches=[wrench(loop)]).terms['wrench']
    shortened = np.concatenate([PUSH[:3] / 2, np.zeros(3)])
    expected = loop.robot.wrench_to_torque(loop.q, {'tip': shortened}, reference='local')
    np.testing.assert_allclose(after, expected, rtol=ONE_KIND)
    assert (after != before).any()


def test_another_ramp_time_counts_for_the_next_enable():
    loop = Harness(ramp_time=0.1)
    loop.step(settings=changed(loop, ramp_time=0.4))
    loop.step(enable=True)
    assert loop.run(0.35)[-1].mode is Mode.RAMPING
    assert loop.run(0.1)[-1].mode is Mode.ACTIVE


def test_another_ramp_time_counts_for_the_ramp_under_way_and_an_active_arm_is_not_lowered():
    loop = Harness(ramp_time=10.0)
    loop.step(enable=True)
    loop.run(0.05)
    loop.step(settings=changed(loop, ramp_time=0.0))
    assert loop.outputs.mode is Mode.ACTIVE
    loop.run(0.5)
    held = loop.outputs.torque
    loop.step(settings=changed(loop, ramp_time=30.0))
    assert loop.outputs.mode is Mode.ACTIVE
    np.testing.assert_array_equal(loop.run(0.1)[-1].torque, held)


def test_settings_of_a_controller_that_is_disabled_act_once_it_is_enabled():
    loop = Harness(terms=('gravity', 'damping'))
    loop.step(settings=changed(loop, damping=3.0))
    loop.start()
    loop.v = np.array([0.5, 0.5])
    np.testing.assert_array_equal(loop.step().terms['damping'], [-1.5, -1.5])


def test_settings_that_are_changed_and_restored_leave_no_difference():
    loop, other = busy(), busy()
    usual = loop.controller.settings
    timing = {'wrench_timeout': 0.4, 'ramp_time': 0.7, 'state_timeout': 0.2}
    stiff = changed(loop, gains_bandwidth=20.0, damping=7.0, **timing)
    for settings in (stiff, usual):
        assert loop.step(settings=settings).refused == []
        other.step()
    moving(loop, 200), moving(other, 200)  # until the rate limit no longer shows the stiffer torque
    np.testing.assert_array_equal(moving(loop), moving(other))


def test_the_same_settings_again_change_no_bit():
    loop, other = busy(), busy()
    for _ in range(5):
        assert loop.step(settings=changed(loop)).refused == []
        other.step()
    np.testing.assert_array_equal(moving(loop), moving(other))


# -- changes are applied as a whole or not at all ------------------------------------------------------

GOOD = {
    'gravity': np.array([1.0, 0.0, -9.0]),
    'payloads': [DUMBBELL],
    'limits': {'effort': np.array([30.0, 20.0]), 'velocity': np.array([3.0, 3.0])},
    'settings': {'gains_bandwidth': 9.0, 'damping': 5.0, 'ramp_time': 0.7, 'state_timeout': 0.5},
}
BAD = {
    'gravity': [
        [0.0, 0.0],
        [0.0, 0.0, np.nan],
        [0.0, 0.0, -31.0],
        'down',
    ],
    'payloads': [
        [Payload('nowhere', 1.0, np.zeros(3), np.zeros((3, 3)))],
        [DUMBBELL, Payload('nowhere', 1.0, np.zeros(3), np.zeros((3, 3)))],
        [Payload('tip', np.inf, np.zeros(3), np.zeros((3, 3)))],
    ],
    'limits': [
        {'effort': [1.0]},
        {'effort': [10.0, 10.0], 'velocity': [np.nan, 1.0]},
        {'effort': [10.0, 10.0], 'effort_rate': [-1.0, 1.0]},
        {'stop_rate': [1.0, 1.0]},
        {'courage': [1.0, 1.0]},
    ],
    'settings': [
        {'gains_kp': 1.0},
        {'gains_kp': [1.0, 2.0, 3.0], 'gains_kd': 1.0},
        {'damping': [1.0, 1.0, 1.0]},
        {'wrench_tip_convention': None},
        {'wrench_tip_convention': 'applied_on_robot'},
        {'wrench_nowhere_convention': 'applied_by_robot'},
        {'wrench_link_1_convention': 'applied_by_robot'},
        {'payload_nowhere_mass': 1.0},
        {'payload_tip_inertia': [1.0, 1.0, 9.0]},
        {'limits_effort': [1.0]},
        {'gravity': [20.0, 20.0, 20.0]},
        {'terms': ('gravity',)},
    ],
}
CASES = [(name, value) for name, values in BAD.items() for value in values]


@pytest.mark.parametrize(('name', 'wrong'), CASES, ids=[f'{name}-{i}' for i, (name, _) in enumerate(CASES)])
def test_a_change_with_one_invalid_part_changes_nothing(name, wrong):
    loop, other = busy(), busy()
    moving(loop), moving(other)
    mixed = {**GOOD, name: {**GOOD['settings'], **wrong} if name == 'settings' else wrong}
    if name == 'settings':  # the others would replace what is wrong
        mixed = {key: value for key, value in mixed.items() if key == 'settings'}
    settings = changed(loop, **mixed.pop('settings'))
    assert refusal(loop, wrenches=[wrench(loop)], settings=settings, **mixed)
    other.step(wrenches=[wrench(other)])
    np.testing.assert_array_equal(moving(loop), moving(other))
    assert loop.controller.settings == other.controller.settings
    np.testing.assert_equal(vars(loop.controller.limits), vars(other.controller.limits))
    assert loop.safety.ramp_time == other.safety.ramp_time
    assert loop.controller.dynamics.robot.payloads == ()


def test_all_four_together_take_effect():
    loop = busy()
    loop.q, loop.v = loop.robot.home, np.array([0.1, 0.1])
    mixed = {**GOOD, 'settings': changed(loop, **GOOD['settings'])}
    outputs = loop.step(**mixed)
    assert outputs.refused == []
    loaded = loop.robot.with_payload('tip', 2.0, [0.0, 0.0, 0.1], np.eye(3) * 0.01).with_gravity(
        [1.0, 0, -9.0]
    )
    np.testing.assert_allclose(outputs.terms['gravity'], loaded.gravity_torque(loop.q), rtol=ONE_KIND)
    np.testing.assert_allclose(outputs.terms['damping'], [-0.5, -0.5], rtol=ONE_KIND)
    np.testing.assert_array_equal(loop.controller.limits.effort, [30.0, 20.0])
    assert (loop.safety.ramp_time, loop.controller.settings.state_timeout) == (0.7, 0.5)


def test_settings_that_are_not_live_are_refused_in_a_step():
    loop = busy()
    reason = refusal(loop, settings=changed(loop, stop_rate=50.0, damping=3.0))
    assert reason == 'stop.rate cannot change while the controller runs; configure it again'
    assert loop.settings.damping == 1.0


# -- what must not move the arm ------------------------------------------------------------------------


def test_a_trajectory_is_discarded_at_disable_and_enable_holds_the_present_position():
    loop = Harness(terms=('computed_torque',)).start()
    goal = np.array([loop.q, loop.q + 1.0])
    loop.step(trajectory=JointTrajectory(loop.robot.joint_names, np.array([0.0, 5.0]), goal))
    assert loop.outputs.refused == []
    loop.run(0.01)
    loop.step(enable=False)
    loop.stop()
    loop.q = loop.q + 0.3
    loop.start()
    np.testing.assert_allclose(loop.outputs.torque, loop.robot.gravity_torque(loop.q), atol=1e-6)


def test_a_trajectory_while_disabled_is_refused():
    loop = Harness(terms=('computed_torque',))
    there = JointTrajectory(loop.robot.joint_names, np.zeros(1), loop.q[None])
    assert loop.step(trajectory=there).refused == ['trajectory: the controller is disabled; enable it first']
    loop.step(emergency_stop=True)
    (reason,) = loop.step(trajectory=there).refused
    assert reason.startswith('trajectory: a fault is latched (emergency_stop: ')
    assert reason.endswith('clear it and enable the controller first')


def test_a_wrench_that_came_before_enable_is_not_applied():
    loop = Harness(terms=('wrench',), wrench_tip_convention='applied_by_robot', ramp_time=0.0)
    loop.step(wrenches=[wrench(loop)])
    loop.step(wrenches=[wrench(loop)], enable=True)
    assert not torques(loop.run(0.1)).any()


def test_a_wrench_from_the_future_fades_like_any_other():
    loop = Harness(terms=('wrench',), wrench_tip_convention='applied_by_robot', ramp_time=0.0)
    loop.step(enable=True)
    loop.step(wrenches=[wrench(loop, arrival=1e300)])
    assert loop.run(0.05)[-1].torque.any()
    assert not loop.run(0.5)[-1].torque.any()


@pytest.mark.parametrize(
    'gravity', [[np.nan, 0, -9.81], [0, 0, np.inf], [0, 0, 1e9], [0, -9.81], 'down', [0, 0, 1e308]]
)
def test_an_impossible_gravity_is_refused_and_the_last_one_kept(gravity):
    loop = Harness().start()
    before = loop.outputs.torque
    outputs = loop.step(gravity=gravity)
    assert 'gravity' in outputs.refused[0]
    assert outputs.torque.tolist() == before.tolist()
    assert outputs.fault is None


def test_a_measured_gravity_is_used():
    loop = Harness().start()
    loop.run(0.3, gravity=np.array([0.0, 0.0, 9.81]))
    np.testing.assert_allclose(loop.outputs.torque, -loop.robot.gravity_torque(loop.q))


@pytest.mark.parametrize(('policy', 'fine'), [('error', False), ('zero', True), ('differentiate', True)])
def test_missing_velocities_are_treated_as_configured(policy, fine):
    loop = Harness(missing_velocity=policy)
    loop.step([loop.sample(velocity=[], stamp=loop.clock)], enable=True)
    assert (loop.outputs.mode is Mode.RAMPING) == fine
    if not fine:
        assert 'velocity is missing' in loop.outputs.refused[0]


# -- drivers' names ------------------------------------------------------------------------------------

TWINS = [
    {'name': 'm1', 'joint': 'joint_1', 'ratio': 30.0, 'share': 0.75, 'offset': 0.25},
    {'name': 'm2', 'joint': 'joint_2', 'ratio': 4.0, 'sign': -1, 'offset': -0.5},
    {'name': 'm3', 'joint': 'joint_1', 'ratio': 10.0, 'share': 0.25, 'sign': -1},
]


def test_states_by_driver_name_give_commands_by_driver_name():
    robot = kd.load_robot('planar_2r', actuators=TWINS)
    settings = Settings(
        ramp_time=0.0, command_joints=('m3', 'joint_2', 'm1'), limits_effort_rate=1e7, limits_state_rate=0.0
    )
    controller = TorqueController(robot, settings)
    assert controller.drivers.names == ('m3', 'm2', 'm1')
    assert controller.command_joints == ('joint_1', 'joint_2')
    q = np.array([0.75, -1.0])
    positions = np.array([30.0 * (q[0] - 0.25), -4.0 * (q[1] + 0.5), -10.0 * q[0]])
    for k in range(3):
        now = 10.0 + k * PERIOD
        state = JointSamples(('m1', 'm2', 'm3'), positions, np.zeros(3), np.zeros(3), now, now)
        outputs = controller.step(Inputs(now, now, [state], enable=True if k == 0 else None))
        assert outputs.refused == []
    weight = robot.gravity_torque(q)
    np.testing.assert_allclose(outputs.torque, weight, rtol=ONE_KIND)
    shafts = [0.25 * weight[0] / -10.0, weight[1] / -4.0, 0.75 * weight[0] / 30.0]
    np.testing.assert_allclose(outputs.command, shafts, rtol=ONE_KIND)


# -- P17: a set is atomic ------------------------------------------------------------------------------

VALID_SETS = [
    {'ramp_time': 0.3}, {'damping': 2.0}, {'limits_effort': [40.0, 20.0]}, {'limits_velocity': 3.0},
    {'payload_tip_mass': 0.5}, {'payload_tip_mass': 0.0}, {'gravity': [0.0, 0.0, -9.0]},
    {'gains_bandwidth': 8.0}, {'friction_scale': 0.5}, {'limits_effort': 5000.0},
]  # fmt: skip
INVALID_SETS = [
    {'gains_kp': 1e6, 'gains_kd': 0.0}, {'gains_kp': 5.0, 'gains_kd': None}, {'damping': [1.0, 2.0, 3.0]},
    {'gravity': [0.0, 0.0, -30.0], 'payload_tip_com': [0.0, 0.0]}, {'payload_tip_inertia': [1.0, 1.0]},
    {'robot': 'krang'}, {'terms': ('gravity',)}, {'limits_velocity': [1.0]},
    {'payload_tip_mass': 1e4, 'stop_time': 1.0},
    {'gravity': [20.0, 20.0, 20.0]},
]  # fmt: skip


def test_p17_the_answer_of_each_of_forty_mixed_sets_concerns_only_itself():
    loop = busy()
    random = np.random.default_rng(4)
    for k in random.permutation(40):
        is_good = k % 2 == 0
        changes = (VALID_SETS if is_good else INVALID_SETS)[k // 2 % 10]
        before, limits = loop.controller.settings, loop.controller.limits.effort
        wanted = before.replace(**changes)
        outputs = loop.step(settings=wanted)
        assert (outputs.refused == []) == is_good, (changes, outputs.refused)
        assert outputs.fault is None
        after = loop.controller.settings
        if is_good:
            kept = [name for name in after.values if name.replace('.', '_') not in changes]
            assert all(after.values[name] == before.values.get(name) for name in kept)
        else:
            assert after == before
            assert loop.controller.limits.effort is limits


def test_p17_a_payload_that_was_refused_leaves_nothing_behind_and_one_that_was_set_can_be_removed():
    loop = busy()
    refused = loop.step(settings=changed(loop, payload_tip_mass=3.0, payload_tip_inertia=[1.0, 1.0])).refused
    assert refused
    assert loop.controller.dynamics.robot.payloads == ()
    loop.step(settings=changed(loop, payload_tip_mass=3.0))
    assert [payload.mass for payload in loop.controller.dynamics.robot.payloads] == [3.0]
    loop.step(settings=changed(loop, payload_tip_mass=0.0))
    assert loop.controller.dynamics.robot.payloads == ()


def test_p17_the_effort_limit_reads_back_as_it_is_in_force():
    loop = busy()
    loop.session.change(changed(loop, limits_effort=5000.0), loop.time, loop.clock)
    assert loop.settings.limits_effort == loop.controller.limits.effort.tolist() == [100.0, 50.0]
    loop.session.change(changed(loop, ramp_time=0.2), loop.time, loop.clock)
    assert loop.settings.limits_effort == [100.0, 50.0]
    assert Harness(limits_effort=[5000.0, 3.0]).settings.limits_effort == [100.0, 3.0]


def steps(count):
    """Steps of an active Krang with all terms of an arm, after it has settled."""
    hands = {f'wrench_{hand}_convention': 'applied_by_robot' for hand in ('left_hand', 'right_hand')}
    terms = (*TERMS, 'friction', 'joint_limits')
    loop = standing('krang', terms=terms, wheels_locked=True, observer_reaction='none', **hands)
    loop.run(1.0)
    assert loop.outputs.mode is Mode.ACTIVE
    for _ in range(count):
        loop.step()
        yield loop


def test_a_step_keeps_no_memory():
    kept = np.zeros(200)
    tracemalloc.start()
    try:
        for k, _ in enumerate(steps(len(kept))):
            kept[k] = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert np.ptp(kept[100:]) <= 2000  # bytes


@pytest.mark.parametrize('name', ['krang', 'otbot', 'pendubot', 'planar_2r', 'anthropomorphic'])
def test_a_step_uses_2_kilobytes_at_most(name):
    robot = robot_named(name)
    hands = {f'wrench_{hand}_convention': 'applied_by_robot' for hand in robot.config.end_effectors}
    follower = 'rolling_base' if robot.config.rolling else 'computed_torque'
    terms = ('gravity', 'friction', follower, 'observer', *(['wrench'] if hands else []))
    settings = kd.Settings(terms=terms, wheels_locked=True, ramp_time=0.0, **hands)
    # Other threads of the test runner allocate too, but not twice in the same step.
    controllers = [kd.TorqueController(robot, settings) for _ in range(2)]
    inputs, zero, effort = [], np.zeros(robot.nv), robot.gravity_torque(robot.home)
    for k in range(700):
        now = 1000.0 + 1e-3 * k
        state = kd.JointSamples(robot.joint_names, robot.home, zero, effort, now, now)
        wrenches = [WrenchSample(hand, hand, np.ones(6), now) for hand in robot.config.end_effectors]
        inputs.append(kd.Inputs(now, now, [state], wrenches=wrenches, enable=True))
    used, trace = np.zeros((len(inputs), 2)), sys.gettrace()
    sys.settrace(None)  # a measurement of coverage allocates in every frame
    tracemalloc.start()
    try:
        for row, each in zip(used, inputs, strict=True):
            for i, controller in enumerate(controllers):
                before = tracemalloc.get_traced_memory()[0]
                tracemalloc.reset_peak()
                outputs = controller.step(each)
                row[i] = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
        sys.settrace(trace)
    assert outputs.mode is Mode.ACTIVE
    assert used[600:].min(axis=1).max() <= 2048  # bytes, after the window of the measured rate is full


@pytest.mark.parametrize('count', [2000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_steps_cause_no_garbage_collection(count):
    collections = []
    running = steps(count)
    next(running)
    gc.collect()
    gc.callbacks.append(lambda phase, info: collections.append(phase))
    try:
        for _ in running:
            pass
    finally:
        gc.callbacks.pop()
    assert collections == []


# -- states that are missing -----------------------------------------------------------------------------


def driven_along(speed=0.5):
    """An arm that follows a reference exactly, at this speed [rad/s]."""
    loop = Harness(terms=('gravity', 'computed_torque'), ramp_time=0.0, gains_bandwidth=20.0).start()
    times, way = np.linspace(0.0, 2.0, 201), np.array([1.0, -1.0])
    path = loop.q + speed * way * (times - 0.5 * (1 - np.exp(-4 * times)) / 2)[:, None]
    loop.step(trajectory=JointTrajectory(loop.robot.joint_names, times, path))
    for _ in range(1000):
        loop.step()
        loop.q, loop.v = (x.copy() for x in loop.outputs.reference)
    assert loop.fault is None
    assert np.abs(loop.v) == pytest.approx(speed, rel=0.05)
    return loop


def test_without_a_new_state_the_torque_stays_although_the_reference_moves_on():
    loop = driven_along()
    before, reference = loop.outputs.torque.copy(), loop.outputs.reference[0].copy()
    for _ in range(90):
        outputs = loop.step([])
        np.testing.assert_array_equal(outputs.torque, before)
        assert sorted(outputs.terms) == ['computed_torque', 'gravity']
    assert outputs.fault is None
    assert np.abs(outputs.reference[0] - reference).min() > 0.04


def test_a_joint_without_a_new_sample_is_compared_with_the_reference_at_its_time():
    """As without any state, its position stays while the reference moves on."""
    loop = driven_along()
    before = loop.outputs.terms['computed_torque'].copy()
    for _ in range(90):
        part = loop.sample(arrival=loop.time + PERIOD, stamp=loop.clock + PERIOD)
        loop.step([replace(part, velocity=np.array([part.velocity[0], np.nan]))])
        loop.q[0], loop.v[0] = loop.outputs.reference[0][0], loop.outputs.reference[1][0]
    assert loop.fault is None
    assert np.abs(loop.outputs.reference[0] - loop.q)[1] > 0.04
    np.testing.assert_allclose(loop.outputs.terms['computed_torque'], before, atol=0.5)
