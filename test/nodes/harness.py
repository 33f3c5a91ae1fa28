"""Nodes as real processes in a private ROS domain, with clients for their topics and services."""

import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from array import array
from collections import namedtuple
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import ClassVar

with warnings.catch_warnings():
    warnings.simplefilter('ignore')  # the message generator's parser imports a deprecated module
    import rosidl_generator_py  # noqa: F401

import numpy as np
import rclpy
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.srv import (
    DescribeParameters,
    GetParameters,
    ListParameters,
    SetParametersAtomically,
)
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, ShutdownException, SingleThreadedExecutor
from rclpy.parameter import Parameter, parameter_value_to_python
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool, Trigger

BIN = Path(sys.executable).parent
PATIENCE = 20.0  # deadline of events without a promised time: a loaded machine is slow [s]
POLL = 0.005  # [s]
LINGER = 30.0  # time for which a killed process stays in the ROS graph [s]
TAIL = 3000  # characters of a log that a failure shows

TRANSITIONS = {'configure': 1, 'cleanup': 2, 'activate': 3, 'deactivate': 4}
LATCHED = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
RELIABLE = QoSProfile(depth=1000)
NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)

EPOCH = 1.0  # start of simulated time [s]

Record = namedtuple('Record', 'sent number message')  # time of publication [s], sequence number


def claim_domain():
    """A ROS domain that no other harness on this machine uses or has just used, and its lock."""
    for domain in random.SystemRandom().sample(range(1, 102), 101):
        path = Path(tempfile.gettempdir()) / f'krang_dynamics_domain_{domain}'
        with suppress(OSError):
            if path.exists() and time.time() - path.stat().st_mtime < LINGER:
                continue
            lock = path.open('a')
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                lock.close()
                continue
            path.touch()
            return domain, lock
    raise RuntimeError('all ROS domains are in use')


class Topic:
    """All messages received on a topic, in order."""

    def __init__(self, harness, kind, name, qos=RELIABLE):
        self.records = []
        self._harness = harness
        self._subscription = harness.node.create_subscription(kind, name, self._receive, qos)

    def _receive(self, message, info):
        self.records.append(
            Record(1e-9 * info['source_timestamp'], info['publication_sequence_number'], message)
        )

    def __len__(self):
        return len(self.records)

    @property
    def last(self):
        return self.records[-1] if self.records else None

    def since(self, begin):
        """Records sent at or after a time of time.time() [s]."""
        return [record for record in list(self.records) if record.sent >= begin]

    def next(self, what='a message'):
        """The first record that is received after now."""
        count = len(self)
        self._harness.until(lambda: len(self) > count, what)
        return self.records[count]


class Harness:
    """A private domain with an executor in a thread; all processes end with it."""

    def __init__(self):
        self.processes = []

    def __enter__(self):
        self._handler = signal.signal(signal.SIGTERM, signal.default_int_handler)  # clean up then as well
        self.domain, self._lock = claim_domain()
        self._logs = tempfile.TemporaryDirectory(prefix='krang_dynamics_')
        self.folder = Path(self._logs.name)
        self.context = Context()
        rclpy.init(context=self.context, domain_id=self.domain)
        self._executor = SingleThreadedExecutor(context=self.context)
        self.node = self.add_node('harness')
        self._clients = {}
        self._ending = []
        self._thread = Thread(target=self._spin)
        self._thread.start()
        return self

    def __exit__(self, *_):
        for end in reversed(self._ending):
            end()
        for process in self.processes:
            process.kill()
        self._executor.shutdown()
        self._thread.join()
        self.context.try_shutdown()
        self._logs.cleanup()
        Path(self._lock.name).touch()
        self._lock.close()
        signal.signal(signal.SIGTERM, self._handler)

    def _spin(self):
        with suppress(ExternalShutdownException, ShutdownException):
            self._executor.spin()

    def at_end(self, end):
        """Call this before the processes are ended."""
        self._ending.append(end)

    def add_node(self, name, namespace=''):
        node = rclpy.create_node(name, context=self.context, namespace=namespace)
        self._executor.add_node(node)
        return node

    def remove_node(self, node):
        self._executor.remove_node(node)
        node.destroy_node()

    def until(self, condition, what, patience=PATIENCE):
        """Wait until a condition holds; its value. AssertionError with the logs where it never does."""
        deadline = time.monotonic() + patience
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > deadline:
                logs = ''.join(f'\n--- {p.path}\n{p.log[-TAIL:]}' for p in self.processes)
                what = what() if callable(what) else what
                raise AssertionError(f'waited {patience:g} s without success for {what}{logs}')
            time.sleep(POLL)

    def client(self, kind, name):
        """A client of a service, created early so that the node discovers it before the first call."""
        if name not in self._clients:
            self._clients[name] = self.node.create_client(kind, name)
        return self._clients[name]

    def call(self, kind, name, patience=PATIENCE, **fields):
        """The answer of a service."""
        client = self.client(kind, name)
        self.until(client.service_is_ready, f'service {name}')
        answered = Event()
        future = client.call_async(kind.Request(**fields))
        future.add_done_callback(lambda _: answered.set())
        try:
            self.until(answered.is_set, f'an answer of {name}', patience)
        finally:
            client.remove_pending_request(future)
        return future.result()


class Process:
    """One executable of the package with its parameters, its log and its ~/state."""

    services: ClassVar = {'clear_fault': Trigger, 'release': Trigger}

    def __init__(self, harness, executable, namespace='', remap=(), **parameters):
        self.harness = harness
        self.path = f'{namespace}/{executable}'
        self._log = harness.folder / f'{len(harness.processes)}_{executable}.log'
        words = [f'{k}:={v}' for k, v in remap]
        self._command = [
            str(BIN / executable),
            '--ros-args',
            *(part for word in words for part in ('-r', word)),
            *(('-r', f'__ns:={namespace}') if namespace else ()),
            *(part for k, v in parameters.items() for part in ('-p', f'{_dotted(k)}:={json.dumps(v)}')),
        ]
        self.states = Topic(harness, String, f'{self.path}/state', LATCHED)
        for service, kind in self.services.items():
            harness.client(kind, f'{self.path}/{service}')
        self.start()
        harness.processes.append(self)

    def start(self):
        environment = {
            **os.environ,
            'ROS_DOMAIN_ID': str(self.harness.domain),
            'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST',
            'HOME': str(self.harness.folder),
            'ROS_HOME': str(self.harness.folder),
            'PYTHONUNBUFFERED': '1',
        }
        with self._log.open('a') as log:
            self.popen = subprocess.Popen(
                self._command, env=environment, stdout=log, stderr=log, start_new_session=True
            )

    @property
    def log(self):
        return self._log.read_text(errors='replace')

    @property
    def is_alive(self):
        return self.popen.poll() is None

    def send(self, number):
        """A signal, to it alone."""
        self.popen.send_signal(number)

    def kill(self):
        with suppress(ProcessLookupError):
            os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait()

    def wait(self, patience=PATIENCE):
        """Its exit status."""
        self.harness.until(lambda: not self.is_alive, f'the end of {self.path}', patience)
        return self.popen.returncode

    # -- ~/state --------------------------------------------------------------------------------------

    @property
    def state(self):
        """The newest ~/state."""
        last = self.states.last
        return json.loads(last.message.data) if last else {}

    def modes_since(self, begin):
        """All that it had since a time of time.time() [s]."""
        return [json.loads(record.message.data)['mode'] for record in self.states.since(begin)]

    @property
    def mode(self):
        return self.state.get('mode')

    @property
    def fault(self):
        """Kind of the latched fault, None without one."""
        fault = self.state.get('fault')
        return fault['kind'] if fault else None

    @property
    def reason(self):
        return self.state['fault']['reason']

    def faulted_at(self, begin):
        """When it first published a fault after a time of time.time() [s]."""
        return next(r.sent for r in self.states.since(begin) if json.loads(r.message.data)['fault'])

    def until_mode(self, *modes, patience=PATIENCE):
        self.harness.until(lambda: self.mode in modes, f'{self.path} to be {" or ".join(modes)}', patience)

    def until_fault(self, *kinds):
        """Wait for a fault, of one of these kinds where there are any."""
        self.harness.until(
            lambda: self.fault in kinds if kinds else self.fault, f'a fault {kinds} of {self.path}'
        )

    def ask(self, service, **fields):
        """The answer of one of its services."""
        return self.harness.call(self.services[service], f'{self.path}/{service}', **fields)

    def clear_fault(self):
        return self.ask('clear_fault')

    def until_cleared(self):
        """Clear the fault as soon as the stop is over."""
        answers = []

        def cleared():
            answers.append(self.clear_fault())
            return answers[-1].success

        self.harness.until(cleared, lambda: f'{self.path} to be cleared; it answers: {answers[-1].message}')
        self.harness.until(lambda: self.fault is None, f'{self.path} to publish that its fault is cleared')


class Controller(Process):
    """A lifecycle node that turns joint states into torques."""

    services: ClassVar = {
        'get_state': GetState,
        'change_state': ChangeState,
        'enable': SetBool,
        'clear_fault': Trigger,
        'release': Trigger,
        'list_parameters': ListParameters,
        'describe_parameters': DescribeParameters,
        'get_parameters': GetParameters,
        'set_parameters_atomically': SetParametersAtomically,
    }

    def __init__(self, harness, executable='torque_controller', namespace='', remap=(), **parameters):
        self.torques = Topic(harness, JointState, f'{namespace}/{executable}/torques')
        self.commands = Topic(harness, Float64MultiArray, f'{namespace}/effort_commands')
        self.enabled_at = []  # when enable was requested, by time.time() [s]
        super().__init__(harness, executable, namespace, remap, **parameters)

    # -- lifecycle ------------------------------------------------------------------------------------

    def transition(self, name):
        """Request a lifecycle transition; whether it was made."""
        # A node that has not yet discovered this client cannot answer, and a transition must not be repeated.
        self.harness.until(self._answers, f'{self.path} to answer')
        return self.ask('change_state', transition=Transition(id=TRANSITIONS[name])).success

    @property
    def lifecycle(self):
        # The first answer is lost where the node has not yet found this client.
        return self.harness.until(self._answers, f'{self.path} to answer').current_state.label

    def _answers(self):
        with suppress(AssertionError):
            return self.harness.call(GetState, f'{self.path}/get_state', patience=0.5)

    def activate(self):
        """Configured and active; nothing is sent yet."""
        assert self.transition('configure'), self.log[-TAIL:]
        assert self.transition('activate'), self.log[-TAIL:]
        return self

    # -- services -------------------------------------------------------------------------------------

    def enable(self, on=True):
        if on:
            self.enabled_at.append(time.time())
        return self.ask('enable', data=on)

    def drive(self):
        """Enable it, and wait until it was past its ramp, though this process may have paused."""
        answers, begin = [], time.time()

        def enabled():
            answers.append(self.enable())
            return answers[-1].success

        self.harness.until(enabled, lambda: f'{self.path} to be enabled; it answers: {answers[-1].message}')
        self.harness.until(lambda: 'active' in self.modes_since(begin), f'{self.path} to be active')

    def rest(self):
        """Disabled, without a fault; released, because a stop lasts until the robot is at rest."""
        self.ask('release')
        self.until_cleared()
        self.until_mode('disabled')

    # -- parameters -----------------------------------------------------------------------------------

    def set(self, **parameters):
        """Set parameters together; the result has the reason of a refusal."""
        messages = [Parameter(_dotted(k), value=v).to_parameter_msg() for k, v in parameters.items()]
        return self.ask('set_parameters_atomically', parameters=messages).result

    def get(self, name):
        """Its value, arrays as lists, None where it is not set."""
        value = parameter_value_to_python(self.ask('get_parameters', names=[_dotted(name)]).values[0])
        return list(value) if isinstance(value, array) else value

    def parameter_names(self):
        return set(self.ask('list_parameters').result.names)

    def describe(self, names):
        return self.ask('describe_parameters', names=list(names)).descriptors


class Guard(Process):
    """The process between controller and driver, and the commands that it passes."""

    services: ClassVar = {**Process.services, 'set_parameters_atomically': SetParametersAtomically}
    set = Controller.set

    def __init__(self, harness, namespace='', **parameters):
        self.passed = Topic(harness, Float64MultiArray, f'{namespace}/guarded/effort_commands')
        super().__init__(harness, 'torque_guard', namespace, **parameters)


class Simulator(Process):
    """A simulated robot, and its true state on ~/truth."""

    services: ClassVar = {
        'set_parameters_atomically': SetParametersAtomically,
        'get_parameters': GetParameters,
    }
    set, get = Controller.set, Controller.get

    def __init__(self, harness, namespace='', remap=(), **parameters):
        self.truth = Topic(harness, JointState, f'{namespace}/simulator/truth', NEWEST)
        super().__init__(harness, 'simulator', namespace, remap, **{'engine': 'pinocchio', **parameters})

    @property
    def now(self):
        """Simulated time since the start [s]."""
        last = self.truth.last
        return seconds(last.message.header.stamp) - EPOCH if last else 0.0

    @property
    def q(self):
        return np.array(self.truth.last.message.position)

    def goes_on(self, seconds):
        """Wait for simulated time to pass."""
        end = self.now + seconds
        self.harness.until(lambda: self.now >= end, f'{seconds:g} simulated seconds')


def seconds(stamp):
    """A builtin_interfaces/Time [s]."""
    return stamp.sec + 1e-9 * stamp.nanosec


def _dotted(keyword):
    """limits__effort_rate -> limits.effort_rate, so that parameters can be keywords."""
    return keyword.replace('__', '.')
