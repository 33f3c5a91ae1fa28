"""A driver for tests: joint states at a steady rate, correct unless a test changes them."""

import time
from functools import cache
from itertools import count
from threading import Event, Thread

from builtin_interfaces.msg import Time
from sensor_msgs.msg import JointState

import krang_dynamics as kd

RATE = 200.0  # [1/s]

robot_named = cache(kd.load_robot)
_numbers = count()


def time_message(seconds):
    """A builtin_interfaces/Time of a time [s]."""
    whole = int(seconds // 1)
    return Time(sec=whole, nanosec=int(1e9 * (seconds - whole)))


class FakeRobot:
    """At rest at home; it measures its gravity torque. `say` is called once per period."""

    def __init__(self, harness, name='planar_2r', namespace='', rate=RATE):
        self.harness = harness
        self.model = robot_named(name)
        self.period = 1.0 / rate
        self.turns = 0
        self.spoke = 0.0  # when the last message was sent, by time.time() [s]
        self._namespace = namespace
        self._publishers = {}
        self.be_honest()
        self._connect()
        self._ended = Event()
        self._thread = Thread(target=self._run)
        self._thread.start()
        harness.at_end(self._end)

    # -- messages -------------------------------------------------------------------------------------

    def be_honest(self):
        """At home and at rest, with correct messages."""
        self.q = self.model.home.copy()
        self.v = 0.0 * self.q
        self.effort = self.model.gravity_torque(self.q)
        self.say = self.honest

    def honest(self):
        self.publish(self.joint_state())

    def silent(self):
        pass

    def move(self, goal, duration=0.6):
        """Move from now on; the velocity agrees with that."""
        start, begin = self.q, self.now()

        def say():
            share = min(1.0, (self.now() - begin) / duration)
            self.q = start + share * (goal - start)
            self.v = (goal - start) / duration if share < 1 else 0.0 * goal
            self.honest()

        self.say = say

    def now(self):
        """The time of its stamps [s]."""
        return time.time()

    def joint_state(self, names=None, stamp=None, **changes):
        """Some joints, or all, as they are now; `changes` are fields of the message."""
        joints = self.model.joint_names
        rows = range(len(joints)) if names is None else [joints.index(name) for name in names]
        fields = {
            'name': [joints[i] for i in rows],
            'position': self.q[rows].tolist(),
            'velocity': self.v[rows].tolist(),
            'effort': self.effort[rows].tolist(),
        }
        message = JointState(**{**fields, **changes})
        message.header.stamp = time_message(self.now() if stamp is None else stamp)
        return message

    def publish(self, message, topic='joint_states'):
        self._publisher(type(message), topic).publish(message)
        if topic == 'joint_states':
            self.spoke = time.time()

    def says(self, turns=20):
        """Wait for some more periods."""
        wanted = self.turns + turns
        self.harness.until(lambda: self.turns >= wanted, f'{turns} turns of the robot')

    def hushes(self):
        """Publish nothing from now on; when the last message was sent, by time.time() [s]."""
        self.say = self.silent
        self.says(2)
        return self.spoke

    def leave(self):
        """Stop and leave the ROS graph."""
        self._end()
        self._disconnect()

    def restart(self):
        """Leave the ROS graph and return, as a driver that crashed and was restarted."""
        self.hushes()
        self._disconnect()
        self._connect()
        self.say = self.honest

    # -- inside ----------------------------------------------------------------------------------------

    def _connect(self):
        self._node = self.harness.add_node(f'driver_{next(_numbers)}', self._namespace)
        self._publisher(JointState, 'joint_states')

    def _disconnect(self):
        self._publishers.clear()
        self.harness.remove_node(self._node)

    def _publisher(self, kind, topic):
        if topic not in self._publishers:
            self._publishers[topic] = self._node.create_publisher(kind, topic, 10)
        return self._publishers[topic]

    def _run(self):
        due = time.monotonic()
        while not self._ended.is_set():
            self.say()
            self.turns += 1
            due = max(due + self.period, time.monotonic())  # late periods are skipped
            time.sleep(max(0.0, due - time.monotonic()))

    def _end(self):
        self._ended.set()
        self._thread.join()
