"""Recordings: rosbag2 files read and written without ROS, and what they say about a robot's model."""
