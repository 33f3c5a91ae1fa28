"""robot_description: the text of a URDF, or the latched topic that has it."""

from time import monotonic, sleep

from rclpy.exceptions import InvalidTopicNameException
from rclpy.node import Node
from std_msgs.msg import String

from ...errors import ConfigError
from .qos import LATCHED

PATIENCE = 5.0  # longest wait for the topic [s]


def description_of(node: Node, value: str) -> str:
    """The URDF's text; waits for it where `value` names a topic."""
    if not value or '<' in value:
        return value
    try:
        subscription = node.create_subscription(String, value, lambda message: None, LATCHED)
    except (ValueError, InvalidTopicNameException):
        raise ConfigError(f'robot_description is {value!r}: neither the text of a URDF nor a topic') from None
    topic = subscription.topic_name
    try:
        deadline = monotonic() + PATIENCE
        while monotonic() < deadline:
            # Taken directly: this runs in a transition, which blocks the executor.
            with subscription.handle:
                taken = subscription.handle.take_message(String, False)
            if taken is not None:
                return str(taken[0].data)
            sleep(0.01)
    finally:
        node.destroy_subscription(subscription)
    raise ConfigError(f'no robot_description was received on {topic} within {PATIENCE:g} s')
