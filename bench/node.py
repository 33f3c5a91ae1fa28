"""Round trip and CPU of torque_controller on Krang with all terms, against an empty echo node of stock rclpy.

Both answer the same 17-joint states on real topics, each in its own process: first one state at a time,
which gives the round trip, then 1,000 states per second for a minute, which gives the share answered.
KRANG_BENCH_SECONDS is another duration than a minute; they take turns of a minute.
"""

import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from timing import figure

PINGS, WARM_UP = 1500, 300
TIMEOUT = 0.1  # a state without an answer for so long is lost, as on an overloaded machine [s]
RATE, DURATION = 1000.0, float(os.environ.get('KRANG_BENCH_SECONDS', '60'))  # [Hz], [s]
TURN = 60.0  # longest time of one node at RATE before it is the other's turn [s]
TERMS = 'gravity,friction,damping,computed_torque,wrench,joint_limits,observer'
FLIGHTS = str(Path(tempfile.gettempdir()) / 'krang_bench_flights')
CONVENTION = 'wrench.left_hand.convention:=applied_by_robot'


def run():
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    os.environ['ROS_DOMAIN_ID'] = str(1 + os.getpid() % 100)
    with Client() as client:
        results = {}
        # Four times each, in turn, so that changes of the machine's load affect both.
        for name in 4 * ('echo', 'torque_controller', 'busy_wait'):
            with answering(name, client) as process:
                trips = client.round_trips()
                results.setdefault(name, []).append(trips)
        loads = {}
        turns = max(1, round(DURATION / TURN))
        for name in turns * ('echo', 'torque_controller'):
            with answering(name, client) as process:
                before = cpu_time(process.pid)
                share = client.share_answered(DURATION / turns)
                cpu = (cpu_time(process.pid) - before) * turns / DURATION
                loads.setdefault(name, []).append((share, cpu))
    figures = {}
    for name, parts in results.items():
        trips = np.concatenate(parts)
        figures[name] = {
            'round trip us': np.median(trips) * 1e6,
            'p99 us': np.percentile(trips, 99) * 1e6,
            'no answer %': 100 * np.mean(trips > TIMEOUT),
        }
        if name in loads:
            figures[name]['answered %'], figures[name]['cpu %'] = 100 * np.mean(loads[name], axis=0)
        yield {'figure': name, **figures[name]}
    for key in ('round trip us', 'p99 us', 'answered %', 'cpu %'):
        value = figures['torque_controller'][key] / figures['echo'][key]
        yield figure(f'node, {key} / echo', value, 1.0, at_least=key == 'answered %')
    for key in ('round trip us', 'p99 us'):
        value = figures['busy_wait'][key] / figures['echo'][key]
        yield {'figure': f'node with busy_wait, {key} / echo', 'value': value}


@contextmanager
def answering(name, client):
    """A process that answers joint_states with effort_commands."""
    controller = [
        str(Path(sys.executable).parent / 'torque_controller'),
        *f'--ros-args -p robot:=krang -p terms:={TERMS} -p {CONVENTION} -p damping:=1.0'.split(),
        # A client that stalls must not stop the controller.
        *f'-p state_timeout:=2.0 -p flight_recorder:={FLIGHTS} --log-level fatal'.split(),
        *f'-p busy_wait:={str(name == "busy_wait").lower()}'.split(),
    ]
    process = subprocess.Popen([sys.executable, __file__] if name == 'echo' else controller)
    try:
        client.wait_for(name)
        yield process
    finally:
        process.kill() if name == 'echo' else process.terminate()  # an echo has no robot to stop
        process.wait(10)


def cpu_time(pid):
    """CPU time that a process has used so far [s]."""
    fields = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


class Client:
    """Sends states as the robot does and receives commands, at the lowest cost."""

    commands = 'effort_commands'

    def __enter__(self):
        import rclpy
        from rclpy.qos import QoSProfile, ReliabilityPolicy
        from sensor_msgs.msg import JointState
        from std_msgs.msg import Float64MultiArray

        import krang_dynamics as kd
        from krang_dynamics.bags.io.joint_state_codec import JointStateWriter
        from krang_dynamics.nodes.ros.executor import StaticExecutor

        rclpy.init()
        self.node = rclpy.create_node('bench_client')
        robot = kd.load_robot('krang')
        self.home = robot.home
        self.writer = JointStateWriter(robot.joint_names)
        self.fields = robot.home, np.zeros(robot.nv), robot.gravity_torque(robot.home)
        self.count = 0
        best_effort = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
        self.states = self.node.create_publisher(JointState, 'joint_states', best_effort)
        self.node.create_subscription(Float64MultiArray, self.commands, self.on_command, 10, raw=True)
        self.executor = StaticExecutor(self.node.context, self.node.get_logger())
        self.executor.add_node(self.node)
        return self

    def __exit__(self, *error):
        import rclpy

        self.node.destroy_node()
        rclpy.shutdown()

    def on_command(self, message):
        self.count += 1

    def send(self):
        now = time.time_ns()
        self.states.publish(self.writer.stamped(divmod(now, 10**9), *self.fields))

    def spin(self, duration):
        end = time.monotonic() + duration
        while time.monotonic() < end:
            self.executor.spin_once(0.005)

    def spin_states(self, duration):
        """States for a time [s], whatever is answered."""
        end = time.monotonic() + duration
        while time.monotonic() < end:
            self.send()
            self.spin(0.002)

    def wait_for(self, name):
        """Until the node answers."""
        if name != 'echo':
            self.bring_up()
        count, end = self.count, time.monotonic() + 20
        while self.count < count + 100:
            self.send()
            self.spin(0.005)
            assert time.monotonic() < end, f'{name} does not answer'

    def bring_up(self):
        from lifecycle_msgs.msg import Transition
        from lifecycle_msgs.srv import ChangeState
        from std_srvs.srv import SetBool

        for transition in (Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE):
            request = ChangeState.Request(transition=Transition(id=transition))
            assert self.call(ChangeState, 'torque_controller/change_state', request).success
        end = time.monotonic() + 10
        while not self.call(SetBool, 'torque_controller/enable', SetBool.Request(data=True)).success:
            assert time.monotonic() < end, 'enable is refused'

    def call(self, kind, name, request):
        client = self.node.create_client(kind, name)
        assert client.wait_for_service(10)
        future = client.call_async(request)
        while not future.done():
            self.send()
            self.spin(0.005)
        self.node.destroy_client(client)
        return future.result()

    def round_trips(self):
        """Times from a state to its command [s]."""
        times = np.zeros(PINGS)
        for k in range(-WARM_UP, PINGS):
            count, start = self.count, time.perf_counter()
            self.send()
            while self.count == count and time.perf_counter() < start + TIMEOUT:
                self.executor.spin_once(0.05)
            times[max(k, 0)] = time.perf_counter() - start
            time.sleep(1e-3)
        return times

    def share_answered(self, duration):
        """States at RATE for `duration` [s]: how many of them got a command."""
        self.count, sent = 0, 0
        start = time.perf_counter()
        while (now := time.perf_counter() - start) < duration:
            if now * RATE >= sent:
                self.send()
                sent += 1
            self.executor.spin_once(max(0.0, sent / RATE - now))
        return min(1.0, self.count / sent)


def echo():
    """A minimal node of rclpy: it answers every state with its efforts."""
    import rclpy
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Float64MultiArray

    rclpy.init()
    node = rclpy.create_node('echo')
    publisher = node.create_publisher(Float64MultiArray, 'effort_commands', 10)
    node.create_subscription(
        JointState,
        'joint_states',
        lambda state: publisher.publish(Float64MultiArray(data=state.effort)),
        rclpy.qos.qos_profile_sensor_data,
    )
    rclpy.spin(node)


if __name__ == '__main__':
    try:
        echo()
    except BaseException:  # an echo is ended by a signal
        sys.exit(0)
