"""~/state: what the node is doing and with which numbers, as JSON, latched."""

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any

import numpy as np
from rclpy.node import Node
from std_msgs.msg import String

from ...safety.modes import Fault
from .qos import LATCHED


class StateTopic:
    """The latched topic; only changes are published."""

    def __init__(self, node: Node) -> None:
        self._publisher = node.create_publisher(String, '~/state', LATCHED)

    @property
    def topic(self) -> str:
        return self._publisher.topic_name

    def publish(self, **entries: Any) -> String:
        """Publish the entries; arrays become lists, and what is not finite becomes null."""
        message = String(data=json.dumps(_plain(entries)))
        self._publisher.publish(message)
        return message


def fault_entry(fault: Fault | None) -> dict[str, str] | None:
    return None if fault is None else {'kind': fault.kind, 'reason': fault.reason}


def _plain(value: Any) -> Any:
    """The same in the words of JSON."""
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if value is None or isinstance(value, (str, int)) else str(value)
