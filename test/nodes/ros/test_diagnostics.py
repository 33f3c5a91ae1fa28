"""Diagnostics: the counts are right, and the levels follow ros2_control's thresholds."""

import statistics
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

with warnings.catch_warnings():
    warnings.simplefilter('ignore')  # the message generator's parser imports a deprecated module
    import rosidl_generator_py  # noqa: F401

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus

from krang_dynamics.nodes.ros.diagnostics import Running, Statistics, status_message

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
STAMP = Time(sec=5, nanosec=6)


def report(counters, mode='active', fault=None, period=1.0):
    array = counters.report('/arm/torque_controller', 'krang', STAMP, mode, fault, period)
    assert array.header.stamp == STAMP
    (status,) = array.status
    return status


def values(status):
    return {entry.key: entry.value for entry in status.values}


def states_at(counters, rate, start=0.0, duration=1.0):
    for k in range(round(rate * duration)):
        counters.state(start + k / rate)


def steps(counters, times):
    for microseconds in times:
        counters.step_time.add(microseconds)


# -- mean and deviation --------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(numbers=st.lists(st.floats(0, 1e5), min_size=1, max_size=50))
def test_mean_deviation_and_largest_are_those_of_the_numbers(numbers):
    running = Running()
    for number in numbers:
        running.add(number)
    assert running.count == len(numbers)
    assert running.mean == pytest.approx(statistics.fmean(numbers))
    assert running.deviation == pytest.approx(statistics.pstdev(numbers), rel=1e-6, abs=1e-2)
    assert running.largest == max(numbers)
    running.clear()
    assert (running.count, running.mean, running.deviation, running.largest) == (0, 0.0, 0.0, 0.0)


# -- rates ---------------------------------------------------------------------------------------------


def test_rates_are_counts_per_second():
    counters = Statistics()
    states_at(counters, 500, duration=2.0)
    counters.commands = 900
    told = values(report(counters, period=2.0))
    assert (told['state rate [Hz]'], told['command rate [Hz]']) == ('500.0', '450.0')


@pytest.mark.parametrize(
    ('rate', 'level'),
    [(100, OK), (105, OK), (95, OK), (106, WARN), (94, WARN), (110, WARN), (111, ERROR), (89, ERROR)],
)
def test_a_rate_that_is_5_or_10_hz_off_the_usual_one_is_told(rate, level):
    counters = Statistics()
    states_at(counters, 100)
    assert report(counters).level == OK
    states_at(counters, rate, start=1.0)
    status = report(counters)
    assert status.level == level
    assert ('state rate' in status.message) == (level != OK)


def test_states_that_stop_coming_are_an_error():
    counters = Statistics()
    states_at(counters, 200)
    report(counters)
    assert report(counters).level == ERROR


def test_the_usual_rate_is_learnt_though_the_first_second_was_not_a_whole_one():
    counters = Statistics()
    states_at(counters, 500, duration=0.3)
    assert report(counters).level == OK
    states_at(counters, 500, start=0.3)
    assert report(counters).level == OK
    states_at(counters, 400, start=1.3)
    assert report(counters).level == ERROR


def test_gaps_that_differ_do_not_make_the_usual_rate_another():
    """Two states per 2 ms, unevenly: that is 1 kHz, in the first, shortened second and later."""
    counters = Statistics()
    now = 10.0
    for count in (300, 1000):
        for k in range(count):
            now += 0.8e-3 if k % 2 else 1.2e-3
            counters.state(now)
        assert report(counters, period=1.0).level == OK


def test_two_states_at_almost_the_same_time_do_not_make_the_usual_rate_another():
    counters = Statistics()
    now = 10.0
    for count in (50, 100):
        for k in range(count):
            now += 20e-6 if k == 10 else 0.01
            counters.state(now)
        assert report(counters, period=1.0).level == OK


def test_while_nothing_is_sent_rates_and_times_are_nobodys_concern():
    counters = Statistics()
    states_at(counters, 200)
    report(counters)
    steps(counters, [1e5])
    for mode in ('disabled', 'inactive', 'fault'):
        status = report(counters, mode)
        assert (status.level, status.message) == (OK, mode)


# -- step times ----------------------------------------------------------------------------------------


@pytest.mark.parametrize('mode', ['ramping', 'active', 'stopping'])
@pytest.mark.parametrize(
    ('mean', 'level'), [(300, OK), (1000, OK), (1001, WARN), (2000, WARN), (2001, ERROR), (50_000, ERROR)]
)
def test_a_mean_step_time_beyond_1_or_2_ms_is_told(mean, level, mode):
    counters = Statistics()
    steps(counters, [mean - 50, mean + 50, mean - 50, mean + 50])
    status = report(counters, mode)
    assert status.level == level
    assert status.message.startswith(mode)
    told = values(status)
    assert told['step time mean [us]'] == str(mean)
    assert told['step time deviation [us]'] == '50'
    assert told['step time largest [us]'] == str(mean + 50)


@pytest.mark.parametrize(('deviation', 'level'), [(100, OK), (101, WARN), (200, WARN), (201, ERROR)])
def test_a_deviation_of_step_times_beyond_100_or_200_us_is_told(deviation, level):
    counters = Statistics()
    steps(counters, [500 - deviation, 500 + deviation] * 10)
    assert report(counters).level == level


def test_the_worst_of_all_is_told():
    counters = Statistics()
    steps(counters, [1500 - 300, 1500 + 300])  # a mean to warn of, a deviation that is an error
    status = report(counters)
    assert (status.level, 'deviation' in status.message) == (ERROR, True)


# -- latency -------------------------------------------------------------------------------------------


def histogram(counters):
    text = values(report(counters))['latency histogram [us]']
    return {int(slot.split(':')[0][1:]): int(slot.split(':')[1]) for slot in text.split()}


@pytest.mark.parametrize(
    ('microseconds', 'below'),
    [
        (0, 64),
        (1, 64),
        (63, 64),
        (64, 128),
        (127, 128),
        (128, 256),
        (999, 1024),
        (1024, 2048),
        (50_000, 65_536),
    ],
)
def test_a_latency_is_counted_below_its_bound(microseconds, below):
    counters = Statistics()
    counters.answered(microseconds)
    assert histogram(counters) == {below: 1}


@settings(max_examples=50, deadline=None)
@given(latencies=st.lists(st.integers(0, 2**21 - 1), max_size=100))
def test_the_histogram_counts_every_latency_once(latencies):
    counters = Statistics()
    for microseconds in latencies:
        counters.answered(microseconds)
    counted = histogram(counters)
    assert sum(counted.values()) == len(latencies)
    for bound, count in counted.items():
        low = 0 if bound == 64 else bound // 2
        assert count == sum(low <= x < bound for x in latencies)


@pytest.mark.parametrize('microseconds', [2**21, 10**9, 2**80])
def test_a_latency_beyond_all_bounds_is_counted_as_the_longest(microseconds):
    counters = Statistics()
    counters.answered(microseconds)
    assert histogram(counters) == {2**21: 1}


def test_a_clock_that_was_set_back_is_no_long_latency():
    counters = Statistics()
    for microseconds in (-1, -64, -(10**9)):
        counters.answered(microseconds)
    assert histogram(counters) == {64: 3}


# -- what else is said ---------------------------------------------------------------------------------


def test_limits_and_refusals_are_counted_and_the_last_refusal_is_told():
    counters = Statistics()
    counters.limited += 3
    counters.refuse(['one thing', 'another'])
    counters.refuse(['the last'])
    told = values(report(counters))
    assert (told['commands limited'], told['refused'], told['last refusal']) == ('3', '3', 'the last')


def test_every_report_begins_anew():
    counters = Statistics()
    states_at(counters, 100)
    counters.commands, counters.limited = 100, 7
    steps(counters, [5000.0])
    counters.answered(300)
    report(counters)
    states_at(counters, 100, start=1.0)
    told = values(report(counters))
    assert (told['command rate [Hz]'], told['commands limited']) == ('0.0', '0')
    assert (told['step time mean [us]'], told['step time largest [us]']) == ('0', '0')
    assert told['latency histogram [us]'] == ''


def test_refusals_are_counted_anew_too():
    counters = Statistics()
    counters.refuse(['one thing'])
    report(counters)
    assert values(report(counters))['refused'] == '0'


def test_a_fault_is_an_error_whatever_else_is_said():
    counters = Statistics()
    status = report(counters, 'fault', 'state: too old')
    assert (status.level, status.message) == (ERROR, 'state: too old')
    told = values(status)
    assert (told['mode'], told['fault']) == ('fault', 'state: too old')
    assert (status.name, status.hardware_id) == ('/arm/torque_controller', 'krang')


def test_a_status_without_numbers_has_mode_and_fault():
    (status,) = status_message('/guard', 'otbot', STAMP, 'relaying', None).status
    assert (status.level, status.message) == (OK, 'relaying')
    assert values(status) == {'mode': 'relaying', 'fault': ''}
    (status,) = status_message('/guard', 'otbot', STAMP, 'relaying', None, WARN, 'slow', {'x': '1'}).status
    assert (status.level, status.message, values(status)['x']) == (WARN, 'slow', '1')
