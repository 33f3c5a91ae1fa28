"""Reaction times on real topics: from a violation to the first command of the stop."""

import signal
import time

import numpy as np
import pytest
from nodes.fake_robot import FakeRobot
from nodes.harness import Controller, Guard, Harness
from std_msgs.msg import Bool, Float64MultiArray

pytestmark = [pytest.mark.processes, pytest.mark.long]

RUNS, PROCESSES = 200, 50  # of each cause; with a process that is killed or frozen
RATE = 500.0  # of the states [Hz]
STATE_TIMEOUT, DEADMAN_TIMEOUT = 0.4, 0.2  # [s]; the robot of this process may pause for 0.1 s
SILENCE = 0.045  # of the guard [s]
QUICK = {
    'robot': 'planar_2r',
    'stop__time': 0.3,
    'stop__blind_time': 0.2,
    'state_timeout': STATE_TIMEOUT,
}
NODE = {**QUICK, 'terms': ['gravity'], 'ramp_time': 0.02, 'deadman__required': True}


class Operated(FakeRobot):
    """A robot beside an operator who holds the deadman's switch."""

    holding = True

    def honest(self):
        super().honest()
        self.beat()

    def beat(self):
        if self.holding:
            self.held = time.time()
            self.publish(Bool(data=True), 'deadman')


# Each cause returns when the controller could have noticed it, by time.time() [s].


def stale_state(robot):
    last = robot.hushes()
    robot.say = robot.beat  # the operator still holds the switch
    return last + STATE_TIMEOUT


def nan(robot):
    good = robot.hushes()
    robot.v = np.full(2, np.nan)
    robot.say = robot.honest
    return good + STATE_TIMEOUT


def over_speed(robot):
    return sent_with(robot, v=np.array([0.0, 6.1]))


def jump(robot):
    return sent_with(robot, q=robot.q + 0.5)


def emergency_stop(robot):
    begin = time.time()
    robot.publish(Bool(data=True), 'emergency_stop')
    return begin


def deadman(robot):
    robot.holding = False
    robot.says(2)
    return robot.held + DEADMAN_TIMEOUT


def sent_with(robot, **changes):
    """Publish other values from the next message on; when that was sent."""
    robot.hushes()
    vars(robot).update(changes)
    sent = []

    def say():
        sent.append(time.time())
        robot.honest()

    robot.say = say
    robot.says(1)
    return sent[0]


def make_ready(robot, controller):
    """Drive again after a fault."""
    robot.holding = True
    robot.be_honest()
    robot.publish(Bool(data=False), 'emergency_stop')
    robot.says(5)
    controller.rest()
    controller.drive()


def summary(name, times):
    p50, p99 = 1e3 * np.percentile(times, [50, 99])
    print(f'| {name} | {len(times)} | {p50:.1f} | {p99:.1f} | {1e3 * max(times):.1f} |')
    return p50, p99


CAUSES = {
    stale_state: 'state',
    nan: 'state',
    over_speed: 'velocity',
    jump: 'state',
    emergency_stop: 'emergency_stop',
    deadman: 'deadman',
}


@pytest.mark.parametrize('cause', CAUSES)
def test_the_controller_stops_within_a_watchdog_period(cause):
    times = []
    with Harness() as harness:
        robot = Operated(harness, rate=RATE)
        robot.publish(Bool(data=False), 'emergency_stop')
        controller = Controller(harness, **NODE)
        controller.activate()
        while len(times) < RUNS:
            make_ready(robot, controller)
            begin = time.time()
            noticeable = cause(robot)
            controller.until_fault()
            late = [r.sent for r in controller.states.since(begin) if CAUSES[cause] in r.message.data]
            if (
                controller.fault == CAUSES[cause] and late
            ):  # else this process has paused, which is a fault too
                times.append(controller.faulted_at(begin) - noticeable)
    _, p99 = summary(cause.__name__.replace('_', ' '), times)
    assert p99 <= 20.0  # [ms]: one and a half periods of the watchdog, and the way


def test_the_guard_stops_at_bytes_that_are_no_command():
    times = []
    with Harness() as harness:
        robot = FakeRobot(harness, rate=RATE)
        guard = Guard(harness, **QUICK)
        publisher = harness.node.create_publisher(Float64MultiArray, 'effort_commands', 1)
        harness.until(publisher.get_subscription_count, 'the guard')
        weight = robot.model.gravity_torque(robot.q)
        for _ in range(RUNS):
            robot.say = robot.honest
            robot.says(int(2 * SILENCE * RATE))
            guard.ask('release')
            guard.until_cleared()
            stream(robot, publisher, weight)
            harness.until(lambda: guard.mode == 'relaying', 'the guard to relay')
            robot.say = robot.honest
            begin = time.time()
            publisher.publish(b'\x00\x01\x00\x00' + b'\xff' * 12)
            guard.until_fault('command')
            times.append(guard.faulted_at(begin) - begin)
    _, p99 = summary('invalid bytes (guard)', times)
    assert p99 <= 20.0


def stream(robot, publisher, torque):
    """A torque with every state, from 0 on at a rate that the guard accepts."""
    begin = time.time()

    def say():
        robot.honest()
        share = min(1.0, (time.time() - begin) / 0.05)
        publisher.publish(Float64MultiArray(data=(share * torque).tolist()))

    robot.say = say


@pytest.mark.parametrize('number', [signal.SIGKILL, signal.SIGSTOP], ids=['SIGKILL', 'SIGSTOP'])
def test_p11_the_guard_takes_over_within_50_ms_and_a_period(number):
    times = [takes_over(number) for _ in range(PROCESSES)]
    _, p99 = summary(f'{number.name} of the controller (guard)', times)
    assert p99 <= 50.0 + 1e3 / RATE


def takes_over(number):
    """Time from a signal to the controller until the guard stops the robot [s], in a fresh domain."""
    with Harness() as harness:
        return reaction(*relaying_guard(harness), number)


def relaying_guard(harness):
    """A guard that relays the commands of a controller, and that controller."""
    FakeRobot(harness, rate=RATE)
    guard = Guard(harness, **QUICK)
    controller = Controller(harness, **{**NODE, 'deadman__required': False})
    controller.activate().drive()
    harness.until(lambda: guard.mode == 'relaying', 'the guard to relay')
    time.sleep(0.2)
    return guard, controller


def reaction(guard, controller, number):
    """Time from a signal to the controller until the guard stops the robot [s]."""
    begin = time.time()
    controller.send(number)
    try:
        guard.until_fault('silence')
    finally:
        if number is signal.SIGSTOP:
            controller.send(signal.SIGCONT)
    return guard.faulted_at(begin) - begin
