"""Priority, memory and processors are set or refused in plain words; garbage waits while it is frozen."""

import gc
import json
import os
import subprocess
import sys

import pytest

from krang_dynamics.errors import InputError
from krang_dynamics.nodes.ros.realtime import freeze_garbage, set_up, thaw_garbage

POWERLESS = (  # no limits to spare, and no capabilities
    'resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))\n'
    'resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))\n'
    'if os.geteuid() == 0: os.setuid(65534)\n'
)
STATUS = (
    "lines = dict(line.split(':', 1) for line in open('/proc/self/status'))\n"
    'print(json.dumps({\n'
    "    'refusals': refusals,\n"
    "    'policy': os.sched_getscheduler(0),\n"
    "    'priority': os.sched_getparam(0).sched_priority,\n"
    "    'locked': int(lines['VmLck'].split()[0]),\n"
    "    'processors': sorted(os.sched_getaffinity(0)),\n"
    '}))\n'
)


def in_a_process(call, before='', after=STATUS):
    """What a process says after `refusals = call`; it takes its priority and its locks with it."""
    code = (
        'import json, os, resource, threading\n'
        'from krang_dynamics.nodes.ros.realtime import set_up\n'
        f'{before}refusals = {call}\n{after}'
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_nothing_asked_nothing_done():
    assert in_a_process('set_up(0, False, [])', POWERLESS) == {
        'refusals': [],
        'policy': os.SCHED_OTHER,
        'priority': 0,
        'locked': 0,
        'processors': sorted(os.sched_getaffinity(0)),
    }


def test_what_is_not_refused_is_done():
    last = max(os.sched_getaffinity(0))
    state = in_a_process(f'set_up(7, True, [{last}])')
    text = ' '.join(state['refusals'])
    assert (state['policy'], state['priority']) == (
        (os.SCHED_OTHER, 0) if 'thread_priority' in text else (os.SCHED_FIFO, 7)
    )
    assert (state['locked'] == 0) == ('lock_memory' in text)
    assert state['processors'] == [last]


def test_what_is_refused_says_what_to_do():
    state = in_a_process('set_up(7, True, [])', POWERLESS)
    priority, memory = state['refusals']
    assert 'thread_priority 7' in priority
    assert 'rtprio 7' in priority
    assert 'lock_memory' in memory
    assert '64 kB' in memory
    assert 'memlock unlimited' in memory
    assert all('/etc/security/limits.conf' in refusal for refusal in state['refusals'])
    assert (state['policy'], state['locked']) == (os.SCHED_OTHER, 0)


def test_threads_started_later_and_earlier_ones_are_as_quick():
    policies = (
        'main = threading.get_native_id()\n'
        'policies = []\n'
        'def work():\n'
        '    refusals.extend(set_up(7, False, []))\n'
        '    later = threading.Thread(target=look)\n'
        '    later.start()\n'
        '    later.join()\n'
        'def look(): policies.append(os.sched_getscheduler(0))\n'
        'worker = threading.Thread(target=work)\n'
        'worker.start()\n'
        'worker.join()\n'
        'print(json.dumps([refusals, policies, os.sched_getscheduler(main)]))\n'
    )
    refusals, policies, main = in_a_process('[]', after=policies)
    assert policies == [os.SCHED_OTHER if refusals else os.SCHED_FIFO]
    assert [main] == policies


@pytest.mark.parametrize('missing', ['4095', '-1', '2**62', '4095, 0'])
def test_processors_that_are_not_there_are_refused_by_number(missing):
    state = in_a_process(f'set_up(0, False, [{missing}])')
    assert state['processors'] == sorted(os.sched_getaffinity(0))
    (refusal,) = state['refusals']
    assert str(eval(missing.split(',')[0])) in refusal
    assert str(state['processors']) in refusal


@pytest.mark.parametrize('priority', [-1, 100])
def test_an_impossible_priority_is_an_error(priority):
    with pytest.raises(InputError, match='1 to 99'):
        set_up(priority, False, [])


@pytest.fixture
def collections():
    """Counts the runs of the garbage collector; garbage is collected as before afterwards."""
    runs = []
    gc.callbacks.append(lambda phase, info: runs.append(phase))
    was_enabled = gc.isenabled()
    yield runs
    gc.callbacks.pop()
    gc.unfreeze()
    (gc.enable if was_enabled else gc.disable)()


def make_garbage():
    for _ in range(50_000):
        knot = []
        knot.append(knot)


def test_frozen_garbage_is_not_collected_until_it_is_thawed(collections):
    gc.enable()
    was_enabled = freeze_garbage()
    assert collections  # once, before
    collections.clear()
    make_garbage()
    assert not collections
    thaw_garbage(was_enabled)
    assert gc.get_freeze_count() == 0
    make_garbage()
    assert collections


def test_a_collector_that_was_off_stays_off(collections):
    gc.disable()
    thaw_garbage(freeze_garbage())
    assert not gc.isenabled()


def test_freed_blocks_return_to_the_system():
    code = (
        'from krang_dynamics.nodes.ros.realtime import return_large_blocks\n'
        'def memory():\n'
        "    return int(open('/proc/self/statm').read().split()[1]) * 4096 / 1e6\n"
        "large = [b'x' * 2_000_000]\n"  # glibc keeps blocks of this size after it has freed one
        'return_large_blocks()\n'
        'large.clear()\n'
        'begin, small = memory(), []\n'
        'for _ in range(50):\n'
        "    large.append(b'x' * 1_000_000)\n"
        '    small.append(bytearray(50_000))\n'
        'large.clear()\n'
        'print(memory() - begin)\n'
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 5.0  # MB, after 50
