"""Recordings as files: rosbag2 storage, messages, joint names."""
