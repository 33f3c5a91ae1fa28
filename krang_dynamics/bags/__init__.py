"""Recordings: rosbag2 files without ROS, validation and identification of models, replay."""
