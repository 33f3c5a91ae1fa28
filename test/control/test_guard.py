"""P11: what a guard relays, when it takes over, how it stops, and when it relays again."""

import random
from math import inf, isfinite, nan

import numpy as np
import pytest
from harness import AHEAD, PERIOD, START, Harness, robot_named

from krang_dynamics.control.command_check import Command
from krang_dynamics.control.guard import TRAVEL, Guard, GuardInputs, GuardSettings
from krang_dynamics.control.node_state import NodeState
from krang_dynamics.control.reference.trajectory import JointTrajectory
from krang_dynamics.control.sensors import ImuSample
from krang_dynamics.errors import InputError
from krang_dynamics.robot.payload import Payload
from krang_dynamics.safety import limits
from krang_dynamics.safety.joint_buffer import JointSamples
from krang_dynamics.safety.modes import Mode
from krang_dynamics.simulation.pinocchio_plant import PinocchioPlant

SILENCE = 0.045  # default of the parameter [s]
PROMISED = 0.05  # P11 [s]
JITTER = 0.03  # time for which the torque may change at once [s]
GRACE = 1.0  # in which a controller must adopt a lowered limit [s]
STATE_TIMEOUT = 0.1  # [s]
LONGEST_STOP = 60.0  # [s]
HAND_SPEED = 0.5  # at which a hand comes down at most [m/s]
ROUNDING = 1e-9


class Line:
    """A guard with hand-made inputs: each step has a fresh state, and the given commands."""

    def __init__(self, name='planar_2r', stop_time=0.2, **settings):
        self.robot = robot_named(name)
        self.guard = Guard(self.robot, GuardSettings(stop_time=stop_time, **settings))
        self.limits = self.guard.limits
        self.time = START
        self.q, self.v = self.robot.home, np.zeros(self.robot.nv)
        self.effort = np.full(self.robot.nv, nan)
        self.outputs = None

    @property
    def clock(self):
        return self.time + AHEAD

    @property
    def fault(self):
        return self.outputs.fault.kind if self.outputs.fault else None

    @property
    def mode(self):
        return self.outputs.mode

    def sample(self, **changes):
        message = {
            'names': self.robot.joint_names,
            'position': self.q.copy(),
            'velocity': self.v.copy(),
            'effort': self.effort.copy(),
            'stamp': self.clock,
            'arrival': self.time,
        }
        return JointSamples(**{**message, **changes})

    def limit(self, **limits):
        """A step with other limits, and with no command; what is in force stays otherwise."""
        new = self.guard.settings.replace(**{f'limits.{name}': value for name, value in limits.items()})
        assert self.step(settings=new).refused == []

    def step(self, *values, label='', dt=PERIOD, samples=None, **inputs):
        """One period later, with commands of these values."""
        self.time += dt
        samples = [self.sample()] if samples is None else samples
        commands = [Command(np.asarray(v, dtype=float), label, self.time) for v in values]
        return self.feed(samples, commands, **inputs)

    def feed(self, samples, commands, **inputs):
        self.outputs = self.guard.step(
            GuardInputs(self.time, self.clock, samples, commands=commands, **inputs)
        )
        return self.outputs

    def run(self, duration, *values, **inputs):
        """Steps for `duration` [s], all with the same command; their outputs."""
        return [self.step(*values, **inputs) for _ in range(round(duration / PERIOD))]

    def begin(self, values):
        """The first command of a stream, which is the measured effort."""
        unmeasured, self.effort = self.effort, self.guard.drivers.torque(np.array(values), self.v)
        outputs = self.step(values)
        self.effort = unmeasured
        return outputs

    def relaying(self, values=(20.0, 1.0)):
        """Has relayed this command for a while."""
        self.begin(values)
        self.run(0.05 - PERIOD, values)
        assert self.mode is Mode.ACTIVE, self.outputs
        return self

    def stopped(self):
        """The commands of its own until it is silent."""
        commands = []
        for _ in range(round(LONGEST_STOP / PERIOD)):
            outputs = self.step()
            assert not outputs.relayed
            if outputs.command is None:
                return np.array(commands)
            commands.append(outputs.command)
        raise AssertionError('it never stops sending')


def tripped(**settings):
    """A line whose controller has just stopped sending."""
    line = Line(**settings).relaying()
    while line.step().fault is None:
        pass
    assert line.fault == 'silence'
    return line


# -- what is relayed -----------------------------------------------------------------------------------


def test_nothing_is_sent_before_a_command_comes():
    line = Line()
    assert [o.command for o in line.run(0.1)] == [None] * 100
    assert line.mode is Mode.DISABLED
    assert line.fault is None


def test_a_valid_command_is_relayed_at_once_and_unchanged():
    line = Line()
    line.step()
    values = np.array([99.9, -0.0])
    line.effort = np.array([99.0, 0.5])
    line.time += PERIOD
    outputs = line.feed([line.sample()], [Command(values, 'joint_1,joint_2', line.time)])
    assert outputs.command is values
    assert outputs.relayed
    assert outputs.mode is Mode.ACTIVE
    assert line.step().command is None  # nothing new came
    assert line.mode is Mode.ACTIVE


def test_of_several_commands_the_last_is_relayed():
    line = Line().relaying()
    assert line.step([20.1, 1.0], [20.2, 1.0], [20.3, 1.0]).command.tolist() == [20.3, 1.0]


def test_a_sender_that_changes_its_array_later_changes_nothing():
    line = Line()
    values = np.array([20.0, 1.0])
    line.step()
    line.feed([], [Command(values, '', line.time)])
    values[:] = nan
    line.run(SILENCE + 2 * PERIOD)
    assert line.outputs.command == pytest.approx([20.0, 1.0], abs=2.0)


WEIGHT = 21.2418  # Q of joint_1 at home [N m]
ROOM = 10.0  # a tenth of its effort limit; it has no friction [N m]


@pytest.mark.parametrize(
    ('torque', 'measured', 'relayed'),
    [
        (0.0, nan, True),
        (WEIGHT, nan, True),
        (WEIGHT + 0.99 * ROOM, nan, True),
        (WEIGHT + 1.01 * ROOM, nan, False),
        (-0.99 * ROOM, nan, True),
        (-1.01 * ROOM, nan, False),
        (80.0, 51.0, True),  # within what the torque may change at once
        (80.0, 49.0, False),
        (WEIGHT, -60.0, True),
        (-100.0, -4000.0, False),  # no motor had this torque
    ],
)
def test_the_first_command_is_near_the_measured_effort_or_between_zero_and_the_weight(
    torque, measured, relayed
):
    line = Line()
    line.effort = np.array([measured, nan])
    line.step()
    assert line.step([torque, 1.0]).relayed == relayed
    assert line.fault is None
    if not relayed:
        (reason,) = line.outputs.refused
        assert "'joint_1': its first torque is" in reason
        assert not any(o.relayed for o in line.run(0.1, [WEIGHT, 1.0]))  # the stream is refused to its end


def test_the_first_command_may_differ_from_the_weight_by_coulomb_friction():
    line = Line('krang')
    coulomb = line.robot.friction.coulomb
    give_imu(line)
    torque = line.robot.gravity_torque(line.q) * (line.robot.gravity_torque(line.q) > 0)
    torque += 0.99 * (coulomb + 0.1 * line.limits.effort)
    torque = np.minimum(torque, line.limits.effort)
    step_with_imu(line, line.guard.drivers.command(torque, line.v))
    assert line.outputs.relayed


INVALID = {
    'nan': [nan, 0.0],
    'infinite': [0.0, -inf],
    'huge': [1e308, -1e308],
    'empty': [],
    'short': [20.0],
    'long': [20.0, 1.0, 0.0],
    'matrix': [[20.0, 1.0]],
    'above': [100.001, 1.0],
    'below': [20.0, -50.001],
    'jump': [-20.0, 1.0],
}


@pytest.mark.parametrize('invalid', INVALID.values(), ids=INVALID)
def test_an_invalid_command_is_not_relayed_and_starts_the_stop_policy(invalid):
    line = Line().relaying()
    outputs = line.step(invalid)
    assert line.fault == 'command'
    assert not outputs.relayed
    np.testing.assert_array_equal(outputs.command, [20.0, 1.0])  # the stop begins where the controller was
    assert line.mode is Mode.FAULT
    assert not line.stopped()[-1].any()


@pytest.mark.parametrize('invalid', INVALID.values(), ids=INVALID)
def test_an_invalid_command_while_idle_is_refused_without_a_fault(invalid):
    line = Line()
    line.step()
    outputs = line.step(invalid)
    assert outputs.command is None
    assert len(outputs.refused) == 1
    assert line.fault is None


@pytest.mark.parametrize('values', [None, 'torque', [20.0, 1.0], np.array([20, 1]), np.array(['20', '1'])])
def test_a_command_that_is_no_array_of_numbers_is_invalid(values):
    line = Line().relaying()
    line.time += PERIOD
    line.feed([line.sample()], [Command(values, '', line.time)])
    assert line.fault == 'command'


@pytest.mark.parametrize('label', ['joint_2,joint_1', 'joint_1', 'joint_1,joint_2,', 'left,right'])
def test_a_label_in_another_order_is_invalid_and_both_orders_are_named(label):
    line = Line().relaying()
    line.step([20.0, 1.0], label=label)
    assert line.fault == 'command'
    assert repr(label) in line.outputs.fault.reason
    assert "'joint_1,joint_2'" in line.outputs.fault.reason


def test_an_invalid_command_between_valid_ones_trips_and_the_stop_begins_at_the_last_relayed():
    line = Line().relaying()
    outputs = line.step([21.0, 1.0], [nan, 1.0], [22.0, 1.0])
    assert line.fault == 'command'
    np.testing.assert_array_equal(outputs.command, [20.0, 1.0])


def test_several_motors_of_one_joint_must_not_work_against_each_other():
    line = Line('krang', wheels_locked=True)
    give_imu(line)
    values = line.guard.drivers.command(np.where(np.arange(17) == 0, 5.0, 0.0), np.zeros(17))
    assert values[0] == values[1] > 0
    step_with_imu(line, values)
    assert line.outputs.relayed
    step_with_imu(line, values * np.where(np.arange(18) == 1, -1, 1))
    assert line.fault == 'command'
    assert "'left_wheel_motor'" in line.outputs.fault.reason
    assert 'share' in line.outputs.fault.reason


def give_imu(line):
    line.time += PERIOD
    line.feed([line.sample(names=line.robot.joint_names[1:], position=line.q[1:], velocity=line.v[1:],
                           effort=[])], [], imu=[upright(line)])  # fmt: skip


def step_with_imu(line, values):
    line.time += PERIOD
    return line.feed([line.sample()], [Command(values, '', line.time)], imu=[upright(line)])


def upright(line):
    return ImuSample(np.array([0.0, 0.0, 0.0, 1.0]), np.zeros(3), line.clock, line.time)


def test_the_guard_uses_a_joint_that_an_inertial_unit_measures():
    line = Line('krang')
    names = line.robot.joint_names[1:]
    line.time += PERIOD
    part = line.sample(names=names, position=line.q[1:], velocity=line.v[1:], effort=[])
    zero = Command(np.zeros(16), '', line.time)
    assert "'base_pitch'" in line.feed([part], [zero]).refused[0]
    line.feed([part], [], imu=[upright(line)])
    line.time += PERIOD
    assert line.feed([], [Command(np.zeros(16), '', line.time)]).relayed


# -- how fast it may change ----------------------------------------------------------------------------


def test_torque_at_the_full_rate_passes_also_in_bursts():
    line = Line().relaying([0.0, 0.0])
    rate, torque, dice = line.limits.effort_rate, np.zeros(2), random.Random(1)
    waiting, sign = [], 1.0
    for k in range(2000):
        sign = -sign if k % 90 == 45 else sign
        torque = torque + sign * rate * PERIOD
        waiting.append(torque)
        if dice.random() < 0.1 or len(waiting) >= 28:
            line.step(*waiting)
            waiting = []
        else:
            line.step()
    assert line.fault is None
    assert line.mode is Mode.ACTIVE


def test_a_jump_that_no_jitter_explains_trips():
    line = Line().relaying()
    rate = line.limits.effort_rate[0]
    assert line.step([20.0 + 0.99 * rate * JITTER, 1.0]).relayed
    line.run(2 * JITTER, line.outputs.command)
    assert line.fault is None
    line.step([20.0 - 0.02 * rate * JITTER, 1.0])
    assert line.fault == 'command'
    assert "'joint_1'" in line.outputs.fault.reason


def test_torque_that_alternates_faster_than_the_rate_trips():
    line = Line().relaying()
    for k in range(20):
        line.step([20.0 + 10.0 * (k % 2), 1.0])
    assert line.fault == 'command'


def test_a_stopping_controller_may_be_as_fast_as_the_stop_rate():
    line = Line(stop_rate=2000.0).relaying()
    for torque in np.arange(20.0, -20.0, -2.0):
        assert line.step([torque, 1.0]).relayed


def test_a_controller_that_is_enabled_again_at_once_may_begin_at_the_measured_effort():
    line = Line().relaying([0.0, 0.0])
    line.effort = np.array([80.0, nan])
    line.step()
    assert line.step([79.0, 0.0]).relayed
    line = Line().relaying([0.0, 0.0])
    line.step([79.0, 0.0])
    assert line.fault == 'command'


# -- volts ---------------------------------------------------------------------------------------------

GAIN = 0.00767 * 70 / 2.6  # of the pendubot's motor [N m/V]
DRAG = GAIN * 0.00767 * 70  # [N m s/rad]
SUPPLY = 15.0  # [V]


def turning(speed, torque):
    """A pendubot that turns [rad/s], and whose controller commands this torque [N m]."""
    line = Line('pendubot', stop_rate=10.0)
    line.limit(effort=[1.0, 0.0], effort_rate=[10.0, 0.0])
    line.v = np.array([speed, 0.0])
    line.run(3 * STATE_TIMEOUT)
    return line.relaying([volts(torque, speed)])


def volts(torque, speed):
    return (torque + DRAG * speed) / GAIN


def test_volts_that_the_speed_explains_pass_and_others_trip():
    line = turning(15.0, 0.99)
    line.v = np.zeros(2)
    line.run(3 * STATE_TIMEOUT, [volts(0.99, 15.0)])
    assert line.fault == 'command'


def test_volts_made_at_an_earlier_speed_pass():
    line = Line('pendubot', stop_rate=10.0)
    line.limit(effort=[1.0, 0.0], effort_rate=[10.0, 0.0])
    speeds = 15.0 * np.sin(2 * np.pi * 3.0 * PERIOD * np.arange(1000))  # 280 rad/s2 at most
    for k, speed in enumerate(speeds):
        line.v = np.array([speed, 0.0])
        seen = speeds[max(0, k - 20)]
        if k == 0:
            line.begin([volts(0.99, seen)])
        line.step([volts(0.99, seen)])
        assert line.outputs.relayed, line.outputs


@pytest.mark.parametrize(('more', 'fault'), [(-0.01, None), (0.01, 'command')])
def test_volts_that_jump_more_than_speeds_do_trip(more, fault):
    """Beyond the rate, torque may differ by what speeds differ that the two of them see."""
    unseen = DRAG * 0.1 * 1.2 * 27.0  # by a tenth of the speed limit
    line = turning(5.0, -0.5)
    line.step([volts(-0.5 + 10.0 * JITTER + 3 * unseen + more, 5.0)])
    assert line.fault == fault


def test_the_full_supply_passes_at_any_speed_and_more_never_does():
    line = Line('pendubot').relaying([SUPPLY])
    for speed in (5.0, 27.0, 32.0, 0.0, 26.0):  # an end stop is met, say
        line.v = np.array([speed, 0.0])
        line.run(0.01, [SUPPLY])
    assert line.outputs.relayed
    line.step([SUPPLY + 0.001])
    assert line.fault == 'command'


def test_the_last_volts_of_a_stop_are_zero_though_the_motor_turns():
    line = turning(20.0, 0.0)
    assert line.step([0.0]).relayed
    line.run(0.1)
    assert line.fault is None
    assert line.mode is Mode.DISABLED


def test_a_stop_of_the_guard_ends_in_zero_volts_too():
    line = turning(15.0, 0.9)
    line.step([nan])
    commands = line.stopped()
    torques = GAIN * commands[:-1, 0] - DRAG * 15.0
    assert torques[0] == pytest.approx(0.9 - 10.0 * PERIOD)
    assert (np.diff(torques) <= 0).all()
    assert np.abs(np.diff(torques)).max() <= 10.0 * PERIOD + ROUNDING
    assert commands[-1].tolist() == [0.0]


# -- limits that change --------------------------------------------------------------------------------


def test_a_limit_lowered_later_than_the_controllers_does_not_trip_it_on_its_way_down():
    line = Line().relaying([80.0, 1.0])
    for torque in np.arange(80.0, 10.0, -1.0):
        if torque == 60.0:
            line.limit(effort=[10.0, 50.0])
        assert line.step([torque, 1.0]).relayed
    line.run(1.2, [10.0, 1.0])
    assert line.outputs.relayed


def test_a_limit_lowered_before_the_controllers_applies_after_a_grace_time():
    line = Line().relaying([80.0, 1.0])
    line.limit(effort=[10.0, 50.0])
    noise = random.Random(2)
    for _ in range(800):
        line.step([80.0 + 0.5 * noise.random(), 1.0])
    for torque in np.arange(80.0, 10.0, -1.0):
        line.step([torque, 1.0])
    assert line.run(0.5, [10.0, 1.0])[-1].relayed


def test_a_controller_that_ignores_a_lowered_limit_is_stopped():
    line = Line().relaying([80.0, 1.0])
    line.limit(effort=[10.0, 50.0])
    begin = line.time
    while line.fault is None:
        line.step([80.0, 1.0])
    assert GRACE <= line.time - begin <= GRACE + 0.1
    assert 'joint_1' in line.outputs.fault.reason


def test_in_the_grace_time_of_a_lowered_limit_torque_may_not_rise():
    line = Line().relaying([5.0, 1.0])
    line.limit(effort=[10.0, 50.0])
    for torque in np.arange(5.0, 80.0, 1.0):
        line.step([torque, 1.0])
    assert line.fault == 'command'


def test_a_lowered_limit_counts_at_once_for_a_controller_that_begins():
    line = Line()
    line.limit(effort=[10.0, 50.0])
    line.step()
    assert 'joint_1' in line.step([10.1, 0.0]).refused[0]


def test_a_stop_from_above_a_lowered_limit_comes_down_at_the_stop_rate():
    line = Line(stop_time=2.0).relaying([80.0, 1.0])
    line.limit(effort=[10.0, 50.0])
    path = [o.command[0] for o in line.run(0.2) if o.command is not None]
    expected = np.maximum(10.0, 80.0 - line.limits.stop_rate[0] * PERIOD * np.arange(len(path)))
    np.testing.assert_allclose(path, expected, atol=1e-6)


# -- when it takes over --------------------------------------------------------------------------------


def test_silence_is_followed_by_the_stop_policy_within_50_ms_and_a_period():
    line = Line().relaying()
    last = line.time
    while line.step().command is None:
        pass
    assert line.time - last <= PROMISED + PERIOD + ROUNDING
    assert line.fault == 'silence'
    np.testing.assert_array_equal(line.outputs.command, [20.0, 1.0])
    assert line.mode is Mode.FAULT


def test_it_does_not_take_over_before_the_silence_ends():
    line = Line().relaying()
    for _ in range(20):
        line.run(SILENCE - PERIOD)
        line.step([20.0, 1.0])
    assert line.fault is None


def test_commands_that_were_long_on_their_way_are_silence():
    line = Line().relaying()
    for _ in range(60):
        line.time += PERIOD
        line.feed([line.sample()], [Command(np.array([20.0, 1.0]), '', line.time - 0.06)])
    assert line.fault == 'silence'


@pytest.mark.parametrize('arrival', [nan, inf, 1e300])
def test_an_arrival_in_the_future_is_now(arrival):
    line = Line().relaying()
    line.time += PERIOD
    assert line.feed([line.sample()], [Command(np.array([20.0, 1.0]), '', arrival)]).relayed
    line.run(SILENCE + 2 * PERIOD)
    assert line.fault == 'silence'


def test_silence_after_zero_torque_is_a_controller_that_has_stopped():
    line = Line().relaying()
    for torque in np.arange(20.0, -0.5, -1.0):
        line.step([torque, 0.0])
    assert [o.command for o in line.run(0.1)] == [None] * 100
    assert line.fault is None
    assert line.mode is Mode.DISABLED
    assert line.begin([70.0, 0.0]).relayed  # which begins anew


def test_a_moving_robot_is_braked_though_its_last_torque_was_zero():
    """As that of drivers that compensate gravity themselves."""
    line = Line(hardware_compensates_gravity=True).relaying([0.0, 0.0])
    line.v = np.array([1.0, 0.0])
    for _ in range(5):
        line.step([0.0, 0.0])
    line.step([0.0, 0.0], emergency_stop=True)
    assert line.step().command[0] < 0


@pytest.mark.parametrize('trouble', [{'other_publisher': True}, {'stop': True}])
def test_a_released_arm_gets_no_torque_again(trouble):
    line = Line().relaying([0.0, 0.0])
    assert line.step([0.0, 0.0], **trouble).command is None
    assert line.mode is (Mode.DISABLED if 'stop' in trouble else Mode.FAULT)
    assert line.step().command is None


def test_without_states_the_stop_is_blind():
    line = Line().relaying()
    line.run(STATE_TIMEOUT + 2 * PERIOD, [20.0, 1.0], samples=[])
    assert line.fault == 'state'
    commands = [line.outputs.command]
    while commands[-1] is not None:
        commands.append(line.step([20.0, 1.0], samples=[]).command)
    path = np.array(commands[:-1])
    weight = line.robot.gravity_torque(line.q)
    half = path[round(0.25 / PERIOD)]
    np.testing.assert_allclose(half, 0.5 * weight, rtol=0.02)  # of 0.5 s, the blind time
    assert not path[-1].any()


def test_another_publisher_trips():
    line = Line().relaying()
    line.step([20.0, 1.0], other_publisher=True)
    assert line.fault == 'publisher'
    assert not line.outputs.relayed


def test_a_guard_that_did_not_run_for_too_long_stops():
    line = Line().relaying()
    line.step([20.0, 1.0], dt=0.5)
    assert line.fault == 'state'
    assert 'no step for 0.5' in line.outputs.fault.reason
    np.testing.assert_array_equal(line.outputs.command, [20.0, 1.0])


@pytest.mark.parametrize('jump', [-50.0, 50.0])
def test_a_jump_of_the_steady_clock_trips(jump):
    line = Line().relaying()
    line.step(samples=[], dt=jump)
    assert line.fault == 'state'
    line.stopped()


@pytest.mark.parametrize('time', [nan, inf, -inf])
def test_a_time_that_is_no_number_trips(time):
    line = Line().relaying()
    before, line.time = line.time, time
    outputs = line.feed([], [Command(np.array([20.0, 1.0]), '', before)])
    assert line.fault == 'clock'
    assert np.isfinite(outputs.command).all()
    line.time = before
    line.stopped()


def test_a_clock_that_is_no_number_trips():
    line = Line().relaying()
    line.guard.step(GuardInputs(line.time + PERIOD, nan))
    assert line.guard.safety.fault.kind == 'state'


@pytest.mark.parametrize(
    'part', ['state.take', 'state.stop_state', '_check.check', '_take_commands', '_clear']
)
def test_nothing_that_breaks_inside_throws_into_the_loop(part, monkeypatch):
    line = Line().relaying()

    def breaks(*_):
        raise ZeroDivisionError('x')

    with monkeypatch.context() as broken:
        owner, _, name = part.rpartition('.')
        broken.setattr(getattr(line.guard, owner) if owner else line.guard, name, breaks)
        outputs = line.step([20.0, 1.0], clear_fault=True)
        np.testing.assert_array_equal(outputs.command, [20.0, 1.0])
        assert not outputs.relayed
        assert line.fault == 'exception'
        line.run(0.1)
    line.stopped()


@pytest.mark.parametrize('part', ['limits', 'settings'])
def test_the_stop_continues_when_a_part_is_lost(part):
    line = Line().relaying()
    setattr(line.guard, part, None)
    if part == 'limits':
        line.guard._check._limits = None
    line.step([20.0, 1.0])
    assert line.fault == 'exception'
    np.testing.assert_allclose(line.run(0.25)[-1].command, 0.5 * line.robot.gravity_torque(line.q), rtol=0.02)


def test_the_first_fault_is_kept():
    line = tripped()
    line.run(0.2, samples=[], other_publisher=True)
    assert line.fault == 'silence'


# -- the robot, the switches and the controller ----------------------------------------------------------


@pytest.mark.parametrize('kind', ['velocity', 'position'])
def test_a_robot_beyond_its_limits_trips_at_the_next_step(kind):
    line = Line().relaying()
    if kind == 'velocity':
        line.v = np.array([0.0, -6.01])  # 1.2 times the speed of the URDF, and a little
    else:
        line.q, line.v = line.robot.upper + 1.1 * TRAVEL, np.array([0.1, 0.1])
    outputs = line.step([20.0, 1.0])
    assert line.fault == kind
    assert 'joint_' in outputs.fault.reason
    np.testing.assert_array_equal(outputs.command, [20.0, 1.0])
    assert not outputs.relayed


def test_the_speed_limit_is_a_parameter_and_counts_before_the_first_command():
    line = Line(limits_velocity=[0.5, 2.0], limits_position_margin=0.1)
    line.v = np.array([0.6, 0.0])
    line.step()
    assert 'the limit is 0.5' in line.step([20.0, 1.0]).refused[0]
    line.v = np.zeros(2)
    line.run(2 * SILENCE)
    line.relaying()
    line.q = line.robot.upper - 0.1 + 1.1 * TRAVEL
    line.step([20.0, 1.0])
    assert line.fault == 'position'


def test_a_pressed_emergency_stop_is_latched_and_not_cleared_before_it_is_released():
    line = Line().relaying()
    outputs = line.step([20.0, 1.0], emergency_stop=True)
    assert line.fault == 'emergency_stop'
    np.testing.assert_array_equal(outputs.command, [20.0, 1.0])
    line.stopped()
    assert 'still pressed' in line.step(clear_fault=True).refused[0]
    assert line.step(emergency_stop=False, clear_fault=True).fault is None
    assert line.begin([20.0, 1.0]).relayed


def test_a_guard_that_relays_nothing_is_stopped_by_the_emergency_stop_too():
    line = Line()
    line.step(emergency_stop=True)
    assert line.fault == 'emergency_stop'
    assert line.step([20.0, 1.0]).command is None


def test_a_deadman_that_is_required_must_be_held():
    line = Line(deadman_required=True, deadman_timeout=0.1)
    line.step()
    assert 'no heartbeat' in line.step([20.0, 1.0]).refused[0]
    line.run(2 * SILENCE)
    line.step(deadman=True)
    line.relaying()
    line.run(0.05, [20.0, 1.0])
    assert line.fault == 'deadman'
    assert line.time - START < 0.4
    line = Line(deadman_required=True)
    line.step(deadman=True)
    line.relaying().step([20.0, 1.0], deadman=False)
    assert line.fault == 'deadman'


def announced(line, mass=3.0, gravity=(0.0, 0.0, -9.81), **changes):
    """A state of the controller, as it is read from its topic."""
    payload = [{'frame': 'tip', 'mass': mass, 'com': [0.0] * 3, 'inertia': np.zeros((3, 3))}]
    fields = {'event': 'mode', 'time': 0.0, 'step': '', 'mode': 'active', 'fault': None, 'parameters': {}}
    fields |= {'robot': line.robot.name, 'drivers': (), 'payload': payload, 'gravity': list(gravity)}
    return NodeState.from_json(NodeState(**{**fields, **changes}).to_json())


def in_force(line):
    """Total mass of the payloads [kg], and gravity [m/s2]."""
    dynamics = line.guard.state.dynamics
    return sum(p.mass for p in dynamics.robot.payloads), dynamics.model_gravity().tolist()


def test_payload_and_gravity_of_the_controllers_state_are_adopted():
    line = Line(stop_policy='hold').relaying()
    assert line.step([20.0, 1.0], controller=announced(line, gravity=[0.0, 0.5, -9.81])).refused == []
    assert in_force(line) == (3.0, [0.0, 0.5, -9.81])
    held = line.run(0.5)[-1].command
    loaded = line.robot.carrying([Payload('tip', 3.0, np.zeros(3), np.zeros((3, 3)))])
    np.testing.assert_allclose(held, loaded.with_gravity([0.0, 0.5, -9.81]).gravity_torque(line.q))


@pytest.mark.parametrize(
    ('changes', 'reason', 'expected'),
    [
        ({'mass': 5.1}, 'payload_bound is 5 kg', (0.0, -9.81)),
        ({'gravity': (0.0, 0.0, -8.7)}, 'gravity_bound is 1 m/s2', (3.0, -9.81)),
        ({'gravity': (0.0, None, -9.81)}, 'gravity', (3.0, -9.81)),
        ({'robot': 'krang'}, "it is the state of 'krang'", (0.0, -9.81)),
        ({'payload': [{'frame': 'nowhere', 'mass': 1.0}]}, 'payload', (0.0, -9.81)),
        (
            {'payload': [{'frame': 3, 'mass': 1.0, 'com': [1e300] * 3, 'inertia': []}]},
            'inertia',
            (0.0, -9.81),
        ),
        ({'payload': 'heavy'}, 'payload', (0.0, -9.81)),
    ],
)
def test_what_is_beyond_the_bounds_is_refused_and_the_guards_own_values_stay(changes, reason, expected):
    line = Line().relaying()
    outputs = line.step([20.0, 1.0], controller=announced(line, **changes))
    assert outputs.relayed
    assert [reason in text for text in outputs.refused] == [True]
    mass, gravity = in_force(line)
    assert (mass, gravity[2]) == expected


def test_the_bound_of_gravity_counts_from_the_guards_own():
    line = Line()
    for g in (-9.0, -8.5):
        line.step(controller=announced(line, gravity=[0.0, 0.0, g]))
    assert in_force(line)[1][2] == -9.0


def test_a_controller_that_starts_again_does_not_change_the_payload_of_a_stop():
    line = Line(stop_policy='hold').relaying()
    line.step([20.0, 1.0], controller=announced(line))
    line.run(0.1)
    assert line.fault == 'silence'
    line.step(controller=announced(line, payload=[]))
    assert in_force(line)[0] == 3.0
    line.step(release=True)
    line.run(0.5)
    assert line.outputs.command is None
    assert in_force(line)[0] == 0.0


def test_a_hand_over_stops_from_the_last_torque_without_a_fault_and_refuses_late_commands():
    line = Line().relaying()
    outputs = line.step([20.0, 1.0], hand_over=True)
    np.testing.assert_array_equal(outputs.command, [20.0, 1.0])
    assert not outputs.relayed
    assert outputs.mode is Mode.STOPPING
    for _ in range(5):  # they were sent before
        assert not line.step([20.0, 1.0]).relayed
    path = line.stopped()
    assert line.fault is None
    assert (np.abs(np.diff(path, axis=0)) <= line.limits.stop_rate * PERIOD + ROUNDING).all()
    assert not path[-1].any()
    assert line.mode is Mode.DISABLED
    assert line.begin([20.0, 1.0]).relayed  # the next controller


def test_a_hand_over_without_torque_is_nothing():
    line = Line()
    assert line.step(hand_over=True).command is None
    assert line.begin([20.0, 1.0]).relayed


@pytest.mark.parametrize('before', ['relaying', 'fault', 'hand_over'])
def test_release_brings_the_torque_to_zero_at_the_stop_rate(before):
    line = Line(stop_policy='hold', stop_rate=200.0).relaying()
    if before != 'relaying':
        line.step([nan, nan] if before == 'fault' else [20.0, 1.0], hand_over=before == 'hand_over')
        line.run(0.2)
    first = line.step([20.0, 1.0], release=True).command
    path = np.array([first, *line.stopped()])
    np.testing.assert_allclose(np.diff(path[:50, 0]), -200.0 * PERIOD)
    assert not path[-1].any()
    assert line.mode is (Mode.FAULT if before == 'fault' else Mode.DISABLED)


def test_after_a_release_the_present_stream_is_not_relayed_again():
    line = Line().relaying()
    line.step([20.0, 1.0], release=True)
    assert not any(o.relayed for o in line.run(0.2, [20.0, 1.0]))
    assert line.guard.obstacle(line.time) == 'the robot is released'


def test_a_change_of_settings_is_applied_whole_or_not_at_all():
    guard = Line().guard
    with pytest.raises(InputError, match='inertia'):
        guard.change(guard.settings.replace(limits_effort=10.0, payload_tip_inertia=[1.0, 0.0, 0.0]))
    with pytest.raises(InputError, match='silence cannot change'):
        guard.change(guard.settings.replace(limits_effort=10.0, silence=0.1))
    assert guard.limits.effort.tolist() == [100.0, 50.0]
    guard.change(guard.settings.replace(limits_effort=10.0, limits_velocity=3.0))
    assert guard.limits.effort.tolist() == [10.0, 10.0]
    assert guard.limits.velocity.tolist() == [3.0, 3.0]


def test_a_reason_not_to_relay_is_known_to_the_controller():
    line = Line().relaying()
    assert line.guard.obstacle(line.time) == ''
    line.step([nan, nan])
    assert 'not finite' in line.guard.obstacle(line.time)
    line = Line()
    line.step()
    line.step([99.0, 1.0])
    assert 'its first torque' in line.guard.obstacle(line.time)
    line.run(2 * SILENCE)
    assert line.guard.obstacle(line.time) == ''  # the stream is over
    line.step(stop=True)
    assert line.guard.obstacle(line.time) == 'the guard is ending'


def test_a_guard_without_states_or_clock_is_not_ready():
    line = Line()
    guard = line.guard
    assert guard.obstacle(0.0) == 'no joint states yet'
    guard.step(GuardInputs(1.0, 0.0))
    assert '/clock' in guard.obstacle(1.0)
    guard.step(GuardInputs(1.0, 1.0))
    assert guard.obstacle(1.0).endswith('was never received')
    line.step()
    assert guard.obstacle(line.time) == ''


# -- how it stops --------------------------------------------------------------------------------------


def test_it_lowers_with_its_own_states():
    line = Line(stop_time=2.0).relaying()
    line.v = np.full(line.robot.nv, 2.0)  # the robot moves on without its controller
    for _ in range(round(SILENCE / PERIOD) - 2):
        line.q = line.q + PERIOD * line.v
        line.step()
    line.v = np.zeros(line.robot.nv)
    line.run(4 * PERIOD)
    weight = line.robot.gravity_torque(line.q)
    path = line.stopped()
    np.testing.assert_allclose(path[999], 0.5 * weight, rtol=0.01)
    assert (np.diff(np.abs(path[50:]), axis=0) <= ROUNDING).all()
    assert not path[-1].any()
    assert line.mode is Mode.FAULT


def test_payload_and_gravity_of_the_controller_are_used_in_the_stop():
    dumbbell = Payload('tip', 2.0, np.array([0.0, 0.0, 0.1]), np.eye(3) * 0.01)
    down = np.array([0.0, 0.0, -5.0])
    line = Line(stop_policy='hold').relaying()
    line.step([20.0, 1.0], payloads=[dumbbell], gravity=down)
    held = line.run(0.5)[-1].command
    loaded = line.robot.carrying([dumbbell]).with_gravity(down).gravity_torque(line.q)
    np.testing.assert_allclose(held, loaded, rtol=1e-9)


@pytest.mark.parametrize('gravity', [[0, 0, nan], [0, 0, 100.0], [1.0], 'down'])
def test_an_impossible_gravity_is_refused(gravity):
    line = Line(stop_policy='hold').relaying()
    assert 'gravity' in line.step([20.0, 1.0], gravity=gravity).refused[0]
    np.testing.assert_allclose(line.run(0.5)[-1].command, line.robot.gravity_torque(line.q))


def test_gravity_that_the_hardware_compensates_is_not_sent_again():
    line = tripped(stop_policy='hold', hardware_compensates_gravity=True)
    assert not line.run(0.5)[-1].command.any()


def test_zero_releases_at_the_stop_rate():
    line = Line('pendubot').relaying([10.0])
    line.step([nan])
    path = GAIN * line.stopped()[:, 0]
    expected = 10.0 * GAIN - line.limits.stop_rate[0] * PERIOD * np.arange(1, 1 + len(path))
    np.testing.assert_allclose(path, np.maximum(0.0, expected), atol=1e-9)


def test_a_stop_of_its_own_is_no_fault_and_nothing_is_relayed_after_it():
    line = Line().relaying()
    outputs = line.step([20.0, 1.0], stop=True)
    np.testing.assert_array_equal(outputs.command, [20.0, 1.0])
    assert outputs.mode is Mode.STOPPING
    assert outputs.fault is None
    assert len(outputs.refused) == 1
    commands = []
    while line.step([20.0, 1.0]).command is not None:
        commands.append(line.outputs.command)
        assert line.outputs.refused == []
    assert not commands[-1].any()
    assert line.mode is Mode.DISABLED
    line.run(0.1)
    assert line.step([20.0, 1.0]).command is None


def test_a_stop_while_idle_ends_at_once():
    line = Line()
    assert line.step(stop=True).command is None
    assert line.mode is Mode.DISABLED
    assert 'the guard is ending' in line.step([20.0, 1.0]).refused[0]


# -- when it hands back --------------------------------------------------------------------------------


def test_after_a_fault_nothing_is_relayed_and_that_is_reported_once():
    line = tripped()
    refused = [reason for o in line.run(2.0, [20.0, 1.0]) for reason in o.refused]
    assert len(refused) == 1
    assert 'silence' in refused[0]
    assert 'clear it first' in refused[0]
    assert line.outputs.command is None
    line.run(0.1)
    assert line.step([20.0, 1.0]).refused == []


def test_a_fault_is_not_cleared_before_the_stop_is_over():
    line = tripped()
    assert 'not over yet' in line.step(clear_fault=True).refused[0]
    line.stopped()
    outputs = line.step(clear_fault=True)
    assert outputs.refused == []
    assert outputs.mode is Mode.DISABLED
    assert outputs.fault is None
    assert line.begin([70.0, 1.0]).relayed


def test_a_fault_is_not_cleared_while_commands_still_come():
    line = tripped()
    line.stopped()
    line.step([nan, nan])
    assert 'disable the controller first' in line.run(SILENCE - 2 * PERIOD, clear_fault=True)[-1].refused[0]
    assert line.run(3 * PERIOD, clear_fault=True)[-1].mode is Mode.DISABLED


def test_clearing_without_a_fault_changes_nothing():
    line = Line().relaying()
    outputs = line.step([20.0, 1.0], clear_fault=True)
    assert outputs.relayed
    assert outputs.refused == []


def test_clear_fault_accepts_a_clock_that_was_set_back():
    line = tripped()
    line.stopped()

    def step(**inputs):
        line.time += PERIOD
        clock = line.clock - 500.0
        sample = line.sample(stamp=clock)
        commands = [Command(np.zeros(2), '', line.time)] if not inputs else []
        line.outputs = line.guard.step(GuardInputs(line.time, clock, [sample], commands=commands, **inputs))

    for _ in range(200):
        step(clear_fault=False)
    step(clear_fault=True)
    step(clear_fault=False)
    step()
    assert line.outputs.relayed


def test_commands_without_states_are_refused_once_and_with_the_reason():
    line = Line()
    outputs = line.run(0.5, [20.0, 1.0], samples=[])
    assert not any(o.command is not None for o in outputs)
    (reason,) = [reason for o in outputs for reason in o.refused]
    assert "'joint_1' was never received" in reason
    assert line.step([20.0, 1.0]).relayed  # it has only just started


@pytest.mark.parametrize('trouble', ['states', 'publisher', 'label'])
def test_a_stream_that_began_refused_is_refused_until_it_is_silent(trouble):
    line = Line()
    line.run(0.1)
    if trouble == 'states':
        line.run(0.15, samples=[])
        line.step([1.0, 1.0], samples=[])
    elif trouble == 'publisher':
        line.step([1.0, 1.0], other_publisher=True)
    else:
        line.step([1.0, 1.0], label='joint_2,joint_1')
    (reason,) = line.outputs.refused
    assert 'disable the controller, then enable it again' in reason
    outputs = line.run(0.2, [70.0, 1.0])
    assert not any(o.command is not None or o.refused for o in outputs)
    assert line.fault is None
    line.run(SILENCE + 2 * PERIOD)
    assert line.step([1.0, 1.0]).relayed


def test_hold_holds_until_it_is_cleared_and_then_until_the_controller_has_taken_over():
    line = tripped(stop_policy='hold')
    weight = line.robot.gravity_torque(line.q)
    np.testing.assert_allclose(line.run(3.0)[-1].command, weight)
    assert line.mode is Mode.FAULT
    outputs = line.step(clear_fault=True)
    np.testing.assert_allclose(outputs.command, weight)
    assert outputs.fault is None
    refused = []
    for share in np.linspace(0.0, 1.0, 300):  # a controller without measured efforts begins at zero
        outputs = line.step(share * weight)
        refused += outputs.refused
        np.testing.assert_allclose(outputs.command, weight, atol=1.0)
    assert outputs.relayed
    assert outputs.mode is Mode.ACTIVE
    assert len(refused) == 1
    line.step([nan, nan])  # and it takes over again
    np.testing.assert_array_equal(line.outputs.command, weight)
    assert line.fault == 'command'


def test_a_silence_of_zero_is_refused():
    with pytest.raises(InputError, match='silence is 0'):
        GuardSettings(silence=0.0)


# -- behind a real controller --------------------------------------------------------------------------


class Guarded(Harness):
    """Controller, guard and plant in line; commands and states reach the guard late, in bursts."""

    def __init__(self, robot, plant, latest=0.025, guard=None, **settings):
        super().__init__(robot, plant=plant, **settings)
        self.guard = Guard(self.robot, GuardSettings(**(guard or {})))
        self.dice = random.Random(7)
        self.latest = latest  # [s]
        self.under_way, self.due = [], 0.0
        self.samples, self.seen = [], 0
        self.passed = None
        self.label = ','.join(self.guard.drivers.names)
        self.is_alive = True
        self.change = None  # settings of the guard from the next step on

    def delay(self):
        """Mostly half a millisecond, sometimes a hiccup."""
        return self.dice.uniform(0, self.latest) if self.dice.random() < 0.02 else 5e-4

    def step(self, samples=None, **inputs):
        if self.is_alive:
            super().step(**inputs)
        else:
            self.time += PERIOD
            self.q, self.v = self.plant.q, self.plant.v
            self._relay(None)
        return self.outputs

    def _move(self, dt):
        self._relay(self.outputs.command)

    def _relay(self, command):
        """The guard gets what has arrived, and the plant what the guard sends."""
        self.samples.append(self.sample())
        if command is not None:
            self.due = max(self.due, self.time + self.delay())
            self.under_way.append((self.due, command))
        arrived = [values for due, values in self.under_way if due <= self.time]
        self.under_way = self.under_way[len(arrived) :]
        seen = max(self.seen, len(self.samples) - self.dice.randrange(1, 6))
        commands = [Command(values, self.label, self.time) for values in arrived]
        self.passed = self.guard.step(
            GuardInputs(
                self.time, self.clock, self.samples[self.seen : seen], commands=commands, settings=self.change
            )
        )
        self.seen, self.change = seen, None
        if self.passed.command is not None:
            self.command = self.passed.command
        self.effort = self.controller.drivers.torque(self.command, self.v)
        self.history.append((self.plant.time, self.q, self.v, self.passed.command))
        self.plant.step(self.effort[self._driven], PERIOD)
        assert not self.is_alive or self.passed.fault is None, f'{self.passed} at {self.plant.time} s'

    def limit_guard(self, **limits):
        """Other limits of the guard from the next step on."""
        self.change = self.guard.settings.replace(**{f'limits.{k}': x for k, x in limits.items()})

    def begin(self, duration, **inputs):
        """Steps for `duration` [s]; the inputs go with the first one."""
        self.step(**inputs)
        self.run(duration - PERIOD)

    def until(self, *modes, longest=LONGEST_STOP):
        for _ in range(round(longest / PERIOD)):
            if self.step().mode in modes:
                return
        raise AssertionError(f'{self.outputs.mode} after {longest} s')


LOW = np.array([-1.2, -0.3])  # a pose from which a stop is short [rad]


@pytest.mark.slow
@pytest.mark.parametrize('steps', [120, pytest.param(10_000, marks=pytest.mark.long)])
def test_a_real_controller_is_never_tripped(steps):
    """Enable, ramp, motion, limits lowered and raised, stops, faults and enabling again."""
    robot = robot_named('planar_2r')
    plant = PinocchioPlant(robot)
    plant.reset(LOW, np.zeros(2))
    loop = Guarded(
        robot, plant, terms=('gravity', 'computed_torque'), ramp_time=0.2,
        gains_bandwidth=8.0, stop_time=0.5, limits_following_error=1.0,
    )  # fmt: skip
    names = robot.joint_names
    low = {'effort': np.array([3.0, 1.0])}
    relayed = 0
    for turn in range(3):
        loop.run(0.05)
        loop.begin(0.3, enable=True)
        assert loop.outputs.mode is Mode.ACTIVE
        goal = loop.q + np.array([[0.0, 0.0], [0.4, -0.6], [0.0, 0.0]])
        loop.begin(0.6, trajectory=JointTrajectory(names, np.array([0.0, 0.3, 0.6]), goal))
        if turn == 1:
            loop.limit_guard(**low)
            loop.run(0.1)
            loop.begin(0.3, limits=low)
            assert abs(loop.outputs.torque[0]) <= 3.0
            loop.limit_guard(effort=[100.0, 50.0])
            loop.begin(0.3, limits={'effort': np.array([100.0, 50.0])})
        if turn == 2:
            loop.step(emergency_stop=True)
            assert loop.outputs.fault is not None
            loop.until(Mode.FAULT)
            while loop.step().torque is not None:
                pass
            loop.step(emergency_stop=False, clear_fault=True)
        else:
            loop.step(enable=False)
            loop.until(Mode.DISABLED)
        relayed += loop.guard.is_relaying
        loop.run(0.1 if turn == 0 else 0.01)  # a new stream, or the same
    assert relayed == 3
    loop.step(enable=True)
    loop.run(PERIOD * steps)
    assert loop.passed.mode is Mode.ACTIVE


@pytest.mark.slow
def test_a_real_controller_in_volts_is_never_tripped():
    robot = robot_named('pendubot')
    plant = PinocchioPlant(robot)
    plant.reset(np.array([0.0, np.pi]), np.zeros(2))  # hanging
    loop = Guarded(robot, plant, latest=0.01, terms=('balance',), ramp_time=0.0)
    for changes in ({}, {'effort_rate': np.array([60.0, 0.0])}):
        loop.limit_guard(**changes)
        loop.step(enable=True, limits=changes or None)
        loop.run(1.0)
        assert max(abs(h[2][0]) for h in loop.history) > 5.0  # it swings
        loop.until(Mode.ACTIVE, Mode.FAULT)
        loop.step(enable=False)
        while loop.step().torque is not None:
            pass
        loop.begin(0.1, clear_fault=True)
        assert loop.passed.mode is Mode.DISABLED


def test_a_real_controller_of_seventeen_joints_is_never_tripped():
    robot = robot_named('krang')
    terms = ('gravity', 'friction', 'computed_torque', 'joint_limits')
    loop = Guarded(robot, PinocchioPlant(robot), terms=terms, ramp_time=0.2, gains_bandwidth=8.0)
    loop.begin(0.25, enable=True)
    goal = robot.home + 0.2 * (np.arange(17) > 0)
    points = np.array([robot.home, goal])
    loop.begin(0.3, trajectory=JointTrajectory(robot.joint_names, np.array([0.0, 0.5]), points))
    loop.begin(0.2, enable=False)
    assert loop.guard.is_relaying


@pytest.mark.slow
@pytest.mark.parametrize('v', [(0.0, 0.0), (-0.5, 0.5)], ids=['at rest', 'moving'])
def test_a_take_over_lowers_the_arm_slowly(v):
    robot = robot_named('planar_2r')
    plant = PinocchioPlant(robot)
    plant.reset(np.array([-0.8, 0.6]), np.zeros(2))
    loop = Guarded(robot, plant, latest=0.002, terms=('gravity', 'computed_torque'))
    loop.begin(0.3, enable=True)
    loop.is_alive = False
    loop.plant._v = np.array(v)
    begin = len(loop.history)
    while loop.passed.fault is None:
        loop.step()
    assert loop.passed.fault.kind == 'silence'
    while loop.passed.command is not None:
        loop.step()
    assert len(loop.history) - begin <= LONGEST_STOP / PERIOD
    loop.run(0.5)
    fastest = tip_speeds(robot, loop.history[begin:]).max()
    first = tip_speeds(robot, loop.history[begin : begin + 1])[0]
    assert fastest <= max(HAND_SPEED, 1.05 * first)
    assert loop.q == pytest.approx([-np.pi / 2, 0.0], abs=0.1)


def tip_speeds(robot, history):
    return np.array([np.linalg.norm((robot.jacobian(q, 'tip') @ v)[:3]) for _, q, v, _ in history[::5]])


def test_without_a_guard_that_takes_over_the_arm_would_not_come_down_so_slowly():
    robot = robot_named('planar_2r')
    plant = PinocchioPlant(robot)
    weight = robot.gravity_torque(robot.home)
    fastest = 0.0
    for _ in range(2000):  # a driver that keeps the last command, of an arm that is not at rest
        plant.step(0.9 * weight, PERIOD)
        fastest = max(fastest, float(-(robot.jacobian(plant.q, 'tip') @ plant.v)[2]))
    assert fastest > HAND_SPEED


# -- against invalid inputs ----------------------------------------------------------------------------

SCENE = 25  # steps
ALWAYS = 'good recover quiet burst end blind states'.split()  # scenes that are so at every step
CAMPAIGN = [  # robot, stop policy, scenes
    ('planar_2r', None, 100),
    pytest.param('planar_2r', None, 400, marks=pytest.mark.long),
    ('planar_2r', 'hold', 160),
    ('pendubot', None, 160),
    ('krang', None, 160),
]


class Adversary:
    """A robot and a controller that behave, but for what the scene does to them."""

    def __init__(self, guard, dice):
        self.guard, self.robot, self.limits, self.dice = guard, guard.robot, guard.limits, dice
        self.order = [self.robot.joint_names.index(name) for name in guard.drivers.names]
        self.label = ','.join(guard.drivers.names)
        supply = [self.robot.config.joints[name].motor.supply or inf for name in guard.drivers.names]
        self.supply = np.array(supply)
        self.effort = guard.limits.effort.copy()
        self.time, self.q, self.v = START, self.robot.home, np.zeros(self.robot.nv)
        self.held = np.zeros(self.robot.nv)  # torque that the guard itself gives
        self.begin_anew()

    def begin_anew(self):
        """Enabled, a controller goes on from the torque that there is."""
        self.torque, self.goal, self.waiting = self.held, self.held, []
        if self.dice.random() < 0.2:
            self.torque = self.dice.uniform(-1.5, 1.5) * self.limits.effort

    def with_limits(self, effort):
        """The guard's settings with another effort limit, and with the rates that it has."""
        rate = self.limits.effort_rate
        return self.guard.settings.replace(limits_effort=effort, limits_effort_rate=rate)

    def play(self, scene):
        for k in range(SCENE):
            self.k = k
            self.time += PERIOD
            self.v = 0.9 * self.v + self.dice.gauss(0, 0.02)
            self.q = self.robot.home + 0.9 * (self.q + PERIOD * self.v - self.robot.home)
            inputs = GuardInputs(self.time, self.time + AHEAD, [self.sample()], commands=[self.command()])
            if scene in ALWAYS or self.dice.random() < 0.15:
                getattr(self, f'do_{scene}')(inputs)
            yield inputs

    def sample(self, **changes):
        message = (self.robot.joint_names, self.q.copy(), self.v.copy(), [], self.time + AHEAD, self.time)
        return JointSamples(**{**dict(zip(JointSamples.__annotations__, message, strict=True)), **changes})

    def walk(self):
        """The torque of a controller that goes to its goal at most of the rate."""
        if self.dice.random() < 0.05:
            self.goal = np.array([self.dice.uniform(-0.9, 0.9) for _ in self.effort]) * self.limits.effort
        step = 0.9 * self.limits.effort_rate * PERIOD
        self.torque = self.torque + np.clip(self.goal - self.torque, -step, step)
        return self.torque

    def command(self, torque=None, **changes):
        torque = self.walk() if torque is None else torque
        values = np.clip(self.robot.motors.command(torque, self.v)[self.order], -self.supply, self.supply)
        label = self.dice.choice(['', self.label])
        return Command(**{'values': values, 'label': label, 'arrival': self.time, **changes})

    # One method per scene.

    def do_good(self, inputs):
        if self.dice.random() < 0.1:
            inputs.commands = []

    def do_burst(self, inputs):
        self.waiting += inputs.commands
        inputs.commands = []
        if self.dice.random() < 0.1 or len(self.waiting) >= 20:
            inputs.commands, self.waiting = self.waiting, []

    def do_end(self, inputs):
        self.goal = np.zeros(self.robot.nv)
        if not self.torque.any():
            inputs.commands = [self.command(values=np.zeros(len(self.order)))]

    def do_quiet(self, inputs):
        self.later(inputs, 3e-3)
        inputs.commands = []

    def do_recover(self, inputs):
        """Long enough for a stop to end."""
        self.v = np.zeros(self.robot.nv)
        self.later(inputs, 0.075)
        inputs.commands, inputs.clear_fault = [], self.k >= SCENE - 3
        inputs.emergency_stop = False
        self.begin_anew()
        inputs.settings = self.with_limits(effort=self.effort)

    def later(self, inputs, dt):
        self.time += dt
        inputs.time, inputs.clock, inputs.samples = self.time, self.time + AHEAD, [self.sample()]

    def do_values(self, inputs):
        values = inputs.commands[0].values.copy()
        values[self.dice.randrange(len(values))] = self.dice.choice([nan, inf, -inf, 1e308, -1e9, 5e-324])
        inputs.commands = [*inputs.commands, self.command(values=values)]

    def do_shape(self, inputs):
        values = inputs.commands[0].values
        wrong = [values[1:], np.zeros(0), np.append(values, 0.0), values[None], None, values.tolist()]
        inputs.commands = [self.command(values=self.dice.choice(wrong)), self.command()]

    def do_label(self, inputs):
        wrong = [self.label[1:], self.label + ',', 'other', ','.join(self.label.split(',')[::-1]) + ' ']
        inputs.commands = [self.command(label=self.dice.choice(wrong))]

    def do_jump(self, inputs):
        inputs.commands = [self.command(self.dice.uniform(-1, 1) * self.limits.effort)]

    def do_beyond(self, inputs):
        self.goal = self.dice.choice([-1.5, 1.5]) * self.limits.effort

    def do_arrival(self, inputs):
        late = [self.time - 0.04, self.time - 0.2, self.time + 9.0, nan, inf, -inf, 0.0]
        inputs.commands = [self.command(arrival=self.dice.choice(late))]

    def do_blind(self, inputs):
        self.later(inputs, 0.03)
        inputs.samples = []

    def do_states(self, inputs):
        n = self.robot.nv
        wrong = [{'position': np.full(n, nan)}, {'velocity': np.full(n, inf)}, {'position': np.zeros(n + 1)},
                 {'names': ('x',) * n}, {'stamp': -1.0}, {'stamp': self.time + AHEAD + 50.0}]  # fmt: skip
        self.later(inputs, 0.02)
        inputs.samples = [self.sample(**self.dice.choice(wrong))]

    def do_publisher(self, inputs):
        inputs.other_publisher = self.dice.random() < 0.3

    def do_clear(self, inputs):
        inputs.clear_fault = True

    def do_time(self, inputs):
        self.time += self.dice.choice([-1e-3, -0.05, -5.0, 0.04, 0.2, 1e5])
        inputs.time = self.time if self.dice.random() < 0.7 else self.dice.choice([nan, inf, -inf])

    def do_limits(self, inputs):
        share = self.dice.choice([0.0, 0.1, 0.5, 1.0])
        inputs.settings = self.with_limits(effort=share * self.effort)

    def do_speed(self, inputs):
        self.v = self.v + self.dice.choice([-1.0, 0.3, 3.0])
        inputs.samples = [self.sample()]

    def do_load(self, inputs):
        frame = self.dice.choice([*self.robot.config.end_effectors, 'nowhere'])
        inputs.payloads = [Payload(frame, self.dice.choice([1.0, 3.0]), np.zeros(3), np.zeros((3, 3)))]
        inputs.gravity = self.dice.choice([None, np.array([0.0, 3.0, -9.0]), np.full(3, nan), 'down'])

    def do_emergency(self, inputs):
        inputs.emergency_stop = self.dice.choice([True, False])

    def do_speeding(self, inputs):
        self.v = self.v + 1.5 * self.limits.velocity
        inputs.samples = [self.sample()]

    def do_travel(self, inputs):
        far = np.minimum(self.robot.upper, 10.0) + 0.1
        inputs.samples = [self.sample(position=far)]

    def do_controller(self, inputs):
        mass, frame = self.dice.choice([0.0, 1.0, 9.0, nan]), self.robot.config.end_effectors[0]
        payload = [{'frame': frame, 'mass': mass, 'com': [0.0] * 3, 'inertia': np.zeros((3, 3))}]
        gravity = self.dice.choice([[0.0, 0.3, -9.7], [9.8, 0.0, 0.0], [], [nan] * 3])
        inputs.controller = announced(self, payload=payload, gravity=gravity)

    def do_release(self, inputs):
        inputs.release = True

    def do_hand_over(self, inputs):
        inputs.hand_over = True


WORDS = [name.removeprefix('do_') for name in vars(Adversary) if name.startswith('do_')]


class Monitor:
    """Checks every step by its inputs and outputs, and knows the promises only."""

    def __init__(self, guard, adversary):
        self.guard, self.adversary = guard, adversary
        self.robot, self.limits, self.motors = guard.robot, guard.limits, guard.robot.motors
        self.policy = guard.settings.stop_policy or self.robot.config.stop.policy
        self.peak = np.array([self.robot.urdf.joints[name].effort for name in self.robot.joint_names])
        self.time, self.elapsed = START, 0.0  # [s]; the second only goes forward
        self.received = self.fresh = -inf  # when a command and a whole state last came [s]
        self.efforts = [(0.0, self.limits.effort)]  # limits of late, and since when [s]
        self.speeds = [(0.0, 0.0, np.zeros(self.robot.nv))]  # since when, way that they went, speeds of late
        self.flight = []  # when, and torque at rest, of what was sent since the last pause
        self.mode, self.fault, self.sent, self.was_own = Mode.DISABLED, None, None, False
        self.counted = {'steps': 0, 'relayed': 0, 'own': 0}
        self.kinds = set()

    def check(self, inputs, outputs):
        now = inputs.time if isfinite(inputs.time) else self.time
        self.dt, self.time = max(0.0, now - self.time), now
        self.elapsed += self.dt
        self.follow(inputs, now)
        command = outputs.command
        if command is None:
            self.check_silence(outputs, now)
        else:
            self.check_source(inputs, outputs, now)
            self.check_numbers(outputs)
            self.check_rate(command)
        self.check_latch(inputs, outputs, now)
        self.counted['steps'] += 1
        self.counted['relayed'] += outputs.relayed
        self.counted['own'] += command is not None and not outputs.relayed
        self.kinds |= {outputs.fault.kind} if outputs.fault else set()
        self.mode, self.fault = outputs.mode, outputs.fault
        self.was_own = command is not None and not outputs.relayed
        self.sent = command if command is not None else self.sent

    def follow(self, inputs, now):
        for c in inputs.commands:
            arrival = c.arrival if c.arrival <= now else now
            self.received = arrival if now - arrival <= SILENCE else self.received
        if inputs.samples and np.array_equal(inputs.samples[-1].velocity, self.adversary.v):
            self.fresh = now
        if self.limits.effort is not self.efforts[-1][1]:
            self.efforts.append((self.elapsed, self.limits.effort))
        while len(self.efforts) > 1 and self.elapsed - self.efforts[1][0] > 3.0:
            del self.efforts[0]
        if self.motors.drag.any():
            _, way, v = self.speeds[-1]
            seen = self.guard.state.buffer.v
            self.speeds = [s for s in self.speeds if self.elapsed - s[0] < 0.25]
            self.speeds.append((self.elapsed, way + np.abs(seen - v).max(), seen))

    def check_silence(self, outputs, now):
        """Torque in flight is neither kept for long without commands nor ended without a stop."""
        if outputs.mode is Mode.ACTIVE:
            assert abs(now - self.received) <= SILENCE
        elif self.sent is not None and self.sent.any():
            raise AssertionError(f'{self.sent} was left in flight')
        else:
            self.flight = []
        assert not (self.was_own and self.sent.any())

    def check_source(self, inputs, outputs, now):
        if not outputs.relayed:
            assert outputs.mode in (Mode.FAULT, Mode.STOPPING) or not outputs.command.any()
            return
        assert any(outputs.command is c.values for c in inputs.commands)
        assert all(
            c.label in ('', self.adversary.label) for c in inputs.commands if c.values is outputs.command
        )
        assert outputs.mode is Mode.ACTIVE
        assert outputs.fault is None
        assert not inputs.other_publisher
        assert not any((inputs.emergency_stop, inputs.release, inputs.hand_over))
        assert (np.abs(self.guard.state.buffer.v) <= self.limits.velocity).all()
        assert abs(now - self.fresh) <= STATE_TIMEOUT
        if not self.flight:  # a beginning
            self.check_within(outputs.command, self.limits.effort)

    def check_numbers(self, outputs):
        """P1 and P2: in the drivers' unit, and as torque at one of the speeds of late."""
        command = outputs.command
        assert command.shape == (len(self.adversary.order),)
        assert np.isfinite(command).all()
        assert (np.abs(command) <= self.adversary.supply).all()
        self.check_within(command, np.max([effort for _, effort in self.efforts], axis=0))

    def check_within(self, command, effort):
        full, order = np.zeros(self.robot.nv), self.adversary.order
        full[order] = command
        speeds = [v for _, _, v in self.speeds]
        unseen = np.where(self.motors.drag > 0, 0.1 * self.limits.velocity, 0.0)
        low = self.motors.torque(full, np.max(speeds, axis=0) + unseen)[order]
        high = self.motors.torque(full, np.min(speeds, axis=0) - unseen)[order]
        bound = np.minimum(effort, self.peak)[order] + 1e-6
        # The end of a stop, or volts that the supply holds back, give what torque they give.
        free = (not command.any()) | (np.abs(command) >= self.adversary.supply)
        assert (free | ((low <= bound) & (high >= -bound))).all(), (command, bound)

    def check_rate(self, command):
        """P3: between any two commands of late. Volts may also change as speeds did."""
        full, drag = np.zeros(self.robot.nv), self.motors.drag
        full[self.adversary.order] = command
        torque = self.motors.torque(full, np.zeros(self.robot.nv))
        if drag.any() and not command.any():
            self.flight = []
        if self.flight:
            when, before = map(np.array, zip(*self.flight, strict=True))
            rate = np.maximum(self.limits.effort_rate, self.limits.stop_rate)
            way = self.speeds[-1][1] - self.speeds[0][1]
            bound = (self.elapsed - when + JITTER)[:, None] * rate + 1e-6
            bound += np.where(drag > 0, drag * (3 * way + 0.6 * self.limits.velocity), 0.0)
            assert (np.abs(torque - before) <= bound).all(), (torque, before, bound)
        self.flight = [*self.flight[-20:], (self.elapsed, torque)]

    def check_latch(self, inputs, outputs, now):
        if self.fault is None or outputs.fault is self.fault:
            return
        assert outputs.fault is None
        assert inputs.clear_fault
        assert not abs(now - self.received) <= SILENCE
        assert not self.was_own or not self.sent.any() or self.policy == 'hold'


def campaign(name, policy, scenes, throw=0):
    slow = {'stop_rate': [31.0, 0.0], 'limits_effort': [1.5, 0.0], 'limits_effort_rate': [31.0, 0.0]}
    settings = {'stop_policy': policy, 'stop_time': 0.1, 'stop_blind_time': 0.1}
    settings |= slow if name == 'pendubot' else {}  # slow enough to be noticed
    guard = Guard(robot_named(name), GuardSettings(**settings))
    dice = random.Random(throw)
    adversary = Adversary(guard, dice)
    monitor = Monitor(guard, adversary)
    words, deck = [], []
    for _ in range(scenes):
        deck = deck or dice.sample(WORDS, len(WORDS))
        words = words or [*dice.choice([['recover', 'good'], ['good'], []]), 'good', deck.pop()]
        for inputs in adversary.play(words.pop(0)):
            outputs = guard.step(inputs)
            monitor.check(inputs, outputs)
            if policy == 'hold':
                adversary.held = np.zeros(2) if outputs.command is None else outputs.command
    return monitor


@pytest.mark.slow
@pytest.mark.parametrize(('name', 'policy', 'scenes'), CAMPAIGN)
def test_the_promises_hold_at_the_guards_output_for_any_input(name, policy, scenes, monkeypatch):
    if name == 'pendubot':  # so that volts mean a narrow range of torque
        monkeypatch.setattr(limits, 'OVERSPEED', 2.0 / robot_named(name).velocity_limits[0])
    monitor = campaign(name, policy, scenes)
    assert monitor.counted['steps'] == SCENE * scenes
    assert monitor.counted['relayed'] >= 0.15 * monitor.counted['steps']
    assert monitor.counted['own'] >= 0.03 * monitor.counted['steps']
    assert monitor.kinds >= {'command', 'silence', 'state'}


def test_a_stop_of_the_guard_knows_that_a_position_has_jumped():
    """The controller faults; if it dies, the guard lowers the robot as slowly as the controller would."""
    line = Line()
    gravity = line.robot.gravity_torque(line.q)
    for _ in range(20):
        line.step(gravity)
    jumps = line.guard.state.jumps
    assert not jumps.is_doubted
    line.q = line.q + np.array([0.0, 0.3])
    line.step(gravity)
    assert (line.fault, jumps.is_doubted) == (None, True)
    for _ in range(round(PROMISED / PERIOD) + 1):
        line.step()
    assert line.fault == 'silence'
    assert line.guard.state.stop_state(line.limits).is_doubted
