"""The latched topic ~/state."""

from rclpy.node import Node
from std_msgs.msg import String

from ...control.node_state import NodeState
from .qos import LATCHED


class StateTopic:
    """Publishes a NodeState at every event."""

    def __init__(self, node: Node) -> None:
        self._publisher = node.create_publisher(String, '~/state', LATCHED)

    @property
    def topic(self) -> str:
        return self._publisher.topic_name

    def publish(self, state: NodeState) -> String:
        """Publish a state; returns the message."""
        message = String(data=state.to_json())
        self._publisher.publish(message)
        return message
