"""Deliberate defects of controller and guard; the monitor of a campaign must find each of them."""

from dataclasses import replace

import numpy as np
import pytest
from harness import robot_named

import krang_dynamics as kd
from krang_dynamics.control.builder import drivers_of
from krang_dynamics.control.drivers import Drivers
from krang_dynamics.control.guard import Guard
from krang_dynamics.control.robot_state import BoundsCheck, JumpCheck, RobotState
from krang_dynamics.control.session import Session
from krang_dynamics.control.settings import Settings
from krang_dynamics.safety.output_limiter import OutputLimiter
from krang_dynamics.safety.safety_stage import SafetyStage
from krang_dynamics.safety.stop_policies import Lower, StopState, Zero
from krang_dynamics.scenarios.campaign import campaign_loop, campaign_monitor
from krang_dynamics.scenarios.campaign.campaign_loop import run_once
from krang_dynamics.scenarios.campaign.campaign_monitor import UNSAFE, PromisedBounds
from krang_dynamics.scenarios.campaign.campaign_plan import load_plan

SEEDS = range(3)


def monitor_of(robot):
    """The monitor of a run of a robot."""
    plan = load_plan(robot)
    return campaign_loop.Loop(robot, plan, plan.draw(0)).monitor


def nothing(*_, **__):
    """In place of a method that should act."""


def without(field, value):
    """A defect of a step: it does not receive a field of its inputs."""

    def defect(original):
        def method(self, inputs, *rest):
            return original(self, replace(inputs, **{field: value}), *rest)

        return method

    return defect


def unlimited(original):
    def limit(self, torque, dt, rate):
        self.last = torque.copy()
        return torque, False

    return limit


def without_rate(original):
    return lambda self, torque, dt, rate: original(self, torque, 1e3, rate)


def silent(original):
    def step(self, *inputs):
        command = original(self, *inputs)
        return command if self.is_driving else None

    return step


def eager(original):
    def activate(self):
        original(self)
        self._enable_pending = True

    return activate


def from_zero(original):
    def start(self, measured):
        return original(self, np.zeros_like(measured))

    return start


def take_over_with_nothing(original):
    def take_over(self, now):
        if self._relayed is not None:
            self._relayed = np.full_like(self._relayed, 1e-9)
        original(self, now)

    return take_over


def dropping(original):
    def take_over(self, now):
        self.safety.policy = Zero
        original(self, now)

    return take_over


def upside_down(original):
    def stop_state(self, limits):
        state = original(self, limits)
        state.gravity = -state.gravity
        return state

    return stop_state


def by_the_clock(original):
    def with_state(self, elapsed, state):
        self._support = max(0.0, self._support - elapsed / self.config.time)
        self.finished = self._support == 0.0
        return self._support * state.gravity

    return with_state


def for_ever(original):
    def torque(self, now, state):
        if state is None:
            return self._carrying
        return original(self, now, state)

    return torque


def swapped(original):
    def take_trajectory(self, message, received=0):
        return original(self, replace(message, positions=message.positions[:, ::-1].copy()), received)

    return take_trajectory


# Name, what is changed, the defect, the disturbance that reveals it, the request that reveals it.
MUTANTS = [
    ('no effort limit', [(OutputLimiter, 'limit', unlimited)], {'push': (150, 200)}, ''),
    ('no rate limit', [(OutputLimiter, 'limit', without_rate)], {'velocity_noise': (0.1, 0.1)}, ''),
    (
        'emergency stop ignored',
        [(Session, 'step', None), (Guard, 'step', without('emergency_stop', None))],
        {'requests': (3, 3)},
        'emergency_stop',
    ),
    ('disable ignored', [(SafetyStage, 'disable', lambda _: nothing)], {'requests': (3, 3)}, 'disable'),
    ('fault ignored', [(SafetyStage, 'trip', lambda _: nothing)], {'outage': (1, 1)}, ''),
    ('old states accepted', [(RobotState, 'stale', lambda _: nothing)], {'outage': (1, 1)}, ''),
    ('lowered by the clock alone', [(Lower, '_with_state', by_the_clock)], {'killed_controller': (0, 0)}, ''),
    (
        'no support in a stop',
        [(Lower, '_with_state', lambda _: lambda self, elapsed, state: state.damping(1.0))],
        {'killed_controller': (0, 0)},
        '',
    ),
    (
        'no damping in a stop',
        [(StopState, 'damping', lambda _: lambda self, decay: np.zeros_like(self.v))],
        {'killed_controller': (0, 0)},
        '',
    ),
    (
        'damping with the wrong sign',
        [(StopState, 'damping', lambda f: lambda self, decay: -f(self, decay))],
        {'requests': (3, 3)},
        'disable',
    ),
    (
        'gravity upside down in a stop',
        [(RobotState, 'stop_state', upside_down)],
        {'requests': (3, 3)},
        'disable',
    ),
    (
        'silence not noticed',
        [(Guard, '_check_silence', lambda _: nothing)],
        {'killed_controller': (0, 0)},
        '',
    ),
    ('the guard drops the robot', [(Guard, '_take_over', dropping)], {'killed_controller': (0, 0)}, ''),
    (
        'the guard begins at zero',
        [(Guard, '_take_over', take_over_with_nothing)],
        {'killed_controller': (0, 0)},
        '',
    ),
    ('limits not checked', [(BoundsCheck, 'fault', lambda _: nothing)], {'wrong_sign': (0, 0)}, ''),
    ('jumps not checked', [(JumpCheck, 'check', lambda _: nothing)], {'jump': (0.11, 0.18)}, ''),
    (
        'second publisher ignored',
        [(Session, 'step', None), (Guard, 'step', without('other_publisher', False))],
        {'requests': (3, 3)},
        'second_publisher',
    ),
    ('drives without enable', [(Session, 'activate', eager)], {'delay': (0, 0)}, ''),
    ('starts with a jump', [(OutputLimiter, 'start', from_zero)], {'delay': (0, 0)}, ''),
    ('no command in a stop', [(SafetyStage, 'step', silent)], {'requests': (3, 3)}, 'disable'),
    (
        'torque doubled',
        [(Drivers, 'command', lambda f: lambda self, torque, v: 2 * f(self, torque, v))],
        {'delay': (0, 0)},
        '',
    ),
    (
        'drivers in the wrong order',
        [(Drivers, 'command', lambda f: lambda self, torque, v: f(self, torque, v)[::-1].copy())],
        {'delay': (0, 0)},
        '',
    ),
    ('release ignored', [(SafetyStage, 'release', lambda _: nothing)], {'requests': (3, 3)}, 'release'),
    ('torque for ever without states', [(Lower, 'torque', for_ever)], {'outage': (4, 4)}, ''),
    ('trajectories ignored', [(Session, 'take_trajectory', lambda _: nothing)], {'delay': (0, 0)}, ''),
    ('joints of trajectories swapped', [(Session, 'take_trajectory', swapped)], {'delay': (0, 0)}, ''),
]
SAMPLE = ('no rate limit', 'old states accepted', 'no support in a stop', 'silence not noticed')


def deaf(field):
    """A session whose controller does not receive a request."""
    original = Session.step

    def step(self, now, clock, **requests):
        requests.pop(field, None)
        before, self.other_publisher = self.other_publisher, False
        try:
            return original(self, now, clock, **requests)
        finally:
            self.other_publisher = before

    return step


def outcomes(vary, request, monkeypatch, seeds, terms):
    """The results of a short plan with one disturbance."""
    robot = robot_named('planar_2r')
    plan = load_plan(robot)
    plan = replace(plan, duration=8.0, vary=vary, settings=plan.settings.replace(terms=terms))
    if request:
        monkeypatch.setattr(campaign_loop, 'REQUESTS', [request])
    return [run_once(robot, plan, seed) for seed in seeds]


@pytest.mark.parametrize(
    ('name', 'changes', 'vary', 'request_name'),
    [
        pytest.param(*mutant, marks=[] if mutant[0] in SAMPLE else pytest.mark.long, id=mutant[0])
        for mutant in MUTANTS
    ],
)
def test_a_defect_is_found(monkeypatch, name, changes, vary, request_name):
    terms = ('gravity',) if name == 'limits not checked' else ('gravity', 'computed_torque')
    healthy = outcomes(vary, request_name, monkeypatch, SEEDS[:1], terms)
    assert not [result.reason for result in healthy if result.outcome == UNSAFE]
    for owner, method, defect in changes:
        replacement = deaf(request_name) if defect is None else defect(getattr(owner, method))
        monkeypatch.setattr(owner, method, replacement)
    results = []
    for seed in SEEDS:
        results += outcomes(vary, request_name, monkeypatch, [seed], terms)
        if results[-1].outcome == UNSAFE:
            return
    pytest.fail(f'not found: {[(r.outcome, r.reason) for r in results]}')


ONE_LINK = """<robot name="one_link"><link name="base"/><link name="arm">
<inertial><origin xyz="0 0 -0.25"/><mass value="2"/>
<inertia ixx="0.04" iyy="0.04" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial>
{shape}</link><joint name="joint" type="revolute"><parent link="base"/><child link="arm"/>
<axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="20" velocity="5"/></joint></robot>"""
BOX = '<visual><origin xyz="0 0 -0.4"/><geometry><box size="0.06 0.06 0.8"/></geometry></visual>'


@pytest.mark.parametrize(('shape', 'reach'), [('', 0.5), (BOX, np.hypot(0.03, 0.8))])
def test_the_far_end_of_the_last_link_counts(shape, reach):
    """Twice as far as the centre of mass, or the corners of its shape."""
    robot = kd.load_robot(ONE_LINK.format(shape=shape))
    monitor = monitor_of(robot)
    assert monitor.speed(np.array([0.7]), np.array([2.0])) == pytest.approx(2.0 * reach)


def test_states_of_a_clock_that_was_set_back_count():
    robot = robot_named('planar_2r')
    monitor = monitor_of(robot)
    node, x, effort = monitor.controller, np.zeros(2 * robot.nv), np.zeros(robot.nv)
    node.is_driving = True
    monitor.state(node, 1.0, 11.0, 11.0, x, effort)
    monitor.state(node, 1.004, 10.954, 10.954, x, effort)  # by 0.05 s: the stamp is old (P7)
    assert (node.arrival, node.due) == (1.0, {})
    monitor.state(node, 1.008, 9.008, 9.008, x, effort)  # by 2 s: the node must stop, with valid states (P4)
    assert node.arrival == 1.008
    assert list(node.due) == ['P4: the clock was set back']


@pytest.mark.parametrize('has_states', [True, False])
def test_the_stop_of_a_dead_controller_begins_when_the_guard_takes_over(has_states):
    robot = robot_named('planar_2r')
    monitor = monitor_of(robot)
    monitor.is_enabled, zero = True, np.zeros(robot.nv)
    torque, fast = robot.gravity_torque(robot.home), np.full(robot.nv, 0.6)
    for node in (monitor.controller, monitor.guard):
        monitor.state(node, 1.0, 11.0, 11.0, np.zeros(2 * robot.nv), torque)
        monitor.sends(node, 1.0, torque, is_driving=True)
    monitor.check(1.0, robot.home, zero, torque, False, '')
    monitor.is_alive = False
    monitor.check(1.045, robot.home, fast, torque, False, '')  # the drivers hold the last torque: P11
    if has_states:
        monitor.state(monitor.guard, 1.045, 11.045, 11.045, np.zeros(2 * robot.nv), torque)
    monitor.sends(monitor.guard, 1.046, torque, is_driving=False)
    monitor.check(1.05, robot.home, 1.2 * fast, torque, False, '')
    assert monitor.broken == ''
    assert monitor.fastest > 0.5
    monitor.sends(monitor.guard, 1.08, torque, is_driving=False)
    monitor.check(1.08, robot.home, 2 * fast, torque, False, '')
    # What the last torque has done is not known without a state.
    assert monitor.broken.startswith('P13') == has_states
    assert monitor.beyond == ('' if has_states else 'no states')


@pytest.mark.parametrize(('distance', 'is_broken'), [(0.0, True), (20.0, False)])
def test_the_noise_of_a_driver_does_not_shorten_the_time_to_brake(distance, is_broken):
    robot = robot_named('planar_2r')
    monitor = monitor_of(robot)
    weight, fast = robot.gravity_torque(robot.home), np.full(robot.nv, 0.6)
    monitor.is_enabled, command = True, weight - [distance, 0.0]  # 20 ms from the weight
    for t, speed, is_driving in ((1.0, 0.0, True), (1.004, 1.0, False), (1.016, 1.2, False)):
        for node in (monitor.controller, monitor.guard):
            monitor.state(node, t, 10 + t, 10 + t, np.zeros(2 * robot.nv), command)
            monitor.sends(node, t, command, is_driving)
        monitor.check(t, robot.home, speed * fast, weight, False, '')  # by chance the motors hold it
    assert monitor.broken.startswith('P13') == is_broken


def test_a_stop_that_ended_without_states_is_not_judged_when_they_return():
    robot = robot_named('planar_2r')
    monitor = monitor_of(robot)
    monitor.is_enabled, torque, limit = True, robot.gravity_torque(robot.home), 0.5 + 2.0 + 0.1

    def run(begin, outage, duration):
        for k in range(round(begin / monitor.period), round((begin + duration) / monitor.period)):
            t = k * monitor.period
            has_state = not begin + 0.2 <= t < begin + 0.2 + outage
            for node in (monitor.controller, monitor.guard):
                if has_state:
                    monitor.state(node, t, 10 + t, 10 + t, np.zeros(2 * robot.nv), torque)
                left = max(0.0, 1.0 - max(0.0, t - begin - 0.3) / 0.5)  # it decays without states
                monitor.sends(node, t, left * torque, is_driving=t < begin + 0.1)
            is_falling = t > begin + 0.4
            monitor.check(t, robot.home, np.array([1.2 * is_falling, 0.0]), torque, False, '')

    run(1.0, limit + 0.01, 6.0)
    assert (monitor.broken, monitor.beyond) == ('', 'no states')
    for node in (monitor.controller, monitor.guard):
        monitor.sends(node, 7.5, None, is_driving=False)
    run(8.0, limit - 0.01, 6.0)  # the next stop
    assert monitor.broken.startswith('P13')


def test_a_robot_that_was_blind_is_judged_again_when_the_states_return():
    robot = robot_named('planar_2r')
    monitor = monitor_of(robot)
    monitor.is_enabled, torque = True, robot.gravity_torque(robot.home)

    def one_period(t, speed, has_state):
        for node in (monitor.controller, monitor.guard):
            if has_state:
                monitor.state(node, t, 10 + t, 10 + t, np.zeros(2 * robot.nv), torque)
            monitor.sends(node, t, torque, is_driving=t < 1.0)
        monitor.check(t, robot.home, np.array([speed, 0.0]), torque, False, '')

    for k in range(240, 750):  # an outage from 1.2 s to 1.6 s; the robot falls, and is not slowed down
        t = k * monitor.period
        one_period(t, 0.0 if t < 1.3 else 1.2, not 1.2 <= t < 1.6)
        if t < 2.5:
            assert (monitor.broken, monitor.beyond) == ('', 'no states' if t >= 1.3 else '')
    assert monitor.broken.startswith('P13')
    # All torque takes 0.13 s to build up, then a second is left.
    assert monitor.broken_at == pytest.approx(1.73 + campaign_monitor.BRAKING, abs=0.02)


@pytest.mark.parametrize(('share', 'is_broken'), [(0.9, False), (1.1, True)])
def test_a_link_may_become_faster_only_while_the_robot_loses_energy(share, is_broken):
    robot = robot_named('planar_2r')
    monitor = monitor_of(robot)
    monitor.is_enabled, torque = True, robot.gravity_torque(robot.home)
    A = robot.mass_matrix(robot.home)
    first = np.array([0.5, 0.0])
    # As after the first link has hit its end stop: the second one has a share of the energy.
    second = np.array([0.0, 0.5 * np.sqrt(share * A[0, 0] / A[1, 1])])
    assert 0.5 < 1.05 * monitor.speed(robot.home, first) < monitor.speed(robot.home, second)
    for k in range(250, 600):
        t = k * monitor.period
        for node in (monitor.controller, monitor.guard):
            monitor.state(node, t, 10 + t, 10 + t, np.zeros(2 * robot.nv), torque)
            monitor.sends(node, t, torque, is_driving=t < 1.1)
        monitor.check(t, robot.home, first if t < 1.3 else second, torque, False, '')
        if t < 1.3:
            assert monitor.broken == ''
    assert monitor.broken.startswith('P13')  # in any case it must be slow after a second
    assert monitor.broken_at == pytest.approx(1.3 if is_broken else 1.1 + campaign_monitor.BRAKING, abs=0.02)


def test_a_released_robot_may_fall_until_it_is_enabled_again():
    robot = robot_named('planar_2r')
    monitor = monitor_of(robot)
    monitor.is_enabled, torque = True, robot.gravity_torque(robot.home)

    def run(begin, is_driving, speed):
        for k in range(round(begin / monitor.period), round((begin + 1.5) / monitor.period)):
            t = k * monitor.period
            for node in (monitor.controller, monitor.guard):
                monitor.state(node, t, 10 + t, 10 + t, np.zeros(2 * robot.nv), torque)
                monitor.sends(node, t, torque, is_driving=is_driving)
            monitor.check(t, robot.home, np.array([speed, 0.0]), torque, False, '')
        monitor.touch(begin + 1.5, 500.0, '')

    run(1.0, True, 0.0)
    assert monitor.broken.startswith('contact')
    monitor.broken, monitor.is_released = '', True
    run(3.0, False, 3.0)
    assert monitor.broken == ''
    run(5.0, True, 0.0)
    monitor.broken = ''
    run(7.0, False, 3.0)
    assert monitor.broken.startswith('P13')


@pytest.mark.parametrize(('is_enabled', 'is_broken'), [(False, True), (True, False)])
def test_torque_ends_after_a_release_unless_it_is_wanted_again(is_enabled, is_broken):
    robot = robot_named('planar_2r')
    monitor = monitor_of(robot)
    monitor.is_enabled, torque = True, robot.gravity_torque(robot.home)
    for t, is_driving in ((1.0, True), (1.004, False), (2.0, is_enabled), (2.004, False)):
        for node in (monitor.controller, monitor.guard):
            monitor.state(node, t, 10 + t, 10 + t, np.zeros(2 * robot.nv), torque)
            monitor.sends(node, t, torque, is_driving)
        if t == 1.004:
            monitor.release(t, torque)
        if t != 2.0:  # a fault in the next step: no period sees it drive
            monitor.check(t, robot.home, np.zeros(robot.nv), torque, False, '')
    assert monitor.broken.startswith('the stop is over') == is_broken


def test_the_unit_of_the_settings_counts():
    robot = robot_named('krang')
    drivers = drivers_of(Settings(command_unit='torque'), robot)
    unit = {'command_unit': 'torque'}
    effort = PromisedBounds.of(robot, drivers.names, unit, 280.0).largest
    assert (effort <= robot.effort_limits.max()).all()
    assert (effort >= 1.0).all()


def test_the_monitor_shares_no_code_with_the_controller():
    from pathlib import Path

    from krang_dynamics.scenarios.campaign import campaign_monitor

    text = Path(campaign_monitor.__file__).read_text()
    imported = [line for line in text.splitlines() if line.startswith('from .')]
    assert imported == ['from ...arrays import Array, Indices, is_finite', 'from ...robot.model import Robot']
