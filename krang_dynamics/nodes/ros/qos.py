"""QoS profiles."""

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

# Compatible with every publisher; lost messages are not sent again.
STATES = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
# ros2_control's controllers need a reliable publisher; only the newest command matters.
COMMANDS = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
RELIABLE = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)
LATCHED = QoSProfile(
    depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)
# Two subscriptions: reliable delivery from reliable publishers, and best effort from all others.
STOP_BUTTONS = (RELIABLE, NEWEST)
