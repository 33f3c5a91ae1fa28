"""A session: collecting, watchdog, automatic enable, requests and time, without ROS."""

import random
from types import SimpleNamespace

import numpy as np
import pytest
from harness import AHEAD as OFFSET
from harness import PERIOD as STEP
from harness import START, Harness, message, robot_named

from krang_dynamics.control.sensors import ImuSample, OdomSample
from krang_dynamics.control.session import AHEAD, BACKSTOP, PERIOD, ControlTime, Session, seconds
from krang_dynamics.control.settings import Settings
from krang_dynamics.control.terms.wrench import WrenchSample
from krang_dynamics.errors import InputError
from krang_dynamics.safety.joint_buffer import JointSamples
from krang_dynamics.safety.modes import Mode

STEADY = 5000.0  # of a computer that has been up for a while [s]
DT = 0.001  # of the simulator [s]
HOME = [0.6, 0.8]
IDENTITY = np.array([0.0, 0.0, 0.0, 1.0])


def session_of(robot='planar_2r', **settings):
    session = Session(robot_named(robot), Settings(ramp_time=0.0, **settings))
    session.activate()
    return session


def state(session, time, **changes):
    """A whole state of the robot at home and at rest."""
    robot = session.controller.robot
    zero = np.zeros(robot.nv)
    fields = (robot.joint_names, robot.home, zero, zero, time + OFFSET, time)
    return JointSamples(**{**dict(zip(JointSamples.__annotations__, fields, strict=True)), **changes})


def trajectory(*points):
    """A trajectory_msgs/JointTrajectory with points (time [s], positions), as far as it is read."""
    return SimpleNamespace(
        header=SimpleNamespace(stamp=SimpleNamespace(sec=0, nanosec=0)),
        joint_names=['joint_1', 'joint_2'],
        points=[
            SimpleNamespace(
                time_from_start=SimpleNamespace(sec=time, nanosec=0),
                positions=positions,
                velocities=[],
                accelerations=[],
                effort=[],
            )
            for time, positions in points
        ],
    )


# -- collecting ----------------------------------------------------------------------------------------


def test_a_step_is_due_when_all_joints_were_received():
    session = session_of()
    parts = [{'names': (name,), **dict.fromkeys(('position', 'velocity', 'effort'), np.zeros(1))}
             for name in ('joint_1', 'joint_2')]  # fmt: skip
    assert [session.take_states(state(session, 1.0, **part)) for part in parts] == [False, True]
    session.step(1.0, 1.0 + OFFSET)
    assert not session.take_states(state(session, 1.001, **parts[0]))


def test_an_inactive_session_makes_no_steps_and_keeps_no_states():
    session = session_of()
    session.deactivate()
    assert not session.take_states(state(session, 1.0))
    assert session.watch(1.0, 1.0 + OFFSET) is None
    session.activate()
    assert session.take_states(state(session, 1.001))


def test_states_wait_for_an_inertial_unit_with_the_same_stamps():
    session = session_of('krang')

    def unit(time):
        return ImuSample(IDENTITY, np.zeros(3), time + OFFSET, time)

    for time in (1.0, 1.001):
        session.take_imu(unit(time))
        assert session.take_states(state(session, time))
        session.step(time, time + OFFSET)
    assert not session.take_states(state(session, 1.002))
    assert session.take_imu(unit(1.002))


def test_odometry_reaches_the_step():
    session = session_of('otbot', terms=('rolling_base',))
    pose = OdomSample(0.3, -0.2, IDENTITY, np.zeros(3), np.zeros(3), 1.0 + OFFSET, 1.0)
    session.take_odom(pose)
    wheels = ('right_wheel', 'left_wheel', 'pivot')
    three = dict.fromkeys(('position', 'velocity', 'effort'), np.zeros(3))
    assert session.take_states(state(session, 1.0, names=wheels, **three))
    assert session.step(1.0, 1.0 + OFFSET).refused == []
    assert session.controller.state.buffer.newest == 1.0 + OFFSET


def test_the_stamp_of_the_newest_state_is_kept_for_the_command():
    session = session_of()
    session.take_states(state(session, 1.0), (1001, 500))
    session.step(1.0, 1.0 + OFFSET)
    assert session.answered == (1001, 500)


# -- watchdog ------------------------------------------------------------------------------------------


def test_the_watchdog_steps_where_no_step_was_made_for_a_period():
    loop = Harness().start()
    watch = loop.session.watch
    assert watch(loop.time + 0.9 * PERIOD, loop.clock) is None
    assert watch(loop.time + 1.1 * PERIOD, loop.clock + PERIOD) is not None
    assert watch(loop.time + 2.0 * PERIOD, loop.clock + PERIOD) is None


def test_the_watchdog_alone_stops_a_robot_without_states():
    loop = Harness().start()
    time, faults = loop.time, []
    while len(faults) < 50:
        time += PERIOD
        outputs = loop.session.watch(time, time + OFFSET)
        faults.append(outputs.fault.kind if outputs.fault else None)
    first = faults.index('state') + 1
    assert first * PERIOD == pytest.approx(loop.settings.state_timeout, abs=1.5 * PERIOD)
    assert set(faults[first:]) == {'state'}


# -- automatic enable ----------------------------------------------------------------------------------


def feed(session, begin, count=200):
    """Steps with states at STEP, and the watchdog after each; the time of the last."""
    for k in range(count):
        time = begin + k * STEP
        if session.take_states(state(session, time)):
            session.step(time, time + OFFSET)
        session.watch(time, time + OFFSET)
    return time


def test_auto_enable_waits_until_the_rate_is_known_and_enables_once():
    session = session_of(auto_enable=True)
    session.watch(1.0, 1.0 + OFFSET)
    feed(session, 1.01, 90)
    assert (session.controller.safety.mode, session.is_enable_pending) == (Mode.DISABLED, True)
    time = feed(session, 1.1, 30)
    assert (session.controller.safety.mode, session.is_enable_pending) == (Mode.ACTIVE, False)
    session.enable(False, time + STEP, time + STEP + OFFSET)
    feed(session, time + 2 * STEP, 50)
    assert session.controller.safety.mode is Mode.STOPPING


def test_a_refusal_uses_up_auto_enable():
    session = session_of(auto_enable=True)
    session.other_publisher = True
    time = feed(session, 1.0)
    assert not session.is_enable_pending
    session.other_publisher = False
    feed(session, time + STEP)
    assert session.controller.safety.mode is Mode.DISABLED


def test_a_fault_uses_up_auto_enable_and_clear_fault_does_not_enable():
    session = session_of(auto_enable=True)
    session.take_emergency_stop(message(True))
    time = feed(session, 1.0)
    assert (session.controller.safety.mode, session.is_enable_pending) == (Mode.FAULT, False)
    session.take_emergency_stop(message(False))
    session.step(time + STEP, time + STEP + OFFSET)
    session.step(time + 2 * STEP, time + 2 * STEP + OFFSET, clear_fault=True)
    feed(session, time + 3 * STEP)
    assert session.controller.safety.mode is Mode.DISABLED


def test_auto_enable_counts_states_from_activation():
    session = session_of(auto_enable=True)
    session.controller.state.buffer.state_rate.add(0.5)
    session.deactivate()
    session.activate()
    feed(session, 0.61, 50)
    assert session.is_enable_pending


def test_a_heartbeat_from_before_activation_does_not_count():
    session = session_of(deadman_required=True, limits_state_rate=0.0)
    session.deactivate()
    session.take_deadman(message(True))
    session.activate()
    session.take_states(state(session, 1.0))
    assert 'no heartbeat' in session.enable(True, 1.0, 1.0 + OFFSET).refused[0]
    session.take_deadman(message(True))
    assert session.enable(True, 1.001, 1.001 + OFFSET).refused == []


@pytest.mark.parametrize('request_', ['enable', 'disable', 'deactivate'])
def test_a_request_ends_auto_enable_and_activation_begins_it_again(request_):
    session = session_of(auto_enable=True)
    if request_ == 'deactivate':
        session.deactivate()
    else:
        session.enable(request_ == 'enable', 1.0, 1.0 + OFFSET)
    assert not session.is_enable_pending
    session.activate()
    assert session.is_enable_pending


def test_without_auto_enable_nothing_is_sent_before_a_request():
    session = session_of()
    assert not session.is_enable_pending
    for k in range(200):
        time = 1.0 + k * STEP
        session.take_states(state(session, time))
        assert session.step(time, time + OFFSET).torque is None
    assert not session.is_sending
    assert session.enable(True, time, time + OFFSET).torque is not None
    assert session.is_sending


# -- requests ------------------------------------------------------------------------------------------


def test_a_trajectory_is_followed_from_the_next_step_and_its_reception_is_kept():
    loop = Harness(terms=('computed_torque',)).start()
    session = loop.session
    session.take_trajectory(trajectory((0, HOME)), received=123)
    assert session.followed == 0
    outputs = loop.step()
    assert (outputs.accepted, session.followed) == (True, 123)
    session.take_trajectory(trajectory((0, [4.0, 4.0])), received=456)
    outputs = loop.step()
    assert (outputs.accepted, session.followed) == (False, 123)
    assert outputs.refused[0].startswith('trajectory: ')


def test_a_trajectory_for_an_inactive_session_is_dropped():
    loop = Harness(terms=('computed_torque',)).start()
    loop.session.deactivate()
    loop.session.take_trajectory(trajectory((0, HOME)), received=123)
    loop.session.activate()
    assert not loop.step().accepted


def test_heartbeats_and_the_emergency_stop_reach_the_controller():
    loop = Harness(deadman_required=True)
    loop.session.take_deadman(message(True))
    assert loop.step(enable=True).mode is Mode.RAMPING
    loop.session.take_emergency_stop(message(True))
    loop.step()
    assert loop.fault == 'emergency_stop'


def test_a_press_that_is_released_before_the_next_step_still_stops():
    loop = Harness().start()
    for pressed in (True, False):
        loop.session.take_emergency_stop(message(pressed))
    loop.step()
    loop.step()
    assert loop.fault == 'emergency_stop'


def test_the_age_of_a_wrench_counts_from_the_step_that_takes_it():
    loop = Harness(terms=('gravity', 'wrench'), wrench_tip_convention='applied_by_robot').start()
    push = np.array([8.0, 0.0, -15.0, 0.0, 1.0, 0.0])
    loop.session.take_wrench(WrenchSample('tip', 'tip', push, loop.time - 50.0))
    expected = loop.robot.wrench_to_torque(loop.q, {'tip': push}, reference='local')
    np.testing.assert_allclose(loop.step().terms['wrench'], expected, rtol=1e-12)
    np.testing.assert_allclose(loop.run(0.09)[-1].terms['wrench'], expected, rtol=1e-12)
    assert not loop.run(0.3)[-1].terms['wrench'].any()


def test_another_publisher_is_part_of_every_step():
    loop = Harness().start()
    loop.session.other_publisher = True
    loop.session.take_states(loop.sample(stamp=loop.clock + STEP))
    outputs = loop.session.step(loop.time + STEP, loop.clock + STEP)
    assert outputs.fault.kind == 'publisher'


def test_other_settings_are_in_force_or_refused_with_the_reason():
    loop = Harness(damping=1.0).start()
    session, now = loop.session, loop.time + STEP
    session.change(loop.settings.replace(damping=3.0, ramp_time=0.2), now, now + OFFSET)
    assert (loop.settings.damping, loop.safety.ramp_time) == (3.0, 0.2)
    with pytest.raises(InputError, match=r'stop\.policy cannot change'):
        session.change(loop.settings.replace(damping=9.0, stop_policy='hold'), now, now + OFFSET)
    assert loop.settings.damping == 3.0
    assert loop.step(dt=2 * STEP).fault is None


# -- the same for all who drive it ---------------------------------------------------------------------


def test_two_sessions_with_the_same_inputs_give_the_same_bits():
    def run():
        loop = Harness('krang', terms=('gravity', 'computed_torque', 'observer')).start()
        assert loop.time > START
        return b''.join(o.command.tobytes() for o in loop.run(0.05))

    assert run() == run()


def test_nanoseconds_become_seconds_as_stamps_do():
    for sec, nanosec in ((0, 1), (1_700_000_000, 123_456_789), (12, 999_999_999), (3, 0)):
        assert seconds(sec * 1_000_000_000 + nanosec) == sec + 1e-9 * nanosec


def now(control, steady, clock, is_sending=True):
    """The time with torque in flight, unless given otherwise."""
    return control.now(steady, clock, is_sending)


# -- time: steady --------------------------------------------------------------------------------------


def test_on_a_real_robot_the_time_is_the_steady_clock():
    control = ControlTime(is_simulated=False)
    for steady, clock in ((1.0, 1e9), (2.0, 5.0), (2.5, 0.0), (2.5, float('nan'))):
        control.take_stamp(clock + 0.5, clock)
        assert now(control, steady, clock) == steady


# -- time: simulated -----------------------------------------------------------------------------------


@pytest.mark.parametrize('pace', [0.1, 1.0, 10.0])
def test_a_simulated_clock_is_the_time_at_any_pace(pace):
    control = ControlTime(is_simulated=True)
    for k in range(5000):
        assert now(control, STEADY + k * DT / pace, 3.0 + k * DT) == 3.0 + k * DT


def test_a_clock_that_stands_still_stops_the_time_until_the_backstop():
    assert BACKSTOP == 2.0
    control = ControlTime(is_simulated=True)
    now(control, STEADY, 3.0)
    for waited in (0.5, 1.0, 1.999, 2.0):
        assert now(control, STEADY + waited, 3.0) == 3.0


def test_after_the_backstop_time_goes_on_at_the_steady_pace():
    control = ControlTime(is_simulated=True)
    now(control, STEADY, 3.0)
    for waited in (2.001, 2.5, 10.0, 1000.0):
        assert now(control, STEADY + waited, 3.0) == pytest.approx(3.0 + waited - 2.0)


def test_a_clock_that_moves_often_enough_is_followed_exactly():
    control = ControlTime(is_simulated=True)
    for k in range(10):
        assert now(control, STEADY + 1.9 * k, 3.0 + k * DT) == 3.0 + k * DT
        assert now(control, STEADY + 1.9 * k + 1.8, 3.0 + k * DT) == 3.0 + k * DT


def test_a_clock_that_continues_is_the_time_again():
    control = ControlTime(is_simulated=True)
    now(control, STEADY, 3.0)
    assert now(control, STEADY + 10.0, 3.0) == pytest.approx(11.0)
    assert now(control, STEADY + 10.1, 3.1) == 3.1
    assert now(control, STEADY + 12.0, 3.1) == 3.1
    assert now(control, STEADY + 12.6, 3.1) == pytest.approx(3.6)


@pytest.mark.parametrize('back', [0.3, 0.999, 5.0, 30.0])
def test_a_clock_that_jumps_back_is_followed(back):
    control = ControlTime(is_simulated=True)
    for k in range(50):
        now(control, STEADY + k * DT, 30.0 + k * DT)
    for k in range(1, 4000):  # for longer than the backstop
        clock = 30.0 - back + k * DT
        assert now(control, STEADY + 0.05 + k * DT, clock) == clock


@pytest.mark.parametrize('back', [0.3, 5.0])
@pytest.mark.parametrize('silent', [False, True])
def test_a_clock_that_jumps_back_is_followed_though_states_were_ahead_of_it(back, silent):
    """Held at the newest state, time would hide that no newer one comes."""
    control = ControlTime(is_simulated=True)
    for k in range(50):
        clock = 30.0 + k * DT
        control.take_stamp(clock + DT, clock)
        now(control, STEADY + k * DT, clock)
    for k in range(1, 50):
        clock = 30.0 - back + k * DT
        if not silent:
            control.take_stamp(clock + DT, clock)
        assert now(control, STEADY + 0.05 + k * DT, clock) == pytest.approx(clock, abs=1.001 * DT)


def test_a_clock_that_was_never_received_does_not_stop_the_time_for_ever():
    """A node's simulated clock shows 0 before its first message."""
    control = ControlTime(is_simulated=True)
    first = now(control, STEADY, 0.0)
    assert now(control, STEADY + 10.0, 0.0) - first >= 7.0
    assert now(control, STEADY + 11.0, 0.004) == 0.004


def test_without_torque_in_flight_a_clock_may_stand_still_for_any_time():
    control = ControlTime(is_simulated=True)
    for waited in (0.0, 1.0, 3.0, 1000.0):
        assert now(control, STEADY + waited, 3.0, is_sending=False) == 3.0


def test_the_backstop_counts_from_when_torque_was_in_flight():
    control = ControlTime(is_simulated=True)
    for waited in (0.0, 100.0):
        now(control, STEADY + waited, 3.0, is_sending=False)
    assert now(control, STEADY + 101.9, 3.0) == 3.0
    assert now(control, STEADY + 102.5, 3.0) == pytest.approx(3.5)
    assert now(control, STEADY + 102.6, 3.0, is_sending=False) == 3.0


# -- time: states that are ahead of the clock ----------------------------------------------------------


def test_a_state_that_comes_before_its_clock_is_not_from_the_future():
    control = ControlTime(is_simulated=True)
    assert now(control, STEADY, 3.000) == 3.000
    control.take_stamp(3.001, 3.000)
    for _ in range(3):  # and time does not go back when it is asked again
        assert now(control, STEADY, 3.000) == 3.001
    assert now(control, STEADY + DT, 3.001) == 3.001
    assert now(control, STEADY + 2 * DT, 3.002) == 3.002


def test_states_ahead_of_a_clock_that_stands_still_keep_the_time_going():
    control = ControlTime(is_simulated=True)
    for k in range(500):
        control.take_stamp(3.0 + k * DT, 3.0)
        assert now(control, STEADY + 0.1 * k, 3.0) == pytest.approx(3.0 + k * DT)


@pytest.mark.parametrize('stamp', [0.0, 2.9, 3.0, 3.0 + 1.01 * AHEAD, 1e9, float('nan'), float('inf')])
def test_a_stamp_of_another_clock_does_not_count(stamp):
    control = ControlTime(is_simulated=True)
    now(control, STEADY, 3.0)
    control.take_stamp(stamp, 3.0)
    assert now(control, STEADY, 3.0) == 3.0
    assert now(control, STEADY + DT, 3.0 + DT) == 3.0 + DT


def test_time_never_goes_back_while_clock_and_states_go_on():
    control, last = ControlTime(is_simulated=True), 0.0
    chance = random.Random(1)
    clock = state = 3.0
    for k in range(3000):
        if chance.random() < 0.5:
            state = max(state, clock) + DT * chance.random()
            control.take_stamp(state, clock)
        if chance.random() < 0.5:
            clock = max(clock, state - DT) + DT * chance.random()
        present = now(control, STEADY + k * DT, clock)
        assert present >= last
        last = present
