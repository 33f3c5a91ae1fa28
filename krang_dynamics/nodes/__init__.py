"""ROS 2 shells around the mathematics: parameters, messages, lifecycle, executor."""
