"""Wrenches in frames outside the robot, by tf2 where it is installed."""

from typing import Any

import numpy as np
import pinocchio as pin
from rclpy.node import Node
from rclpy.time import Time

from ...control.terms.wrench import WrenchSample

try:
    import tf2_ros
except ImportError:  # not on PyPI; part of a ROS installation
    tf2_ros = None


class Transforms:
    """Transforms wrenches to the robot's root link; without tf2 they stay unchanged."""

    def __init__(self, node: Node, root: str) -> None:
        self._root = root
        self._buffer: Any = None
        if tf2_ros is not None:
            self._buffer = tf2_ros.Buffer(node=node)
            self._listener = tf2_ros.TransformListener(self._buffer, node)

    def close(self) -> None:
        if self._buffer is not None:
            self._listener.unregister()

    def to_root(self, sample: WrenchSample) -> WrenchSample:
        """The same wrench in the root link; unchanged where tf2 does not know its frame."""
        if self._buffer is None:
            return sample
        try:
            found = self._buffer.lookup_transform(self._root, sample.frame_id, Time()).transform
        except tf2_ros.TransformException:
            return sample
        q, p = found.rotation, found.translation
        rotation = pin.Quaternion(q.w, q.x, q.y, q.z).normalized().matrix()
        return sample.moved(self._root, rotation, np.array([p.x, p.y, p.z]))
