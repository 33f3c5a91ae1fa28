"""`make faults`: faults of processes, sensors, clocks and disks on real topics, with reaction times."""

import argparse
import random
import signal
import time
from collections import defaultdict

import numpy as np
from nodes.harness import Controller, Harness
from nodes.test_reaction_times import (
    DEADMAN_TIMEOUT,
    NODE,
    RATE,
    STATE_TIMEOUT,
    Operated,
    deadman,
    emergency_stop,
    jump,
    make_ready,
    nan,
    over_speed,
    reaction,
    relaying_guard,
    stale_state,
)
from std_msgs.msg import Bool, Float64MultiArray

WAY = 0.1  # watchdog, transport and a busy machine [s]
GUARD = 0.05 + 1 / RATE + 0.03  # P11, and a busy machine [s]
PER_DOMAIN = 25  # faults of one set of processes
ATTEMPTS = 5  # to get a guard going on a stalled machine


def time_jump(robot):
    """Stamps an hour ahead."""
    good = robot.hushes()
    robot.now = lambda: time.time() + 3600
    robot.say = robot.honest
    return good + STATE_TIMEOUT


def restart(robot):
    """The driver's participant vanishes and returns."""
    good = robot.hushes()
    robot._disconnect()
    time.sleep(STATE_TIMEOUT + 0.1)
    robot._connect()
    robot.say = robot.honest
    return good + STATE_TIMEOUT


def second_publisher(robot):
    begin = time.time()
    robot.rival = robot.harness.node.create_publisher(Float64MultiArray, 'effort_commands', 1)
    return begin + 0.4  # discovery, and two checks of the publishers


CAUSES = (stale_state, nan, over_speed, jump, emergency_stop, deadman, time_jump, restart, second_publisher)


def controller_faults(count, dice, times):
    """Faults that a controller must notice; its flight recorder has no place to write in every other run."""
    with Harness() as harness:
        robot = Operated(harness, rate=RATE)
        robot.publish(Bool(data=False), 'emergency_stop')
        disk = {'flight_recorder': '/dev/full/flights'} if dice.random() < 0.5 else {}
        controller = Controller(harness, **NODE, **disk)
        controller.activate()
        while count:
            count -= 1
            cause = dice.choice(CAUSES)
            robot.now = time.time
            if getattr(robot, 'rival', None) is not None:
                harness.node.destroy_publisher(robot.rival)
                robot.rival = None
                time.sleep(0.5)
            make_ready(robot, controller)
            begin = time.time()
            noticeable = cause(robot)
            controller.until_fault()
            if any('"kind"' in record.message.data for record in controller.states.since(begin)):
                times[cause.__name__].append(controller.faulted_at(begin) - noticeable)
            else:  # this process has paused, which is a fault too
                count += 1
        assert controller.is_alive
        assert 'Traceback' not in controller.log, controller.log[-3000:]


def guard_fault(number, times):
    """A controller that is killed or frozen: the guard takes over."""
    for attempt in range(ATTEMPTS):
        with Harness() as harness:
            try:
                guard, controller = relaying_guard(harness)
            except AssertionError as error:  # states paused before the fault: the machine stalls
                print(f'attempt {attempt + 1}: {error}'.splitlines()[0], flush=True)
                continue
            if controller.mode == 'active' and guard.mode == 'relaying':
                times[number.name].append(reaction(guard, controller, number))
                return
    raise SystemExit(f'{number.name}: no guard relayed in {ATTEMPTS} attempts')


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--faults', type=int, default=1000)
    count = parser.parse_args().faults
    dice, times = random.Random(0), defaultdict(list)
    done = 0
    while done < count:
        some = min(PER_DOMAIN, count - done)
        controller_faults(max(1, some - 4), dice, times)
        for number in (signal.SIGKILL, signal.SIGSTOP) * 2:
            if some > 4:
                guard_fault(number, times)
        done += some
        print(f'{done} of {count} faults', flush=True)
    slow = 0
    for name, values in sorted(times.items()):
        p50, p99, most = 1e3 * np.array([*np.percentile(values, [50, 99]), max(values)])
        bound = GUARD if name.startswith('SIG') else WAY
        slow += sum(value > bound for value in values)
        print(f'{name:18s} {len(values):5d}  p50 {p50:7.1f}  p99 {p99:7.1f}  largest {most:7.1f} ms')
    print(f'{slow} of {count} reactions later than promised; deadman timeout {DEADMAN_TIMEOUT} s')
    raise SystemExit(int(slow > 0))


if __name__ == '__main__':
    main()
