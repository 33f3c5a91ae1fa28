"""Your own motor driver as a ROS 2 node: commands in, joint states out, with a watchdog.

    python examples/06_driver_node.py [SECONDS]
    ros2 launch krang_dynamics hardware.launch.py robot:=planar_2r terms:=gravity    # in a second terminal

Here a simulated robot is on the bus. Replace Bus.exchange with calls to your hardware.
"""

import sys
import time

import rclpy
from rclpy.node import Node
from rclpy.qos import QoSProfile, qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

import krang_dynamics as kd

PERIOD = 0.002  # [s]
WATCHDOG = 0.1  # the driver brakes after this time without a command [s]


class Bus:
    """The hardware: here a simulated robot with brakes."""

    def __init__(self):
        robot = kd.load_robot('planar_2r')
        self.names = list(robot.joint_names)
        self.plant = kd.make_plant(robot, 'pinocchio')

    def exchange(self, torque):
        """Send torque [N m], or brake if it is None; return measured [rad, rad/s, N m]."""
        if torque is None:
            self.plant.reset(self.plant.q, [0.0, 0.0])
        else:
            self.plant.step(torque, PERIOD)
        return self.plant.q.tolist(), self.plant.v.tolist(), torque or [0.0, 0.0]


class Driver(Node):
    def __init__(self, bus):
        super().__init__('driver')
        self.bus, self.torque, self.received, self.count = bus, None, 0.0, 0
        self.states = self.create_publisher(JointState, 'joint_states', qos_profile_sensor_data)
        topic, newest_only = 'guarded/effort_commands', QoSProfile(depth=1)
        self.create_subscription(Float64MultiArray, topic, self.on_command, newest_only)
        self.create_timer(PERIOD, self.on_timer)

    def on_command(self, command):
        # The names are in the message: a wrong joint order is refused, not executed.
        names = [d.label for d in command.layout.dim[:1]]
        if names != [','.join(self.bus.names)] or len(command.data) != len(self.bus.names):
            self.get_logger().error(f'refused a command that is not for {self.bus.names}', once=True)
            return
        self.torque, self.received = command.data.tolist(), time.monotonic()

    def on_timer(self):
        if time.monotonic() - self.received > WATCHDOG:
            self.torque = None
        state = JointState(name=self.bus.names)
        state.header.stamp = self.get_clock().now().to_msg()  # the time of the measurement
        state.position, state.velocity, state.effort = self.bus.exchange(self.torque)
        self.states.publish(state)
        if self.count % round(1 / PERIOD) == 0:
            print('braking: no command' if self.torque is None else f'torque {self.torque} N m', flush=True)
        self.count += 1


rclpy.init()
driver = Driver(Bus())
end = time.monotonic() + float(sys.argv[1]) if len(sys.argv) > 1 else float('inf')
try:
    while rclpy.ok() and time.monotonic() < end:
        rclpy.spin_once(driver, timeout_sec=0.1)
except KeyboardInterrupt:
    pass
print(f'{driver.count} joint states were published')
