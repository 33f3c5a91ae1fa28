"""The controller's time: steady on a machine, the simulated clock where there is one, and no end of it."""

import random
import time

import pytest
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock

from krang_dynamics.control.control_time import AHEAD, BACKSTOP, ControlTime
from krang_dynamics.nodes.ros.node_base import QUIET, Shell

STEADY = 5000.0  # of a machine that has been up for a while [s]
DT = 0.001  # of the simulator [s]
LONG = 20.0  # for what should happen at once [s]


def now(control, steady, clock, is_sending=True):
    """The time with torque in flight, unless a test says otherwise."""
    return control.now(steady, clock, is_sending)


# -- steady --------------------------------------------------------------------------------------------


def test_on_a_machine_it_is_steady_time_whatever_the_clock_does():
    control = ControlTime(is_simulated=False)
    for steady, clock in ((1.0, 1e9), (2.0, 5.0), (2.5, 0.0), (2.5, float('nan'))):
        control.saw(clock + 0.5, clock)
        assert now(control, steady, clock) == steady


# -- simulated -----------------------------------------------------------------------------------------


@pytest.mark.parametrize('pace', [0.1, 1.0, 10.0])
def test_a_clock_that_runs_is_the_time_at_any_pace(pace):
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


def test_a_clock_that_moves_in_time_never_meets_the_backstop():
    control = ControlTime(is_simulated=True)
    for k in range(10):
        assert now(control, STEADY + 1.9 * k, 3.0 + k * DT) == 3.0 + k * DT
        assert now(control, STEADY + 1.9 * k + 1.8, 3.0 + k * DT) == 3.0 + k * DT


def test_a_clock_that_wakes_up_is_the_time_again():
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
        control.saw(clock + DT, clock)
        now(control, STEADY + k * DT, clock)
    for k in range(1, 50):
        clock = 30.0 - back + k * DT
        if not silent:
            control.saw(clock + DT, clock)
        assert now(control, STEADY + 0.05 + k * DT, clock) == pytest.approx(clock, abs=1.001 * DT)


def test_a_clock_that_never_came_does_not_stop_the_time_for_ever():
    """A node's simulated clock shows 0 before its first message."""
    control = ControlTime(is_simulated=True)
    first = now(control, STEADY, 0.0)
    assert now(control, STEADY + 10.0, 0.0) - first >= 7.0
    assert now(control, STEADY + 11.0, 0.004) == 0.004


def test_without_torque_in_flight_a_clock_may_stand_still_for_as_long_as_it_likes():
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


def test_a_state_that_comes_before_its_clock_is_not_from_the_future():
    control = ControlTime(is_simulated=True)
    assert now(control, STEADY, 3.000) == 3.000
    control.saw(3.001, 3.000)
    for _ in range(3):  # and time does not go back when it is asked again
        assert now(control, STEADY, 3.000) == 3.001
    assert now(control, STEADY + DT, 3.001) == 3.001
    assert now(control, STEADY + 2 * DT, 3.002) == 3.002


def test_states_ahead_of_a_clock_that_stands_still_keep_the_time_going():
    control = ControlTime(is_simulated=True)
    for k in range(500):
        control.saw(3.0 + k * DT, 3.0)
        assert now(control, STEADY + 0.1 * k, 3.0) == pytest.approx(3.0 + k * DT)


@pytest.mark.parametrize('stamp', [0.0, 2.9, 3.0, 3.0 + 1.01 * AHEAD, 1e9, float('nan'), float('inf')])
def test_a_stamp_of_another_clock_does_not_count(stamp):
    control = ControlTime(is_simulated=True)
    now(control, STEADY, 3.0)
    control.saw(stamp, 3.0)
    assert now(control, STEADY, 3.0) == 3.0
    assert now(control, STEADY + DT, 3.0 + DT) == 3.0 + DT


def test_time_never_goes_back_while_clock_and_states_go_on():
    control, last = ControlTime(is_simulated=True), 0.0
    chance = random.Random(1)
    clock = state = 3.0
    for k in range(3000):
        if chance.random() < 0.5:
            state = max(state, clock) + DT * chance.random()
            control.saw(state, clock)
        if chance.random() < 0.5:
            clock = max(clock, state - DT) + DT * chance.random()
        moment = now(control, STEADY + k * DT, clock)
        assert moment >= last
        last = moment


# -- on a node -----------------------------------------------------------------------------------------


class ShellNode(Shell, Node):
    """The least that has a time."""


@pytest.fixture
def make(context):
    nodes = []

    def make(**parameters):
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        nodes.append(ShellNode('clocked', context=context, parameter_overrides=overrides))
        nodes[-1].begin_time()
        return nodes[-1]

    yield make
    for node in nodes:
        node.destroy_node()


def test_a_node_on_a_machine_lives_in_steady_time_and_stamps_by_the_wall(make):
    node = make()
    for _ in range(3):
        before, wall = time.monotonic(), time.time()
        now = node.now()
        assert before <= now <= time.monotonic()
        assert wall <= node.clock_now <= time.time()
        assert before <= node.arrival(wall) <= time.monotonic()


def test_a_node_in_a_simulation_lives_in_the_clock_it_hears(make, context):
    node = make(use_sim_time=True)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    publisher = node.create_publisher(Clock, '/clock', 10)
    message = Clock()
    message.clock.sec, message.clock.nanosec = 7, 250_000_000
    deadline = time.monotonic() + LONG
    while node.now() != pytest.approx(7.25, abs=1e-6):
        assert time.monotonic() < deadline
        publisher.publish(message)
        executor.spin_once(0.05)
    assert node.clock_now == pytest.approx(7.25)
    assert node.arrival(7.26) == pytest.approx(7.26)
    assert node.now() == pytest.approx(7.26)
    assert node.clock_now == pytest.approx(7.25)
    executor.shutdown()


def test_a_state_before_the_first_clock_has_come_at_its_own_time(make):
    """Otherwise it would look old once the clock is heard, and a simulator that waits would wait for ever."""
    node = make(use_sim_time=True)
    assert node.now() == 0.0
    assert node.arrival(1.0) == 1.0
    assert node.now() == 1.0


def test_refusals_are_not_logged_at_the_rate_of_the_messages(make, capfd):
    node = make()
    for k in range(100):
        node.warn_of_refusal(f'joint: reason {k}')
    node.warn_of_refusal('trajectory: another kind')
    node._warned['joint'] -= QUIET
    node.warn_of_refusal('joint: much later')
    time.sleep(0.05)
    lines = [line for line in capfd.readouterr().err.splitlines() if 'refused: ' in line]
    assert [line.partition('refused: ')[2] for line in lines] == [
        'joint: reason 0',
        'trajectory: another kind',
        'joint: much later',
    ]
