"""How topics are sent and heard."""

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

# Hears every driver, and never waits for what is lost.
STATES = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
# ros2_control's controllers do not match a best-effort publisher; only the newest command counts.
COMMANDS = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
RELIABLE = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)
LATCHED = QoSProfile(
    depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)
# A stop button is heard however it is published: reliably or carelessly.
STOP_BUTTONS = (RELIABLE, NEWEST)
