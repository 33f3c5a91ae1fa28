"""Which controllers are running."""

from rclpy.node import Node

from ..recorder import CONTROLLERS


def running_controllers(node: Node, name: str = '') -> list[str]:
    """Full names of the nodes that publish a controller's ~/state; only `name` where it is given."""
    running = [
        topic.removesuffix('/state')
        for topic, types in node.get_topic_names_and_types()
        if topic.endswith('/state') and 'std_msgs/msg/String' in types and node.count_publishers(topic)
    ]
    if name:
        return [found for found in running if found == name]
    return [found for found in running if found.rpartition('/')[2] in CONTROLLERS]
