"""Changes while a controller runs, made whole or not at all; and states from imu, odometry and drivers."""

from dataclasses import fields, replace

import numpy as np
import pinocchio as pin
import pytest
from closed_loop import Loop
from harness import PERIOD, Harness, robot_named
from scipy.spatial.transform import Rotation

import krang_dynamics as kd
from krang_dynamics.control.controller import Inputs, TorqueController
from krang_dynamics.control.reference.trajectory import JointTrajectory
from krang_dynamics.control.sensors import ImuSample, OdomSample
from krang_dynamics.control.settings import LIVE, Settings, check_change
from krang_dynamics.control.sum import build_terms, retune
from krang_dynamics.control.terms.observer import ObserverSettings
from krang_dynamics.control.terms.wrench import FADE, WrenchSample, WrenchSettings
from krang_dynamics.errors import InputError
from krang_dynamics.robot.payload import Payload
from krang_dynamics.safety.joint_buffer import JointSamples
from krang_dynamics.safety.modes import Mode
from krang_dynamics.simulation.pinocchio_plant import PinocchioPlant

TERMS = ('gravity', 'damping', 'computed_torque', 'wrench', 'observer')
TIP = {'tip': WrenchSettings('applied_by_robot', max_force=50.0)}
PUSH = np.array([8.0, 0.0, -15.0, 0.0, 1.0, 0.0])  # at the tip, in its axes [N, N m]
DUMBBELL = Payload('tip', 2.0, np.array([0.0, 0.0, 0.1]), np.eye(3) * 0.01)
ONE_KIND = 1e-12  # relative, of torques that come by two ways


def busy(**settings):
    """A two-link arm with all that can be tuned, past its ramp."""
    usual = {'terms': TERMS, 'ramp_time': 0.0, 'damping': 1.0, 'wrenches': TIP, 'bandwidth': 5.0}
    return Harness(**{**usual, **settings}).start()


def wrench(loop, push=PUSH):
    return WrenchSample('tip', 'tip', push, loop.time)


def moving(loop, count=20):
    """Steps along a smooth path with a wrench; all that comes out, bit by bit."""
    home, out = loop.robot.home, []
    for _ in range(count):
        phase = 3.0 * loop.time + np.arange(loop.robot.nv)
        loop.q, loop.v = home + 0.02 * np.sin(phase), 0.06 * np.cos(phase)
        outputs = loop.step(wrenches=[wrench(loop)])
        assert outputs.refused == []
        out.append(np.concatenate([outputs.torque, outputs.command, *outputs.terms.values()]))
    return np.array(out)


def changed(loop, **changes):
    """The settings of a controller, but for some."""
    return replace(loop.controller.settings, **changes)


def refusal(loop, **inputs):
    """Why a change was refused, in a step that is as any other."""
    outputs = loop.step(**inputs)
    assert outputs.fault is None
    (reason,) = outputs.refused
    return reason


# -- what is a change ----------------------------------------------------------------------------------


@pytest.mark.parametrize('name', ['gravity', 'payloads', 'limits', 'settings'])
def test_each_of_the_four_is_a_change_and_an_empty_load_is_one_too(name):
    empty = {
        'gravity': np.zeros(3),
        'payloads': [],
        'limits': {},
        'settings': Settings(('gravity',)),
    }
    assert Inputs(0.0, 0.0, **{name: empty[name]}).has_change


def test_other_inputs_are_no_change():
    assert not Inputs(0.0, 0.0).has_change
    assert not Inputs(0.0, 0.0, enable=True, clear_fault=True, deadman=True, other_publisher=True).has_change


# -- what takes effect ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('gains', 'kp', 'kd'),
    [
        ({'bandwidth': 12.0}, [144.0, 144.0], [24.0, 24.0]),
        ({'damping_ratio': 0.5}, [25.0, 25.0], [5.0, 5.0]),
        ({'kp': np.array([9.0, 16.0]), 'kd': np.array([3.0, 4.0])}, [9.0, 16.0], [3.0, 4.0]),
    ],
)
def test_new_gains_act_from_the_step_that_brings_them(gains, kp, kd):
    loop = Harness(terms=('computed_torque',), gains_bandwidth=5.0).start()
    held = loop.q
    loop.q, loop.v = held + np.array([0.02, -0.03]), np.array([0.1, 0.2])
    outputs = loop.step(settings=changed(loop, **gains))
    assert outputs.refused == []
    acceleration = kp * (held - loop.q) - np.array(kd) * loop.v
    expected = loop.robot.inverse_dynamics(loop.q, loop.v, acceleration)
    np.testing.assert_allclose(outputs.terms['computed_torque'], expected, rtol=ONE_KIND)


def test_new_damping_acts_from_the_step_that_brings_it():
    loop = Harness(terms=('gravity', 'damping'), damping=1.0).start()
    loop.v = np.array([0.5, -0.25])
    np.testing.assert_array_equal(loop.step().terms['damping'], [-0.5, 0.25])
    outputs = loop.step(settings=changed(loop, damping=np.array([4.0, 8.0])))
    np.testing.assert_array_equal(outputs.terms['damping'], [-2.0, 2.0])


def test_a_stiffer_controller_follows_as_its_new_gains_say():
    """The error obeys e'' + 2 w e' + w^2 e = 0 before and after the change, in closed loop."""
    robot = robot_named('planar_2r')
    settings = Settings(('computed_torque',), gains_bandwidth=3.0, ramp_time=0.0)
    plant = PinocchioPlant(robot, friction=False)
    plant.reset(robot.home, np.zeros(2))
    loop = Loop(TorqueController(robot, settings), plant)
    loop.effort = robot.gravity_torque(robot.home)
    loop.step(enable=True)
    for bandwidth in (3.0, 9.0):
        step = 0.01 * np.array([1.0, -1.0])
        goal = loop.plant.q + step
        there = JointTrajectory(robot.joint_names, np.zeros(1), goal[None])
        begin = len(loop.history)
        loop.step(trajectory=there, settings=replace(settings, gains_bandwidth=bandwidth))
        assert loop.outputs.refused == []
        loop.run(5 / bandwidth)
        times, path = (x[begin:] for x in loop.path())
        decay = bandwidth * (times - times[0])
        expected = goal - np.outer((1 + decay) * np.exp(-decay), step)
        assert np.abs(path - expected).max() <= 0.03 * 0.01


def pushed_observer(gain):
    """A standing arm whose motors push with a wrench: something must push back."""
    loop = Harness(
        terms=('gravity', 'wrench', 'observer'), wrenches=TIP, observer=ObserverSettings(gain, collision=1e3)
    ).start()
    push = loop.robot.wrench_to_torque(loop.q, {'tip': PUSH}, reference='local')
    return loop, loop.controller.terms[2], -push


def estimates(loop, observer, duration):
    out = []
    for _ in range(round(duration / PERIOD)):
        loop.step(wrenches=[wrench(loop)])
        out.append(observer.external)
    return np.array(out)


def test_another_gain_of_the_observer_goes_on_from_the_present_estimate():
    loop, observer, external = pushed_observer(gain=4.0)
    estimates(loop, observer, 0.3)
    before = observer.external.copy()
    assert (np.abs(before) < 0.8 * np.abs(external)).all()
    loop.step(wrenches=[wrench(loop)], settings=changed(loop, observer=ObserverSettings(40.0, collision=1e3)))
    np.testing.assert_allclose(observer.external, before, rtol=1e-9)
    path = estimates(loop, observer, 0.1)
    decay = np.exp(-40.0 * PERIOD * np.arange(1, len(path) + 1))
    expected = external + np.outer(decay, before - external)
    np.testing.assert_allclose(path, expected, atol=0.05 * np.abs(external).max())


def test_thresholds_and_reaction_of_the_observer_change():
    loop, observer, external = pushed_observer(gain=20.0)
    estimates(loop, observer, 0.5)
    largest = np.abs(external).max()
    assert observer.event() == 'contact'
    loop.step(wrenches=[wrench(loop)], settings=changed(loop, observer=ObserverSettings(20.0, 2 * largest, 1e3)))
    assert observer.event() == 'none'
    stop = ObserverSettings(20.0, collision=0.5 * largest, reaction='stop')
    loop.step(wrenches=[wrench(loop)], settings=changed(loop, observer=stop))
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


@pytest.mark.parametrize(('before', 'after', 'faults'), [(None, 0.05, True), (0.05, None, False)])
def test_another_reference_timeout_counts_for_a_set_point_that_is_followed(before, after, faults):
    loop = Harness(terms=('computed_torque',), reference_timeout=before).start()
    loop.step(trajectory=JointTrajectory(loop.robot.joint_names, np.zeros(1), loop.q[None]))
    loop.step(settings=changed(loop, reference_timeout=after))
    loop.run(0.1)
    assert (loop.outputs.fault.kind == 'reference') if faults else (loop.outputs.fault is None)


def test_another_wrench_timeout_counts():
    silent = {}
    for timeout in (0.05, 0.5):
        loop = Harness(terms=('gravity', 'wrench'), wrenches=TIP, wrench_timeout=0.2).start()
        loop.step(wrenches=[wrench(loop)])
        loop.step(settings=changed(loop, wrench_timeout=timeout))
        silent[timeout] = loop.run(0.05 + FADE + 0.01)[-1].terms['wrench']
    assert not silent[0.05].any()
    push = robot_named('planar_2r').wrench_to_torque(loop.q, {'tip': PUSH}, reference='local')
    np.testing.assert_allclose(silent[0.5], push, rtol=ONE_KIND)


def test_another_largest_force_counts_for_the_next_wrench():
    loop = Harness(terms=('gravity', 'wrench'), wrenches=TIP).start()
    before = loop.step(wrenches=[wrench(loop)]).terms['wrench']
    force = np.linalg.norm(PUSH[:3])
    half = {'tip': WrenchSettings('applied_by_robot', max_force=force / 2, max_moment=0.0)}
    loop.step(settings=changed(loop, wrenches=half))
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


def test_another_ramp_time_counts_for_the_ramp_under_way_and_an_active_arm_is_not_let_down():
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


def test_settings_that_go_there_and_back_leave_no_trace():
    loop, other = busy(), busy()
    usual = loop.controller.settings
    stiff = changed(loop, gains_bandwidth=20.0, damping=7.0, wrench_timeout=0.4, ramp_time=0.7, state_timeout=0.2)
    for settings in (stiff, usual):
        assert loop.step(settings=settings).refused == []
        other.step()
    moving(loop, 200), moving(other, 200)  # until the rate limit has forgotten the stiffer torque
    np.testing.assert_array_equal(moving(loop), moving(other))


def test_the_same_settings_again_change_no_bit():
    loop, other = busy(), busy()
    for _ in range(5):
        assert loop.step(settings=changed(loop)).refused == []
        other.step()
    np.testing.assert_array_equal(moving(loop), moving(other))


# -- whole, or not at all ------------------------------------------------------------------------------

GOOD = {
    'gravity': np.array([1.0, 0.0, -9.0]),
    'payloads': [DUMBBELL],
    'limits': {'effort': np.array([30.0, 20.0]), 'velocity': np.array([3.0, 3.0])},
    'settings': {'bandwidth': 9.0, 'damping': 5.0, 'ramp_time': 0.7, 'state_timeout': 0.5},
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
        {'effort': None},
        {'courage': [1.0, 1.0]},
    ],
    'settings': [
        {'bandwidth': -1.0},
        {'bandwidth': np.nan},
        {'damping_ratio': np.inf},
        {'kp': 1.0},
        {'kp': [1.0, 2.0, 3.0], 'kd': 1.0},
        {'damping': -1.0},
        {'damping': [1.0, 1.0, 1.0]},
        {'damping': 'much'},
        {'wrenches': {}},
        {'wrenches': {'tip': WrenchSettings('applied_on_robot')}},
        {'wrenches': {'nowhere': WrenchSettings('applied_by_robot')}},
        {'wrenches': {**TIP, 'link_1': WrenchSettings('applied_by_robot')}},
        {'wrenches': {'tip': WrenchSettings('applied_by_robot', max_force=-1.0)}},
        {'wrenches': {'tip': WrenchSettings('applied_by_robot', max_moment=np.nan)}},
        {'terms': ('gravity',)},
    ],
}
CASES = [(name, value) for name, values in BAD.items() for value in values]


@pytest.mark.parametrize(('name', 'wrong'), CASES, ids=[f'{name}-{i}' for i, (name, _) in enumerate(CASES)])
def test_one_wrong_part_leaves_everything_as_it_was_to_the_bit(name, wrong):
    loop, other = busy(), busy()
    moving(loop), moving(other)
    mixed = {**GOOD, name: {**GOOD['settings'], **wrong} if name == 'settings' else wrong}
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


def test_a_stop_rate_of_another_length_is_refused_and_no_fault():
    loop = Harness(stop_rate=np.array([50.0, 50.0])).start()
    assert 'stop_rate' in refusal(loop, settings=changed(loop, stop_rate=np.ones(3)))


OTHERS = {
    'terms': ('gravity', 'damping'),
    'hardware_compensates_gravity': True,
    'wheels_locked': True,
    'command_unit': 'current',
    'command_joints': ('joint_2', 'joint_1'),
    'stop_policy': 'hold',
    'stop_time': 1.0,
    'stop_blind_time': 1.0,
    'stop_rate': 3.0,
    'missing_velocity': 'zero',
    'deadman_required': True,
}


def test_every_setting_is_live_or_is_not():
    assert {f.name for f in fields(Settings)} == {*LIVE, *OTHERS}
    assert not {*LIVE} & {*OTHERS}


@pytest.mark.parametrize('name', OTHERS)
def test_what_is_read_at_configure_cannot_change(name):
    loop, other = busy(), busy()
    assert name in refusal(loop, settings=changed(loop, **{name: OTHERS[name]}))
    other.step()
    np.testing.assert_array_equal(moving(loop), moving(other))
    with pytest.raises(InputError, match=f'{name} cannot change'):
        check_change(Settings(('gravity',)), Settings(**{'terms': ('gravity',), name: OTHERS[name]}))


def test_the_same_stop_rates_in_another_array_are_no_change():
    old = Settings(('gravity',), stop_rate=np.array([3.0, 4.0]))
    check_change(old, Settings(('gravity',), stop_rate=np.array([3.0, 4.0])))
    with pytest.raises(InputError, match='stop_rate'):
        check_change(old, Settings(('gravity',), stop_rate=np.array([3.0, 5.0])))
    with pytest.raises(InputError, match='stop_rate'):
        check_change(old, Settings(('gravity',)))


def test_terms_are_tuned_together_or_not_at_all():
    robot = robot_named('planar_2r')
    before = Settings(('damping', 'computed_torque', 'observer'), damping=1.0, gains_bandwidth=5.0)
    terms = build_terms(robot, before)
    with pytest.raises(InputError, match='bandwidth'):
        retune(terms, robot, replace(before, damping=2.0, gains_bandwidth=-1.0, observer=ObserverSettings(9.0)))
    np.testing.assert_array_equal(terms[0].damping, [1.0, 1.0])
    assert terms[2].settings.gain == 25.0
    retune(terms, robot, replace(before, damping=2.0, gains_bandwidth=3.0, observer=ObserverSettings(9.0)))
    np.testing.assert_array_equal(terms[0].damping, [2.0, 2.0])
    np.testing.assert_array_equal(terms[1].kp, [9.0, 9.0])
    np.testing.assert_array_equal(terms[1].kd, [6.0, 6.0])
    assert terms[2].settings.gain == 9.0


# -- a wrench in another frame -------------------------------------------------------------------------


@pytest.mark.parametrize('turn', [(0, 0, 0), (0.3, -1.1, 2.2), (np.pi, 0, 0)])
@pytest.mark.parametrize('shift', [(0, 0, 0), (0.4, -0.2, 1.5)])
def test_a_wrench_that_is_moved_is_the_same_wrench(turn, shift):
    """Against Pinocchio's action of a pose on a force."""
    pose = pin.SE3(pin.rpy.rpyToMatrix(*turn), np.array(shift, dtype=float))
    sample = WrenchSample('tip', 'sensor', PUSH.copy(), 7.0)
    moved = sample.moved('world', pose.rotation, pose.translation)
    np.testing.assert_allclose(moved.wrench, pose.act(pin.Force(PUSH)).vector, atol=1e-12)
    assert (moved.frame, moved.frame_id, moved.arrival) == ('tip', 'world', 7.0)
    assert (sample.frame_id, sample.wrench.tolist()) == ('sensor', PUSH.tolist())


def test_a_moved_wrench_gives_the_same_torque():
    loop = Harness(terms=('gravity', 'wrench'), wrenches=TIP).start()
    pose = loop.robot.frame_pose(loop.q, 'tip')
    at_tip = loop.step(wrenches=[wrench(loop)]).terms['wrench']
    moved = wrench(loop).moved('world', pose[:3, :3], pose[:3, 3])
    np.testing.assert_allclose(loop.step(wrenches=[moved]).terms['wrench'], at_tip, rtol=1e-9)


# -- inertial unit -------------------------------------------------------------------------------------


def krang_imu(loop, q, v, **changes):
    """What the unit in Krang's base measures: x forward and z up when base_pitch is 0."""
    imu = loop.robot.config.imu
    link = Rotation.from_matrix(loop.robot.frame_pose(q, imu.link)[:3, :3])
    mount = Rotation.from_euler('xyz', imu.mount_rpy)
    spin = mount.inv().apply(loop.robot.jacobian(q, imu.link, 'local')[3:] @ v)
    sample = ImuSample((link * mount).as_quat(), spin, loop.clock, loop.time)
    return replace(sample, **changes)


def encoders(loop, q, v):
    """All joints of Krang but base_pitch."""
    names = loop.robot.joint_names[1:]
    return JointSamples(names, q[1:], v[1:], np.zeros(16), loop.clock, loop.time)


def test_krangs_base_is_known_from_its_inertial_unit():
    loop = Harness('krang', ramp_time=0.0)
    q, v = loop.robot.home + 0.05, np.full(17, 0.01)
    loop.step(samples=[encoders(loop, q, v)], enable=True)
    assert "'base_pitch' was never received" in loop.outputs.refused[0]
    loop.step(samples=[encoders(loop, q, v)], imu=[krang_imu(loop, q, v)], enable=True)
    assert loop.outputs.refused == []
    loop.step(samples=[encoders(loop, q, v)], imu=[krang_imu(loop, q, v)])
    expected = loop.robot.gravity_torque(q)
    np.testing.assert_allclose(loop.outputs.terms['gravity'], expected, atol=1e-9 * np.abs(expected).max())


def test_a_unit_that_falls_silent_is_a_stale_joint():
    loop = Harness('krang', ramp_time=0.0)
    q, v = loop.robot.home, np.zeros(17)
    loop.step(samples=[encoders(loop, q, v)], imu=[krang_imu(loop, q, v)], enable=True)
    for _ in range(150):
        loop.step(samples=[encoders(loop, q, v)])
    assert loop.outputs.fault.kind == 'state'
    assert 'base_pitch' in loop.outputs.fault.reason


@pytest.mark.parametrize('quaternion', [[0, 0, 0, 0], [np.nan, 0, 0, 1], [0, 0, 0, 5], [np.inf, 0, 0, 0]])
def test_an_orientation_that_is_none_is_refused_and_the_step_goes_on(quaternion):
    loop = Harness('krang', ramp_time=0.0)
    q, v = loop.robot.home, np.zeros(17)
    good = krang_imu(loop, q, v)
    loop.step(samples=[encoders(loop, q, v)], imu=[good], enable=True)
    bad = krang_imu(loop, q, v, orientation=np.array(quaternion, dtype=float))
    loop.step(samples=[encoders(loop, q, v)], imu=[bad])
    assert 'imu: orientation' in loop.outputs.refused[0]
    assert (loop.outputs.fault, loop.outputs.mode) == (None, Mode.ACTIVE)


def test_a_unit_that_feeds_gravity_turns_the_torque():
    robot = kd.load_robot(
        'planar_2r', imu={'link': 'world', 'mount_rpy': [0.0, 0.0, 0.0], 'feeds': 'gravity'}
    )
    controller = TorqueController(robot, Settings(('gravity',), ramp_time=0.0))
    tilt = Rotation.from_euler('xyz', [0.2, -0.4, 0.9])
    unit = ImuSample(tilt.as_quat(), np.zeros(3), 10.0, 10.0)
    zero = np.zeros(2)
    state = JointSamples(robot.joint_names, robot.home, zero, zero, 10.0, 10.0)
    outputs = controller.step(Inputs(10.0, 10.0, [state], imu=[unit], enable=True))
    assert outputs.refused == []
    leaning = tilt.inv().apply([0.0, 0.0, -9.81])
    expected = robot.with_gravity(leaning).gravity_torque(robot.home)
    np.testing.assert_allclose(outputs.terms['gravity'], expected, rtol=1e-9)


@pytest.mark.parametrize('kind', ['imu', 'odom'])
def test_what_the_robot_file_does_not_speak_of_is_refused(kind):
    loop = Harness().start()
    unit = ImuSample(np.array([0, 0, 0, 1.0]), np.zeros(3), loop.clock, loop.time)
    pose = OdomSample(0.0, 0.0, np.array([0, 0, 0, 1.0]), np.zeros(3), np.zeros(3), loop.clock, loop.time)
    assert refusal(loop, **{kind: [unit if kind == 'imu' else pose]}).startswith(f'{kind}: ')


# -- odometry ------------------------------------------------------------------------------------------


def test_otbot_is_where_odometry_sees_its_chassis():
    loop = Harness('otbot', terms=('rolling_base',), ramp_time=0.0)
    robot = loop.robot
    wheels = ('right_wheel', 'left_wheel', 'pivot')
    q = np.array([0.3, -0.2, 0.7, 1.0, 2.0, 0.4])
    theta = q[2] - q[5]  # alpha = theta + pivot
    place = robot.frame_pose(q, 'chassis')[:2, 3]
    pose = OdomSample(
        *place,
        Rotation.from_euler('z', theta).as_quat(),
        np.zeros(3),
        np.zeros(3),
        loop.clock,
        loop.time,
    )
    state = JointSamples(wheels, q[3:], np.zeros(3), np.zeros(3), loop.clock, loop.time)
    loop.step(samples=[state], odom=[pose])
    assert loop.outputs.refused == []
    loop.step(samples=[state], odom=[pose], enable=True)
    assert loop.outputs.refused == []
    np.testing.assert_allclose(loop.controller._buffer.q, q, atol=1e-12)


# -- drivers' names ------------------------------------------------------------------------------------

TWINS = [
    {'name': 'm1', 'joint': 'joint_1', 'ratio': 30.0, 'share': 0.75, 'offset': 0.25},
    {'name': 'm2', 'joint': 'joint_2', 'ratio': 4.0, 'sign': -1, 'offset': -0.5},
    {'name': 'm3', 'joint': 'joint_1', 'ratio': 10.0, 'share': 0.25, 'sign': -1},
]


def test_states_by_drivers_names_lead_to_commands_by_drivers_names():
    robot = kd.load_robot('planar_2r', actuators=TWINS)
    settings = Settings(('gravity',), ramp_time=0.0, command_joints=('m3', 'joint_2', 'm1'))
    controller = TorqueController(robot, settings)
    controller.limits.set(robot, effort_rate=[1e7, 1e7])
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
