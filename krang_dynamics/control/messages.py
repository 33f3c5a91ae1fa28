"""From ROS messages, of rclpy or rosbags, to the samples that a controller takes."""

import re
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import InputError
from .reference.cartesian_target import PoseSample, TwistSample
from .reference.trajectory import JointTrajectory
from .sensors import ImuSample, OdomSample
from .terms.wrench import WrenchSample


def seconds(stamp: Any) -> float:
    """builtin_interfaces/Time or Duration [s]."""
    return float(stamp.sec + 1e-9 * stamp.nanosec)


def imu_sample(message: Any, arrival: float) -> ImuSample:
    """sensor_msgs/Imu; refused if its covariance marks the orientation as absent."""
    if message.orientation_covariance[0] == -1:
        raise InputError('imu: the message has no orientation (orientation_covariance[0] is -1)')
    return ImuSample(
        _quaternion(message.orientation),
        _vector(message.angular_velocity),
        seconds(message.header.stamp),
        arrival,
    )


def odom_sample(message: Any, arrival: float) -> OdomSample:
    """nav_msgs/Odometry: pose in the world, twist in the axes of the body."""
    pose, twist = message.pose.pose, message.twist.twist
    return OdomSample(
        pose.position.x,
        pose.position.y,
        _quaternion(pose.orientation),
        _vector(twist.linear),
        _vector(twist.angular),
        seconds(message.header.stamp),
        arrival,
    )


def wrench_sample(frame: str, message: Any, arrival: float) -> WrenchSample:
    """geometry_msgs/WrenchStamped for an end effector."""
    wrench = np.concatenate([_vector(message.wrench.force), _vector(message.wrench.torque)])
    return WrenchSample(frame, message.header.frame_id, wrench, arrival)


def pose_sample(frame: str, message: Any, arrival: float) -> PoseSample:
    """geometry_msgs/PoseStamped, the target of a hand."""
    pose = message.pose
    return PoseSample(
        frame, message.header.frame_id, _vector(pose.position), _quaternion(pose.orientation), arrival
    )


def twist_sample(frame: str, message: Any, arrival: float) -> TwistSample:
    """geometry_msgs/TwistStamped, the target of a hand."""
    twist = np.concatenate([_vector(message.twist.linear), _vector(message.twist.angular)])
    return TwistSample(frame, message.header.frame_id, twist, arrival)


def joint_trajectory(message: Any) -> JointTrajectory:
    """trajectory_msgs/JointTrajectory; a field must be in all points or in none."""
    points = message.points
    velocities, accelerations, efforts = (
        _rows(name, rows) if any(len(row) for row in rows) else None
        for name in ('velocities', 'accelerations', 'effort')
        for rows in [[getattr(point, name) for point in points]]
    )
    return JointTrajectory(
        tuple(message.joint_names),
        np.array([seconds(point.time_from_start) for point in points]),
        _rows('positions', [point.positions for point in points]),
        velocities,
        accelerations,
        efforts,
        seconds(message.header.stamp),
    )


def _rows(name: str, rows: list[Any]) -> Array:
    if len({len(row) for row in rows}) > 1:
        raise InputError(f'trajectory: {name} must have the same length in all points')
    return np.array([np.asarray(row, dtype=float) for row in rows])


def _quaternion(q: Any) -> Array:
    return np.array([q.x, q.y, q.z, q.w])


def _vector(v: Any) -> Array:
    return np.array([v.x, v.y, v.z])


def topic_word(name: str) -> str:
    """A frame's name as a part of a topic's name: '_' in place of what ROS does not allow."""
    word = re.sub('[^A-Za-z0-9_]+', '_', name)
    return f'_{word}' if word[:1].isdigit() else word
