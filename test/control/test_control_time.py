"""The controller's time: the steady clock, or a simulated one with a backstop."""

import random

import pytest

from krang_dynamics.control.session import AHEAD, BACKSTOP, ControlTime

STEADY = 5000.0  # start of the steady clock [s]
DT = 0.001  # of the simulator [s]


def now(control, steady, clock, is_sending=True):
    """The time, by default with torque in flight."""
    return control.now(steady, clock, is_sending)


# -- steady --------------------------------------------------------------------------------------------


def test_without_simulation_it_is_the_steady_clock_whatever_the_node_clock_shows():
    control = ControlTime(is_simulated=False)
    for steady, clock in ((1.0, 1e9), (2.0, 5.0), (2.5, 0.0), (2.5, float('nan'))):
        control.take_stamp(clock + 0.5, clock)
        assert now(control, steady, clock) == steady


# -- simulated -----------------------------------------------------------------------------------------


@pytest.mark.parametrize('pace', [0.1, 1.0, 10.0])
def test_a_running_simulated_clock_is_the_time_at_any_pace(pace):
    control = ControlTime(is_simulated=True)
    for k in range(5000):
        assert now(control, STEADY + k * DT / pace, 3.0 + k * DT) == 3.0 + k * DT


def test_a_clock_that_stands_still_stops_the_time_until_the_backstop():
    assert BACKSTOP == 2.0
    control = ControlTime(is_simulated=True)
    now(control, STEADY, 3.0)
    for waited in (0.5, 1.0, 1.999, 2.0):
        assert now(control, STEADY + waited, 3.0) == 3.0


def test_after_the_backstop_time_continues_at_the_steady_pace():
    control = ControlTime(is_simulated=True)
    now(control, STEADY, 3.0)
    for waited in (2.001, 2.5, 10.0, 1000.0):
        assert now(control, STEADY + waited, 3.0) == pytest.approx(3.0 + waited - 2.0)


def test_a_clock_that_moves_in_time_never_reaches_the_backstop():
    control = ControlTime(is_simulated=True)
    for k in range(10):
        assert now(control, STEADY + 1.9 * k, 3.0 + k * DT) == 3.0 + k * DT
        assert now(control, STEADY + 1.9 * k + 1.8, 3.0 + k * DT) == 3.0 + k * DT


def test_a_clock_that_resumes_is_the_time_again():
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
    """A time held at the newest state would hide that no newer one arrives."""
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


def test_a_clock_without_a_message_does_not_stop_the_time_forever():
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


# -- states that are ahead of the clock ----------------------------------------------------------------


def test_a_state_before_its_clock_message_advances_the_time():
    control = ControlTime(is_simulated=True)
    assert now(control, STEADY, 3.000) == 3.000
    control.take_stamp(3.001, 3.000)
    for _ in range(3):  # repeated calls do not set it back
        assert now(control, STEADY, 3.000) == 3.001
    assert now(control, STEADY + DT, 3.001) == 3.001
    assert now(control, STEADY + 2 * DT, 3.002) == 3.002


def test_states_ahead_of_a_clock_that_stands_still_advance_the_time():
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


def test_time_never_goes_back_while_clock_and_states_advance():
    control, last = ControlTime(is_simulated=True), 0.0
    chance = random.Random(1)
    clock = state = 3.0
    for k in range(3000):
        if chance.random() < 0.5:
            state = max(state, clock) + DT * chance.random()
            control.take_stamp(state, clock)
        if chance.random() < 0.5:
            clock = max(clock, state - DT) + DT * chance.random()
        moment = now(control, STEADY + k * DT, clock)
        assert moment >= last
        last = moment
