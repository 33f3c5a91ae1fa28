"""Which controller is running."""

from rclpy.node import Node

from ...errors import InputError
from ..recorder import CONTROLLERS


def full_name(node: Node, name: str | None) -> str:
    """The name of a controller with its namespace; empty if none is given."""
    try:
        return '' if name is None else node.resolve_topic_name(name)
    except Exception:  # RCLError and similar ones, which are private
        raise InputError(
            f'--node {name}: a name of ROS has letters, digits, _ and /, such as /arm/torque_controller'
        ) from None


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
