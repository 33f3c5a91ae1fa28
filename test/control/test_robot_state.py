"""The robot's state: joints from encoders, inertial unit and odometry; dynamics and the torque of a stop."""

from dataclasses import replace

import numpy as np
import pytest
from harness import PERIOD, Harness, robot_named
from scipy.spatial.transform import Rotation

import krang_dynamics as kd
from krang_dynamics.control.controller import Inputs, TorqueController
from krang_dynamics.control.drivers import Drivers
from krang_dynamics.control.robot_state import RobotState
from krang_dynamics.control.sensors import ImuSample, OdomSample
from krang_dynamics.control.settings import Settings
from krang_dynamics.errors import InputError
from krang_dynamics.safety.joint_buffer import JointSamples
from krang_dynamics.safety.limits import Limits
from krang_dynamics.safety.modes import Mode

PLANAR = robot_named('planar_2r')
UP = np.array([0.0, 0.0, 0.0, 1.0])  # a level inertial unit, x y z w
STILL = np.zeros(3)  # [rad/s]


def steps(loop, count, dt=PERIOD, **inputs):
    return [loop.step(dt=dt, **inputs) for _ in range(count)]


def refusal(loop, **inputs):
    """Why enable is refused."""
    outputs = loop.step(enable=True, **inputs)
    assert outputs.mode is Mode.DISABLED
    return outputs.refused[0]


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


def test_a_unit_that_stops_publishing_is_a_stale_joint():
    loop = Harness('krang', ramp_time=0.0)
    q, v = loop.robot.home, np.zeros(17)
    loop.step(samples=[encoders(loop, q, v)], imu=[krang_imu(loop, q, v)], enable=True)
    for _ in range(150):
        loop.step(samples=[encoders(loop, q, v)])
    assert loop.outputs.fault.kind == 'state'
    assert 'base_pitch' in loop.outputs.fault.reason


@pytest.mark.parametrize('quaternion', [[0, 0, 0, 0], [np.nan, 0, 0, 1], [0, 0, 0, 5], [np.inf, 0, 0, 0]])
def test_an_invalid_orientation_is_refused_and_the_step_continues(quaternion):
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
    loop = Harness(robot, ramp_time=0.0)
    tilt = Rotation.from_euler('xyz', [0.2, -0.4, 0.9])
    unit = ImuSample(tilt.as_quat(), np.zeros(3), loop.clock, loop.time)
    outputs = loop.step(imu=[unit], enable=True)
    assert outputs.refused == []
    leaning = tilt.inv().apply([0.0, 0.0, -9.81])
    expected = robot.with_gravity(leaning).gravity_torque(robot.home)
    np.testing.assert_allclose(outputs.terms['gravity'], expected, rtol=1e-9)


@pytest.mark.parametrize('kind', ['imu', 'odom'])
def test_a_sensor_that_the_robot_file_does_not_have_is_refused(kind):
    loop = Harness().start()
    unit = ImuSample(np.array([0, 0, 0, 1.0]), np.zeros(3), loop.clock, loop.time)
    pose = OdomSample(0.0, 0.0, np.array([0, 0, 0, 1.0]), np.zeros(3), np.zeros(3), loop.clock, loop.time)
    outputs = loop.step(**{kind: [unit if kind == 'imu' else pose]})
    assert outputs.fault is None
    assert outputs.refused[0].startswith(f'{kind}: ')


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
    np.testing.assert_allclose(loop.controller.state.buffer.q, q, atol=1e-12)


# -- dynamics and stop torque --------------------------------------------------------------------------


def robot_state(**options):
    robot = robot_named('planar_2r')
    state = RobotState(robot, Drivers(robot, ('joint_1',)), 'error', **options)
    sample = JointSamples(robot.joint_names, robot.home, np.array([0.1, 0.2]), np.zeros(2), 10.0, 10.0)
    refused = []
    assert state.take(Inputs(10.0, 10.0, [sample]), refused) == np.inf
    assert refused == []
    state.dynamics.update(state.buffer.q, state.buffer.v)
    return robot, state


def test_stamps_increase_by_the_time_between_two_states():
    robot, state = robot_state()
    later = JointSamples(robot.joint_names, robot.home, np.zeros(2), np.zeros(2), 10.25, 10.25)
    assert state.take(Inputs(10.25, 10.25, [later]), []) == pytest.approx(0.25)
    assert state.take(Inputs(10.3, 10.3), []) is None


@pytest.mark.parametrize('by_hardware', [False, True])
def test_the_stop_state_is_that_of_the_state_and_of_driven_joints(by_hardware):
    robot, state = robot_state(hardware_compensates_gravity=by_hardware)
    limits = Limits.of(robot)
    stop = state.stop_state(limits)
    assert stop.effort is limits.effort
    assert stop.rate is limits.stop_rate
    gravity = robot.gravity_torque(robot.home)
    np.testing.assert_allclose(stop.gravity, 0 * gravity if by_hardware else gravity, rtol=1e-12)
    np.testing.assert_allclose(stop.A, robot.mass_matrix(robot.home), rtol=1e-12)
    assert stop.v.tolist() == [0.1, 0.2]
    assert stop.driven.tolist() == [1.0, 0.0]


def test_another_payload_keeps_gravity():
    robot, state = robot_state()
    gravity = np.array([1.0, 0.0, -5.0])
    state.dynamics.set_gravity(gravity)
    loaded = robot.with_payload('tip', 2.0, [0.0, 0.0, 0.1], np.zeros((3, 3)))
    state.carry(loaded)
    state.dynamics.update(state.buffer.q, state.buffer.v)
    expected = loaded.with_gravity(gravity).gravity_torque(robot.home)
    np.testing.assert_allclose(state.dynamics.gravity, expected, rtol=1e-12)


# -- rate of the states --------------------------------------------------------------------------------


def test_enable_is_refused_until_the_rate_is_known():
    loop = Harness(limits_state_rate=50.0)
    assert 'only 1 states so far' in refusal(loop)
    loop.run(0.11)
    assert loop.step(enable=True).mode is Mode.RAMPING


def test_a_controller_without_a_session_can_be_enabled_with_its_first_state_and_checks_the_rate_later():
    controller = TorqueController(PLANAR, Settings())
    for k in range(20):
        now = 10.0 + 0.05 * k
        sample = kd.JointSamples(PLANAR.joint_names, PLANAR.home, np.zeros(2), np.zeros(2), now, now)
        outputs = controller.step(kd.Inputs(now, now, [sample], enable=True if k == 0 else None))
        assert k or outputs.mode is Mode.RAMPING
    assert outputs.fault.kind == 'state'


@pytest.mark.parametrize(
    ('hertz', 'is_enough'), [(1000, True), (50, True), (46, True), (44, False), (12, False)]
)
def test_enable_needs_the_rate_within_ten_percent(hertz, is_enough):
    loop = Harness(limits_state_rate=50.0, state_timeout=0.2)
    steps(loop, hertz, 1 / hertz)
    outputs = loop.step(dt=1 / hertz, enable=True)
    assert (outputs.refused == []) == is_enough
    assert is_enough or f'{hertz:.1f} Hz, limits.state_rate is 50 Hz' in outputs.refused[0]


def test_a_controller_whose_states_become_slow_faults():
    loop = Harness(limits_state_rate=50.0)
    loop.run(0.2)
    loop.start()
    steps(loop, 100, 0.02)
    assert loop.fault is None
    steps(loop, 30, 0.03)
    assert loop.fault == 'state'
    assert 'limits.state_rate' in loop.outputs.fault.reason


def test_the_lowest_rate_can_change_while_driving():
    loop = Harness(limits_state_rate=50.0)
    steps(loop, 60, 0.01)
    loop.step(dt=0.01, enable=True)
    assert steps(loop, 60, 0.01)[-1].fault is None
    loop.step(dt=0.01, limits={'state_rate': 200.0})
    loop.step(dt=0.01)
    assert loop.fault == 'state'


# -- P18: jumps ----------------------------------------------------------------------------------------


@pytest.mark.parametrize('jump', [1.0, -0.3, 0.05])
@pytest.mark.parametrize('velocity', ['error', 'differentiate'])
def test_p18_a_position_that_contradicts_its_velocity_is_a_fault(jump, velocity):
    loop = Harness(missing_velocity=velocity).start()
    loop.q = loop.q + np.array([0.0, jump])
    loop.step()
    assert loop.fault == 'state'
    assert "'joint_2' jumped" in loop.outputs.fault.reason


@pytest.mark.parametrize('hertz', [1000, 250, 50])
def test_p18_a_joint_that_moves_while_its_velocity_reads_zero_is_a_fault(hertz):
    """Each step is within the noise; a stop with this velocity would not brake."""
    loop = Harness().start()
    for _ in range(round(0.3 * hertz)):
        loop.q = loop.q + np.array([0.0, 0.6 / hertz])
        loop.step(dt=1 / hertz)
    assert loop.fault == 'state'
    assert "'joint_2' moved" in loop.outputs.fault.reason


@pytest.mark.parametrize('hertz', [1000, 250, 50])
@pytest.mark.parametrize(('speed', 'within'), [(0.06, 0.25), (-0.15, 0.15), (0.45, 0.1)])
def test_p18_a_sensor_that_freezes_in_motion_is_a_fault(hertz, speed, within):
    """Feedback would accelerate the joint until the following error is too large."""
    loop = Harness().start()
    loop.v = np.array([0.0, speed])
    for _ in range(round(0.3 * hertz)):
        loop.q = loop.q + loop.v / hertz
        loop.step(dt=1 / hertz)
    assert loop.fault is None
    for _ in range(round((within + 0.02) * hertz)):
        loop.step(dt=1 / hertz)
    assert loop.fault == 'state'
    assert "'joint_2' has repeated its position" in loop.outputs.fault.reason


def test_p18_a_robot_at_rest_and_coarse_encoders_have_not_frozen():
    """Drivers may hold a velocity from one step of the encoder to the next, or have an offset at rest."""
    loop = Harness().start()
    loop.v = np.array([0.04, 0.0])
    loop.run(1.0)
    begin = loop.q.copy()
    for k in range(1000):
        loop.v = np.array([0.04, 0.08])
        loop.q = begin + np.array([0.0, 5e-3 * np.floor(0.08 * k * PERIOD / 5e-3)])
        loop.step()
    assert loop.fault is None


@pytest.mark.parametrize('lag', [0.01, 0.05])
def test_p18_a_velocity_that_lags_behind_is_no_drift(lag):
    """Drivers filter their velocities."""
    loop = Harness(limits_velocity=8.0).start()
    begin, dt = loop.q.copy(), 2e-3
    for k in range(1000):
        t, w = k * dt, 2 * np.pi
        loop.q = begin + np.array([0.5, 0.5]) * (1 - np.cos(w * t))
        loop.v = np.full(2, 0.5 * w * np.sin(w * (t - lag)))
        loop.step(dt=dt)
    assert loop.fault is None


def test_p18_a_long_gap_is_judged_by_its_own_length():
    """A joint that turned back while no state arrived."""
    loop = Harness(state_timeout=0.8).start()
    loop.v = np.array([0.0, 0.5])
    loop.step()
    loop.step(dt=0.7)
    assert loop.fault is None


def test_p18_a_jump_is_noticed_when_the_clock_is_set_forward_with_it():
    loop = Harness().start()
    loop.q = loop.q + np.array([0.0, 0.3])
    loop.step([loop.sample(stamp=loop.clock + 2.0, arrival=loop.time + PERIOD)], clock=loop.clock + 2.0)
    assert loop.fault == 'state'
    assert "'joint_2' jumped" in loop.outputs.fault.reason


def test_a_jump_is_doubted_until_the_next_enable():
    loop = Harness().start()
    loop.q = loop.q + np.array([0.0, 0.3])
    loop.step()
    jumps = loop.controller.state.jumps
    assert loop.fault == 'state'
    assert jumps.is_doubted
    loop.stop(longest=60.0)
    loop.step(clear_fault=True)
    assert jumps.is_doubted
    loop.step(enable=True)
    assert not jumps.is_doubted


@pytest.mark.parametrize('moved', [0.0, 1.0])
def test_a_position_that_has_changed_too_far_while_no_state_arrived_is_doubted(moved):
    """A driver that has lost its reference."""
    loop = Harness().start()
    for _ in range(round(0.2 / PERIOD)):
        loop.step([])
    loop.q = loop.q + np.array([0.0, moved])
    loop.step()
    assert loop.controller.state.jumps.is_doubted == (moved > 0)


@pytest.mark.parametrize('gap', [0.0, 0.2])
@pytest.mark.parametrize('policy', ['hold', 'lower'])
def test_a_stop_supports_the_pose_from_before_a_jump(policy, gap):
    """The weight at the position that a shifted sensor shows has the other sign.

    After a gap, `lower` supports the share that is left of it.
    """
    loop = Harness(stop_policy=policy, stop_time=60.0).start()
    weight = loop.robot.gravity_torque(loop.q)
    for _ in range(round(gap / PERIOD)):
        loop.step([])
    loop.q = loop.q + np.array([2.5, 0.0])
    for _ in range(round(0.5 / PERIOD)):
        loop.step()
    assert loop.fault == 'state'
    share = loop.outputs.torque / weight
    assert 0.75 < share.min() <= share.max() < 1.001
    loop.q = loop.q - np.array([2.5, 0.0])  # a loose contact
    loop.run(0.01)
    np.testing.assert_allclose(loop.outputs.torque / weight, share, rtol=0.01)


def test_a_sensor_that_returns_after_it_froze_has_not_shifted():
    loop = Harness().start()
    loop.v = np.array([0.0, 0.5])
    for _ in range(100):
        loop.q = loop.q + PERIOD * loop.v
        loop.step()
    for _ in range(100):
        loop.step()
    assert 'its sensor has frozen' in loop.outputs.fault.reason
    loop.q = loop.q + np.array([0.0, 0.3])
    loop.step()
    assert loop.controller.state.jumps.is_doubted
    np.testing.assert_array_equal(loop.controller.state.q, loop.q)


def test_a_position_that_jumps_without_torque_in_flight_is_the_pose():
    """A driver that was restarted."""
    loop = Harness(ramp_time=0.0)
    loop.run(0.1)
    loop.q = loop.q + np.array([0.0, 0.8])
    loop.step()
    loop.step(enable=True)
    loop.run(1.0)
    np.testing.assert_allclose(loop.outputs.torque, loop.robot.gravity_torque(loop.q), rtol=1e-12)


def part_of(sample, i, stamp):
    """The state of one joint, with a stamp of its own."""
    fields = {name: getattr(sample, name)[i : i + 1] for name in ('names', 'position', 'velocity', 'effort')}
    return replace(sample, **fields, stamp=stamp)


def test_the_age_of_the_states_is_that_of_the_oldest_joint():
    loop = Harness().start()
    ages = 0.08, 0.001  # [s]
    for _ in range(round(0.2 / PERIOD)):
        whole = loop.sample(arrival=loop.time + PERIOD)
        loop.step([part_of(whole, i, loop.clock + PERIOD - age) for i, age in enumerate(ages)])
    assert loop.controller.state.buffer.age == pytest.approx(0.08)
    assert loop.controller.state.stop_state(loop.controller.limits).age == pytest.approx(0.08)


def test_p18_a_clock_that_is_set_forward_is_no_jump():
    loop = Harness().start()
    loop.step([loop.sample(stamp=loop.clock + 2.0, arrival=loop.time + PERIOD)], clock=loop.clock + 2.0)
    assert loop.fault is None


def test_p18_without_velocities_jumps_are_not_detected():
    loop = Harness(missing_velocity='zero').start()
    loop.q = loop.q + np.array([0.0, 0.1])
    loop.step()
    assert loop.fault is None


@pytest.mark.parametrize('hertz', [1000, 250, 50])
def test_p18_noise_and_fast_motion_are_no_jump(hertz):
    random = np.random.default_rng(1)
    loop = Harness(limits_velocity=8.0)
    q, dt = loop.q.copy(), 1 / hertz
    loop.step(enable=True)
    for k in range(2 * hertz):
        t = k * dt
        v = np.array([5.0, -3.0]) * np.sin(2 * np.pi * 2 * t)
        q = q + v * dt
        loop.q = q + random.normal(0, 1e-3, 2)
        loop.v = v + random.normal(0, 0.1, 2)
        loop.step(dt=dt)
    assert loop.fault is None


def test_p18_a_continuous_joint_may_pass_half_a_turn():
    loop = Harness('otbot', terms=('damping',))
    loop.q = loop.q + np.array([0, 0, 0, 0, 0, np.pi - 1e-3])
    loop.start()
    loop.v = np.array([0, 0, 0, 0, 0, 2.0])
    loop.step()
    loop.q = loop.q - np.array([0, 0, 0, 0, 0, 2 * np.pi - 2e-3])
    loop.step()
    assert loop.fault is None


def test_p18_a_cleared_fault_starts_from_the_new_position():
    loop = Harness('pendubot', terms=('damping',)).start()
    loop.q = loop.q + np.array([1.0, 0.0])
    loop.step()
    assert loop.fault == 'state'
    loop.run(1.0)
    loop.step(clear_fault=True)
    assert loop.start().fault is None


# -- limits --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(('outside', 'v', 'fault'), [
    (4.4e-12, 0.0, None), (9e-4, 0.1, None), (2e-3, 0.0, 'position'), (2e-3, 0.1, 'position'),
    (2e-3, -0.1, None), (0.2, -0.1, None),
])  # fmt: skip
@pytest.mark.parametrize('side', [1, -1])
def test_a_limit_has_the_tolerance_of_encoders_and_may_be_left_inwards(outside, v, fault, side):
    loop = Harness().start()
    limit = PLANAR.upper if side > 0 else PLANAR.lower
    loop.move([0.6, limit[1] + side * outside])
    loop.v = np.array([0.0, side * v])
    loop.step()
    assert loop.fault == fault


@pytest.mark.parametrize(('outside', 'is_enabled'), [(9e-4, True), (2e-3, False)])
def test_a_robot_on_its_end_stop_can_be_enabled(outside, is_enabled):
    loop = Harness()
    loop.q = np.array([0.6, PLANAR.upper[1] + outside])
    assert (loop.step(enable=True).refused == []) == is_enabled


@pytest.mark.parametrize(('robot', 'terms', 'expected'), [
    ('planar_2r', ('computed_torque',), [0.2, 0.2]),
    ('otbot', ('rolling_base',), [0.5, 0.5, 0.2, 0.2, 0.2, 0.2]),
    ('planar_2r', ('gravity',), None),
])  # fmt: skip
def test_the_following_error_has_a_default_where_there_is_a_joint_reference(robot, terms, expected):
    limit = TorqueController(robot_named(robot), Settings(terms=terms)).limits.following_error
    assert (None if limit is None else limit.tolist()) == expected


def test_a_blocked_joint_faults_by_default():
    loop = Harness(terms=('computed_torque',)).start()
    away = kd.JointTrajectory(('joint_1',), np.array([0.0, 2.0]), np.array([[0.6], [1.2]]))
    loop.step(trajectory=away)
    loop.run(2.0)
    assert loop.fault == 'following_error'


def test_the_following_error_of_a_continuous_joint_goes_the_short_way_round():
    loop = Harness('pendubot', terms=('computed_torque',))
    loop.q = np.array([0.0, 3.1])
    loop.start()
    loop.move([0.0, -3.1])
    assert loop.step().fault is None


def test_joints_that_do_not_follow_a_reference_have_no_following_error():
    loop = Harness('krang', terms=('gravity', 'computed_torque')).start()
    loop.move(loop.q + np.eye(17)[0])  # base_pitch, which others hold
    loop.step()
    assert loop.fault is None


# -- effort at enable ----------------------------------------------------------------------------------


@pytest.mark.parametrize(('effort', 'reason'), [
    ([-4000.0, 0.0], "joint 'joint_1' measures an effort of -4000 N m"),
    ([0.0, 6.0 + 45.0], "joint 'joint_2' measures an effort of 51 N m"),
])  # fmt: skip
def test_an_effort_that_contradicts_gravity_refuses_enable_with_the_numbers(effort, reason):
    loop = Harness()
    loop.effort = np.array(effort)
    text = refusal(loop)
    assert reason in text
    assert 'within' in text


@pytest.mark.parametrize('share', [0.0, 0.5, 1.0, np.nan])
def test_efforts_between_zero_and_gravity_are_accepted(share):
    loop = Harness('krang')
    margin = loop.robot.friction.coulomb + 0.099 * loop.controller.limits.effort
    loop.effort = share * loop.robot.gravity_torque(loop.q) + margin
    assert loop.step(enable=True).refused == []


@pytest.mark.parametrize('limit', ['effort="0" velocity="5"', 'velocity="5"'])
def test_a_driven_joint_without_effort_is_refused_by_name(limit):
    text = PLANAR.urdf.text
    text = text.decode() if isinstance(text, bytes) else text
    text = text.replace('type="revolute"', 'type="continuous"').replace('effort="50" velocity="5"', limit)
    with pytest.raises(InputError, match=r'joint_2.*effort limit'):
        TorqueController(kd.load_robot(text), Settings())


# -- requests ------------------------------------------------------------------------------------------


def test_a_required_emergency_stop_must_have_been_received():
    loop = Harness(emergency_stop_required=True)
    assert 'emergency_stop' in refusal(loop)
    loop.step(emergency_stop=False)
    assert loop.step(enable=True).refused == []


@pytest.mark.parametrize(('ahead', 'is_refused'), [(0.09, False), (0.11, True), (0.9, True)])
def test_stamps_may_be_ahead_by_the_state_timeout(ahead, is_refused):
    loop = Harness().start()
    outputs = loop.step([loop.sample(stamp=loop.clock + PERIOD + ahead)])
    assert bool(outputs.refused) == is_refused


# -- gravity from an inertial unit ---------------------------------------------------------------------


def imu_robot():
    imu = {'link': PLANAR.urdf.root, 'mount_rpy': [0.0, 0.0, 0.0], 'feeds': 'gravity'}
    return kd.load_robot('planar_2r', imu=imu)


def unit(loop, orientation=UP, **changes):
    sample = ImuSample(np.array(orientation), STILL, loop.clock + PERIOD, loop.time + PERIOD)
    return replace(sample, **changes)


def tilted(angle):
    return np.array([np.sin(angle / 2), 0.0, 0.0, np.cos(angle / 2)])


def level():
    """An enabled controller that gets the direction of gravity with every state."""
    loop = Harness(imu_robot())
    for k in range(200):
        loop.step(imu=[unit(loop)], enable=True if k == 5 else None)
    assert loop.outputs.mode is Mode.ACTIVE
    return loop


def test_enable_needs_the_direction_of_gravity():
    assert 'gravity was never received' in refusal(Harness(imu_robot()))


def test_gravity_that_is_not_renewed_is_a_fault():
    loop = level()
    loop.run(0.09)
    assert loop.fault is None
    loop.run(0.02)
    assert loop.fault == 'state'
    assert 'gravity' in loop.outputs.fault.reason


@pytest.mark.parametrize('orientation', [
    [1.0, 0.0, 0.0, 0.0], tilted(0.3), 0.5 * UP, np.full(4, np.nan), np.zeros(4),
])  # fmt: skip
def test_one_implausible_direction_of_gravity_is_a_fault_and_is_not_used(orientation):
    loop = level()
    gravity = loop.controller.dynamics.model_gravity()
    loop.step(imu=[unit(loop, orientation)])
    assert loop.fault == 'state'
    np.testing.assert_array_equal(loop.controller.dynamics.model_gravity(), gravity)


def test_a_base_that_tilts_with_its_measured_speed_is_followed():
    loop = level()
    for k in range(1000):
        spin = np.array([1.0, 0.0, 0.0])
        loop.step(imu=[unit(loop, tilted(k * PERIOD), angular_velocity=spin)])
    assert loop.fault is None
    assert loop.controller.dynamics.model_gravity()[1] == pytest.approx(-9.81 * np.sin(0.999), rel=1e-3)
