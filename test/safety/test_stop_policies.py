"""Each stop policy from full motion, with and without state, on the exact plant."""

from dataclasses import replace

import numpy as np
import pytest
from harness import PERIOD, Harness, robot_named
from scipy.optimize import lsq_linear

import krang_dynamics as kd
from krang_dynamics.control.controller import TorqueController
from krang_dynamics.control.dynamics import Dynamics
from krang_dynamics.control.settings import Settings
from krang_dynamics.errors import InputError
from krang_dynamics.robot.model import Robot
from krang_dynamics.safety import stop_policies
from krang_dynamics.safety.modes import Mode
from krang_dynamics.safety.stop_policies import (
    DELAY,
    MARGIN,
    RATE,
    STOP_POLICIES,
    StopPolicy,
    StopState,
    register,
    stop_policy,
)
from krang_dynamics.simulation.pinocchio_plant import PinocchioPlant

ROBOTS = ('planar_2r', 'anthropomorphic', 'krang', 'otbot', 'pendubot')
ARMS = ('planar_2r', 'anthropomorphic', 'krang')
POLICIES = ('hold', 'lower', 'zero')
# Otbot's plant is slow, and zero is its own policy.
STOPS = [
    pytest.param(name, policy, marks=[pytest.mark.long] if name == 'otbot' and policy != 'zero' else [])
    for name in ROBOTS
    for policy in POLICIES
]
LONGEST_STOP = 4.0  # s, until silence
AT_REST = 0.02  # rad/s
ROUNDING = 1e-6  # N m


def plant_of(robot):
    """Krang stands on a stand, as heavy wheels: 54 N m cannot catch it once it tips over."""
    if robot.name != 'krang':
        return PinocchioPlant(robot)
    joints = dict(robot.config.joints)
    base = joints['base_pitch']
    joints['base_pitch'] = replace(base, motor=replace(base.motor, rotor_inertia=1e4))
    return PinocchioPlant(Robot(replace(robot.config, joints=joints), robot.urdf))


def in_full_motion(name, policy, way=0, delay=0):
    """A loop whose robot moves near its speed limits under gravity compensation."""
    robot = robot_named(name)
    plant = plant_of(robot)
    share = 0.1 if name == 'otbot' else 0.9  # wheels must roll as fast as the platform moves
    speed = share * np.where(np.isfinite(robot.velocity_limits), robot.velocity_limits, 10.0)
    if name == 'krang':
        speed[0] = 0.0
    signs = np.random.default_rng(way).choice([-1.0, 1.0], robot.nv)
    plant.reset(robot.home, signs * speed)
    loop = Harness(robot, ('gravity', 'damping'), plant, ramp_time=0.0, delay=delay, stop_policy=policy)
    loop.effort = robot.gravity_torque(robot.home)
    loop.step(enable=True)
    loop.run(0.003)
    assert loop.outputs.mode is Mode.ACTIVE, loop.outputs
    return loop


def stop(loop, blind=False, duration=LONGEST_STOP):
    """Stop, by silence of the state where blind; times [s] and commands (K, n) until the last one."""
    before = loop.outputs.torque
    begin = len(loop.history)
    for k in range(round(duration / PERIOD)):
        loop.step([] if blind else None, enable=False if k == 0 and not blind else None)
        if loop.outputs.torque is None:
            break
    sent = [h for h in loop.history[begin:] if h[3] is not None]
    return np.array([h[0] for h in sent]), np.array([before, *(h[3] for h in sent)])


@pytest.mark.parametrize('blind', [False, True], ids=['with_state', 'without_state'])
@pytest.mark.parametrize(('name', 'policy'), STOPS)
def test_p1_p2_and_p3_hold_through_every_stop(name, policy, blind):
    loop = in_full_motion(name, policy)
    limits = loop.controller.limits
    _, torque = stop(loop, blind, duration=0.8)
    assert np.isfinite(torque).all()
    assert (np.abs(torque) <= limits.effort).all()
    assert (np.abs(np.diff(torque, axis=0)) <= limits.stop_rate * PERIOD + ROUNDING).all()


@pytest.mark.parametrize('name', ARMS)
def test_hold_stops_the_motion_and_keeps_the_position(name):
    loop = in_full_motion(name, 'hold')
    loop.step(enable=False)
    loop.run(2.0)
    held = loop.plant.q
    loop.run(1.0)
    assert loop.outputs.mode is Mode.STOPPING
    assert np.abs(loop.plant.v).max() <= AT_REST
    assert np.abs(loop.plant.q - held).max() <= AT_REST


@pytest.mark.parametrize('name', ARMS)
def test_a_stop_does_not_shake_the_robot_though_its_commands_come_late(name):
    """By 10 ms, as over a busy bus; damping that is too strong for that ends in oscillation at the limits."""
    loop = in_full_motion(name, 'hold', delay=10)
    loop.step(enable=False)
    loop.run(2.0)
    assert np.abs(loop.plant.v).max() <= AT_REST


@pytest.mark.parametrize('name', ['otbot', 'pendubot'])
@pytest.mark.parametrize('blind', [False, True])
def test_zero_releases_as_fast_as_the_stop_rate_allows(name, blind):
    loop = in_full_motion(name, 'zero')
    loop.controller.terms[0].torque = lambda state: np.full(loop.robot.nv, 1e3)
    loop.run(0.05)
    begin = loop.time
    stop(loop, blind)
    assert loop.outputs.torque is None
    last = [h for h in loop.history if h[3] is not None][-1]
    assert not last[3].any()
    assert loop.time - begin <= 0.25  # a tenth of a second to notice, a tenth to release


def test_the_last_volts_are_zero_though_the_arm_still_turns():
    loop = in_full_motion('pendubot', 'zero')
    loop.step(enable=False)
    commands = []
    while loop.outputs.torque is not None:
        commands.append(loop.outputs.command)
        loop.step()
    assert abs(loop.plant.v[0]) > 0.1
    assert commands[-1].tolist() == [0.0]


@pytest.mark.parametrize(('name', 'policy'), STOPS)
def test_a_blind_stop_ends_at_zero(name, policy):
    loop = in_full_motion(name, policy)
    times, torque = stop(loop, blind=True)
    assert loop.outputs.torque is None
    assert loop.outputs.fault.kind == 'state'
    is_zero = ~torque[1:].any(axis=1)
    assert is_zero[times - times[0] > 1.0].all()
    assert is_zero[-1]
    assert times[-1] - times[0] <= 3.0  # states that return within two seconds are used


def test_a_blind_stop_decays_the_last_gravity_torque_over_the_blind_time():
    loop = Harness().start()
    gravity = loop.robot.gravity_torque(loop.q)
    sent = np.array([o.torque for o in loop.run(0.7, samples=[]) if o.torque is not None])
    begin = np.flatnonzero(sent[:, 0] < gravity[0] - ROUNDING)[0]
    expected = gravity[0] * (1 - PERIOD * np.arange(1, 500) / loop.robot.config.stop.blind_time)
    np.testing.assert_allclose(sent[begin : begin + 499, 0], expected, atol=1e-6)
    assert not sent[-1].any()


def sinking(seconds=2.0):
    """A loop whose arm is being lowered: it sinks steadily, carried mostly by damping."""
    robot = robot_named('planar_2r')
    loop = Harness(robot, plant=plant_of(robot)).start()
    loop.step(enable=False)
    loop.run(seconds)
    assert np.abs(loop.v).max() > 0.1
    return loop


def test_a_joint_without_samples_keeps_its_damping():
    """Its unchanged position does not mean that it stands still."""
    loop = sinking()
    for _ in range(90):  # shorter than state_timeout
        part = {'names': ['joint_2'], 'position': loop.q[1:], 'velocity': loop.v[1:], 'effort': np.zeros(1)}
        before = loop.outputs.torque
        loop.step([loop.sample(**part)])
        np.testing.assert_allclose(loop.outputs.torque, before, atol=0.1)
    assert loop.outputs.mode is Mode.STOPPING


def test_a_sinking_robot_is_carried_on_when_it_becomes_blind():
    """Damping ends without states; what it carried of gravity must not end at once."""
    loop = sinking()
    loop.run(0.1 + 2 * PERIOD, samples=[])
    assert loop.fault == 'state'
    gravity = loop.robot.gravity_torque(loop.plant.q)
    assert loop.outputs.torque[0] > 0.95 * gravity[0]
    loop.run(0.5, samples=[])
    assert not loop.outputs.torque.any()


@pytest.mark.parametrize('policy', POLICIES)
def test_returning_states_do_not_cancel_a_stop(policy):
    loop = Harness(stop_policy=policy).start()
    loop.run(0.3, samples=[])
    before = np.abs(loop.outputs.torque) if loop.outputs.torque is not None else np.zeros(2)
    after = [o.torque for o in loop.run(3.0) if o.torque is not None]
    assert loop.outputs.mode is Mode.FAULT
    if policy == 'hold':  # it supports the robot again
        assert after[-1] == pytest.approx(loop.robot.gravity_torque(loop.q))
    else:
        assert all((np.abs(torque) <= before + ROUNDING).all() for torque in after)


def test_time_that_goes_back_while_blind_does_not_raise_the_torque():
    loop = Harness().start()
    loop.run(0.4, samples=[])
    before = loop.outputs.torque
    for _ in range(50):
        after = loop.step(samples=[], dt=-0.1).torque
        assert (np.abs(after) <= np.abs(before)).all()


def test_a_state_that_comes_and_goes_still_ends_the_stop():
    loop = Harness().start()
    loop.step(enable=False)
    for k in range(4000):
        loop.step(samples=None if k // 150 % 2 else [])
    assert loop.outputs.torque is None
    assert loop.outputs.mode is Mode.FAULT


def test_a_stop_ends_though_one_of_two_publishers_with_other_clocks_died():
    loop = Harness()

    def part(i, stamp):
        one = slice(i, i + 1)
        return loop.sample(
            names=loop.robot.joint_names[one],
            position=loop.q[one],
            velocity=loop.v[one],
            effort=[],
            stamp=stamp,
            arrival=loop.time + PERIOD,
        )

    for _ in range(200):
        loop.step([part(0, loop.clock + PERIOD), part(1, 0.0)], enable=True)
    assert loop.outputs.mode is Mode.ACTIVE
    for _ in range(round(3.0 / PERIOD)):
        loop.step([part(1, 0.0)])
    assert loop.outputs.fault.kind == 'state'
    assert loop.outputs.torque is None


# -- the registry --------------------------------------------------------------------------------------


@pytest.fixture
def registry(monkeypatch):
    """A copy of the registry for one test."""
    monkeypatch.setattr(stop_policies, 'STOP_POLICIES', dict(STOP_POLICIES))
    monkeypatch.setattr('krang_dynamics.control.settings.STOP_POLICIES', stop_policies.STOP_POLICIES)
    return stop_policies.STOP_POLICIES


def test_a_policy_from_outside_works_by_its_name(registry):
    @register
    class Half(StopPolicy):
        """Half of gravity for a tenth of a second."""

        name = 'half'

        def torque(self, now, state):
            self.finished = now - self.begin >= 0.1
            return np.zeros_like(state.gravity) if self.finished else 0.5 * state.gravity

    assert 'half' in Settings.parameters()['stop.policy'].choices
    loop = Harness(stop_policy='half', stop_rate=1e6).start()
    assert loop.safety.policy is Half
    loop.step(enable=False)
    np.testing.assert_allclose(loop.run(0.05)[-1].torque, 0.5 * loop.robot.gravity_torque(loop.q))
    loop.run(0.06)
    assert (loop.outputs.torque, loop.outputs.mode) == (None, Mode.DISABLED)


def test_an_unknown_policy_is_refused_with_the_valid_names():
    with pytest.raises(InputError, match=r'stop\.policy is .panic.; it must be one of hold, lower, zero'):
        Settings(stop_policy='panic')
    with pytest.raises(InputError, match="unknown stop policy 'lowr'; did you mean 'lower'"):
        stop_policy('lowr')


def test_a_held_robot_is_held_again_after_a_time_without_states():
    robot = robot_named('planar_2r')
    state = stop_state([0.0, 0.0])
    hold = STOP_POLICIES['hold'](robot.config.stop, 0.0, state.gravity)
    hold.torque(0.0, state)
    faded = hold.torque(0.3 * robot.config.stop.blind_time, None)
    assert np.abs(faded).max() < 0.8 * np.abs(state.gravity).max()
    for k in range(100):
        torque = hold.torque(0.5 + 0.01 * k, state)
    assert torque == pytest.approx(state.gravity)


def test_a_clock_that_goes_back_does_not_enlarge_a_fading_torque():
    fade = stop_policies.Fade(robot_named('planar_2r').config.stop, 10.0, np.array([20.0, 1.0]))
    assert fade.torque(5.0, None).tolist() == [20.0, 1.0]


def test_the_policy_of_a_robot_file_is_checked_when_a_controller_is_built():
    robot = kd.load_robot('planar_2r', stop={'policy': 'panic'})
    with pytest.raises(InputError, match="unknown stop policy 'panic'"):
        TorqueController(robot, Settings())
    TorqueController(robot, Settings(stop_policy='hold'))


def test_a_policy_without_its_duty_cannot_be_made():
    with pytest.raises(TypeError, match='torque'):
        type('Idle', (StopPolicy,), {'name': 'idle'})(None, 0.0, np.zeros(2))


# -- limits of effort and rate -------------------------------------------------------------------------


def stop_state(v, effort=100.0, rate=1000.0):
    robot = robot_named('planar_2r')
    dynamics = Dynamics(robot)
    dynamics.update(robot.home, np.array(v))
    limits = np.full(2, effort), np.full(2, rate)
    return StopState(
        dynamics.gravity,
        robot.home,
        np.array(v),
        dynamics.A,
        np.ones(2),
        1000.0,
        *limits,
        robot.continuous,
        0.0,
        dynamics,
    )


def test_a_joint_at_its_effort_limit_does_not_disturb_the_others():
    """Each joint clipped for itself, the others would turn the motion instead of ending it."""
    state = stop_state([1.0, -1.0])
    wanted = state.damping(20.0)
    state.effort = np.array([100.0, 0.5 * abs(wanted[1])])
    torque = state.within_effort(wanted)
    assert (np.abs(torque) <= state.effort + ROUNDING).all()
    intended, actual = np.linalg.solve(state.A, np.transpose([wanted, torque])).T
    assert actual[0] == pytest.approx(intended[0])
    assert torque @ state.v < 0


@pytest.mark.parametrize('n', [1, 2, 6, 17, 40])
def test_torque_within_effort_is_the_nearest_one_by_a_quadratic_program(n):
    """scipy's bounded least squares is the independent truth."""
    random = np.random.default_rng(n)
    for _ in range(20):
        root = random.normal(size=(n, n))
        A = root @ root.T + 0.01 * np.eye(n)
        torque, effort = 10 * random.normal(size=n), random.uniform(0.1, 5, n)
        state = StopState(torque, torque, torque, A, np.ones(n), 1000.0, effort, effort, None, 0.0, None)
        L = np.linalg.inv(np.linalg.cholesky(A))
        truth = lsq_linear(L, L @ torque, (-effort, effort), method='bvls', tol=1e-14)
        assert np.allclose(state.within_effort(torque), truth.x, atol=1e-6 * effort.max())


@pytest.mark.parametrize('age', [0.0, 0.02])
def test_damping_is_late_by_less_than_its_own_time(age):
    """Old states and the rate limit delay it; a torque that is too late would make the robot oscillate."""
    v, rate = np.array([0.1, 0.05]), 100.0
    slow, fast = stop_state(v, rate=rate), stop_state(v)
    slow.age = fast.age = age
    decay = slow.fastest_decay(0.0)
    assert decay < fast.fastest_decay(0.0)
    torque = decay * np.abs(slow.A @ v)
    delay = 0.0005 + DELAY + age  # half a period, what no stamp shows, and the age of the state
    assert (delay + torque / rate).max() == pytest.approx(1 / decay)


def test_old_states_are_damped_more_slowly():
    state = stop_state([1e-3, 0.0])
    fresh = state.fastest_decay(0.0)
    state.age = 0.03
    assert state.fastest_decay(0.0) == pytest.approx(MARGIN / (0.0005 + DELAY + 0.03))
    assert fresh == RATE
