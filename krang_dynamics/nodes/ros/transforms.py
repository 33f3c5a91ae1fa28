"""Wrenches and targets in frames outside the robot, converted by tf2 if it is installed."""

from typing import Any, TypeVar

import numpy as np
import pinocchio as pin
from rclpy.node import Node
from rclpy.time import Time

from ...control.reference.cartesian_target import PoseSample, TwistSample
from ...control.terms.wrench import WrenchSample

try:
    import tf2_ros
except ImportError:  # a ROS installation has it, PyPI does not
    tf2_ros = None

Sample = TypeVar('Sample', WrenchSample, PoseSample, TwistSample)


class Transforms:
    """Transforms samples to the robot's root link; without tf2 they stay unchanged."""

    def __init__(self, node: Node, root: str) -> None:
        self._root = root
        self._buffer: Any = None
        if tf2_ros is not None:
            self._buffer = tf2_ros.Buffer(node=node)
            self._listener = tf2_ros.TransformListener(self._buffer, node)

    def close(self) -> None:
        if self._buffer is not None:
            self._listener.unregister()

    def to_root(self, sample: Sample) -> Sample:
        """The same in the root link; unchanged if tf2 does not know its frame."""
        if self._buffer is None:
            return sample
        try:
            found = self._buffer.lookup_transform(self._root, sample.frame_id, Time()).transform
        except tf2_ros.TransformException:
            return sample
        q, p = found.rotation, found.translation
        rotation = pin.Quaternion(q.w, q.x, q.y, q.z).normalized().matrix()
        return sample.moved(self._root, rotation, np.array([p.x, p.y, p.z]))
