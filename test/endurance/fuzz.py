"""`make fuzz`: invalid messages on all topics and services of controller, guard and simulator.

Structure-aware: valid, nearly valid, truncated, huge and NaN messages, bytes of other types, and floods.
Promises are checked all the time; memory must not grow.
"""

import argparse
import re
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
from nodes.fake_robot import FakeRobot
from nodes.harness import Controller, Guard, Harness, Simulator
from nodes.monitor import Monitor
from nodes.test_invalid_data import BURST, EFFORT, PAUSE, InvalidData, recover
from rclpy._rclpy_pybind11 import RCLError
from rclpy.serialization import serialize_message
from std_msgs.msg import Bool, String

ROUND = 500  # messages between two attempts to get the nodes going again
CHECK = 10_000  # messages between two checks
GROWTH = 60.0  # memory that a node may gain after the first tenth [MB]
RAW = 0.4  # share of the messages whose bytes are changed
PRESSED = 0.02  # share of pressed emergency stops: nothing else can be refused while one is latched


class Fuzzer(InvalidData):
    """Messages, and bytes that were messages."""

    def __init__(self, robot, controller, seed):
        super().__init__(robot)
        self.controller = controller
        self.dice.seed(seed)
        self.kinds |= {
            'emergency_stop': self.stop,
            'sim/effort_commands': self.command,
            'guard/deadman': self.switch,
            'guard/emergency_stop': self.stop,
            'guard/torque_controller/state': self.state,
        }
        self.last = b'\x00\x01\x00\x00'

    def stop(self):
        return Bool(data=self.dice.random() < PRESSED)

    def state(self):
        """The controller's state for its guard, with changed characters."""
        text = list(self.controller.states.last.message.data)
        for _ in range(self.dice.choice([0, 1, 1, 2, 5])):
            text[self.dice.randrange(len(text))] = self.dice.choice(['', '0', '9', '[', '{', '"', '-', 'ä'])
        return String(data=''.join(text) * self.dice.choice([1, 1, 1, 0, 20]))

    def raw(self, message):
        """The bytes of a message after a mutation."""
        data, dice = bytearray(serialize_message(message)), self.dice
        other, self.last = self.last, bytes(data)
        kind = dice.choice('truncate flip huge other random repeat'.split())
        place = dice.randrange(4, max(5, len(data)))
        if kind == 'truncate':
            return bytes(data[:place])
        if kind == 'flip':
            for _ in range(dice.randrange(1, 9)):
                data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
            return bytes(data)
        if kind == 'huge':  # a length that the message does not have
            data[place : place + 4] = b'\xff\xff\xff\x7f'
            return bytes(data)
        if kind == 'other':
            return other
        if kind == 'random':
            return b'\x00\x01\x00\x00' + dice.randbytes(dice.randrange(200))
        return bytes(data) + bytes(data[4:]) * dice.randrange(20)


def memory(process):
    """Resident memory of a process [MB]."""
    return int(Path(f'/proc/{process.popen.pid}/statm').read_text().split()[1]) * 4096 / 1e6


def refusals(*processes):
    """How often each kind of refusal was logged: text without names and numbers."""
    counts = Counter()
    for process in processes:
        for line in process.log.splitlines():
            if 'WARN' in line or 'ERROR' in line:
                text = re.sub(r"'[^']*('|$)|[-+]?\d[\d.e+-]*|nan|inf", '#', line.partition(']: ')[2])
                counts[text[:90]] += 1
    return counts


def check(robot, controller, guard, simulator, begin):
    """Promises of everything sent since the last check, which is then forgotten."""
    Monitor(controller, robot.model).check(begin)
    for record in list(guard.passed.records):
        data = np.array(record.message.data)
        assert data.shape == EFFORT.shape, 'P9'
        assert np.isfinite(data).all(), 'P1'
        assert (np.abs(data) <= EFFORT).all(), 'P2'
    for topic in (controller.torques, controller.commands, guard.passed, simulator.truth):
        del topic.records[:-50]
    for node in (controller, guard, simulator):
        del node.states.records[:-20]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--messages', type=int, default=1_000_000)
    parser.add_argument('--seed', type=int, default=20)
    options = parser.parse_args()
    count = options.messages
    with Harness() as harness:
        robot = FakeRobot(harness)
        FakeRobot(harness, namespace='/guard')
        quick = {'robot': 'planar_2r', 'stop__time': 0.1, 'stop__blind_time': 0.1}
        simulator = Simulator(harness, '/sim', robot='planar_2r', lock_step=False, engine='pinocchio')
        terms = ['gravity', 'damping', 'computed_torque', 'wrench', 'joint_limits', 'observer']
        convention = {'wrench__tip__convention': 'applied_by_robot'}
        controller = Controller(harness, terms=terms, ramp_time=0.05, **quick, **convention)
        guard = Guard(harness, '/guard', **quick)
        controller.activate()
        controller.drive()
        fuzzer, begin = Fuzzer(robot, controller, options.seed), 0.0
        nodes = {'controller': controller, 'guard': guard, 'simulator': simulator}
        first = {}
        for k in range(count):
            topic, message = fuzzer.message()
            if fuzzer.dice.random() < RAW:
                with suppress(RCLError):  # the middleware refuses bytes that exceed a type of fixed size
                    robot._publisher(type(message), topic).publish(fuzzer.raw(message))
            else:
                robot.publish(message, topic)
            if k % BURST == 0 and fuzzer.dice.random() < 0.9:  # else a flood
                time.sleep(PAUSE)
            if k % ROUND == 0:
                recover(robot, controller, guard, fuzzer)
                guard.set(**fuzzer.parameters())
                simulator.set(**fuzzer.parameters())
            if k % CHECK == CHECK - 1:
                check(robot, controller, guard, simulator, begin)
                begin = time.time()
                sizes = {name: memory(node) for name, node in nodes.items()}
                first = first if first and k > count / 10 else sizes
                print(
                    f'{k + 1} messages, memory [MB]', {n: round(m, 1) for n, m in sizes.items()}, flush=True
                )
                for name, node in nodes.items():
                    assert node.is_alive, f'{name} has ended:\n{node.log[-2000:]}'
                    assert 'Traceback' not in node.log, f'{name}: a traceback'
                    assert sizes[name] - first[name] < GROWTH, f'{name} grows: {first[name]} to {sizes[name]}'
        robot.be_honest()
        robot.publish(Bool(data=False), 'emergency_stop')
        robot.says(40)
        assert controller.lifecycle == 'active'
        for text, number in refusals(*nodes.values()).most_common():
            print(f'{number:8d}  {text}')
    print(f'{count} messages: no promise broken')


if __name__ == '__main__':
    main()
