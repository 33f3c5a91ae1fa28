"""Which controller is running."""

from rclpy.node import Node

from ..recorder import CONTROLLERS


def find_controller(node: Node, name: str = '') -> tuple[str, str]:
    """Full name of the only node that publishes a controller's ~/state, or why there is none.

    Only `name` is looked for where it is given.
    """
    running = [
        topic.removesuffix('/state')
        for topic, types in node.get_topic_names_and_types()
        if topic.endswith('/state') and 'std_msgs/msg/String' in types and node.count_publishers(topic)
    ]
    found = [one for one in running if (one == name if name else one.rpartition('/')[2] in CONTROLLERS)]
    if len(found) > 1:
        return '', f'several controllers are running: {", ".join(found)}; choose one with --node'
    if not found:
        return '', f'no controller{name and f" {name}"} is running; krang sim ROBOT --control starts one'
    return found[0], ''
