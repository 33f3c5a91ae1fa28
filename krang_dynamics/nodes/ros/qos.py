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
# Three subscriptions: the latched state of transient-local publishers, reliable delivery from other reliable
# publishers, and best effort from all others. Volatile publishers do not match the first one.
STOP_BUTTONS = (LATCHED, RELIABLE, NEWEST)
