"""Quality of service of the topics."""

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

# Matches every driver's publisher; lost messages are not sent again.
STATES = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
# ros2_control's controllers do not match a best-effort publisher; only the newest command counts.
COMMANDS = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
RELIABLE = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)
LATCHED = QoSProfile(
    depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)
# An emergency stop is received from reliable and best-effort publishers.
STOP_BUTTONS = (RELIABLE, NEWEST)
